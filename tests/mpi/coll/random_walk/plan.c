/* SPDX-License-Identifier: BSD-3-Clause */
/* What an operation is: its kind, sizes, root, and blocks of this rank. */
#include "random_walk.h"

static long round_to(long n, long step)
{
    return n / step * step;
}

/* Items of a block: near a size at which the library changes its ways. */
static long base_count(const struct act *a, long share, uint64_t r)
{
    static const long edges[] = {0,     0,     8,      48,     64,     256,
                                 512,   1024,  4096,   4096,   8192,   16384,
                                 32768, 65536, 131072, 262144, 393216, 524288};
    long bytes = edges[r % 18];
    long n = bytes / a->base.size + (long)(r / 18 % 3) - 1;

    if (r / 54 % 4 == 0)
        n = (long)(r / 216 % 7);
    if (n * a->base.pitch > walk.most / share)
        n = walk.most / share / a->base.pitch;
    return n < 0 ? 0 : n;
}

struct plan {
    long n;    /* of a block */
    long step; /* all are multiples of it */
    bool is_v;
    bool is_w;
};

static long count_of(const struct act *a, const struct plan *p, int from,
                     int to, int edge)
{
    uint64_t r;

    if (!p->is_v && !p->is_w)
        return p->n;
    if (a->in_place && from > to) {
        int t = from;
        from = to;
        to = t;
    }
    r = walk_draw(a->id, 20 + edge, from, to);
    return round_to(r % 5 == 0 ? 0 : p->n * (long)(r % 4) / 3, p->step);
}

static void put_block(struct act *a, const struct plan *p, struct side *s,
                      int i, int from, int to, int edge)
{
    s->block[i] = (struct block){.key = (uint64_t)edge << 24 |
                                        (uint64_t)from << 12 | (uint64_t)to,
                                 .n = count_of(a, p, from, to, edge),
                                 .is_there = true};
}

/* One block, and at the root one for each peer. */
static void describe_rooted(struct act *a, const struct slot *s,
                            const struct plan *p)
{
    int me = check_rank();
    bool is_gather = a->kind == GATHER || a->kind == GATHERV;
    struct side *one = is_gather ? &a->send : &a->recv;
    struct side *all = is_gather ? &a->recv : &a->send;
    bool has_one =
        s->is_inter ? !a->is_root && !a->is_void : !(a->is_root && a->in_place);

    walk_side_init(one, has_one);
    walk_side_init(all, a->is_root ? s->peers : 0);
    if (has_one && is_gather)
        put_block(a, p, one, 0, me, EVERYBODY, 0);
    else if (has_one)
        put_block(a, p, one, 0, EVERYBODY, me, 0);
    for (int i = 0; i < all->blocks; i++) {
        if (is_gather)
            put_block(a, p, all, i, s->peer[i], EVERYBODY, 0);
        else
            put_block(a, p, all, i, EVERYBODY, s->peer[i], 0);
    }
}

static void describe_bcast(struct act *a, const struct plan *p)
{
    walk_side_init(&a->send, 0);
    walk_side_init(&a->recv, !a->is_void);
    if (!a->is_void)
        put_block(a, p, &a->recv, 0, EVERYBODY, EVERYBODY, 0);
}

static void describe_all(struct act *a, const struct slot *s,
                         const struct plan *p)
{
    int me = check_rank();
    bool is_gather = a->kind == ALLGATHER || a->kind == ALLGATHERV;
    int out = is_gather ? 1 : s->peers;

    walk_side_init(&a->send, a->in_place ? 0 : out);
    walk_side_init(&a->recv, s->peers);
    for (int i = 0; i < a->send.blocks; i++)
        put_block(a, p, &a->send, i, me, is_gather ? EVERYBODY : s->peer[i], 0);
    for (int i = 0; i < s->peers; i++)
        put_block(a, p, &a->recv, i, s->peer[i], is_gather ? EVERYBODY : me, 0);
}

