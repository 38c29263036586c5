/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Phases, and the collectives that move or combine whole vectors: barrier,
 * broadcast, reductions. See hier_ops.h.
 */
#include "libchempi/didl/coll/hier/hier_ops.h"

#include "libchempi/didl/base/setting.h"
#include "libchempi/didl/error/error.h"

enum {
    SLICE_BYTES = 16 * 1024 * 1024, /* reduced at a time */
    CHAIN_NODES_MAX = 64            /* a longer chain takes too long to fill */
};

/* ---- phases ---- */

void chempi_hier_flush(struct chempi_hier_run *r)
{
    struct chempi_coll_sched *s = r->s;

    if (!r->node_comm) {
        chempi_coll_fence(s);
        return;
    }
    s->failed = chempi_coll_run(s);
    s->count = 0;
    s->open = 0;
    s->widest = 0;
}

void chempi_hier_among(struct chempi_hier_run *r, chempi_coll_map_fn *team,
                       int rank, int size, chempi_coll_build_fn *build,
                       const struct chempi_coll_call *c)
{
    struct chempi_coll_sched *s = r->s;
    int own_rank = s->rank;
    int own_size = s->size;

    s->map = team;
    s->map_arg = r->h;
    s->rank = rank;
    s->size = size;
    build(s, c);
    chempi_coll_fence(s);
    s->map = NULL;
    s->rank = own_rank;
    s->size = own_size;
}

static void append_in_node(struct chempi_hier_run *r,
                           const struct chempi_coll_call *local)
{
    const struct chempi_hier *h = r->h;

    chempi_coll_fence(r->s);
    chempi_hier_among(r, chempi_hier_local_rank, h->index,
                      chempi_hier_node_size(h, h->node), chempi_coll_build_flat,
                      local);
}

void chempi_hier_in_node(struct chempi_hier_run *r,
                         struct chempi_coll_call local)
{
    struct chempi_coll_sched *s = r->s;

    if (!r->node_comm || r->node_comm->size == 1) {
        append_in_node(r, &local);
        return;
    }
    chempi_hier_flush(r);
    local.comm = r->node_comm;
    if (CHEMPI_LIKELY(!s->failed))
        s->failed = chempi_coll_do_flat(&local);
    else
        chempi_coll_do_void(&local, !s->error); /* K2 */
}

/* ---- ways ---- */

static bool is_leader(const struct chempi_hier_run *r,
                      const struct chempi_hier_tree *t)
{
    return t->leader == r->h->rank;
}

/* To the children in other nodes, over the slow networks first. */
static void send_down(struct chempi_hier_run *r,
                      const struct chempi_hier_tree *t, const void *buf,
                      MPI_Count count, struct chempi_datatype *type)
{
    for (int i = t->child_count - 1; i >= t->local_count; i--)
        chempi_coll_send(r->s, buf, count, type, t->children[i]);
}

/* ---- broadcast ---- */

static MPI_Count segment_bytes(void)
{
    return chempi_setting_signed(CHEMPI_SET_COLL_HIER_SEGMENT);
}

/* Down between the nodes, a segment behind the other, so that a node hands on
 * one while it receives the next. */
static void bcast_segments(struct chempi_hier_run *r,
                           const struct chempi_hier_tree *t, MPI_Count len)
{
    const struct chempi_coll_call *c = r->c;
    struct chempi_datatype *byte = chempi_coll_byte();
    bool is_packed = !c->recv.type->is_contiguous;
    bool is_root = t->parent < 0;
    MPI_Count segment = segment_bytes();
    void *buf;

    buf = is_packed ? chempi_coll_bytes(r->s, len)
                    : chempi_coll_plus(c->recv.buf, c->recv.type->true_lb);
    if (is_packed && is_root)
        chempi_coll_copy(r->s, c->recv.buf, c->recv.count, c->recv.type, buf,
                         len, byte);
    for (MPI_Count at = 0; at < len + segment; at += segment) {
        MPI_Count ready = is_root ? at : at - segment;
        MPI_Count rest = len - at;

        if (!is_root && rest > 0)
            chempi_coll_recv(r->s, chempi_coll_plus(buf, at),
                             rest < segment ? rest : segment, byte, t->parent);
        rest = len - ready;
        if (ready >= 0 && rest > 0)
            send_down(r, t, chempi_coll_plus(buf, ready),
                      rest < segment ? rest : segment, byte);
        if (!is_root)
            chempi_coll_fence(r->s);
        chempi_coll_throttle(r->s);
    }
    if (is_packed && !is_root)
        chempi_coll_copy(r->s, buf, len, byte, c->recv.buf, c->recv.count,
                         c->recv.type);
}

