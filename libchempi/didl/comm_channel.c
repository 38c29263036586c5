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
#include "libchempi/didl/comm_make.h"
#include "libchempi/didl/error.h"
#include "libchempi/didl/pt2pt.h"

#define MAX_VALS 8
#define INTERNAL CHEMPI_CONTEXT_INTERNAL

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
        .tag = (int)(comm->internal_tag++ & CHEMPI_COMM_TAG_MASK),
        .inter = comm->is_inter ? comm : NULL};
}

static int rank_of(const struct chempi_comm_channel *ch, int member)
{
    return ch->ranks ? ch->ranks[member] : member;
}

static int put(const struct chempi_comm_channel *ch, int to, const void *buf,
               size_t len)
{
    return chempi_pt2pt_send_on(buf, (MPI_Count)len, bytes(), rank_of(ch, to),
                                ch->tag, ch->comm, INTERNAL);
}

static int get(const struct chempi_comm_channel *ch, int from, void *buf,
               size_t len)
{
    return chempi_pt2pt_recv_on(buf, (MPI_Count)len, bytes(),
                                rank_of(ch, from), ch->tag, ch->comm, INTERNAL,
                                MPI_STATUS_IGNORE);
}

static int swap(const struct chempi_comm_channel *ch, int to, const void *out,
                size_t out_len, int from, void *in, size_t in_len)
{
    return chempi_pt2pt_sendrecv_on(out, (MPI_Count)out_len, bytes(),
                                    rank_of(ch, to), ch->tag, in,
                                    (MPI_Count)in_len, bytes(),
                                    rank_of(ch, from), ch->tag, ch->comm,
                                    INTERNAL, MPI_STATUS_IGNORE);
}

static void take_max(int64_t *vals, const int64_t *other, int n)
{
    for (int i = 0; i < n; i++)
        if (other[i] > vals[i])
            vals[i] = other[i];
}

/* Recursive doubling among the first `power` members. */
static int max_doubling(const struct chempi_comm_channel *ch, int64_t *vals,
                        int n, int power)
{
    int64_t other[MAX_VALS];
    size_t len = (size_t)n * sizeof(*vals);

    for (int mask = 1; mask < power; mask <<= 1) {
        int peer = ch->me ^ mask;
        int rc = swap(ch, peer, vals, len, peer, other, len);

        if (rc != MPI_SUCCESS)
            return rc;
        take_max(vals, other, n);
    }
    return MPI_SUCCESS;
}

/* Among all members of one side: the odd ones beyond a power of two hand
 * their values to a partner and get the result from it. */
static int max_local(const struct chempi_comm_channel *ch, int64_t *vals,
                     int n)
{
    int64_t other[MAX_VALS];
    size_t len = (size_t)n * sizeof(*vals);
    int power = 1;
    int rc = MPI_SUCCESS;

    while (power <= ch->size / 2)
        power *= 2;
    if (ch->me >= power) {
        rc = put(ch, ch->me - power, vals, len);
        return rc ? rc : get(ch, ch->me - power, vals, len);
    }
    if (ch->me + power < ch->size) {
        rc = get(ch, ch->me + power, other, len);
        if (rc != MPI_SUCCESS)
            return rc;
        take_max(vals, other, n);
    }
    rc = max_doubling(ch, vals, n, power);
    if (rc == MPI_SUCCESS && ch->me + power < ch->size)
        rc = put(ch, ch->me + power, vals, len);
    return rc;
}

int chempi_comm_max(const struct chempi_comm_channel *ch, int64_t *vals, int n)
{
    int64_t other[MAX_VALS];
    MPI_Count len = n * (MPI_Count)sizeof(*vals);
    int rc = max_local(ch, vals, n);

    if (rc != MPI_SUCCESS || !ch->inter)
        return rc;
    if (ch->me == 0) {
        rc = chempi_pt2pt_sendrecv_on(vals, len, bytes(), 0, ch->tag, other,
                                      len, bytes(), 0, ch->tag, ch->inter,
                                      INTERNAL, MPI_STATUS_IGNORE);
        if (rc == MPI_SUCCESS)
            take_max(vals, other, n);
    }
    return rc ? rc : chempi_comm_bcast(ch, vals, (size_t)len);
}

int chempi_comm_bcast(const struct chempi_comm_channel *ch, void *buf,
                      size_t len)
{
    int mask = 1;
    int rc = MPI_SUCCESS;

    while (mask < ch->size && !(ch->me & mask))
        mask <<= 1;
    if (ch->me != 0)
        rc = get(ch, ch->me & ~mask, buf, len);
    for (mask >>= 1; mask > 0 && rc == MPI_SUCCESS; mask >>= 1)
        if (ch->me + mask < ch->size)
            rc = put(ch, ch->me + mask, buf, len);
    return rc;
}

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
        return chempi_error_set(MPI_ERR_NO_MEM, "no room to collect %zu bytes "
                                "from the members", total);
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
static int swap_leaders(struct chempi_comm *peer, int remote_leader, int tag,
                        const void *mine, size_t len, void **out,
                        uint64_t *out_len)
{
    uint64_t my_len = len;
    int rc = chempi_pt2pt_sendrecv_on(
        &my_len, sizeof(my_len), bytes(), remote_leader, tag, out_len,
        sizeof(*out_len), bytes(), remote_leader, tag, peer, INTERNAL,
        MPI_STATUS_IGNORE);

    if (rc != MPI_SUCCESS)
        return rc;
    *out = chempi_sys->malloc(*out_len ? *out_len : 1);
    if (!*out)
        return chempi_error_set(MPI_ERR_NO_MEM, "no room for %llu bytes from "
                                "the other group",
                                (unsigned long long)*out_len);
    return chempi_pt2pt_sendrecv_on(
        mine, (MPI_Count)len, bytes(), remote_leader, tag, *out,
        (MPI_Count)*out_len, bytes(), remote_leader, tag, peer, INTERNAL,
        MPI_STATUS_IGNORE);
}

int chempi_comm_swap(const struct chempi_comm_channel *local,
                     struct chempi_comm *peer, int remote_leader, int tag,
                     bool is_leader, const void *mine, size_t len, void **out,
                     size_t *out_len)
{
    void *data = NULL;
    uint64_t head[2] = {0, MPI_SUCCESS}; /* length, leader's error class */
    int rc = MPI_SUCCESS;

    if (is_leader)
        head[1] = (uint64_t)swap_leaders(peer, remote_leader, tag, mine, len,
                                         &data, &head[0]);
    rc = chempi_comm_bcast(local, head, sizeof(head));
    if (rc == MPI_SUCCESS && head[1] != MPI_SUCCESS)
        rc = is_leader ? (int)head[1]
                       : chempi_error_set((int)head[1], "the leader of this "
                                          "group could not reach the other");
    if (rc == MPI_SUCCESS && !is_leader)
        data = chempi_sys->malloc(head[0] ? head[0] : 1);
    if (rc == MPI_SUCCESS && !data)
        rc = chempi_error_set(MPI_ERR_NO_MEM, "no room for %llu bytes from "
                              "the other group", (unsigned long long)head[0]);
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
