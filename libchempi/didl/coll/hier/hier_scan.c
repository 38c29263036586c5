/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scan and exscan through the hierarchy (hier_ops.h), where every node's ranks
 * follow each other. Two ways:
 *
 *   a chain: a node's first member takes what all nodes before it came to into
 *   its own contribution, so that the node's scan gives everyone the result;
 *   the last member hands the sum to the next node. Long data goes in
 *   segments, one behind the other.
 *
 *   level by level: the nodes scan at the same time, their last members scan
 *   over the nodes, and each node's members take in what that gave.
 *
 * The chain does the least in all and never meets; its length is that of the
 * row of nodes. So short data on many nodes goes level by level. The members
 * of a scan all bring the same amount of data: after a failure a member goes
 * on with what it has, and only its messages are empty (K2).
 */
#include "libchempi/didl/base/setting.h"
#include "libchempi/didl/coll/hier/hier_ops.h"

enum {
    SLICE_BYTES = 16 * 1024 * 1024,
    MESSAGES = 4,       /* as long as so many of others: each of a scan's
                           segments makes the members of every node meet */
    CHAIN_NODES_MAX = 4 /* of short data */
};

/* This process's part in it. */
struct part {
    int node;
    int first; /* ranks of the node: first .. last */
    int last;
    bool is_ex;
    bool is_in_place;
    bool is_first;
    bool is_last;
    bool has_next; /* a node */
};

/* A segment. */
struct piece {
    const void *in;
    void *out;
    MPI_Count count;
};

static struct part part_of(const struct chempi_hier_run *r)
{
    const struct chempi_hier *h = r->h;
    const int first = h->rank - h->index; /* ranks follow each other */
    const int last = first + chempi_hier_node_size(h, h->node) - 1;

    return (struct part){
        .node = h->node,
        .first = first,
        .last = last,
        .is_ex = r->c->kind == CHEMPI_COLL_EXSCAN,
        .is_in_place = r->c->send.buf == MPI_IN_PLACE,
        .is_first = h->rank == first,
        .is_last = h->rank == last,
        .has_next = h->node + 1 < h->node_count,
    };
}

static void copy(struct chempi_hier_run *r, const void *from, void *to,
                 MPI_Count count)
{
    chempi_coll_copy(r->s, from, count, r->c->recv.type, to, count,
                     r->c->recv.type);
}

/* to = from op to */
static void combine(struct chempi_hier_run *r, const void *from, void *to,
                    MPI_Count count)
{
    r->s->op = r->c->op;
    chempi_coll_combine(r->s, from, to, count, r->c->recv.type);
}

static void scan_in_node(struct chempi_hier_run *r, const void *in, void *out,
                         MPI_Count count)
{
    struct chempi_coll_call local = {
        .kind = r->c->kind,
        .comm = r->c->comm,
        .send.buf = in == out ? MPI_IN_PLACE : (void *)(uintptr_t)in,
        .recv.buf = out,
        .recv.count = count,
        .recv.type = r->c->recv.type,
        .op = r->c->op,
    };

    chempi_hier_in_node(r, local);
}

static MPI_Count least(MPI_Count a, MPI_Count b)
{
    return a < b ? a : b;
}

/* Elements that have so many bytes. */
static MPI_Count elements(const struct chempi_coll_call *c, MPI_Count bytes)
{
    MPI_Count n =
        c->recv.type->size > 0 ? bytes / c->recv.type->size : c->recv.count;

    return least(n > 0 ? n : 1, c->recv.count);
}

/* ---- the chain ---- */

/*
 * The first member of a node that is not the first: what came before goes
 * into its contribution, which is returned. In an exscan it is also its
 * result: `before` keeps it where the node's scan works in the user's buffer.
 */
static const void *take_before(struct chempi_hier_run *r, const struct part *p,
                               const struct piece *k, void *before)
{
    struct chempi_datatype *type = r->c->recv.type;
    bool is_result = p->is_ex && !p->is_in_place;
    void *from = is_result ? k->out : before;
    void *own = is_result ? before : k->out;

    chempi_coll_recv(r->s, from, k->count, type, p->first - 1);
    chempi_coll_fence(r->s);
    if (!p->is_ex && !p->is_in_place && r->c->op->is_commutative) {
        combine(r, k->in, from, k->count);
        return from;
    }
    if (k->in != own)
        copy(r, k->in, own, k->count);
    combine(r, from, own, k->count);
    return own;
}

/* The last member of a node: what the next one has to know. `own` is what it
 * contributed to an exscan. */
static void hand_on(struct chempi_hier_run *r, const struct part *p,
                    const struct piece *k, void *own)
{
    void *sum = k->out;

    if (p->is_ex) {
        sum = own;
        if (!p->is_first)
            combine(r, k->out, sum, k->count);
    }
    chempi_coll_send(r->s, sum, k->count, r->c->recv.type, p->last + 1);
    chempi_coll_fence(r->s);
}

