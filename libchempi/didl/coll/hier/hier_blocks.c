/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives of blocks through the hierarchy (hier_ops.h): gather, scatter,
 * allgather, alltoall, reduce_scatter. Blocks travel packed, in the order of a
 * tree, so that what belongs below one rank is one range.
 */
#include "libchempi/didl/base/setting.h"
#include "libchempi/didl/coll/hier/hier_ops.h"

enum {
    SHARING_NODES_MAX = 8,
    SHARE_BYTES_MIN = 4 * 1024 /* of a node, where they are more */
};

/* Packed blocks of equal length. */
struct pack {
    char *buf;
    int first;     /* position in the tree's order of what stands at buf */
    MPI_Count len; /* bytes of a block */
};

static char *block_at(const struct pack *p, int position)
{
    return chempi_coll_plus(p->buf, (position - p->first) * p->len);
}

static bool is_leader(const struct chempi_hier_run *r,
                      const struct chempi_hier_tree *t)
{
    return t->leader == r->h->rank;
}

static int node_size(const struct chempi_hier_run *r)
{
    return chempi_hier_node_size(r->h, r->h->node);
}

/* Where the block of a node's i-th member stands in its leader's pack. */
static char *member_block(const struct chempi_hier_run *r,
                          const struct chempi_hier_tree *t,
                          const struct pack *p, int i)
{
    const int n = node_size(r);

    return block_at(p, t->at + (i - t->leader_index + n) % n);
}

/* A copy of bytes. */
static void copy(struct chempi_coll_sched *s, const void *from, void *to,
                 MPI_Count len)
{
    struct chempi_datatype *byte = chempi_coll_byte();

    chempi_coll_copy(s, from, len, byte, to, len, byte);
}

/* ---- within the node: members' blocks from and to the leader's pack ---- */

/* Where the node's blocks stand in the order of its members: in the pack
 * itself, if the leader is the first of them. */
static char *members_room(struct chempi_hier_run *r,
                          const struct chempi_hier_tree *t,
                          const struct pack *p)
{
    if (t->leader_index == 0)
        return block_at(p, t->at);
    return chempi_coll_bytes(r->s, node_size(r) * p->len);
}

/* local has the sender's side. */
static void collect_in_node(struct chempi_hier_run *r,
                            const struct chempi_hier_tree *t,
                            const struct pack *p, struct chempi_coll_call local)
{
    char *room = is_leader(r, t) ? members_room(r, t, p) : NULL;

    local.kind = CHEMPI_COLL_GATHER;
    local.comm = r->c->comm;
    local.root = t->leader_index;
    local.recv.buf = room;
    local.recv.count = p->len;
    local.recv.type = chempi_coll_byte();
    chempi_hier_in_node(r, local);
    if (!is_leader(r, t) || local.root == 0)
        return;
    for (int i = 0; i < node_size(r); i++)
        copy(r->s, room + i * p->len, member_block(r, t, p, i), p->len);
}

/* local has the receiver's side. */
static void deal_in_node(struct chempi_hier_run *r,
                         const struct chempi_hier_tree *t, const struct pack *p,
                         struct chempi_coll_call local)
{
    char *room = is_leader(r, t) ? members_room(r, t, p) : NULL;

    local.kind = CHEMPI_COLL_SCATTER;
    local.comm = r->c->comm;
    local.root = t->leader_index;
    local.send.buf = room;
    local.send.count = p->len;
    local.send.type = chempi_coll_byte();
    if (is_leader(r, t) && local.root != 0)
        for (int i = 0; i < node_size(r); i++)
            copy(r->s, member_block(r, t, p, i), room + i * p->len, p->len);
    chempi_hier_in_node(r, local);
}

/* ---- between nodes ---- */

/* The packs of the nodes below. */
static void receive_below(struct chempi_hier_run *r,
                          const struct chempi_hier_tree *t,
                          const struct pack *p)
{
    for (int i = t->local_count; i < t->child_count; i++)
        chempi_coll_recv(r->s, block_at(p, t->begin[i]),
                         (t->begin[i + 1] - t->begin[i]) * p->len,
                         chempi_coll_byte(), t->children[i]);
    chempi_coll_fence(r->s);
}

