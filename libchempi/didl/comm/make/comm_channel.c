/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The few collective operations that making a communicator needs, on the
 * internal context of its parent and over any subset of its members. They
 * must work before the collectives module knows the communicator; data is
 * small except in allgather.
 *
 * A member that has failed takes part to the end, so that nobody waits for it:
 * in an agreement it says so, elsewhere it sends empty messages, of which
 * whoever gets one fails, too. One that has heard of a loss may have gone on to
 * its next operation: who finds that what has come is not what it expects waits
 * for the news.
 */
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "libchempi/didl/base/status.h"
#include "libchempi/didl/comm/make/comm_circle.h"
#include "libchempi/didl/comm/make/comm_make.h"
#include "libchempi/didl/comm/message.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/loss.h"

static struct chempi_datatype *bytes(void)
{
    return chempi_datatype_lookup(MPI_BYTE);
}

struct chempi_comm_channel chempi_comm_channel(struct chempi_comm *comm)
{
    struct chempi_comm *side = comm->is_inter ? comm->local_comm : comm;

    return (struct chempi_comm_channel){
        .comm = side,
        .size = (int)side->size,
        .me = side->rank,
        .tag = (int)(comm->internal_tag++ & INT32_MAX),
        .kind = CHEMPI_CONTEXT_INTERNAL,
        .inter = comm->is_inter ? comm : NULL};
}

struct chempi_comm_channel
chempi_comm_channel_from(const struct chempi_comm_channel *ch, int first)
{
    struct chempi_comm_channel rotated = *ch;

    rotated.first = first;
    rotated.me = (ch->me - first + ch->size) % ch->size;
    return rotated;
}

/* Bytes that come in, at most len. */
struct input {
    void *buf;
    size_t len;
    size_t got;
};

/* One step over the given communicator; blocks. Any part may be missing. */
static int exchange(const struct chempi_comm_channel *ch,
                    struct chempi_comm *comm, int to, const void *out,
                    size_t out_len, int from, struct input *in)
{
    MPI_Status status;
    int rc;

    if (from == MPI_PROC_NULL)
        return chempi_message_send_on(out, (MPI_Count)out_len, bytes(), to,
                                      ch->tag, comm, ch->kind);
    if (to == MPI_PROC_NULL)
        rc = chempi_message_recv_on(in->buf, (MPI_Count)in->len, bytes(), from,
                                    ch->tag, comm, ch->kind, &status);
    else
        rc = chempi_message_sendrecv_on(out, (MPI_Count)out_len, bytes(), to,
                                        ch->tag, in->buf, (MPI_Count)in->len,
                                        bytes(), from, ch->tag, comm, ch->kind,
                                        &status);
    in->got = rc ? 0 : (size_t)chempi_status_bytes(&status);
    return rc;
}

/* Whom a step is with, as ranks of that communicator. */
struct partners {
    struct chempi_comm *comm;
    int to;
    int from;
};

static struct partners partners_of(const struct chempi_comm_channel *ch,
                                   const struct chempi_comm_step *step)
{
    if (step->is_inter)
        return (struct partners){.comm = ch->inter};
    return (struct partners){
        .comm = ch->comm,
        .to =
            step->to < 0 ? MPI_PROC_NULL : chempi_comm_step_rank(ch, step->to),
        .from = step->from < 0 ? MPI_PROC_NULL
                               : chempi_comm_step_rank(ch, step->from)};
}

/* The messages of one step. */
static int take_step(const struct chempi_comm_channel *ch,
                     const struct chempi_comm_step *step, const void *out,
                     size_t out_len, struct input *in)
{
    const struct partners p = partners_of(ch, step);

    return exchange(ch, p.comm, p.to, out, out_len, p.from, in);
}

static bool has_input(const struct chempi_comm_step *step)
{
    return step->is_inter || step->from >= 0;
}

/* This member has come to rc, and had come to `before` already: of a loss that
 * has made another member's message a misfit the class of the loss. It is
 * waited for once. */
static int judge(const struct chempi_comm_channel *ch, int before, int rc)
{
    return CHEMPI_UNLIKELY(rc != before &&
                           (rc == MPI_ERR_COUNT || rc == MPI_ERR_TRUNCATE ||
                            rc == MPI_ERR_INTERN))
               ? chempi_loss_await_news(ch->comm, rc)
               : rc;
}

/* The same where what comes has a length that is known: a member that has
 * failed sends nothing. */
