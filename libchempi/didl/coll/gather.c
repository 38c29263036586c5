/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gather(v) and scatter(v) over messages (MPI 5.0, sections 6.5 and 6.6).
 *
 * Small blocks of the regular forms go through a binomial tree, packed; large
 * ones, the forms whose sizes only the root knows, and intercommunicators
 * (whose peers are the remote group) directly.
 */
#include "libchempi/didl/base/setting.h"
#include "libchempi/didl/coll/sched.h"

/* ---- the tree, on packed bytes ---- */

/* Relative ranks [me, end) are this process's subtree; mask is its height. */
struct subtree {
    int me;
    int mask;
    int end;
    int parent; /* team rank */
};

static struct subtree subtree_of(const struct chempi_coll_sched *s, int root)
{
    struct subtree t = {.me = (s->rank - root + s->size) % s->size, .mask = 1};

    while (t.mask < s->size && !(t.me & t.mask))
        t.mask *= 2;
    t.end = t.me + t.mask < s->size ? t.me + t.mask : s->size;
    t.parent = t.me ? (t.me - t.mask + root) % s->size : root;
    return t;
}

/* End of the subtree of the child at distance mask. */
static int child_end(const struct chempi_coll_sched *s, const struct subtree *t,
                     int mask)
{
    int end = t->me + 2 * mask;

    return end < s->size ? end : s->size;
}

static void gather_tree(struct chempi_coll_sched *s,
                        const struct chempi_coll_call *c, MPI_Count block)
{
    struct subtree t = subtree_of(s, c->root);
    struct chempi_datatype *byte = chempi_coll_byte();
    char *packed = chempi_coll_bytes(s, block * (t.end - t.me));

    if (c->send.buf != MPI_IN_PLACE)
        chempi_coll_copy(s, c->send.buf, c->send.count, c->send.type, packed,
                         block, byte);
    for (int mask = 1; mask < t.mask && t.me + mask < s->size; mask *= 2)
        chempi_coll_recv(s, chempi_coll_plus(packed, block * mask),
                         block * (child_end(s, &t, mask) - t.me - mask), byte,
                         (t.me + mask + c->root) % s->size);
    chempi_coll_fence(s);
    if (t.me != 0) {
        chempi_coll_send(s, packed, block * (t.end - t.me), byte, t.parent);
        return;
    }
    for (int i = c->send.buf == MPI_IN_PLACE; i < s->size; i++) {
        struct chempi_coll_place p =
            chempi_coll_received(c, (i + c->root) % s->size);

        chempi_coll_copy(s, chempi_coll_plus(packed, block * i), block, byte,
                         p.buf, p.count, c->recv.type);
    }
}

static void scatter_tree(struct chempi_coll_sched *s,
                         const struct chempi_coll_call *c, MPI_Count block)
{
    struct subtree t = subtree_of(s, c->root);
    struct chempi_datatype *byte = chempi_coll_byte();
    char *packed = chempi_coll_bytes(s, block * (t.end - t.me));

    if (t.me != 0) {
        chempi_coll_recv(s, packed, block * (t.end - t.me), byte, t.parent);
        chempi_coll_fence(s);
    } else {
        for (int i = c->recv.buf == MPI_IN_PLACE; i < s->size; i++) {
            struct chempi_coll_place p =
                chempi_coll_sent(c, (i + c->root) % s->size);

            chempi_coll_copy(s, p.buf, p.count, c->send.type,
                             chempi_coll_plus(packed, block * i), block, byte);
        }
    }
    for (int mask = t.mask / 2; mask > 0; mask /= 2)
        if (t.me + mask < s->size)
            chempi_coll_send(s, chempi_coll_plus(packed, block * mask),
                             block * (child_end(s, &t, mask) - t.me - mask),
                             byte, (t.me + mask + c->root) % s->size);
    if (c->recv.buf != MPI_IN_PLACE)
        chempi_coll_copy(s, packed, block, byte, c->recv.buf, c->recv.count,
                         c->recv.type);
}