static void send_below(struct chempi_hier_run *r,
                       const struct chempi_hier_tree *t, const struct pack *p)
{
    for (int i = t->child_count - 1; i >= t->local_count; i--)
        chempi_coll_send(r->s, block_at(p, t->begin[i]),
                         (t->begin[i + 1] - t->begin[i]) * p->len,
                         chempi_coll_byte(), t->children[i]);
}

/* ---- gather and scatter ---- */

/* The root's blocks in the order of ranks, and packed in that of the tree. */
struct sorting {
    struct chempi_hier_run *r;
    const struct pack *p;
    bool is_in_place; /* the root's own, the first of all, stays out */
};

static void take_blocks(void *arg, const struct chempi_hier_stop *stop)
{
    const struct sorting *g = arg;
    const struct chempi_coll_call *c = g->r->c;
    const int n = chempi_hier_node_size(g->r->h, stop->node);

    for (int i = stop->at == 0 && g->is_in_place; i < n; i++) {
        const struct chempi_coll_place to =
            chempi_coll_received(c, chempi_hier_member_at(g->r->h, stop, i));

        chempi_coll_copy(g->r->s, block_at(g->p, stop->at + i), g->p->len,
                         chempi_coll_byte(), to.buf, to.count, to.type);
    }
}

static void give_blocks(void *arg, const struct chempi_hier_stop *stop)
{
    const struct sorting *g = arg;
    const struct chempi_coll_call *c = g->r->c;
    const int n = chempi_hier_node_size(g->r->h, stop->node);

    for (int i = 0; i < n; i++) {
        const struct chempi_coll_place from =
            chempi_coll_sent(c, chempi_hier_member_at(g->r->h, stop, i));

        chempi_coll_copy(g->r->s, from.buf, from.count, from.type,
                         block_at(g->p, stop->at + i), g->p->len,
                         chempi_coll_byte());
    }
}

/* A pack of what lies below this rank, at a leader with room, in the tree that
 * is returned; NULL: blocks of this length are not worth packing. */
static const struct chempi_hier_tree *open_pack(struct chempi_hier_run *r,
                                                struct pack *p)
{
    const struct chempi_hier_tree *t;

    if (p->len <= 0 ||
        p->len > chempi_setting_signed(CHEMPI_SET_COLL_GATHER_TREE))
        return NULL;
    t = chempi_hier_tree(r->h, CHEMPI_HIER_ROOTED, r->c->root);
    p->first = t->at;
    if (is_leader(r, t))
        p->buf = chempi_coll_bytes(r->s, (t->end - t->at) * p->len);
    return t;
}

bool chempi_hier_gather(struct chempi_hier_run *r)
{
    const struct chempi_coll_call *c = r->c;
    bool is_root = r->h->rank == c->root;
    bool is_in_place = is_root && c->send.buf == MPI_IN_PLACE;
    struct pack p = {.len = is_root ? c->recv.count * c->recv.type->size
                                    : c->send.count * c->send.type->size};
    struct chempi_coll_call local = {.send.buf = c->send.buf,
                                     .send.count = c->send.count,
                                     .send.type = c->send.type};
    const struct chempi_hier_tree *t = open_pack(r, &p);

    if (!t)
        return false;
    if (is_in_place) {
        local.send.buf = chempi_coll_received(c, c->root).buf;
        local.send.count = c->recv.count;
        local.send.type = c->recv.type;
    }
    collect_in_node(r, t, &p, local);
    if (!is_leader(r, t))
        return true;
    receive_below(r, t, &p);
    if (!is_root)
        chempi_coll_send(r->s, p.buf, (t->end - t->at) * p.len,
                         chempi_coll_byte(), t->parent);
    if (is_root)
        chempi_hier_walk(r->h, t, take_blocks,
                         &(struct sorting){r, &p, is_in_place});
    return true;
}