static int take_whole_step(const struct chempi_comm_channel *ch,
                           const struct chempi_comm_step *step, const void *out,
                           size_t out_len, void *buf, size_t len)
{
    struct input in = {.buf = buf, .len = len};
    const int rc = take_step(ch, step, out, out_len, &in);

    if (rc == MPI_SUCCESS && has_input(step) && in.got != len)
        return chempi_message_note_too_little(partners_of(ch, step).from,
                                              in.got, len);
    return rc;
}

/* A member that has failed takes its steps without data: nobody waits for it,
 * and it waits for nobody. */
static void pass_step(const struct chempi_comm_channel *ch,
                      const struct chempi_comm_step *step)
{
    const struct partners p = partners_of(ch, step);

    if (p.from != MPI_PROC_NULL)
        chempi_message_pass(false, p.from, ch->tag, p.comm, ch->kind, false);
    if (p.to != MPI_PROC_NULL)
        chempi_message_pass(true, p.to, ch->tag, p.comm, ch->kind, false);
}

/* ---- values ---- */

void chempi_comm_step_take(const struct chempi_comm_step *step, int64_t *vals,
                           const int64_t *other, int n)
{
    for (int i = 0; i < n; i++)
        if (!step->is_max || other[i] > vals[i])
            vals[i] = other[i];
}

static int hear_error(int64_t error)
{
    return chempi_error_set(chempi_error_class_of_others(error),
                            "another member failed in an agreement of all");
}

int chempi_comm_step_error(int64_t error)
{
    return error == MPI_SUCCESS ? MPI_SUCCESS : hear_error(error);
}

/* One step of a maximum over n values and their mark. */
static int take_vote(const struct chempi_comm_channel *ch,
                     const struct chempi_comm_step *step, const int64_t *mine,
                     int64_t *other, int n)
{
    const size_t len = (size_t)n * sizeof(*mine);
    const struct partners p = partners_of(ch, step);

    return ch->circle ? chempi_comm_circle_step(ch, false, p.to, mine, p.from,
                                                other, n)
                      : take_whole_step(ch, step, mine, len, other, len);
}

/* A member that has failed (error), or fails now, since it has lost another
 * one, takes all its steps nevertheless: others wait for them, and learn of it
 * by one more value. */
int chempi_comm_max(const struct chempi_comm_channel *ch, int error,
                    int64_t *vals, int n)
{
    struct chempi_comm_step steps[CHEMPI_COMM_STEPS_MAX];
    int64_t mine[CHEMPI_COMM_VALS_MAX + 1];
    int64_t other[CHEMPI_COMM_VALS_MAX + 1];
    const size_t len = (size_t)n * sizeof(*vals);
    const int count = chempi_comm_plan_max(ch, steps);

    memcpy(mine, vals, len);
    mine[n] = chempi_comm_mark(ch, error);
    for (int i = 0; i < count; i++) {
        const struct chempi_comm_step *step = &steps[i];
        int rc = take_vote(ch, step, mine, other, n + 1);

        if (rc == MPI_SUCCESS && has_input(step))
            chempi_comm_step_take(step, mine, other, n + 1);
        if (rc != MPI_SUCCESS) /* others are to hear of it */
            error = judge(ch, error, rc);
        if (chempi_comm_mark(ch, error) > mine[n])
            mine[n] = chempi_comm_mark(ch, error);
    }
    memcpy(vals, mine, len);
    if (mine[n] == chempi_comm_mark(ch, error))
        return error;
    return hear_error(chempi_comm_marked_error(mine[n]));
}

/* One step of a circle's data, n words and their mark; without them when this
 * member has failed. */
static int take_data(const struct chempi_comm_channel *ch,
                     const struct chempi_comm_step *step, int rc,
                     int64_t *words, int n)
{
    const int64_t mark = chempi_comm_mark(ch, rc) | CHEMPI_COMM_MARK_DATA;
    const struct partners p = partners_of(ch, step);
    int64_t none = mark;
    int code;

    if (rc != MPI_SUCCESS) { /* the first error counts */
        (void)chempi_comm_circle_step(ch, true, p.to, &none, p.from, &none, 1);
        return rc;
    }
    words[n] = mark;
    code = chempi_comm_circle_step(ch, true, p.to, words, p.from, words, n + 1);
    if (code == MPI_SUCCESS && has_input(step))
        code = chempi_comm_step_error(chempi_comm_marked_error(words[n]));
    return code;
}

