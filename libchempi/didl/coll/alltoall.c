/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Alltoall(v,w) over messages (MPI 5.0, section 6.8).
 *
 *   small blocks   Bruck's algorithm on packed blocks
 *   otherwise      directly, a window of messages at a time, each process
 *                  starting with its neighbours so that nobody is swamped
 *   in place       partner by partner in a fixed order, one block of
 *                  temporary memory
 */
#include "libchempi/didl/base/setting.h"
#include "libchempi/didl/coll/sched.h"

static void copy_own(struct chempi_coll_sched *s,
                     const struct chempi_coll_call *c)
{
    struct chempi_coll_place from = chempi_coll_sent(c, s->rank);
    struct chempi_coll_place to = chempi_coll_received(c, s->rank);

    if (chempi_coll_place_bytes(&from) > 0)
        chempi_coll_copy(s, from.buf, from.count, from.type, to.buf, to.count,
                         to.type);
}

static void recv_from(struct chempi_coll_sched *s,
                      const struct chempi_coll_call *c, int source)
{
    const struct chempi_coll_place in = chempi_coll_received(c, source);

    if (chempi_coll_place_bytes(&in) > 0)
        chempi_coll_recv(s, in.buf, in.count, in.type, source);
}

static void send_to(struct chempi_coll_sched *s,
                    const struct chempi_coll_call *c, int dest)
{
    const struct chempi_coll_place out = chempi_coll_sent(c, dest);

    if (chempi_coll_place_bytes(&out) > 0)
        chempi_coll_send(s, out.buf, out.count, out.type, dest);
}

/* A block has the same turn at both ends, also of two groups, of which the
 * smaller one then lacks partners in some turns: so nobody waits in a circle,
 * since the blocks of the least turn that is left are begun at both ends. */
static void build_direct(struct chempi_coll_sched *s,
                         const struct chempi_coll_call *c)
{
    const bool is_inter = c->comm->is_inter;
    const int peers = is_inter ? (int)c->comm->remote_size : s->size;
    const int turns = peers > s->size ? peers : s->size;

    for (int i = is_inter ? 0 : 1; i < turns; i++) {
        const int source = (s->rank + turns - i) % turns;
        const int dest = (s->rank + i) % turns;

        if (source < peers)
            recv_from(s, c, source);
        if (dest < peers)
            send_to(s, c, dest);
        chempi_coll_throttle(s);
    }
    if (is_inter)
        return;
    chempi_coll_fence(s); /* who waits for us should not wait for a copy */
    copy_own(s, c);
}

/* All exchange with partner 0, then 1, ...: nobody waits for a process that
 * waits for it, since the least rank with work left always has its partner. */
static void build_in_place(struct chempi_coll_sched *s,
                           const struct chempi_coll_call *c)
{
    struct chempi_datatype *byte = chempi_coll_byte();
    MPI_Count most = 0;
    void *packed;

    for (int i = 0; i < s->size; i++) {
        struct chempi_coll_place p = chempi_coll_received(c, i);

        if (i != s->rank && chempi_coll_place_bytes(&p) > most)
            most = chempi_coll_place_bytes(&p);
    }
    packed = chempi_coll_bytes(s, most);
    for (int i = 0; i < s->size; i++) {
        struct chempi_coll_place p = chempi_coll_received(c, i);
        MPI_Count len = chempi_coll_place_bytes(&p);

        if (i == s->rank || len == 0)
            continue;
        chempi_coll_copy(s, p.buf, p.count, p.type, packed, len, byte);
        chempi_coll_recv(s, p.buf, p.count, p.type, i);
        chempi_coll_send(s, packed, len, byte, i);
        chempi_coll_fence(s);
    }
}

/* ---- Bruck: block i is for the process i places to the right ---- */

struct bruck {
    char *blocks; /* [size], packed */
    char *out;    /* what one round sends, and receives */
    char *in;
    MPI_Count len; /* of one block */
};

static void bruck_round(struct chempi_coll_sched *s, const struct bruck *b,
                        int distance)
{
    struct chempi_datatype *byte = chempi_coll_byte();
    MPI_Count n = 0;

    for (int i = 0; i < s->size; i++)
        if (i & distance)
            chempi_coll_copy(s, chempi_coll_plus(b->blocks, i * b->len), b->len,
                             byte, chempi_coll_plus(b->out, n++ * b->len),
                             b->len, byte);
    chempi_coll_recv(s, b->in, n * b->len, byte,
                     (s->rank + s->size - distance) % s->size);
    chempi_coll_send(s, b->out, n * b->len, byte,
                     (s->rank + distance) % s->size);
    chempi_coll_fence(s);
    n = 0;
    for (int i = 0; i < s->size; i++)
        if (i & distance)
            chempi_coll_copy(s, chempi_coll_plus(b->in, n++ * b->len), b->len,
                             byte, chempi_coll_plus(b->blocks, i * b->len),
                             b->len, byte);
}

static void build_bruck(struct chempi_coll_sched *s,
                        const struct chempi_coll_call *c, MPI_Count len)
{
    struct chempi_datatype *byte = chempi_coll_byte();
    bool is_in_place = c->send.buf == MPI_IN_PLACE;
    struct bruck b = {
        .blocks = chempi_coll_bytes(s, len * s->size),
        .out = chempi_coll_bytes(s, len * s->size),
        .in = chempi_coll_bytes(s, len * s->size),
        .len = len,
    };

    for (int i = 0; i < s->size; i++) {
        int rank = (s->rank + i) % s->size;
        struct chempi_coll_place p = is_in_place ? chempi_coll_received(c, rank)
                                                 : chempi_coll_sent(c, rank);

        chempi_coll_copy(s, p.buf, p.count, p.type,
                         chempi_coll_plus(b.blocks, i * len), len, byte);
    }
    for (int distance = 1; distance < s->size; distance *= 2)
        bruck_round(s, &b, distance);
    for (int i = 0; i < s->size; i++) {
        int rank = (s->rank + s->size - i) % s->size;
        struct chempi_coll_place p = chempi_coll_received(c, rank);

        chempi_coll_copy(s, chempi_coll_plus(b.blocks, i * len), len, byte,
                         p.buf, p.count, p.type);
    }
}

void chempi_coll_build_alltoall(struct chempi_coll_sched *s,
                                const struct chempi_coll_call *c)
{
    MPI_Count len_max = chempi_setting_signed(CHEMPI_SET_COLL_ALLTOALL_BRUCK);
    MPI_Count len = len_max + 1;

    if (c->kind == CHEMPI_COLL_ALLTOALL && !c->comm->is_inter)
        len = c->recv.count * c->recv.type->size;
    if (len == 0)
        return;
    if (len <= len_max &&
        s->size >= chempi_setting_signed(CHEMPI_SET_COLL_ALLTOALL_RANKS))
        build_bruck(s, c, len);
    else if (c->send.buf == MPI_IN_PLACE)
        build_in_place(s, c);
    else
        build_direct(s, c);
}