static void bcast_whole(struct chempi_hier_run *r,
                        const struct chempi_hier_tree *t)
{
    const struct chempi_coll_call *c = r->c;

    if (t->parent >= 0) {
        chempi_coll_recv(r->s, c->recv.buf, c->recv.count, c->recv.type,
                         t->parent);
        chempi_coll_fence(r->s);
    }
    send_down(r, t, c->recv.buf, c->recv.count, c->recv.type);
}

bool chempi_hier_bcast(struct chempi_hier_run *r)
{
    const struct chempi_coll_call *c = r->c;
    MPI_Count len = c->recv.count * c->recv.type->size;
    bool is_long = len > segment_bytes();
    const struct chempi_hier_tree *t;
    struct chempi_coll_call local = {
        .kind = CHEMPI_COLL_BCAST,
        .comm = c->comm,
        .recv.buf = c->recv.buf,
        .recv.count = c->recv.count,
        .recv.type = c->recv.type,
    };

    t = chempi_hier_tree(r->h,
                         is_long && r->h->node_count <= CHAIN_NODES_MAX
                             ? CHEMPI_HIER_ROOTED_CHAIN
                             : CHEMPI_HIER_ROOTED,
                         c->root);
    if (is_leader(r, t)) {
        if (is_long)
            bcast_segments(r, t, len);
        else
            bcast_whole(r, t);
    }
    local.root = t->leader_index;
    chempi_hier_in_node(r, local);
    return true;
}

/* ---- reductions ---- */

/* A piece of the vector that is being reduced. */
struct piece {
    const void *in;
    void *acc;
    MPI_Count count;
};

/* The next piece makes do with the same temporary memory. */
static void end_piece(struct chempi_hier_run *r, struct chempi_coll_block *kept)
{
    chempi_hier_flush(r);
    chempi_coll_reuse(r->s, kept);
}

/* The contributions of this node, at its leader. */
static void reduce_in_node(struct chempi_hier_run *r,
                           const struct chempi_hier_tree *t,
                           const struct piece *p)
{
    struct chempi_coll_call local = {
        .kind = CHEMPI_COLL_REDUCE,
        .comm = r->c->comm,
        .send.buf = (void *)(uintptr_t)p->in,
        .recv.buf = p->acc,
        .recv.count = p->count,
        .recv.type = r->c->recv.type,
        .op = r->c->op,
        .root = t->leader_index,
    };

    if (is_leader(r, t) && p->in == p->acc)
        local.send.buf = MPI_IN_PLACE;
    chempi_hier_in_node(r, local);
    r->s->op = r->c->op;
}

/* acc[at, at + n) takes in what came from a child, whose ranks all follow. */
static void take_in(struct chempi_hier_run *r, const struct piece *p,
                    MPI_Count at, MPI_Count n, void *tmp)
{
    struct chempi_datatype *type = r->c->recv.type;
    void *acc = chempi_coll_at(p->acc, at, type);

    if (r->c->op->is_commutative) {
        chempi_coll_combine(r->s, tmp, acc, n, type);
        return;
    }
    chempi_coll_combine(r->s, acc, tmp, n, type);
    chempi_coll_copy(r->s, tmp, n, type, acc, n, type);
}

static MPI_Count least(MPI_Count a, MPI_Count b)
{
    return a < b ? a : b;
}