/* In a circle each message says whom it is for: who has left it, since a member
 * is lost, finds it under the same tag later. */
static int bcast_in_circle(const struct chempi_comm_channel *ch, int rc,
                           const struct chempi_comm_step *steps, int count,
                           void *buf, size_t len)
{
    const size_t n = (len + sizeof(int64_t) - 1) / sizeof(int64_t);
    int64_t *words =
        rc == MPI_SUCCESS ? chempi_sys->calloc(n + 1, sizeof(*words)) : NULL;

    if (rc == MPI_SUCCESS && !words)
        rc = chempi_error_set(
            MPI_ERR_NO_MEM, "no room to hand %zu bytes on to the members", len);
    if (rc == MPI_SUCCESS && ch->me == 0)
        memcpy(words, buf, len);
    for (int i = 0; i < count; i++)
        rc = take_data(ch, &steps[i], rc, words, (int)n);
    if (rc == MPI_SUCCESS && ch->me != 0)
        memcpy(buf, words, len);
    free(words);
    return rc;
}

int chempi_comm_vote(struct chempi_comm *comm, int rc)
{
    const struct chempi_comm_channel all = chempi_comm_channel(comm);
    int64_t nothing = 0;

    return chempi_comm_max(&all, rc, &nothing, 1);
}

int chempi_comm_bcast(const struct chempi_comm_channel *ch, int rc, void *buf,
                      size_t len)
{
    struct chempi_comm_step steps[CHEMPI_COMM_STEPS_MAX];
    const int count = chempi_comm_plan_bcast(ch, steps);
    const int before = rc;

    if (ch->circle)
        return bcast_in_circle(ch, rc, steps, count, buf, len);
    for (int i = 0; i < count; i++)
        if (rc == MPI_SUCCESS)
            rc = take_whole_step(ch, &steps[i], buf, len, buf, len);
        else
            pass_step(ch, &steps[i]);
    return judge(ch, before, rc); /* nobody waits for this member any more */
}

/* ---- data of any size ---- */

/* Bruck's algorithm: blocks are collected in the order me, me + 1, ... */
static int gather_rotated(const struct chempi_comm_channel *ch, int rc,
                          char *blocks, size_t len)
{
    for (int have = 1; have < ch->size; have *= 2) {
        int n = have < ch->size - have ? have : ch->size - have;
        const struct chempi_comm_step step = {
            .to = (ch->me - have + ch->size) % ch->size,
            .from = (ch->me + have) % ch->size};

        if (rc == MPI_SUCCESS)
            rc = take_whole_step(ch, &step, blocks, (size_t)n * len,
                                 blocks + (size_t)have * len, (size_t)n * len);
        else
            pass_step(ch, &step);
    }
    return rc;
}

static int gather_in_turn(const struct chempi_comm_channel *ch, int rc,
                          const void *mine, size_t len, char *blocks, char *all)
{
    size_t total = (size_t)ch->size * len;
    size_t before = (size_t)ch->me * len;

    if (rc == MPI_SUCCESS)
        memcpy(blocks, mine, len);
    rc = gather_rotated(ch, rc, blocks, len);
    if (rc == MPI_SUCCESS) {
        memcpy(all + before, blocks, total - before);
        memcpy(all, blocks + (total - before), before);
    }
    return rc;
}

/* Blocks that a member has, each behind the number of whose it is. */
struct bundle {
    uint32_t count;
    char blocks[];
};

static size_t bundle_len(uint32_t count, size_t len)
{
    return sizeof(struct bundle) + count * (sizeof(uint32_t) + len);
}

static void add_block(struct bundle *b, size_t len, uint32_t member,
                      const void *block)
{
    char *at = (char *)b + bundle_len(b->count++, len);

    memcpy(at, &member, sizeof(member));
    memcpy(at + sizeof(member), block, len);
}

/* False: they are not those of all members. */
static bool unbundle(const struct bundle *b, uint32_t size, size_t len,
                     char *all)
{
    const char *at = b->blocks;

    if (b->count != size)
        return false;
    for (uint32_t i = 0; i < size; i++) {
        uint32_t member;

        memcpy(&member, at, sizeof(member));
        if (member >= size)
            return false;
        memcpy(all + member * len, at + sizeof(member), len);
        at += sizeof(member) + len;
    }
    return true;
}

