/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The few collective operations that making a communicator needs, on the
 * internal context of its parent and over any subset of its members. They
 * must work before the collectives module knows the communicator; data is
 * small except in allgather.
 */
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "libchempi/didl/base/error.h"
#include "libchempi/didl/comm/comm_make.h"
#include "libchempi/didl/comm/p2p.h"

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

/* One step over the given communicator; blocks. Any part may be missing. */
static int exchange(const struct chempi_comm_channel *ch,
                    struct chempi_comm *comm, int to, const void *out,
                    size_t out_len, int from, void *in, size_t in_len)
{
    if (from == MPI_PROC_NULL)
        return chempi_p2p_send_on(out, (MPI_Count)out_len, bytes(), to, ch->tag,
                                  comm, ch->kind);
    if (to == MPI_PROC_NULL)
        return chempi_p2p_recv_on(in, (MPI_Count)in_len, bytes(), from, ch->tag,
                                  comm, ch->kind, MPI_STATUS_IGNORE);
    return chempi_p2p_sendrecv_on(out, (MPI_Count)out_len, bytes(), to, ch->tag,
                                  in, (MPI_Count)in_len, bytes(), from, ch->tag,
                                  comm, ch->kind, MPI_STATUS_IGNORE);
}

/* The messages of one step. */
static int take_step(const struct chempi_comm_channel *ch,
                     const struct chempi_comm_step *step, const void *out,
                     size_t out_len, void *in, size_t in_len)
{
    if (step->is_inter)
        return exchange(ch, ch->inter, 0, out, out_len, 0, in, in_len);
    return exchange(
        ch, ch->comm,
        step->to < 0 ? MPI_PROC_NULL : chempi_comm_step_rank(ch, step->to), out,
        out_len,
        step->from < 0 ? MPI_PROC_NULL : chempi_comm_step_rank(ch, step->from),
        in, in_len);
}

/* ---- values ---- */

void chempi_comm_step_take(const struct chempi_comm_step *step, int64_t *vals,
                           const int64_t *other, int n)
{
    for (int i = 0; i < n; i++)
        if (!step->is_max || other[i] > vals[i])
            vals[i] = other[i];
}

/* A member that fails, since it has lost another one, takes all its steps
 * nevertheless: others wait for them, and learn of it by one more value. */
int chempi_comm_max(const struct chempi_comm_channel *ch, int64_t *vals, int n)
{
    struct chempi_comm_step steps[CHEMPI_COMM_STEPS_MAX];
    int64_t mine[CHEMPI_COMM_VALS_MAX + 1]; /* and the error class */
    int64_t other[CHEMPI_COMM_VALS_MAX + 1];
    const size_t len = (size_t)n * sizeof(*vals);
    const size_t wire_len = len + sizeof(*mine);
    const int count = chempi_comm_plan_max(ch, steps);
    int error = MPI_SUCCESS;

    memcpy(mine, vals, len);
    mine[n] = MPI_SUCCESS;
    for (int i = 0; i < count; i++) {
        const struct chempi_comm_step *step = &steps[i];
        const int rc = take_step(ch, step, mine, wire_len, other, wire_len);

        if (rc != MPI_SUCCESS)
            mine[n] = error = rc;
        else if (step->is_inter || step->from >= 0)
            chempi_comm_step_take(step, mine, other, n + 1);
    }
    memcpy(vals, mine, len);
    if (error == MPI_SUCCESS && mine[n] != MPI_SUCCESS)
        error = chempi_error_set((int)mine[n], "another member failed in an "
                                               "agreement of all");
    return error;
}

int chempi_comm_bcast(const struct chempi_comm_channel *ch, void *buf,
                      size_t len)
{
    struct chempi_comm_step steps[CHEMPI_COMM_STEPS_MAX];
    int count = chempi_comm_plan_bcast(ch, steps);
    int rc = MPI_SUCCESS;

    for (int i = 0; i < count && rc == MPI_SUCCESS; i++)
        rc = take_step(ch, &steps[i], buf, len, buf, len);
    return rc;
}

/* ---- data of any size ---- */

/* Bruck's algorithm: blocks are collected in the order me, me + 1, ... */
static int gather_rotated(const struct chempi_comm_channel *ch, char *blocks,
                          size_t len)
{
    for (int have = 1; have < ch->size; have *= 2) {
        int n = have < ch->size - have ? have : ch->size - have;
        const struct chempi_comm_step step = {
            .to = (ch->me - have + ch->size) % ch->size,
            .from = (ch->me + have) % ch->size};
        int rc = take_step(ch, &step, blocks, (size_t)n * len,
                           blocks + (size_t)have * len, (size_t)n * len);

        if (rc != MPI_SUCCESS)
            return rc;
    }
    return MPI_SUCCESS;
}