bool chempi_hier_scatter(struct chempi_hier_run *r)
{
    const struct chempi_coll_call *c = r->c;
    bool is_root = r->h->rank == c->root;
    struct pack p = {.len = is_root ? c->send.count * c->send.type->size
                                    : c->recv.count * c->recv.type->size};
    struct chempi_coll_call local = {.recv.buf = c->recv.buf,
                                     .recv.count = c->recv.count,
                                     .recv.type = c->recv.type};
    const struct chempi_hier_tree *t = open_pack(r, &p);

    if (!t)
        return false;
    if (is_root)
        chempi_hier_walk(r->h, t, give_blocks, &(struct sorting){r, &p, false});
    if (is_leader(r, t) && !is_root) {
        chempi_coll_recv(r->s, p.buf, (t->end - t->at) * p.len,
                         chempi_coll_byte(), t->parent);
        chempi_coll_fence(r->s);
    }
    if (is_leader(r, t))
        send_below(r, t, &p);
    deal_in_node(r, t, &p, local);
    return true;
}

/* ---- allgather ---- */

struct ring {
    struct chempi_hier_run *r;
    int at; /* of this rank in order */
    int before;
    int after;    /* ranks next to it */
    int out;      /* the rank whose block goes next */
    bool is_tail; /* the ranks behind this one in order, else those before */
};

static void find_neighbors(void *arg, const struct chempi_hier_stop *stop)
{
    struct ring *g = arg;
    const int n = g->r->h->size;
    const int end = stop->at + chempi_hier_node_size(g->r->h, stop->node);
    const int before = (g->at + n - 1) % n;
    const int after = (g->at + 1) % n;

    if (stop->at <= before && before < end)
        g->before = chempi_hier_member_at(g->r->h, stop, before - stop->at);
    if (stop->at <= after && after < end)
        g->after = chempi_hier_member_at(g->r->h, stop, after - stop->at);
}

/* What came in the last step goes on. */
static void hand_round(void *arg, const struct chempi_hier_stop *stop)
{
    struct ring *g = arg;
    struct chempi_coll_sched *s = g->r->s;
    const struct chempi_coll_call *c = g->r->c;
    const int n = chempi_hier_node_size(g->r->h, stop->node);

    for (int i = 0; i < n; i++) {
        const int rank = chempi_hier_member_at(g->r->h, stop, i);
        struct chempi_coll_place out;
        struct chempi_coll_place in;

        if (stop->at + i == g->at || (stop->at + i > g->at) != g->is_tail)
            continue;
        out = chempi_coll_received(c, g->out);
        in = chempi_coll_received(c, rank);
        chempi_coll_recv(s, in.buf, in.count, c->recv.type, g->after);
        chempi_coll_send(s, out.buf, out.count, c->recv.type, g->before);
        chempi_coll_fence(s);
        g->out = rank;
    }
}

/* Once around all ranks in the order of the tree: neighbours are near, and a
 * link between two parts of the cluster is crossed once each way. */
static void build_ring(struct chempi_hier_run *r,
                       const struct chempi_hier_tree *t)
{
    const struct chempi_coll_call *c = r->c;
    struct chempi_coll_place own = chempi_coll_received(c, r->h->rank);
    struct ring ring = {
        .r = r, .at = t->at, .out = r->h->rank, .is_tail = true};

    if (c->send.buf != MPI_IN_PLACE)
        chempi_coll_copy(r->s, c->send.buf, c->send.count, c->send.type,
                         own.buf, own.count, c->recv.type);
    chempi_hier_walk(r->h, t, find_neighbors, &ring);
    chempi_hier_walk(r->h, t, hand_round, &ring);
    ring.is_tail = false;
    chempi_hier_walk(r->h, t, hand_round, &ring);
}

/* Lengths of what the nodes of the top team have, and where it begins. */
struct measuring {
    const struct chempi_hier *h;
    const struct pack *p;
    int next; /* node of the top team */
};

static void measure(void *arg, const struct chempi_hier_stop *stop)
{
    struct measuring *m = arg;
    const int count = chempi_hier_top_count(m->h);
    const int i = m->next;
    MPI_Count *lens = m->h->counts;

    if (stop->parent >= 0)
        return;
    lens[count + i] = stop->at * m->p->len;
    lens[i] = m->h->size * m->p->len - lens[count + i]; /* if it is the last */
    if (i > 0)
        lens[i - 1] = lens[count + i] - lens[count + i - 1];
    m->next++;
}

