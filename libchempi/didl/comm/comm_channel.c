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

int chempi_comm_step_rank(const struct chempi_comm_channel *ch, int member)
{
    return ch->ranks ? ch->ranks[member] : member;
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

static int swap(const struct chempi_comm_channel *ch, int to, const void *out,
                size_t out_len, int from, void *in, size_t in_len)
{
    return exchange(ch, ch->comm, chempi_comm_step_rank(ch, to), out, out_len,
                    chempi_comm_step_rank(ch, from), in, in_len);
}

/* ---- plans ---- */

static struct chempi_comm_step send_to(int member)
{
    return (struct chempi_comm_step){.to = member, .from = -1};
}

static struct chempi_comm_step receive_from(int member, bool is_max)
{
    return (struct chempi_comm_step){
        .to = -1, .from = member, .is_max = is_max};
}

/* Recursive doubling; the odd ones beyond a power of two hand their values to
 * a partner and get the result from it. */
static int plan_local_max(const struct chempi_comm_channel *ch,
                          struct chempi_comm_step *steps)
{
    int power = 1;
    int n = 0;

    while (power <= ch->size / 2)
        power *= 2;
    if (ch->me >= power) {
        steps[n++] = send_to(ch->me - power);
        steps[n++] = receive_from(ch->me - power, false);
        return n;
    }
    if (ch->me + power < ch->size)
        steps[n++] = receive_from(ch->me + power, true);
    for (int mask = 1; mask < power; mask <<= 1)
        steps[n++] = (struct chempi_comm_step){
            .to = ch->me ^ mask, .from = ch->me ^ mask, .is_max = true};
    if (ch->me + power < ch->size)
        steps[n++] = send_to(ch->me + power);
    return n;
}

int chempi_comm_plan_bcast(const struct chempi_comm_channel *ch,
                           struct chempi_comm_step *steps)
{
    int mask = 1;
    int n = 0;

    while (mask < ch->size && !(ch->me & mask))
        mask <<= 1;
    if (ch->me != 0)
        steps[n++] = receive_from(ch->me & ~mask, false);
    for (mask >>= 1; mask > 0; mask >>= 1)
        if (ch->me + mask < ch->size)
            steps[n++] = send_to(ch->me + mask);
    return n;
}

int chempi_comm_plan_max(const struct chempi_comm_channel *ch,
                         struct chempi_comm_step *steps)
{
    int n = plan_local_max(ch, steps);

    if (!ch->inter)
        return n;
    if (ch->me == 0)
        steps[n++] =
            (struct chempi_comm_step){.is_inter = true, .is_max = true};
    return n + chempi_comm_plan_bcast(ch, steps + n);
}

void chempi_comm_step_take(const struct chempi_comm_step *step, int64_t *vals,
                           const int64_t *other, int n)
{
    for (int i = 0; i < n; i++)
        if (!step->is_max || other[i] > vals[i])
            vals[i] = other[i];
}

int chempi_comm_max(const struct chempi_comm_channel *ch, int64_t *vals, int n)
{
    struct chempi_comm_step steps[CHEMPI_COMM_STEPS_MAX];
    int64_t other[CHEMPI_COMM_VALS_MAX];
    size_t len = (size_t)n * sizeof(*vals);
    int count = chempi_comm_plan_max(ch, steps);
    int rc = MPI_SUCCESS;

    for (int i = 0; i < count && rc == MPI_SUCCESS; i++) {
        const struct chempi_comm_step *step = &steps[i];

        if (step->is_inter)
            rc = exchange(ch, ch->inter, 0, vals, len, 0, other, len);
        else
            rc =
                exchange(ch, ch->comm,
                         step->to < 0 ? MPI_PROC_NULL
                                      : chempi_comm_step_rank(ch, step->to),
                         vals, len,
                         step->from < 0 ? MPI_PROC_NULL
                                        : chempi_comm_step_rank(ch, step->from),
                         other, len);
        if (rc == MPI_SUCCESS && (step->is_inter || step->from >= 0))
            chempi_comm_step_take(step, vals, other, n);
    }
    return rc;
}

int chempi_comm_bcast(const struct chempi_comm_channel *ch, void *buf,
                      size_t len)
{
    struct chempi_comm_step steps[CHEMPI_COMM_STEPS_MAX];
    int count = chempi_comm_plan_bcast(ch, steps);
    int rc = MPI_SUCCESS;

    for (int i = 0; i < count && rc == MPI_SUCCESS; i++)
        rc = exchange(ch, ch->comm,
                      steps[i].to < 0 ? MPI_PROC_NULL
                                      : chempi_comm_step_rank(ch, steps[i].to),
                      buf, len,
                      steps[i].from < 0
                          ? MPI_PROC_NULL
                          : chempi_comm_step_rank(ch, steps[i].from),
                      buf, len);
    return rc;
}

/* ---- data of any size ---- */

/* Bruck's algorithm: blocks are collected in the order me, me + 1, ... */
static int gather_rotated(const struct chempi_comm_channel *ch, char *blocks,
                          size_t len)
{
    for (int have = 1; have < ch->size; have *= 2) {
        int n = have < ch->size - have ? have : ch->size - have;
        int to = (ch->me - have + ch->size) % ch->size;
        int from = (ch->me + have) % ch->size;
        int rc = swap(ch, to, blocks, (size_t)n * len, from,
                      blocks + (size_t)have * len, (size_t)n * len);

        if (rc != MPI_SUCCESS)
            return rc;
    }
    return MPI_SUCCESS;
}

int chempi_comm_allgather(const struct chempi_comm_channel *ch,
                          const void *mine, size_t len, void *all)
{
    size_t total = (size_t)ch->size * len;
    size_t before = (size_t)ch->me * len;
    char *blocks = chempi_sys->malloc(total ? total : 1);
    int rc;

    if (!blocks)
        return chempi_error_set(MPI_ERR_NO_MEM,
                                "no room to collect %zu bytes "
                                "from the members",
                                total);
    memcpy(blocks, mine, len);
    rc = gather_rotated(ch, blocks, len);
    if (rc == MPI_SUCCESS) {
        memcpy((char *)all + before, blocks, total - before);
        memcpy(all, blocks + (total - before), before);
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
