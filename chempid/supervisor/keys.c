/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The keys of a job and its fences at one node; see super.h. An answer that is
 * not here is asked for once, of the node of the key's owner.
 */
#include <errno.h>

#include "chempid/supervisor/super.h"

/* An answer that cannot be sent breaks its link, and so ends the job. */
static void serve(void *arg, const struct chempi_kvs_waiter *waiter,
                  const struct chempi_kvs_entry *e)
{
    struct chempi_super *s = arg;
    struct chempi_link *to =
        waiter->is_node ? &s->up : &s->ranks[waiter->index].link;
    struct chempi_writer *w;

    if (!to->is_open)
        return;
    w = waiter->is_node ? chempi_link_begin(to, CHEMPI_MSG_ANSWER, s->spec->job)
                        : chempi_link_begin(to, CHEMPI_MSG_GOT, 0);
    if (waiter->is_node)
        chempi_wire_put_u32(w, waiter->index);
    chempi_wire_put_u32(w, e->rank);
    chempi_wire_put_str(w, e->key);
    chempi_wire_put_blob(w, e->value, e->len);
    chempi_link_end(to);
    if (!waiter->is_node)
        chempi_share_wake(&s->share, waiter->index);
}

int chempi_keys_put(struct chempi_rank *rank, const char *key,
                    const void *value, size_t len, struct chempi_err *err)
{
    struct chempi_super *s = rank->super;
    struct chempi_kvs_entry *e =
        chempi_kvs_entry(&s->kvs, rank->world, key, true);

    if (!e)
        return chempi_err_set(err, -ENOMEM, "out of memory");
    if (!e->has_value && ++rank->keys > CHEMPI_RANK_KEYS_MAX)
        return chempi_err_set(err, -ENOBUFS,
                              "no room for key %s (limit: %u keys)", key,
                              CHEMPI_RANK_KEYS_MAX);
    if (chempi_kvs_set(&s->kvs, e, value, len, serve, s))
        return chempi_err_set(err, -ENOMEM, "out of memory");
    return 0;
}

/* Without memory those who ask wait in vain, and end the job as for a lost
 * connection. */
void chempi_keys_leave(struct chempi_rank *rank)
{
    struct chempi_super *s = rank->super;
    struct chempi_kvs_entry *e =
        chempi_kvs_entry(&s->kvs, rank->world, CHEMPI_KEY_LEFT, true);

    if (e && !e->has_value)
        (void)chempi_kvs_set(&s->kvs, e, NULL, 0, serve, s);
}

/* Serve the waiter now or when the value comes; ask its owner's node once. */
static int look_up(struct chempi_super *s, uint32_t owner, const char *key,
                   struct chempi_kvs_waiter waiter, struct chempi_err *err)
{
    const uint32_t home = s->spec->node_of_rank[owner];
    struct chempi_kvs_entry *e =
        chempi_kvs_entry(&s->kvs, owner, key, home == s->node);
    bool is_first;
    struct chempi_writer *w;

    if (!e)
        return chempi_err_set(err, -ENOMEM, "out of memory");
    if (e->has_value) {
        serve(s, &waiter, e);
        return 0;
    }
    is_first = e->waiter_count == 0;
    if (chempi_kvs_wait(&s->kvs, e, waiter))
        return chempi_err_set(err, -ENOBUFS,
                              "too many questions for keys that nobody has "
                              "published (limit: %u)",
                              CHEMPI_RANK_GETS_MAX);
    if (home == s->node || !is_first)
        return 0;
    w = chempi_link_begin(&s->up, CHEMPI_MSG_ASK, s->spec->job);
    chempi_wire_put_u32(w, home);
    chempi_wire_put_u32(w, s->node);
    chempi_wire_put_u32(w, owner);
    chempi_wire_put_str(w, key);
    chempi_link_end(&s->up);
    return 0;
}

int chempi_keys_get(struct chempi_rank *rank, uint32_t owner, const char *key,
                    struct chempi_err *err)
{
    return look_up(rank->super, owner, key,
                   (struct chempi_kvs_waiter){.index = rank->local}, err);
}

int chempi_keys_take_ask(struct chempi_super *s, struct chempi_reader *r,
                         struct chempi_err *err)
{
    const uint32_t to = chempi_wire_get_u32(r);
    const uint32_t from = chempi_wire_get_u32(r);
    const uint32_t rank = chempi_wire_get_u32(r);
    const char *key = chempi_wire_get_str(r, CHEMPI_KVS_KEY_MAX);

    if (!chempi_wire_is_done(r) || to != s->node ||
        from >= s->spec->node_count || rank >= chempi_spec_procs(s->spec) ||
        s->spec->node_of_rank[rank] != s->node || !*key)
        return chempi_control_refuse(err, "question");
    return look_up(s, rank, key,
                   (struct chempi_kvs_waiter){.is_node = true, .index = from},
                   err);
}