/* The leaders of the top team give each other what they have. */
static void swap_among_tops(struct chempi_hier_run *r,
                            const struct chempi_hier_tree *t,
                            const struct pack *p)
{
    const struct chempi_hier *h = r->h;
    const int count = chempi_hier_top_count(h);
    MPI_Count *counts = h->counts;
    struct chempi_coll_call call = {
        .kind = CHEMPI_COLL_ALLGATHERV,
        .comm = r->c->comm,
        .send.buf = MPI_IN_PLACE,
        .recv.buf = p->buf,
        .recv.type = chempi_coll_byte(),
        .recv.counts = {counts, true},
        .recv.displs = {counts + count, true},
    };

    chempi_hier_walk(h, t, measure, &(struct measuring){.h = h, .p = p});
    chempi_hier_among(r, chempi_hier_top_rank, h->top, count,
                      chempi_coll_build_allgather, &call);
}

static void allgather_packed(struct chempi_hier_run *r,
                             const struct chempi_hier_tree *t,
                             const struct pack *p)
{
    const struct chempi_coll_call *c = r->c;
    MPI_Count whole = r->h->size * p->len;
    struct chempi_coll_place own = chempi_coll_received(c, r->h->rank);
    struct chempi_coll_call local = {.send.buf = c->send.buf,
                                     .send.count = c->send.count,
                                     .send.type = c->send.type};
    struct chempi_coll_call down = {
        .kind = CHEMPI_COLL_BCAST,
        .comm = c->comm,
        .root = t->leader_index,
        .recv.buf = p->buf,
        .recv.count = whole,
        .recv.type = chempi_coll_byte(),
    };

    if (c->send.buf == MPI_IN_PLACE) {
        local.send.buf = own.buf;
        local.send.count = own.count;
        local.send.type = c->recv.type;
    }
    collect_in_node(r, t, p, local);
    if (is_leader(r, t)) {
        receive_below(r, t, p);
        if (t->parent < 0) {
            swap_among_tops(r, t, p);
        } else {
            chempi_coll_send(r->s, block_at(p, t->at),
                             (t->end - t->at) * p->len, chempi_coll_byte(),
                             t->parent);
            chempi_coll_recv(r->s, p->buf, whole, chempi_coll_byte(),
                             t->parent);
            chempi_coll_fence(r->s);
        }
        for (int i = t->child_count - 1; i >= t->local_count; i--)
            chempi_coll_send(r->s, p->buf, whole, chempi_coll_byte(),
                             t->children[i]);
    }
    chempi_hier_in_node(r, down);
}

static void take_results(void *arg, const struct chempi_hier_stop *stop)
{
    const struct sorting *g = arg;
    const struct chempi_coll_call *c = g->r->c;
    const int n = chempi_hier_node_size(g->r->h, stop->node);

    for (int i = 0; i < n; i++) {
        const int rank = chempi_hier_member_at(g->r->h, stop, i);

        chempi_coll_copy(g->r->s, block_at(g->p, stop->at + i), g->p->len,
                         chempi_coll_byte(), chempi_coll_received(c, rank).buf,
                         c->recv.count, c->recv.type);
    }
}

bool chempi_hier_allgather(struct chempi_hier_run *r)
{
    const struct chempi_coll_call *c = r->c;
    bool is_v = c->kind == CHEMPI_COLL_ALLGATHERV;
    struct pack p = {.len = is_v ? 0 : c->recv.count * c->recv.type->size};
    const struct chempi_hier_tree *t;
    MPI_Count total = p.len * r->h->size;

    for (int i = 0; is_v && i < r->h->size; i++)
        total += chempi_count_array_get(c->recv.counts, (size_t)i) *
                 c->recv.type->size;
    if (total == 0)
        return true;
    if (is_v && total <= chempi_setting_signed(CHEMPI_SET_COLL_ALLGATHER_BRUCK))
        return false;
    t = chempi_hier_tree(r->h, CHEMPI_HIER_TOPPED, -1);
    if (total > chempi_setting_signed(CHEMPI_SET_COLL_ALLGATHER_BRUCK)) {
        build_ring(r, t);
        return true;
    }
    p.buf = chempi_coll_bytes(r->s, total);
    allgather_packed(r, t, &p);
    chempi_hier_walk(r->h, t, take_results, &(struct sorting){r, &p, false});
    return true;
}