static bool is_tree_good(const struct chempi_coll_sched *s, MPI_Count block)
{
    return s->size >= chempi_setting_signed(CHEMPI_SET_COLL_GATHER_RANKS) &&
           block <= chempi_setting_signed(CHEMPI_SET_COLL_GATHER_TREE);
}

/* Who the root deals with: itself included on an intracommunicator. */
struct sides {
    bool is_root;
    int peers;
    int self; /* -1 on an intercommunicator */
};

static struct sides sides_of(const struct chempi_coll_sched *s,
                             const struct chempi_coll_call *c)
{
    if (c->comm->is_inter)
        return (struct sides){c->root == MPI_ROOT, (int)c->comm->remote_size,
                              -1};
    return (struct sides){s->rank == c->root, s->size, s->rank};
}

/* ---- gather ---- */

static void gather_direct(struct chempi_coll_sched *s,
                          const struct chempi_coll_call *c)
{
    struct sides sides = sides_of(s, c);
    struct chempi_coll_place own;

    if (!sides.is_root) {
        if (c->send.count * c->send.type->size > 0)
            chempi_coll_send(s, c->send.buf, c->send.count, c->send.type,
                             c->root);
        return;
    }
    for (int i = 0; i < sides.peers; i++) {
        struct chempi_coll_place p = chempi_coll_received(c, i);

        if (i == sides.self)
            continue;
        if (p.count * c->recv.type->size == 0)
            continue;
        chempi_coll_recv(s, p.buf, p.count, c->recv.type, i);
        chempi_coll_throttle(s);
    }
    if (sides.self < 0)
        return;
    chempi_coll_fence(s); /* who waits for us should not wait for a copy */
    own = chempi_coll_received(c, s->rank);
    if (c->send.buf != MPI_IN_PLACE)
        chempi_coll_copy(s, c->send.buf, c->send.count, c->send.type, own.buf,
                         own.count, c->recv.type);
}

void chempi_coll_build_gather(struct chempi_coll_sched *s,
                              const struct chempi_coll_call *c)
{
    bool is_root = sides_of(s, c).is_root;
    MPI_Count block = 0;

    if (c->kind == CHEMPI_COLL_GATHER && !c->comm->is_inter)
        block = is_root ? c->recv.count * c->recv.type->size
                        : c->send.count * c->send.type->size;
    if (block > 0 && is_tree_good(s, block))
        gather_tree(s, c, block);
    else
        gather_direct(s, c);
}

/* ---- scatter ---- */

static void scatter_direct(struct chempi_coll_sched *s,
                           const struct chempi_coll_call *c)
{
    struct sides sides = sides_of(s, c);
    struct chempi_coll_place own;

    if (!sides.is_root) {
        if (c->recv.count * c->recv.type->size > 0)
            chempi_coll_recv(s, c->recv.buf, c->recv.count, c->recv.type,
                             c->root);
        return;
    }
    for (int i = 0; i < sides.peers; i++) {
        struct chempi_coll_place p = chempi_coll_sent(c, i);

        if (i == sides.self || p.count * c->send.type->size == 0)
            continue;
        chempi_coll_send(s, p.buf, p.count, c->send.type, i);
        chempi_coll_throttle(s);
    }
    if (sides.self < 0)
        return;
    own = chempi_coll_sent(c, s->rank);
    if (c->recv.buf != MPI_IN_PLACE)
        chempi_coll_copy(s, own.buf, own.count, c->send.type, c->recv.buf,
                         c->recv.count, c->recv.type);
}

void chempi_coll_build_scatter(struct chempi_coll_sched *s,
                               const struct chempi_coll_call *c)
{
    bool is_root = sides_of(s, c).is_root;
    MPI_Count block = 0;

    if (c->kind == CHEMPI_COLL_SCATTER && !c->comm->is_inter)
        block = is_root ? c->send.count * c->send.type->size
                        : c->recv.count * c->recv.type->size;
    if (block > 0 && is_tree_good(s, block))
        scatter_tree(s, c, block);
    else
        scatter_direct(s, c);
}