/* Elements of a segment. */
static MPI_Count segment_count(const struct chempi_datatype *type,
                               MPI_Count count)
{
    MPI_Count n = type->size > 0 ? segment_bytes() / type->size : count;

    return least(n > 0 ? n : 1, count);
}

/* What comes from the children, `step` elements of each. */
struct intake {
    void *buf;
    MPI_Count step;
};

static void *intake_at(const struct chempi_hier_run *r,
                       const struct intake *from, int child)
{
    return chempi_coll_at(from->buf, child * from->step, r->c->recv.type);
}

static void receive_segment(struct chempi_hier_run *r,
                            const struct chempi_hier_tree *t, MPI_Count n,
                            const struct intake *to)
{
    for (int i = t->local_count; i < t->child_count; i++)
        chempi_coll_recv(r->s, intake_at(r, to, i - t->local_count), n,
                         r->c->recv.type, t->children[i]);
}

/*
 * What the nodes below have is combined with acc, and the whole goes to the
 * parent; while one segment is combined, the next is on its way.
 */
static void reduce_up(struct chempi_hier_run *r,
                      const struct chempi_hier_tree *t, const struct piece *p)
{
    struct chempi_datatype *type = r->c->recv.type;
    MPI_Count segment = segment_count(type, p->count);
    int n = t->child_count - t->local_count;
    struct intake tmp[2] = {{.step = segment}, {.step = segment}};
    int turn = 0;

    for (int i = 0; n > 0 && i < 1 + (p->count > segment); i++)
        tmp[i].buf = chempi_coll_temp(r->s, n * segment, type);
    receive_segment(r, t, segment, &tmp[0]);
    chempi_coll_fence(r->s);
    for (MPI_Count at = 0; at < p->count; at += segment) {
        MPI_Count here = least(segment, p->count - at);
        MPI_Count next = least(segment, p->count - at - here);

        if (next > 0)
            receive_segment(r, t, next, &tmp[!turn]);
        for (int i = 0; i < n; i++)
            take_in(r, p, at, here, intake_at(r, &tmp[turn], i));
        if (t->parent >= 0)
            chempi_coll_send(r->s, chempi_coll_at(p->acc, at, type), here, type,
                             t->parent);
        chempi_coll_fence(r->s);
        turn = !turn;
    }
}

void chempi_hier_reduce_up(struct chempi_hier_run *r,
                           const struct chempi_hier_tree *t, const void *in,
                           void *acc, MPI_Count count)
{
    struct piece p = {.in = in, .acc = acc, .count = count};

    reduce_in_node(r, t, &p);
    if (is_leader(r, t))
        reduce_up(r, t, &p);
}

static MPI_Count slice_count(const struct chempi_coll_call *c)
{
    MPI_Count n = c->recv.type->size > 0 ? SLICE_BYTES / c->recv.type->size
                                         : c->recv.count;

    return least(n > 0 ? n : 1, c->recv.count);
}

static const void *input(const struct chempi_coll_call *c)
{
    return c->send.buf == MPI_IN_PLACE ? c->recv.buf : c->send.buf;
}

/* The result of an operation in order stands at rank 0. */
static void hand_to_root(struct chempi_hier_run *r, const struct piece *p)
{
    const struct chempi_coll_call *c = r->c;

    if (r->h->rank == 0)
        chempi_coll_send(r->s, p->acc, p->count, c->recv.type, c->root);
    else if (r->h->rank == c->root)
        chempi_coll_recv(r->s, p->acc, p->count, c->recv.type, 0);
    chempi_coll_fence(r->s);
}