/* ---- alltoall: the leaders exchange for their nodes ---- */

/* At a leader, blocks in packed rows: `out` has one row per member of the
 * node, for all ranks; `in` likewise what has come for it. */
struct rows {
    char *out;
    char *in;
    MPI_Count len; /* of a block */
};

/* Number of bytes between this node and another. */
static MPI_Count pair_bytes(const struct chempi_hier_run *r, int node,
                            MPI_Count len)
{
    return len * node_size(r) * chempi_hier_node_size(r->h, node);
}

/* Sorted by receiver, then by sender. */
static char *pack_for(struct chempi_hier_run *r, const struct rows *rows,
                      int node)
{
    char *buf = chempi_coll_bytes(r->s, pair_bytes(r, node, rows->len));
    char *at = buf;

    for (int j = 0; j < chempi_hier_node_size(r->h, node); j++) {
        const int to = chempi_hier_member(r->h, node, j);

        for (int i = 0; i < node_size(r); i++) {
            copy(r->s, rows->out + ((MPI_Count)i * r->h->size + to) * rows->len,
                 at, rows->len);
            at += rows->len;
        }
    }
    return buf;
}

static void unpack_from(struct chempi_hier_run *r, const struct rows *rows,
                        int node, const char *buf)
{
    for (int j = 0; j < node_size(r); j++)
        for (int i = 0; i < chempi_hier_node_size(r->h, node); i++) {
            const int from = chempi_hier_member(r->h, node, i);

            copy(r->s, buf,
                 rows->in + ((MPI_Count)j * r->h->size + from) * rows->len,
                 rows->len);
            buf += rows->len;
        }
}

static void exchange_rows(struct chempi_hier_run *r, const struct rows *rows)
{
    struct chempi_datatype *byte = chempi_coll_byte();
    const struct chempi_hier *h = r->h;
    const int own = h->node;
    char *buf;

    for (int d = 1; d < h->node_count; d++) {
        int to = (own + d) % h->node_count;
        int from = (own + h->node_count - d) % h->node_count;
        MPI_Count len = pair_bytes(r, from, rows->len);

        buf = chempi_coll_bytes(r->s, len);
        chempi_coll_recv(r->s, buf, len, byte, chempi_hier_member(h, from, 0));
        chempi_coll_send(r->s, pack_for(r, rows, to),
                         pair_bytes(r, to, rows->len), byte,
                         chempi_hier_member(h, to, 0));
        chempi_coll_fence(r->s);
        unpack_from(r, rows, from, buf);
    }
    unpack_from(r, rows, own, pack_for(r, rows, own));
}

bool chempi_hier_alltoall(struct chempi_hier_run *r)
{
    const struct chempi_coll_call *c = r->c;
    bool is_in_place = c->send.buf == MPI_IN_PLACE;
    bool is_first = r->h->index == 0;
    int n = r->h->size;
    struct rows rows = {.len = c->recv.count * c->recv.type->size};
    MPI_Count row = rows.len * n;
    struct chempi_coll_call local = {
        .kind = CHEMPI_COLL_GATHER,
        .comm = c->comm,
        .send.buf = is_in_place ? c->recv.buf : c->send.buf,
        .send.count = n * (is_in_place ? c->recv.count : c->send.count),
        .send.type = is_in_place ? c->recv.type : c->send.type,
        .recv.count = row,
        .recv.type = chempi_coll_byte(),
    };

    if (c->kind != CHEMPI_COLL_ALLTOALL || r->h->node_count == n ||
        rows.len == 0 ||
        n < chempi_setting_signed(CHEMPI_SET_COLL_ALLTOALL_RANKS) ||
        rows.len > chempi_setting_signed(CHEMPI_SET_COLL_ALLTOALL_BRUCK))
        return false;
    if (is_first) {
        rows.out = chempi_coll_bytes(r->s, row * node_size(r));
        rows.in = chempi_coll_bytes(r->s, row * node_size(r));
    }
    local.recv.buf = rows.out;
    chempi_hier_in_node(r, local);
    if (is_first)
        exchange_rows(r, &rows);
    local = (struct chempi_coll_call){
        .kind = CHEMPI_COLL_SCATTER,
        .comm = c->comm,
        .send.buf = rows.in,
        .send.count = row,
        .send.type = chempi_coll_byte(),
        .recv.buf = c->recv.buf,
        .recv.count = n * c->recv.count,
        .recv.type = c->recv.type,
    };
    chempi_hier_in_node(r, local);
    return true;
}