/* Take over what has come in, at most the blocks of `size` members. */
static int add_blocks(const struct chempi_comm_channel *ch,
                      const struct chempi_comm_step *step, size_t len,
                      struct bundle *have, const struct input *in)
{
    const struct bundle *other = in->buf;
    const uint32_t before = step->is_max ? have->count : 0;

    if (in->got < sizeof(*other))
        return chempi_message_note_too_little(partners_of(ch, step).from,
                                              in->got, bundle_len(1, len));
    if (other->count > (uint32_t)ch->size - before ||
        in->got != bundle_len(other->count, len))
        return chempi_error_set(
            MPI_ERR_INTERN, "member %d has more than all members", step->from);
    memcpy((char *)have + bundle_len(before, len), other->blocks,
           bundle_len(other->count, len) - sizeof(*other));
    have->count = before + other->count;
    return MPI_SUCCESS;
}

static int gather_by_plan(const struct chempi_comm_channel *ch, int rc,
                          const struct chempi_comm_step *steps, int count,
                          size_t len, struct bundle *have, struct bundle *other,
                          char *all)
{
    const uint32_t size = (uint32_t)ch->size;

    for (int i = 0; i < count; i++) {
        struct input in = {.buf = other, .len = bundle_len(size, len)};

        if (rc != MPI_SUCCESS) {
            pass_step(ch, &steps[i]);
            continue;
        }
        rc = take_step(ch, &steps[i], have, bundle_len(have->count, len), &in);
        if (rc == MPI_SUCCESS && has_input(&steps[i]))
            rc = add_blocks(ch, &steps[i], len, have, &in);
    }
    if (rc == MPI_SUCCESS && !unbundle(have, size, len, all))
        rc = chempi_error_set(MPI_ERR_INTERN, "what all members have was not "
                                              "collected");
    return rc;
}

int chempi_comm_allgather(const struct chempi_comm_channel *ch, int rc,
                          const void *mine, size_t len, void *all)
{
    struct chempi_comm_step steps[CHEMPI_COMM_STEPS_MAX];
    const int count = chempi_comm_plan_gather(ch, steps);
    /* Of a bundle; the next one is aligned. */
    const size_t room =
        count ? (bundle_len((uint32_t)ch->size, len) + 7) / 8 * 8 : 0;
    const size_t total = count ? 2 * room : (size_t)ch->size * len;
    const int before = rc;
    char *blocks =
        rc == MPI_SUCCESS ? chempi_sys->calloc(1, total ? total : 1) : NULL;

    if (rc == MPI_SUCCESS && !blocks)
        rc = chempi_error_set(MPI_ERR_NO_MEM,
                              "no room to collect %zu bytes "
                              "from the members",
                              total);
    if (count) {
        struct bundle *have = (struct bundle *)(void *)blocks;
        struct bundle *other =
            blocks ? (struct bundle *)(void *)(blocks + room) : NULL;

        if (blocks)
            add_block(have, len, (uint32_t)ch->me, mine);
        rc = gather_by_plan(ch, rc, steps, count, len, have, other, all);
    } else {
        rc = gather_in_turn(ch, rc, mine, len, blocks, all);
    }
    free(blocks);
    return judge(ch, before, rc);
}

/* In the place of a length: the leader's group has failed. */
#define NO_LENGTH (UINT64_MAX - UINT32_MAX)

static int read_length(const struct chempi_comm_far *far, size_t got,
                       uint64_t theirs)
{
    if (got != sizeof(theirs))
        return chempi_message_note_too_little(far->rank, got, sizeof(theirs));
    if (theirs < NO_LENGTH)
        return MPI_SUCCESS;
    return chempi_error_set(
        chempi_error_class_of_others((int64_t)(theirs - NO_LENGTH)),
        "the other group has failed");
}

/* One message to the other leader, and one from there. */
static int swap_messages(const struct chempi_comm_far *far, const void *out,
                         size_t out_len, void *buf, size_t len, size_t *got)
{
    MPI_Status status;
    int rc = chempi_message_sendrecv_on(
        out, (MPI_Count)out_len, bytes(), far->rank, far->tag, buf,
        (MPI_Count)len, bytes(), far->rank, far->tag, far->comm, far->kind,
        &status);

    *got = rc ? 0 : (size_t)chempi_status_bytes(&status);
    return rc;
}

/* The leader has failed: the other one gets a message without data for its own,
 * which is dropped. */