static int gather_in_turn(const struct chempi_comm_channel *ch,
                          const void *mine, size_t len, char *blocks, char *all)
{
    size_t total = (size_t)ch->size * len;
    size_t before = (size_t)ch->me * len;
    int rc;

    memcpy(blocks, mine, len);
    rc = gather_rotated(ch, blocks, len);
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

static int gather_by_plan(const struct chempi_comm_channel *ch,
                          const struct chempi_comm_step *steps, int count,
                          size_t len, struct bundle *have, struct bundle *other,
                          char *all)
{
    const uint32_t size = (uint32_t)ch->size;

    for (int i = 0; i < count; i++) {
        const struct chempi_comm_step *step = &steps[i];
        const uint32_t before = step->is_max ? have->count : 0;
        const int rc = take_step(ch, step, have, bundle_len(have->count, len),
                                 other, bundle_len(size, len));

        if (rc != MPI_SUCCESS)
            return rc;
        if (step->from < 0)
            continue;
        if (other->count > size - before)
            return chempi_error_set(MPI_ERR_INTERN,
                                    "member %d has more than all members",
                                    step->from);
        memcpy((char *)have + bundle_len(before, len), other->blocks,
               bundle_len(other->count, len) - sizeof(*other));
        have->count = before + other->count;
    }
    return unbundle(have, size, len, all)
               ? MPI_SUCCESS
               : chempi_error_set(MPI_ERR_INTERN, "what all members have was "
                                                  "not collected");
}

int chempi_comm_allgather(const struct chempi_comm_channel *ch,
                          const void *mine, size_t len, void *all)
{
    struct chempi_comm_step steps[CHEMPI_COMM_STEPS_MAX];
    const int count = chempi_comm_plan_gather(ch, steps);
    /* Of a bundle; the next one is aligned. */
    const size_t room =
        count ? (bundle_len((uint32_t)ch->size, len) + 7) / 8 * 8 : 0;
    const size_t total = count ? 2 * room : (size_t)ch->size * len;
    char *blocks = chempi_sys->calloc(1, total ? total : 1);
    int rc;

    if (!blocks)
        return chempi_error_set(MPI_ERR_NO_MEM,
                                "no room to collect %zu bytes "
                                "from the members",
                                total);
    if (count) {
        struct bundle *have = (struct bundle *)(void *)blocks;

        add_block(have, len, (uint32_t)ch->me, mine);
        rc = gather_by_plan(ch, steps, count, len, have,
                            (struct bundle *)(void *)(blocks + room), all);
    } else {
        rc = gather_in_turn(ch, mine, len, blocks, all);
    }
    free(blocks);
    return rc;
}

/* The leaders' half of a swap. */
static int swap_leaders(const struct chempi_comm_far *far, const void *mine,
                        size_t len, void **out, uint64_t *out_len)
{
    uint64_t my_len = len;
    int rc = far->error;

    if (rc == MPI_SUCCESS && !far->is_nobody)
        rc = chempi_p2p_sendrecv_on(&my_len, sizeof(my_len), bytes(), far->rank,
                                    far->tag, out_len, sizeof(*out_len),
                                    bytes(), far->rank, far->tag, far->comm,
                                    far->kind, MPI_STATUS_IGNORE);
    if (rc != MPI_SUCCESS)
        return rc;
    *out = chempi_sys->malloc(*out_len ? *out_len : 1);
    if (!*out)
        return chempi_error_set(MPI_ERR_NO_MEM,
                                "no room for %llu bytes from "
                                "the other group",
                                (unsigned long long)*out_len);
    if (far->is_nobody)
        return MPI_SUCCESS;
    return chempi_p2p_sendrecv_on(mine, (MPI_Count)len, bytes(), far->rank,
                                  far->tag, *out, (MPI_Count)*out_len, bytes(),
                                  far->rank, far->tag, far->comm, far->kind,
                                  MPI_STATUS_IGNORE);
}

int chempi_comm_swap(const struct chempi_comm_channel *local,
                     const struct chempi_comm_far *far, const void *mine,
                     size_t len, void **out, size_t *out_len)
{
    bool is_leader = local->me == 0;
    void *data = NULL;
    uint64_t head[2] = {0, MPI_SUCCESS}; /* length, leader's error class */
    int rc = MPI_SUCCESS;

    if (is_leader)
        head[1] = (uint64_t)swap_leaders(far, mine, len, &data, &head[0]);
    rc = chempi_comm_bcast(local, head, sizeof(head));
    if (rc == MPI_SUCCESS && head[1] != MPI_SUCCESS)
        rc = is_leader ? (int)head[1]
                       : chempi_error_set((int)head[1],
                                          "the leader of this "
                                          "group could not reach the other "
                                          "group's leader");
    if (rc == MPI_SUCCESS && !is_leader)
        data = chempi_sys->malloc(head[0] ? head[0] : 1);
    if (rc == MPI_SUCCESS && !data)
        rc = chempi_error_set(MPI_ERR_NO_MEM,
                              "no room for %llu bytes from "
                              "the other group",
                              (unsigned long long)head[0]);
    if (rc == MPI_SUCCESS)
        rc = chempi_comm_bcast(local, data, head[0]);
    if (rc != MPI_SUCCESS) {
        free(data);
        return rc;
    }
    *out = data;
    *out_len = head[0];
    return MPI_SUCCESS;
}

int chempi_comm_swap_inter(const struct chempi_comm_channel *local,
                           struct chempi_comm *inter, const void *mine,
                           size_t len, void **out, size_t *out_len)
{
    struct chempi_comm_far far = {
        .comm = inter, .tag = local->tag, .kind = local->kind};

    return chempi_comm_swap(local, &far, mine, len, out, out_len);
}