bool chempi_hier_reduce(struct chempi_hier_run *r)
{
    const struct chempi_coll_call *c = r->c;
    int top = c->op->is_commutative ? c->root : 0;
    const struct chempi_hier_tree *t =
        chempi_hier_tree(r->h, CHEMPI_HIER_ROOTED, top);
    MPI_Count slice = slice_count(c);
    bool is_root = r->h->rank == c->root;
    struct chempi_coll_block *kept;
    void *own = NULL;

    if (!c->op->is_commutative && !t->is_ordered)
        return false;
    if (c->recv.count == 0)
        return true;
    if (is_leader(r, t) && !is_root)
        own = chempi_coll_temp(r->s, slice, c->recv.type);
    kept = r->s->blocks;
    for (MPI_Count at = 0; at < c->recv.count; at += slice) {
        struct piece p = {
            .in = chempi_coll_at(input(c), at, c->recv.type),
            .acc =
                is_root ? chempi_coll_at(c->recv.buf, at, c->recv.type) : own,
            .count = least(slice, c->recv.count - at),
        };

        reduce_in_node(r, t, &p);
        if (is_leader(r, t))
            reduce_up(r, t, &p);
        if (top != c->root)
            hand_to_root(r, &p);
        end_piece(r, kept);
    }
    return true;
}

/* ---- allreduce and barrier: up to the top team, there, down again ---- */

static void share_among_tops(struct chempi_hier_run *r, const struct piece *p)
{
    struct chempi_coll_call call = {
        .kind = CHEMPI_COLL_ALLREDUCE,
        .comm = r->c->comm,
        .send.buf = MPI_IN_PLACE,
        .recv.buf = p->acc,
        .recv.count = p->count,
        .recv.type = r->c->recv.type,
        .op = r->c->op,
    };

    chempi_hier_among(r, chempi_hier_top_rank, r->h->top,
                      chempi_hier_top_count(r->h), chempi_coll_build_allreduce,
                      &call);
}

static void allreduce_piece(struct chempi_hier_run *r,
                            const struct chempi_hier_tree *t,
                            const struct piece *p)
{
    struct chempi_coll_call down = {
        .kind = CHEMPI_COLL_BCAST,
        .comm = r->c->comm,
        .root = t->leader_index,
        .recv.buf = p->acc,
        .recv.count = p->count,
        .recv.type = r->c->recv.type,
    };

    reduce_in_node(r, t, p);
    if (is_leader(r, t)) {
        reduce_up(r, t, p);
        if (t->parent < 0)
            share_among_tops(r, p);
        else
            chempi_coll_recv(r->s, p->acc, p->count, r->c->recv.type,
                             t->parent);
        chempi_coll_fence(r->s);
        send_down(r, t, p->acc, p->count, r->c->recv.type);
    }
    chempi_hier_in_node(r, down);
}

bool chempi_hier_allreduce(struct chempi_hier_run *r)
{
    const struct chempi_coll_call *c = r->c;
    const struct chempi_hier_tree *t =
        chempi_hier_tree(r->h, CHEMPI_HIER_TOPPED, -1);
    struct chempi_coll_block *kept = r->s->blocks;
    MPI_Count slice = slice_count(c);

    if (!c->op->is_commutative && !t->is_ordered)
        return false;
    for (MPI_Count at = 0; at < c->recv.count; at += slice) {
        struct piece p = {
            .in = chempi_coll_at(input(c), at, c->recv.type),
            .acc = chempi_coll_at(c->recv.buf, at, c->recv.type),
            .count = least(slice, c->recv.count - at),
        };

        allreduce_piece(r, t, &p);
        end_piece(r, kept);
    }
    return true;
}

/* A barrier is an allreduce of nothing worth mentioning. */
bool chempi_hier_barrier(struct chempi_hier_run *r)
{
    unsigned char *nothing = chempi_coll_bytes(r->s, 1);
    const struct chempi_coll_call *whole = r->c;
    struct chempi_coll_call c = {
        .kind = CHEMPI_COLL_ALLREDUCE,
        .comm = whole->comm,
        .send.buf = MPI_IN_PLACE,
        .recv.buf = nothing,
        .recv.count = 1,
        .recv.type = chempi_coll_byte(),
        .op = chempi_op_lookup(MPI_BOR),
    };

    *nothing = 0;
    r->c = &c;
    (void)chempi_hier_allreduce(r);
    r->c = whole;
    return true;
}