static void describe_neighbors(struct act *a, const struct slot *s,
                               const struct plan *p)
{
    int me = check_rank();
    bool is_gather = a->kind <= NEIGHBOR_ALLGATHERV;

    walk_side_init(&a->send, is_gather ? 1 : s->outs);
    walk_side_init(&a->recv, s->ins);
    for (int i = 0; i < a->send.blocks; i++) {
        int to = is_gather ? EVERYBODY : s->out[i];
        put_block(a, p, &a->send, i, me, to, is_gather ? 0 : s->out_edge[i]);
        a->send.block[i].is_there = to >= 0;
    }
    for (int i = 0; i < s->ins; i++) {
        put_block(a, p, &a->recv, i, s->in[i], is_gather ? EVERYBODY : me,
                  is_gather ? 0 : s->in_edge[i]);
        a->recv.block[i].is_there = s->in[i] >= 0;
    }
}

static struct base move_bases(uint64_t r)
{
    const struct base bases[] = {
        {MPI_INT, 4, 4},          {MPI_BYTE, 1, 1},
        {MPI_DOUBLE, 8, 8},       {MPI_SHORT, 2, 2},
        {MPI_DOUBLE_INT, 12, 16}, {MPI_C_DOUBLE_COMPLEX, 16, 16},
        {MPI_INT, 4, 4},          {square_type, 16, 16}};

    return bases[r % 8];
}

static void describe_move(struct act *a, const struct slot *s)
{
    uint64_t r = walk_draw(a->id, 2, 0, 0);
    struct plan p = {.step = r % 2 ? 6 : 1};
    long share = 2L * (s->size + s->peers);

    a->base = move_bases(walk_draw(a->id, 3, 0, 0));
    p.is_w = a->kind == ALLTOALLW || a->kind == NEIGHBOR_ALLTOALLW;
    p.is_v = a->kind == GATHERV || a->kind == SCATTERV ||
             a->kind == ALLGATHERV || a->kind == ALLTOALLV ||
             a->kind == NEIGHBOR_ALLGATHERV || a->kind == NEIGHBOR_ALLTOALLV;
    if (a->kind >= ALLGATHER)
        share *= s->size + s->peers;
    p.n = round_to(base_count(a, share, walk_draw(a->id, 4, 0, 0)), p.step);
    if (a->kind == BCAST)
        describe_bcast(a, &p);
    else if (a->kind <= SCATTERV)
        describe_rooted(a, s, &p);
    else if (a->kind <= ALLTOALLW)
        describe_all(a, s, &p);
    else
        describe_neighbors(a, s, &p);
    r = walk_draw(a->id, 5, check_rank(), 0);
    walk_furnish(a, &a->send, p.is_v, p.is_w, p.is_v || p.is_w ? p.step : p.n,
                 r);
    walk_furnish(a, &a->recv, p.is_v, p.is_w, p.is_v || p.is_w ? p.step : p.n,
                 r + 1);
}

/* Where the vector is cut for reduce_scatter: elements of rank i. */
static long part_of(const struct act *a, long total, int i, int size)
{
    long at = 0;

    for (int j = 0; j < size; j++) {
        uint64_t r = walk_draw(a->id, 30, j, 0);
        long n = r % 4 == 0 ? 0 : total * (long)(r % 3) / size;
        if (n > total - at || j == size - 1)
            n = total - at;
        if (j == i)
            return n;
        at += n;
    }
    return 0;
}