static void pass_swap(const struct chempi_comm_far *far)
{
    chempi_message_pass(false, far->rank, far->tag, far->comm, far->kind,
                        false);
    chempi_message_pass(true, far->rank, far->tag, far->comm, far->kind, false);
}

/* The data of both; who has no room for the other's drops it. */
static int swap_data(const struct chempi_comm_far *far, const void *mine,
                     size_t len, void **out, uint64_t out_len)
{
    size_t got;
    int rc;

    *out = chempi_sys->malloc(out_len ? out_len : 1);
    if (far->is_nobody && *out)
        return MPI_SUCCESS;
    if (*out) {
        rc = swap_messages(far, mine, len, *out, out_len, &got);
        if (rc == MPI_SUCCESS && got != out_len)
            rc = chempi_message_note_too_little(far->rank, got, out_len);
        return rc;
    }
    if (!far->is_nobody) {
        chempi_message_pass(false, far->rank, far->tag, far->comm, far->kind,
                            false);
        (void)chempi_message_send_on(mine, (MPI_Count)len, bytes(), far->rank,
                                     far->tag, far->comm, far->kind);
    }
    return chempi_error_set(MPI_ERR_NO_MEM,
                            "no room for %llu bytes from "
                            "the other group",
                            (unsigned long long)out_len);
}

/* Whoever they meet gets two messages of them, however it goes, since neither
 * knows what the other one has heard. */
int chempi_comm_swap_leaders(const struct chempi_comm_far *far, int rc,
                             const void *mine, size_t len, void **out,
                             uint64_t *out_len)
{
    uint64_t my_len = rc ? NO_LENGTH + (uint64_t)rc : len;
    const bool is_met = far->error == MPI_SUCCESS && !far->is_nobody;
    size_t got;
    int code = far->error;

    if (is_met && far->exchange)
        return far->exchange(far->arg, rc, mine, len, out, out_len);
    if (is_met) {
        code = swap_messages(far, &my_len, sizeof(my_len), out_len,
                             sizeof(*out_len), &got);
        if (code == MPI_SUCCESS)
            code = read_length(far, got, *out_len);
    }
    if (rc == MPI_SUCCESS && code == MPI_SUCCESS)
        return swap_data(far, mine, len, out, *out_len);
    if (is_met)
        pass_swap(far);
    return rc ? rc : code;
}

int chempi_comm_hear_leader(int64_t value)
{
    const int code = chempi_error_class_of_others(value);

    if (code == MPI_ERR_PROC_ABORTED)
        return code; /* chempi_error_explain() has words */
    return chempi_error_set(code, "this group's leader has failed, or the "
                                  "other group's, and says why");
}

int chempi_comm_swap(const struct chempi_comm_channel *local,
                     const struct chempi_comm_far *far, int rc,
                     const void *mine, size_t len, void **out, size_t *out_len)
{
    bool is_leader = local->me == 0;
    void *data = NULL;
    uint64_t head[2] = {0, MPI_SUCCESS}; /* length, leader's error class */
    int code;

    if (is_leader)
        head[1] = (uint64_t)chempi_comm_swap_leaders(far, rc, mine, len, &data,
                                                     &head[0]);
    code = chempi_comm_bcast(local, MPI_SUCCESS, head, sizeof(head));
    if (code == MPI_SUCCESS && head[1] != MPI_SUCCESS)
        code = is_leader ? (int)head[1]
                         : chempi_comm_hear_leader((int64_t)head[1]);
    if (code != MPI_SUCCESS) {
        free(data);
        return rc ? rc : code;
    }
    if (rc == MPI_SUCCESS && !is_leader) {
        data = chempi_sys->malloc(head[0] ? head[0] : 1);
        if (!data)
            rc = chempi_error_set(MPI_ERR_NO_MEM,
                                  "no room for %llu bytes from "
                                  "the other group",
                                  (unsigned long long)head[0]);
    }
    rc = chempi_comm_bcast(local, rc, data, head[0]);
    if (rc != MPI_SUCCESS) {
        free(data);
        return rc;
    }
    *out = data;
    *out_len = head[0];
    return MPI_SUCCESS;
}

int chempi_comm_swap_inter(const struct chempi_comm_channel *local,
                           struct chempi_comm *inter, int rc, const void *mine,
                           size_t len, void **out, size_t *out_len)
{
    struct chempi_comm_far far = {
        .comm = inter, .tag = local->tag, .kind = local->kind};

    return chempi_comm_swap(local, &far, rc, mine, len, out, out_len);
}