/* ---- reduce_scatter: up to the top team, there, down the tree ---- */

static MPI_Count part_count(const struct chempi_coll_call *c, int i)
{
    if (c->kind == CHEMPI_COLL_REDUCE_SCATTER_BLOCK)
        return c->recv.count;
    return chempi_count_array_get(c->recv.counts, (size_t)i);
}

/* A sum over the parts of the ranks from .. to in the order of the tree. */
struct summing {
    const struct chempi_hier_run *r;
    int from;
    int to;
    MPI_Count sum;
};

static void add_parts(void *arg, const struct chempi_hier_stop *stop)
{
    struct summing *u = arg;
    const int n = chempi_hier_node_size(u->r->h, stop->node);

    for (int i = 0; i < n && stop->at + i < u->to; i++)
        if (stop->at + i >= u->from)
            u->sum +=
                part_count(u->r->c, chempi_hier_member_at(u->r->h, stop, i));
}

static MPI_Count sum_parts(const struct chempi_hier_run *r,
                           const struct chempi_hier_tree *t, int from, int to)
{
    struct summing u = {.r = r, .from = from, .to = to};

    chempi_hier_walk(r->h, t, add_parts, &u);
    return u.sum;
}

/* The root's vector, from the order of ranks to that of the tree. */
struct vectors {
    struct chempi_hier_run *r;
    const void *all;
    void *buf;
    MPI_Count at; /* in buf */
};

static void sort_node(void *arg, const struct chempi_hier_stop *stop)
{
    struct vectors *v = arg;
    struct chempi_datatype *type = v->r->c->recv.type;
    const MPI_Count *sums = v->r->h->sums;
    const int n = chempi_hier_node_size(v->r->h, stop->node);

    for (int i = 0; i < n; i++) {
        const int rank = chempi_hier_member_at(v->r->h, stop, i);
        const MPI_Count len = sums[rank + 1] - sums[rank];

        chempi_coll_copy(v->r->s, chempi_coll_at(v->all, sums[rank], type), len,
                         type, chempi_coll_at(v->buf, v->at, type), len, type);
        v->at += len;
    }
}

/* The whole vector in the order of the tree: `all`, or a sorted copy. */
static const void *sort_parts(struct chempi_hier_run *r,
                              const struct chempi_hier_tree *t, const void *all)
{
    struct vectors v = {.r = r, .all = all};
    MPI_Count *sums = r->h->sums;

    if (t->is_ordered)
        return all;
    sums[0] = 0;
    for (int i = 0; i < r->h->size; i++)
        sums[i + 1] = sums[i] + part_count(r->c, i);
    v.buf = chempi_coll_temp(r->s, sums[r->h->size], r->c->recv.type);
    chempi_hier_walk(r->h, t, sort_node, &v);
    return v.buf;
}

/* The parts below each leader of the top team. */
struct shares {
    const struct chempi_hier_run *r;
    int next; /* leader */
};

static void add_share(void *arg, const struct chempi_hier_stop *stop)
{
    struct shares *u = arg;
    const int n = chempi_hier_node_size(u->r->h, stop->node);
    MPI_Count *counts = u->r->h->counts;

    if (stop->parent < 0)
        counts[u->next++] = 0;
    for (int i = 0; i < n; i++)
        counts[u->next - 1] +=
            part_count(u->r->c, chempi_hier_member(u->r->h, stop->node, i));
}

/* Each leader of the top team comes to the parts of the ranks below it. */
static void reduce_scatter_among_tops(struct chempi_hier_run *r,
                                      const struct chempi_hier_tree *t,
                                      const void *all, void *parts)
{
    const struct chempi_hier *h = r->h;
    struct chempi_coll_call call = {
        .kind = CHEMPI_COLL_REDUCE_SCATTER,
        .comm = r->c->comm,
        .send.buf = (void *)(uintptr_t)sort_parts(r, t, all),
        .recv.buf = parts,
        .recv.type = r->c->recv.type,
        .op = r->c->op,
        .recv.counts = {h->counts, true},
    };

    chempi_hier_walk(h, t, add_share, &(struct shares){.r = r});
    chempi_hier_among(r, chempi_hier_top_rank, h->top, chempi_hier_top_count(h),
                      chempi_coll_build_reduce_scatter, &call);
}