static void describe_reduction(struct act *a, const struct slot *s)
{
    int both = s->is_inter ? s->size * s->peers : s->size;
    bool is_scatter =
        a->kind == REDUCE_SCATTER || a->kind == REDUCE_SCATTER_BLOCK;
    bool has_send = !a->in_place && !a->is_void &&
                    !(s->is_inter && a->kind == REDUCE && a->is_root);
    bool has_recv = a->is_root && !a->is_void;
    struct layout *l;
    long total;
    long result;

    walk_choose_op(&a->op, walk_draw(a->id, 6, 0, 0));
    a->base = a->op.base;
    a->voices = s->peers;
    memcpy(a->voice, s->peer, sizeof(s->peer));
    a->voice[a->voices] = check_rank();
    total = base_count(a, (long)(s->size + s->peers) * 2,
                       walk_draw(a->id, 4, 0, 0));
    if (a->kind == REDUCE_SCATTER_BLOCK)
        total = total < both && total > 0 ? both : round_to(total, both);
    walk_side_init(&a->send, has_send);
    walk_side_init(&a->recv, has_recv);
    /* total is in elements from here on */
    l = &a->send.layout[0];
    walk_make_layout(l, &a->base, a->op.is_user ? walk_draw(a->id, 7, 0, 0) : 0,
                     6, total + 2, false);
    if (!a->op.is_user && l->is_made)
        MPI_Type_free(&l->type);
    if (!a->op.is_user) {
        *l = (struct layout){
            .type = a->base.type, .items = 1, .extent = a->base.pitch};
        walk_bounds(l, &a->base);
    }
    result = total;
    a->skip = 0;
    if (a->kind == REDUCE_SCATTER_BLOCK)
        result = total / s->size;
    if (a->kind == REDUCE_SCATTER)
        result = part_of(a, total, s->rank, s->size);
    if (is_scatter)
        for (int i = 0; i < s->rank; i++)
            a->skip +=
                (a->kind == REDUCE_SCATTER ? part_of(a, total, i, s->size)
                                           : result) *
                l->items;
    a->send.layouts = 1;
    a->recv.layouts = 1;
    a->recv.layout[0] = *l;
    a->recv.layout[0].is_made = false;
    walk_live(l);
    a->send.block[0].n = total * l->items;
    a->recv.block[0].n = (a->in_place ? total : result) * l->items;
    a->recv.block[1].n = result * l->items;
    walk_place(&a->send, false, walk_draw(a->id, 8, check_rank(), 0));
    walk_place(&a->recv, false, walk_draw(a->id, 9, check_rank(), 0));
    a->send.counts[0] = (int)total;
    a->send.big_counts[0] = total;
    if (a->kind != REDUCE_SCATTER)
        return;
    free(a->recv.counts);
    free(a->recv.big_counts);
    a->recv.counts = check_alloc(sizeof(int) * (size_t)s->size);
    a->recv.big_counts = check_alloc(sizeof(MPI_Count) * (size_t)s->size);
    a->recv.big_displs[0] = 0;
    for (int i = 0; i < s->size; i++) {
        a->recv.counts[i] = (int)part_of(a, total, i, s->size);
        a->recv.big_counts[i] = a->recv.counts[i];
    }
}

static void choose_root(struct act *a, const struct slot *s)
{
    uint64_t r = walk_draw(a->id, 10, 0, 0);
    bool second = r % 2;
    int root;

    a->is_root = true;
    if (a->kind == BARRIER || (a->kind >= ALLGATHER && a->kind != REDUCE))
        return;
    if (!s->is_inter) {
        a->root = (int)(r / 2 % (uint64_t)s->size);
        a->is_root = a->root == s->rank;
        return;
    }
    root =
        (int)(r / 2 % (uint64_t)(s->is_second == second ? s->size : s->peers));
    a->is_root = s->is_second == second && root == s->rank;
    a->is_void = s->is_second == second && !a->is_root;
    a->root = a->is_root ? MPI_ROOT : a->is_void ? MPI_PROC_NULL : root;
}

struct act *walk_describe(struct slot *s, uint64_t step)
{
    struct act *a = check_alloc(sizeof(*a));
    bool has_topology = s->shape >= CART && s->shape <= ADJACENT;

    a->id = step;
    a->shape = s->shape;
    a->rank = s->rank;
    a->size = s->size;
    a->comm = s->comm;
    a->kind = (enum kind)(walk_draw(step, 11, 0, 0) %
                          (has_topology ? KINDS : NEIGHBOR_ALLGATHER));
    if (has_topology && walk_chance(step, 12, 0, 50))
        a->kind =
            (enum kind)(NEIGHBOR_ALLGATHER + walk_draw(step, 13, 0, 0) % 5);
    if (s->is_inter && (a->kind == SCAN || a->kind == EXSCAN))
        a->kind = ALLREDUCE;
    a->form = (enum form)(walk_draw(step, 14, 0, 0) % 3);
    a->is_big = walk_chance(step, 15, check_rank(), 50);
    choose_root(a, s);
    a->in_place = !s->is_inter && a->kind > BCAST &&
                  a->kind < NEIGHBOR_ALLGATHER && walk_chance(step, 16, 0, 30);
    if (a->kind == REDUCE)
        a->in_place = a->in_place && a->is_root;
    if (walk_is_reduction(a->kind))
        describe_reduction(a, s);
    else if (a->kind != BARRIER)
        describe_move(a, s);
    walk_fill(a, step);
    return a;
}
