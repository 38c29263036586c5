/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Barrier and broadcast over messages (MPI 5.0, sections 6.3 and 6.4).
 *
 *   barrier  dissemination: ceil(log2 n) rounds
 *   bcast    binomial tree; large data: the root's data is cut into n parts
 *            that go down the same tree, then travel once around a ring, so
 *            that no process sends the whole more than about twice
 */
#include "libchempi/didl/base/setting.h"
#include "libchempi/didl/coll/sched.h"

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
        chempi_coll_recv(s, c->recv.buf, c->recv.count, c->recv.type,
                         (me - mask + c->root) % s->size);
        chempi_coll_fence(s);
    }
    for (mask /= 2; mask > 0; mask /= 2)
        if (me + mask < s->size)
            chempi_coll_send(s, c->recv.buf, c->recv.count, c->recv.type,
                             (me + mask + c->root) % s->size);
}

/*
 * Large data as packed bytes: ranks may describe the same data by different
 * counts of different datatypes, so only bytes can be cut alike everywhere.
 */
struct pieces {
    void *buf;
    MPI_Count len;
    int me; /* rank relative to the root */
};

enum { PIECE_GRAIN = 64 /* bytes; parts start at multiples of it */ };

/* Bytes of the parts [from, to) of the data. */
struct range {
    MPI_Count first;
    MPI_Count len;
};

static struct range parts(const struct chempi_coll_sched *s,
                          const struct pieces *p, int from, int to)
{
    MPI_Count grains = p->len / PIECE_GRAIN + (p->len % PIECE_GRAIN != 0);
    MPI_Count first = chempi_coll_cut(grains, s->size, from) * PIECE_GRAIN;
    MPI_Count end = chempi_coll_cut(grains, s->size, to) * PIECE_GRAIN;

    first = first < p->len ? first : p->len;
    end = end < p->len ? end : p->len;
    return (struct range){.first = first, .len = end - first};
}

/* Down the tree; afterwards relative rank i has part i. */
static void build_parts_down(struct chempi_coll_sched *s,
                             const struct pieces *p, int root)
{
    struct chempi_datatype *byte = chempi_coll_byte();
    int mask = 1;
    int end;
    struct range r;

    while (mask < s->size && !(p->me & mask))
        mask *= 2;
    end = p->me + mask < s->size ? p->me + mask : s->size;
    if (p->me != 0) {
        r = parts(s, p, p->me, end);
        chempi_coll_recv(s, chempi_coll_plus(p->buf, r.first), r.len, byte,
                         (p->me - mask + root) % s->size);
        chempi_coll_fence(s);
    }
    for (mask /= 2; mask > 0; mask /= 2) {
        if (p->me + mask >= s->size)
            continue;
        end = p->me + 2 * mask < s->size ? p->me + 2 * mask : s->size;
        r = parts(s, p, p->me + mask, end);
        chempi_coll_send(s, chempi_coll_plus(p->buf, r.first), r.len, byte,
                         (p->me + mask + root) % s->size);
    }
    chempi_coll_fence(s);
}

static void build_parts_around(struct chempi_coll_sched *s,
                               const struct pieces *p)
{
    struct chempi_datatype *byte = chempi_coll_byte();
    int right = (s->rank + 1) % s->size;
    int left = (s->rank + s->size - 1) % s->size;

    for (int i = 0; i < s->size - 1; i++) {
        int out = (p->me + s->size - i) % s->size;
        int in = (out + s->size - 1) % s->size;
        struct range o = parts(s, p, out, out + 1);
        struct range n = parts(s, p, in, in + 1);

        chempi_coll_recv(s, chempi_coll_plus(p->buf, n.first), n.len, byte,
                         left);
        chempi_coll_send(s, chempi_coll_plus(p->buf, o.first), o.len, byte,
                         right);
        chempi_coll_fence(s);
    }
}

void chempi_coll_build_bcast(struct chempi_coll_sched *s,
                             const struct chempi_coll_call *c)
{
    struct chempi_datatype *byte = chempi_coll_byte();
    struct pieces p = {
        .len = c->recv.count * c->recv.type->size,
        .me = (s->rank - c->root + s->size) % s->size,
    };

    if (s->size == 1)
        return;
    if (s->size < chempi_setting_signed(CHEMPI_SET_COLL_BCAST_RANKS) ||
        p.len < chempi_setting_signed(CHEMPI_SET_COLL_BCAST_PARTS)) {
        build_tree(s, c);
        return;
    }
    if (c->recv.type->is_contiguous)
        p.buf = chempi_coll_plus(c->recv.buf, c->recv.type->true_lb);
    else
        p.buf = chempi_coll_bytes(s, p.len);
    if (!c->recv.type->is_contiguous && p.me == 0)
        chempi_coll_copy(s, c->recv.buf, c->recv.count, c->recv.type, p.buf,
                         p.len, byte);
    build_parts_down(s, &p, c->root);
    build_parts_around(s, &p);
    if (!c->recv.type->is_contiguous && p.me != 0)
        chempi_coll_copy(s, p.buf, p.len, byte, c->recv.buf, c->recv.count,
                         c->recv.type);
}
