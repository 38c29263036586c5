/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Barrier and broadcast over messages (MPI 5.0, sections 6.3 and 6.4).
 *
 *   barrier  dissemination: ceil(log2 n) rounds
 *   bcast    binomial tree; large data: the root's data is cut into n parts
 *            that go down the same tree, then travel once around a ring, so
 *            that no process sends the whole more than about twice
 */
#include "libchempi/didl/coll/sched.h"

/* From this size on, bytes, and for this many processes, parts pay. */
enum { PARTS_FROM_BYTES = 128 * 1024, PARTS_FROM_RANKS = 4 };

void chempi_coll_build_barrier(struct chempi_coll_sched *s,
                               const struct chempi_coll_call *c)
{
    struct chempi_datatype *byte = chempi_coll_byte();

    (void)c;
    for (int distance = 1; distance < s->size; distance *= 2) {
        int to = (s->rank + distance) % s->size;
        int from = (s->rank + s->size - distance) % s->size;

        chempi_coll_recv(s, s->inline_bytes, 0, byte, from);
        chempi_coll_send(s, s->inline_bytes, 0, byte, to);
        chempi_coll_fence(s);
    }
}

static void build_tree(struct chempi_coll_sched *s,
                       const struct chempi_coll_call *c)
{
    int me = (s->rank - c->root + s->size) % s->size;
    int mask = 1;

    while (mask < s->size && !(me & mask))
        mask *= 2;
    if (me != 0) {
        chempi_coll_recv(s, c->rbuf, c->rcount, c->rtype,
                         (me - mask + c->root) % s->size);
        chempi_coll_fence(s);
    }
    for (mask /= 2; mask > 0; mask /= 2)
        if (me + mask < s->size)
            chempi_coll_send(s, c->rbuf, c->rcount, c->rtype,
                             (me + mask + c->root) % s->size);
}

/* Elements of the parts [from, to) of the data. */
struct range {
    MPI_Count first;
    MPI_Count count;
};

static struct range parts(const struct chempi_coll_sched *s,
                          const struct chempi_coll_call *c, int from, int to)
{
    MPI_Count first = chempi_coll_cut(c->rcount, s->size, from);

    return (struct range){
        .first = first,
        .count = chempi_coll_cut(c->rcount, s->size, to) - first,
    };
}

/* Down the tree; afterwards relative rank i has part i. */
static void build_parts_down(struct chempi_coll_sched *s,
                             const struct chempi_coll_call *c, int me)
{
    int mask = 1;
    int end;
    struct range r;

    while (mask < s->size && !(me & mask))
        mask *= 2;
    end = me + mask < s->size ? me + mask : s->size;
    if (me != 0) {
        r = parts(s, c, me, end);
        chempi_coll_recv(s, chempi_coll_at(c->rbuf, r.first, c->rtype), r.count,
                         c->rtype, (me - mask + c->root) % s->size);
        chempi_coll_fence(s);
    }
    for (mask /= 2; mask > 0; mask /= 2) {
        if (me + mask >= s->size)
            continue;
        end = me + 2 * mask < s->size ? me + 2 * mask : s->size;
        r = parts(s, c, me + mask, end);
        chempi_coll_send(s, chempi_coll_at(c->rbuf, r.first, c->rtype), r.count,
                         c->rtype, (me + mask + c->root) % s->size);
    }
    chempi_coll_fence(s);
}

static void build_parts_around(struct chempi_coll_sched *s,
                               const struct chempi_coll_call *c, int me)
{
    int right = (s->rank + 1) % s->size;
    int left = (s->rank + s->size - 1) % s->size;

    for (int i = 0; i < s->size - 1; i++) {
        int out = (me + s->size - i) % s->size;
        int in = (out + s->size - 1) % s->size;
        struct range o = parts(s, c, out, out + 1);
        struct range n = parts(s, c, in, in + 1);

        chempi_coll_recv(s, chempi_coll_at(c->rbuf, n.first, c->rtype), n.count,
                         c->rtype, left);
        chempi_coll_send(s, chempi_coll_at(c->rbuf, o.first, c->rtype), o.count,
                         c->rtype, right);
        chempi_coll_fence(s);
    }
}

void chempi_coll_build_bcast(struct chempi_coll_sched *s,
                             const struct chempi_coll_call *c)
{
    int me = (s->rank - c->root + s->size) % s->size;

    if (s->size == 1)
        return;
    if (s->size < PARTS_FROM_RANKS ||
        c->rcount * c->rtype->size < PARTS_FROM_BYTES || c->rcount < s->size) {
        build_tree(s, c);
        return;
    }
    build_parts_down(s, c, me);
    build_parts_around(s, c, me);
}
