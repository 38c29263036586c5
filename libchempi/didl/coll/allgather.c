/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Allgather(v) over messages (MPI 5.0, section 6.7). Small totals: Bruck's
 * algorithm on packed blocks, ceil(log2 n) rounds; large: once around a ring,
 * every block straight from and into the users' buffers.
 */
#include "libchempi/didl/base/setting.h"
#include "libchempi/didl/coll/sched.h"

/* Bytes of the blocks of n processes from `first` on, around the end. */
static MPI_Count bytes_of(const struct chempi_coll_sched *s,
                          const struct chempi_coll_call *c, int first, int n)
{
    MPI_Count sum = 0;

    if (c->kind == CHEMPI_COLL_ALLGATHER)
        return c->recv.count * c->recv.type->size * n;
    for (int i = 0; i < n; i++)
        sum += chempi_count_array_get(c->recv.counts,
                                      (size_t)((first + i) % s->size));
    return sum * c->recv.type->size;
}

/* Packed blocks of this process, its right neighbour and so on. */
static void build_bruck(struct chempi_coll_sched *s,
                        const struct chempi_coll_call *c, MPI_Count total)
{
    struct chempi_datatype *byte = chempi_coll_byte();
    struct chempi_coll_place own = chempi_coll_received(c, s->rank);
    char *packed = chempi_coll_bytes(s, total);
    MPI_Count at = 0;

    chempi_coll_copy(s, own.buf, own.count, c->recv.type, packed,
                     bytes_of(s, c, s->rank, 1), byte);
    for (int have = 1; have < s->size; have *= 2) {
        int n = 2 * have <= s->size ? have : s->size - have;
        int from = (s->rank + have) % s->size;
        int to = (s->rank + s->size - have) % s->size;

        chempi_coll_recv(
            s, chempi_coll_plus(packed, bytes_of(s, c, s->rank, have)),
            bytes_of(s, c, from, n), byte, from);
        chempi_coll_send(s, packed, bytes_of(s, c, s->rank, n), byte, to);
        chempi_coll_fence(s);
    }
    at = bytes_of(s, c, s->rank, 1);
    for (int i = 1; i < s->size; i++) {
        int rank = (s->rank + i) % s->size;
        struct chempi_coll_place p = chempi_coll_received(c, rank);
        MPI_Count len = p.count * c->recv.type->size;

        chempi_coll_copy(s, chempi_coll_plus(packed, at), len, byte, p.buf,
                         p.count, c->recv.type);
        at += len;
    }
}

/* This process's block to where it belongs. */
static void keep_own(struct chempi_coll_sched *s,
                     const struct chempi_coll_call *c)
{
    struct chempi_coll_place own = chempi_coll_received(c, s->rank);

    if (c->send.buf != MPI_IN_PLACE)
        chempi_coll_copy(s, c->send.buf, c->send.count, c->send.type, own.buf,
                         own.count, c->recv.type);
}

/* The own block leaves from where the user has it; who waits for it should not
 * wait for the copy. */
static void build_ring(struct chempi_coll_sched *s,
                       const struct chempi_coll_call *c)
{
    int right = (s->rank + 1) % s->size;
    int left = (s->rank + s->size - 1) % s->size;

    if (s->size == 1)
        keep_own(s, c);
    for (int i = 0; i < s->size - 1; i++) {
        struct chempi_coll_place out =
            chempi_coll_received(c, (s->rank + s->size - i) % s->size);
        struct chempi_coll_place in =
            chempi_coll_received(c, (left + s->size - i) % s->size);

        chempi_coll_recv(s, in.buf, in.count, c->recv.type, left);
        if (i == 0 && c->send.buf != MPI_IN_PLACE)
            chempi_coll_send(s, c->send.buf, c->send.count, c->send.type,
                             right);
        else
            chempi_coll_send(s, out.buf, out.count, c->recv.type, right);
        chempi_coll_fence(s);
        if (i == 0)
            keep_own(s, c);
    }
}

void chempi_coll_build_allgather(struct chempi_coll_sched *s,
                                 const struct chempi_coll_call *c)
{
    MPI_Count total = bytes_of(s, c, 0, s->size);

    if (total == 0)
        return;
    if (total <= chempi_setting_signed(CHEMPI_SET_COLL_ALLGATHER_BRUCK) &&
        s->size > 2) {
        keep_own(s, c);
        build_bruck(s, c, total);
    } else {
        build_ring(s, c);
    }
}