static void deal_parts_in_node(struct chempi_hier_run *r,
                               const struct chempi_hier_tree *t,
                               const void *buf)
{
    const struct chempi_coll_call *c = r->c;
    const int n = node_size(r);
    MPI_Count *counts = r->h->counts;
    MPI_Count at = 0;
    struct chempi_coll_call local = {
        .kind = CHEMPI_COLL_SCATTERV,
        .comm = r->c->comm,
        .root = t->leader_index,
        .send.buf = (void *)(uintptr_t)buf,
        .send.type = c->recv.type,
        .send.counts = {counts, true},
        .send.displs = {counts + n, true},
        .recv.buf = c->recv.buf,
        .recv.count = part_count(c, r->h->rank),
        .recv.type = c->recv.type,
    };

    for (int k = 0; k < n; k++) {
        const int i = (t->leader_index + k) % n;

        counts[i] = part_count(c, chempi_hier_local_rank(r->h, i));
        counts[n + i] = at;
        at += counts[i];
    }
    chempi_hier_in_node(r, local);
}

/* To the nodes below, what belongs to them of buf, which begins with this
 * rank's own. */
static void send_parts(struct chempi_hier_run *r,
                       const struct chempi_hier_tree *t, const void *buf)
{
    struct chempi_datatype *type = r->c->recv.type;

    for (int i = t->child_count - 1; i >= t->local_count; i--) {
        const MPI_Count before = sum_parts(r, t, t->at, t->begin[i]);
        const MPI_Count len = sum_parts(r, t, t->begin[i], t->begin[i + 1]);

        chempi_coll_send(r->s, chempi_coll_at(buf, before, type), len, type,
                         t->children[i]);
    }
}

/* `all`, at a leader without a parent: what is below it came to. */
static void deal_parts(struct chempi_hier_run *r,
                       const struct chempi_hier_tree *t, const void *all)
{
    struct chempi_datatype *type = r->c->recv.type;
    const void *from = NULL;

    if (t->root == r->h->rank) {
        from = sort_parts(r, t, all);
    } else if (is_leader(r, t)) {
        const MPI_Count len = sum_parts(r, t, t->at, t->end);
        void *room = chempi_coll_temp(r->s, len, type);

        if (t->parent < 0) {
            reduce_scatter_among_tops(r, t, all, room);
        } else {
            chempi_coll_recv(r->s, room, len, type, t->parent);
            chempi_coll_fence(r->s);
        }
        from = room;
    }
    if (is_leader(r, t))
        send_parts(r, t, from);
    deal_parts_in_node(r, t, from);
}

/* May the nodes of the top team share the work? With many of them, each of the
 * parts costs a message. */
static bool is_work_shared(const struct chempi_hier_run *r, MPI_Count total)
{
    const int tops = chempi_hier_top_count(r->h);

    return tops <= SHARING_NODES_MAX ||
           total * r->c->recv.type->size >= tops * (MPI_Count)SHARE_BYTES_MIN;
}

bool chempi_hier_reduce_scatter(struct chempi_hier_run *r)
{
    const struct chempi_coll_call *c = r->c;
    const struct chempi_hier_tree *t;
    MPI_Count total = 0;
    void *all = NULL;

    for (int i = 0; i < r->h->size; i++)
        total += part_count(c, i);
    t = chempi_hier_tree(
        r->h,
        is_work_shared(r, total) ? CHEMPI_HIER_TOPPED : CHEMPI_HIER_ROOTED, 0);
    if (!c->op->is_commutative && !t->is_ordered)
        return false;
    if (total == 0)
        return true;
    if (is_leader(r, t))
        all = chempi_coll_temp(r->s, total, c->recv.type);
    chempi_hier_reduce_up(
        r, t, c->send.buf == MPI_IN_PLACE ? c->recv.buf : c->send.buf, all,
        total);
    deal_parts(r, t, all);
    return true;
}