static void chain_piece(struct chempi_hier_run *r, const struct part *p,
                        const struct piece *k, void *before, void *own)
{
    bool takes = p->is_first && p->node > 0;
    bool hands = p->is_last && p->has_next;
    const void *in = k->in;

    if (takes)
        in = take_before(r, p, k, before);
    if (hands && p->is_ex)
        copy(r, in, own, k->count);
    scan_in_node(r, in, k->out, k->count);
    if (takes && p->is_ex && p->is_in_place)
        copy(r, before, k->out, k->count);
    if (hands)
        hand_on(r, p, k, own);
}

static void chain(struct chempi_hier_run *r, const struct part *p,
                  MPI_Count segment)
{
    const struct chempi_coll_call *c = r->c;
    const void *in = p->is_in_place ? c->recv.buf : c->send.buf;
    MPI_Count step = elements(c, least(segment * MESSAGES, SLICE_BYTES));
    struct chempi_coll_block *kept;
    void *before = NULL;
    void *own = NULL;

    if (p->is_first && p->node > 0)
        before = chempi_coll_temp(r->s, step, c->recv.type);
    if (p->is_last && p->has_next && p->is_ex)
        own = chempi_coll_temp(r->s, step, c->recv.type);
    kept = r->s->blocks;
    for (MPI_Count at = 0; at < c->recv.count; at += step) {
        struct piece k = {
            .in = chempi_coll_at(in, at, c->recv.type),
            .out = chempi_coll_at(c->recv.buf, at, c->recv.type),
            .count = least(step, c->recv.count - at),
        };

        chain_piece(r, p, &k, before, own);
        chempi_coll_reuse(r->s, kept); /* hand_on() or the node has fenced */
    }
}

/* ---- level by level ---- */

/* The last member of each node: before = what the nodes before came to. */
static void scan_over_nodes(struct chempi_hier_run *r, const struct part *p,
                            void *total, void *before)
{
    const struct chempi_hier *h = r->h;
    struct chempi_coll_call call = {
        .kind = CHEMPI_COLL_EXSCAN,
        .comm = r->c->comm,
        .send.buf = total,
        .recv.buf = before,
        .recv.count = r->c->recv.count,
        .recv.type = r->c->recv.type,
        .op = r->c->op,
    };

    chempi_hier_among(r, chempi_hier_last_rank, p->node, h->node_count,
                      chempi_coll_build_scan, &call);
}

/* All in the node get what came before it, from its last member. */
static void deal_before(struct chempi_hier_run *r, const struct part *p,
                        void *before)
{
    struct chempi_coll_call down = {
        .kind = CHEMPI_COLL_BCAST,
        .comm = r->c->comm,
        .root = p->last - p->first,
        .recv.buf = before,
        .recv.count = r->c->recv.count,
        .recv.type = r->c->recv.type,
    };

    chempi_hier_in_node(r, down);
    if (p->is_ex && p->is_first)
        copy(r, before, r->c->recv.buf, r->c->recv.count);
    else
        combine(r, before, r->c->recv.buf, r->c->recv.count);
}

static void by_level(struct chempi_hier_run *r, const struct part *p)
{
    const struct chempi_coll_call *c = r->c;
    const void *in = p->is_in_place ? c->recv.buf : c->send.buf;
    void *before = chempi_coll_temp(r->s, c->recv.count, c->recv.type);
    void *total = c->recv.buf;

    if (p->is_ex && p->is_last) {
        total = chempi_coll_temp(r->s, c->recv.count, c->recv.type);
        copy(r, in, total, c->recv.count);
    }
    scan_in_node(r, in, c->recv.buf, c->recv.count);
    if (p->is_ex && p->is_last && !p->is_first)
        combine(r, c->recv.buf, total, c->recv.count);
    if (p->is_last)
        scan_over_nodes(r, p, total, before);
    if (p->node > 0)
        deal_before(r, p, before);
}

/* ---- which ---- */

bool chempi_hier_scan(struct chempi_hier_run *r)
{
    const struct chempi_coll_call *c = r->c;
    MPI_Count segment = chempi_setting_signed(CHEMPI_SET_COLL_HIER_SEGMENT);
    struct part p = part_of(r);

    if (!r->h->is_in_blocks)
        return false;
    if (c->recv.count == 0)
        return true;
    /* Between different networks a chain crosses each border once. */
    if (r->h->node_count > CHAIN_NODES_MAX && r->h->team_count == 1 &&
        c->recv.count * c->recv.type->size <= segment)
        by_level(r, &p);
    else
        chain(r, &p, segment);
    return true;
}