int chempi_keys_take_answer(struct chempi_super *s, struct chempi_reader *r,
                            struct chempi_err *err)
{
    const uint32_t to = chempi_wire_get_u32(r);
    const uint32_t rank = chempi_wire_get_u32(r);
    const char *key = chempi_wire_get_str(r, CHEMPI_KVS_KEY_MAX);
    size_t len;
    const uint8_t *value = chempi_wire_get_blob(r, CHEMPI_KVS_VALUE_MAX, &len);
    struct chempi_kvs_entry *e;

    if (!chempi_wire_is_done(r) || to != s->node ||
        rank >= chempi_spec_procs(s->spec) ||
        s->spec->node_of_rank[rank] == s->node || !*key)
        return chempi_control_refuse(err, "answer");
    e = chempi_kvs_entry(&s->kvs, rank, key, false);
    if (!e || chempi_kvs_set(&s->kvs, e, value, len, serve, s))
        return chempi_err_set(err, -ENOMEM, "out of memory");
    return 0;
}

/* ---- fences -------------------------------------------------------------- */

void chempi_keys_enter(struct chempi_super *s)
{
    struct chempi_writer *w =
        chempi_link_begin(&s->up, CHEMPI_MSG_ENTERED, s->spec->job);

    chempi_wire_put_u64(w, ++s->fence);
    chempi_link_end(&s->up);
}

/* Fences wait for it. */
static bool is_missed(const struct chempi_super *s, const struct chempi_rank *r)
{
    return r->pid > 0 || !s->spec->survives;
}

static bool is_nobody_here(const struct chempi_super *s)
{
    for (uint32_t i = 0; i < s->local_size; i++)
        if (is_missed(s, &s->ranks[i]))
            return false;
    return s->spec->node_count > 1;
}

static void release(struct chempi_super *s, uint64_t fence)
{
    uint8_t data[8];

    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)(fence >> (8 * i));
    s->released = fence;
    chempi_kvs_forget(&s->kvs);
    for (uint32_t i = 0; i < s->local_size; i++)
        chempi_control_send(&s->ranks[i], CHEMPI_MSG_FENCED, data,
                            sizeof(data));
    if (is_nobody_here(s))
        chempi_keys_enter(s); /* nobody here keeps others waiting */
}

/* With an absent rank a fence, or a message to it, would wait for ever. */
void chempi_keys_miss(struct chempi_super *s)
{
    for (uint32_t i = 0; s->absent && i < s->local_size; i++)
        if (s->ranks[i].pid > 0 &&
            (s->ranks[i].needs_world || s->ranks[i].fence > s->released))
            chempi_tell_ended(&s->ranks[i], CHEMPI_END_MISSED, s->absent - 1,
                              "");
}

int chempi_keys_take_absent(struct chempi_super *s, struct chempi_reader *r,
                            struct chempi_err *err)
{
    uint32_t rank;

    (void)chempi_wire_get_u32(r);
    rank = chempi_wire_get_u32(r);
    if (!chempi_wire_is_done(r) || rank >= s->spec->size)
        return chempi_control_refuse(err, "absent");
    s->absent = rank + 1;
    chempi_keys_miss(s);
    return 0;
}

/* Does a rank keep the next fence waiting? Looked for where the last one was:
 * all that enter a fence must not look at all others. */
static bool is_late(struct chempi_super *s)
{
    for (uint32_t i = 0; i < s->local_size; i++) {
        const struct chempi_rank *rank = &s->ranks[s->late];

        if (is_missed(s, rank) && rank->fence <= s->fence)
            return true;
        s->late = (s->late + 1) % s->local_size;
    }
    return false;
}

void chempi_keys_fence(struct chempi_super *s)
{
    uint64_t low = UINT64_MAX;

    chempi_keys_miss(s);
    if (is_late(s))
        return;
    for (uint32_t i = 0; i < s->local_size; i++)
        if (is_missed(s, &s->ranks[i]) && s->ranks[i].fence < low)
            low = s->ranks[i].fence;
    if (low == UINT64_MAX)
        low = s->released + (s->spec->node_count > 1); /* see release() */
    while (s->fence < low) {
        if (s->spec->node_count == 1)
            release(s, ++s->fence);
        else
            chempi_keys_enter(s);
    }
}

int chempi_keys_take_release(struct chempi_super *s, struct chempi_reader *r,
                             struct chempi_err *err)
{
    const uint64_t number = chempi_wire_get_u64(r);

    if (!chempi_wire_is_done(r) || number != s->released + 1 ||
        number > s->fence)
        return chempi_control_refuse(err, "release");
    release(s, number);
    return 0;
}
