/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gatherv and scatterv through the hierarchy (hier_ops.h). Members of the
 * root's node do them among themselves. On another node, whose leader is its
 * first member, only its owner and the root know how long a block is, so its
 * way follows from its length alone:
 *
 *   tiny    in a record that says how long it is
 *   short   by the leader, in one message for all of the node
 *   long    between owner and root
 *
 * The records of all members, whatever their blocks, are gathered or scattered
 * in the node, and travel between leader and root before the short blocks. Long
 * blocks move first where they can, so that they go straight to their places.
 * A schedule is built without looking at data, so non-blocking calls go flat.
 */
#include <assert.h>
#include <string.h>

#include "libchempi/didl/base/setting.h"
#include "libchempi/didl/coll/hier/hier_ops.h"
#include "libchempi/didl/comm/message.h"

enum { TINY_MAX = 40 }; /* bytes; a record fits a line of a node's cell */

struct record {
    uint64_t len; /* bytes of the block */
    unsigned char data[TINY_MAX];
};
static_assert(sizeof(struct record) == CHEMPI_HIER_RECORD,
              "a record has no holes, and room in the hierarchy");

enum length { TINY, SHORT, LONG };

/* This process's part in it. */
struct part {
    struct chempi_hier_run *r;
    struct chempi_coll_place own;
    int root_node;
    int root_index; /* among the members of its node */
    bool is_leader; /* of another node */
    /* Of another node: at the leader those of all members, else this one's. */
    struct record *records;
};

static uint64_t len_of(const struct chempi_coll_place *b)
{
    return (uint64_t)chempi_coll_place_bytes(b);
}

static enum length class_of(uint64_t len)
{
    if (len <= TINY_MAX)
        return TINY;
    return len <= chempi_setting(CHEMPI_SET_COLL_GATHER_TREE) ? SHORT : LONG;
}

static bool is_gather(const struct chempi_coll_call *c)
{
    return c->kind == CHEMPI_COLL_GATHERV;
}

/* Where the root keeps a rank's block. */
static struct chempi_coll_place place_of(const struct chempi_coll_call *c,
                                         int rank)
{
    return is_gather(c) ? chempi_coll_received(c, rank)
                        : chempi_coll_sent(c, rank);
}

static struct chempi_coll_place own_block(const struct chempi_coll_call *c)
{
    return is_gather(c) ? chempi_coll_whole(&c->send)
                        : chempi_coll_whole(&c->recv);
}

static int node_size(const struct part *p, int node)
{
    return chempi_hier_node_size(p->r->h, node);
}

static uint64_t records_len(const struct part *p, int node)
{
    return (uint64_t)node_size(p, node) * sizeof(struct record);
}

static struct part part_of(struct chempi_hier_run *r)
{
    const struct chempi_hier *h = r->h;
    const struct chempi_hier_tree *t =
        chempi_hier_tree(r->h, CHEMPI_HIER_ROOTED, r->c->root);
    struct part p = {.r = r,
                     .own = own_block(r->c),
                     .root_node = t->root_node,
                     .root_index = t->root_index};
    uint64_t len = sizeof(struct record);

    if (h->node == p.root_node)
        return p;
    p.is_leader = h->index == 0;
    if (p.is_leader)
        len = records_len(&p, h->node);
    /* One fits the schedule itself: neither can be missing. */
    p.records =
        p.is_leader ? h->records : chempi_coll_bytes(r->s, (MPI_Count)len);
    memset(p.records, 0, (size_t)len);
    return p;
}

/* ---- messages and copies ---- */

static void send_block(const struct part *p, const struct chempi_coll_place *b,
                       int rank)
{
    chempi_coll_send(p->r->s, b->buf, b->count, b->type, rank);
    chempi_coll_throttle(p->r->s);
}

static void recv_block(const struct part *p, const struct chempi_coll_place *b,
                       int rank)
{
    chempi_coll_recv(p->r->s, b->buf, b->count, b->type, rank);
    chempi_coll_throttle(p->r->s);
}

static struct chempi_coll_place packed(const void *buf, uint64_t len)
{
    return (struct chempi_coll_place){(void *)(uintptr_t)buf, (MPI_Count)len,
                                      chempi_coll_byte()};
}

static void copy_block(const struct part *p,
                       const struct chempi_coll_place *from,
                       const struct chempi_coll_place *to)
{
    chempi_coll_copy(p->r->s, from->buf, from->count, from->type, to->buf,
                     to->count, to->type);
}

/* What was given is not what is expected, whatever else that has led to. */
static void note_amount(const struct part *p, int rank, uint64_t len,
                        uint64_t room)
{
    struct chempi_coll_sched *s = p->r->s;

    if (CHEMPI_LIKELY(len == room) ||
        (s->failed && s->failed != MPI_ERR_COUNT &&
         s->failed != MPI_ERR_TRUNCATE))
        return;
    s->failed = len > room ? chempi_message_note_too_much(rank, len, room)
                           : chempi_message_note_too_little(rank, len, room);
}

/* ---- records ---- */

/* The block's length, and the block itself if it is tiny. */
static void fill_record(const struct part *p, struct record *record,
                        const struct chempi_coll_place *b)
{
    const struct chempi_coll_place in = packed(record->data, len_of(b));

    record->len = len_of(b);
    if (class_of(record->len) == TINY)
        copy_block(p, b, &in);
}

/* Bytes of the short blocks. */
static uint64_t sum_shorts(const struct record *records, int count)
{
    uint64_t sum = 0;

    for (int i = 0; i < count; i++)
        if (class_of(records[i].len) == SHORT)
            sum += records[i].len;
    return sum;
}

/* To or from the leader. */
static void move_records(const struct part *p)
{
    struct chempi_coll_call local = {
        .kind = is_gather(p->r->c) ? CHEMPI_COLL_GATHER : CHEMPI_COLL_SCATTER,
        .comm = p->r->c->comm,
        .send.buf = p->records,
        .send.count = sizeof(struct record),
        .send.type = chempi_coll_byte(),
        .recv.buf = p->records,
        .recv.count = sizeof(struct record),
        .recv.type = chempi_coll_byte(),
    };

    if (p->is_leader && is_gather(p->r->c))
        local.send.buf = MPI_IN_PLACE;
    else if (p->is_leader)
        local.recv.buf = MPI_IN_PLACE;
    chempi_hier_in_node(p->r, local);
    chempi_hier_flush(p->r);
}

/* ---- the root's node ---- */

/* The call itself among its members. */
static void do_in_root_node(const struct part *p)
{
    const struct chempi_hier *h = p->r->h;
    const int n = node_size(p, h->node);
    struct chempi_coll_call local = *p->r->c;
    struct chempi_count_array counts = {h->counts, true};
    struct chempi_count_array displs = {h->counts + n, true};

    local.root = p->root_index;
    if (h->rank == p->r->c->root) {
        const bool is_in = is_gather(p->r->c);

        for (int i = 0; i < n; i++) {
            const size_t rank = (size_t)chempi_hier_local_rank(h, i);

            h->counts[i] = chempi_count_array_get(
                is_in ? local.recv.counts : local.send.counts, rank);
            h->counts[n + i] = chempi_count_array_get(
                is_in ? local.recv.displs : local.send.displs, rank);
        }
        local.recv.counts = local.send.counts = counts;
        local.recv.displs = local.send.displs = displs;
    }
    chempi_hier_in_node(p->r, local);
}

/* Bytes of the records of another node, and of its short blocks behind them. */
static uint64_t pack_len(const struct part *p, int node)
{
    uint64_t len = records_len(p, node);

    for (int i = 0; i < node_size(p, node); i++) {
        const struct chempi_coll_place b =
            place_of(p->r->c, chempi_hier_member(p->r->h, node, i));

        if (class_of(len_of(&b)) == SHORT)
            len += len_of(&b);
    }
    return len;
}

/* From the beginning of one such pack to that of the next. */
static uint64_t step_of(uint64_t len)
{
    return (len + 7u) & ~UINT64_C(7);
}

/* Memory for the packs of all nodes but the root's. */
static char *make_packs(const struct part *p)
{
    uint64_t total = 0;

    for (int node = 0; node < p->r->h->node_count; node++)
        if (node != p->root_node)
            total += step_of(pack_len(p, node));
    return chempi_coll_bytes(p->r->s, (MPI_Count)total);
}

/* ---- gather ---- */

static void receive_long(const struct part *p)
{
    const struct chempi_hier *h = p->r->h;

    for (int node = 0; node < h->node_count; node++)
        for (int i = 0; node != p->root_node && i < node_size(p, node); i++) {
            const int rank = chempi_hier_member(h, node, i);
            const struct chempi_coll_place place = place_of(p->r->c, rank);

            if (class_of(len_of(&place)) == LONG)
                recv_block(p, &place, rank);
        }
}

static void receive_packs(const struct part *p, char *at)
{
    const struct chempi_hier *h = p->r->h;

    for (int node = 0; node < h->node_count; node++) {
        struct chempi_coll_place b;

        if (node == p->root_node)
            continue;
        b = packed(at, pack_len(p, node));
        if (!p->r->s->error)
            memset(at, 0, (size_t)records_len(p, node));
        recv_block(p, &b, chempi_hier_member(h, node, 0));
        at += step_of(len_of(&b));
    }
}

/* False: the members of a node have not sent what is expected. */
static bool are_right(const struct part *p, int node,
                      const struct record *records)
{
    bool is_right = true;

    for (int i = 0; i < node_size(p, node); i++) {
        const int rank = chempi_hier_member(p->r->h, node, i);
        const struct chempi_coll_place place = place_of(p->r->c, rank);

        if (records[i].len == len_of(&place))
            continue;
        note_amount(p, rank, records[i].len, len_of(&place));
        is_right = false;
    }
    return is_right;
}

static void take_pack(const struct part *p, int node, const char *pack)
{
    const struct record *records = (const struct record *)(const void *)pack;
    const char *at = pack + records_len(p, node);

    if (!are_right(p, node, records))
        return;
    for (int i = 0; i < node_size(p, node); i++) {
        const enum length class = class_of(records[i].len);
        const struct chempi_coll_place place =
            place_of(p->r->c, chempi_hier_member(p->r->h, node, i));
        const struct chempi_coll_place b = packed(
            class == TINY ? (const void *)records[i].data : at, records[i].len);

        if (class != LONG)
            copy_block(p, &b, &place);
        if (class == SHORT)
            at += records[i].len;
    }
}

static void gather_at_root(const struct part *p)
{
    char *at = make_packs(p);
    char *packs = at;

    receive_long(p);
    receive_packs(p, at);
    do_in_root_node(p);
    chempi_hier_flush(p->r);
    for (int node = 0; node < p->r->h->node_count && !p->r->s->error; node++)
        if (node != p->root_node) {
            take_pack(p, node, packs);
            packs += step_of(pack_len(p, node));
        }
}

/* A leader sends all that its node has for the root but long blocks. */
static void send_pack(const struct part *p)
{
    const struct chempi_hier *h = p->r->h;
    struct chempi_coll_sched *s = p->r->s;
    const int n = node_size(p, h->node);
    const uint64_t before = records_len(p, h->node);
    const uint64_t shorts = sum_shorts(p->records, n);
    struct chempi_coll_place pack = packed(p->records, before + shorts);
    char *at;

    if (shorts > 0) {
        at = pack.buf = chempi_coll_bytes(s, pack.count);
        if (!s->error)
            memcpy(at, p->records, (size_t)before);
        at += before;
        for (int i = 0; i < n; i++) {
            const struct chempi_coll_place b = packed(at, p->records[i].len);

            if (class_of(p->records[i].len) != SHORT)
                continue;
            if (i == h->index)
                copy_block(p, &p->own, &b);
            else
                recv_block(p, &b, chempi_hier_local_rank(h, i));
            at += b.count;
        }
        chempi_coll_fence(s);
    }
    send_block(p, &pack, p->r->c->root);
}

static void gather_elsewhere(const struct part *p)
{
    const enum length class = class_of(len_of(&p->own));

    if (class == LONG)
        send_block(p, &p->own, p->r->c->root);
    fill_record(p, p->records, &p->own); /* a leader is the first */
    move_records(p);
    if (p->is_leader)
        send_pack(p);
    else if (class == SHORT)
        send_block(p, &p->own, chempi_hier_local_rank(p->r->h, 0));
}

/* ---- scatter ---- */

/*
 * In this order nobody waits in a circle: who expects a long block waits for
 * it first, unless it is a leader, and that may hold up the scatter of its
 * node.
 *
 *   root     records, long blocks of others than leaders, short blocks, long
 *            ones of leaders; then its own node
 *   leader   records; scatter in its node; short blocks; its own
 *   others   a long block; scatter in the node; a short block
 */

static void fill_pack(const struct part *p, int node, char *pack)
{
    struct record *records = (struct record *)(void *)pack;
    char *at = pack + records_len(p, node);

    memset(records, 0, (size_t)records_len(p, node));
    for (int i = 0; i < node_size(p, node); i++) {
        const struct chempi_coll_place place =
            place_of(p->r->c, chempi_hier_member(p->r->h, node, i));
        const struct chempi_coll_place b = packed(at, len_of(&place));

        fill_record(p, &records[i], &place);
        if (class_of(len_of(&place)) != SHORT)
            continue;
        copy_block(p, &place, &b);
        at += b.count;
    }
}

/* To the leaders, records, or the short blocks behind them. Who has no memory
 * for them sends empty records: nothing else is expected then. */
static void send_packs(const struct part *p, char *at, bool is_short)
{
    const struct chempi_hier *h = p->r->h;

    for (int node = 0; node < h->node_count; node++) {
        const uint64_t before = records_len(p, node);
        struct chempi_coll_place b = packed(at, before);
        uint64_t len;

        if (node == p->root_node)
            continue;
        len = pack_len(p, node);
        if (is_short)
            b = packed(at + before, len - before);
        else if (!p->r->s->error)
            fill_pack(p, node, at);
        if (!is_short || (b.count > 0 && !p->r->s->error))
            send_block(p, &b, chempi_hier_member(h, node, 0));
        at += step_of(len);
    }
}

/* To the leaders, or to all others. */
static void send_long(const struct part *p, bool is_to_leaders)
{
    const struct chempi_hier *h = p->r->h;

    for (int node = 0; node < h->node_count; node++) {
        const int first = is_to_leaders ? 0 : 1;
        const int end = is_to_leaders ? 1 : node_size(p, node);

        for (int i = first; node != p->root_node && i < end; i++) {
            const int rank = chempi_hier_member(h, node, i);
            const struct chempi_coll_place place = place_of(p->r->c, rank);

            if (class_of(len_of(&place)) == LONG)
                send_block(p, &place, rank);
        }
    }
}

static void scatter_at_root(const struct part *p)
{
    char *packs = make_packs(p);

    send_packs(p, packs, false);
    send_long(p, false);
    send_packs(p, packs, true);
    send_long(p, true);
    do_in_root_node(p);
}

/* A leader hands on the short blocks that come for its members, its own into
 * its place. */
static void pass_shorts(const struct part *p)
{
    const struct chempi_hier *h = p->r->h;
    const int n = node_size(p, h->node);
    struct chempi_coll_place all = packed(NULL, sum_shorts(p->records, n));
    char *at;

    if (all.count == 0)
        return;
    at = all.buf = chempi_coll_bytes(p->r->s, all.count);
    recv_block(p, &all, p->r->c->root);
    chempi_coll_fence(p->r->s);
    for (int i = 0; i < n; i++) {
        const struct chempi_coll_place b = packed(at, p->records[i].len);

        if (class_of(p->records[i].len) != SHORT)
            continue;
        if (i != h->index)
            send_block(p, &b, chempi_hier_local_rank(h, i));
        else if (len_of(&b) == len_of(&p->own))
            copy_block(p, &b, &p->own);
        at += b.count;
    }
}

/* What the record says, and the block if it is there. */
static void take_record(const struct part *p)
{
    const struct chempi_coll_place b =
        packed(p->records->data, p->records->len);

    note_amount(p, p->r->c->root, p->records->len, len_of(&p->own));
    if (class_of(len_of(&b)) == TINY && len_of(&b) == len_of(&p->own))
        copy_block(p, &b, &p->own);
}

/* A leader; if no records have come, only its own block still does if it is
 * long, or an empty message in its place. */
static void scatter_by_leader(const struct part *p)
{
    struct chempi_coll_sched *s = p->r->s;
    const struct chempi_coll_place all =
        packed(p->records, records_len(p, p->r->h->node));
    bool is_blind;

    recv_block(p, &all, p->r->c->root);
    chempi_hier_flush(p->r);
    is_blind = s->failed != MPI_SUCCESS;
    if (is_blind)
        memset(p->records, 0, (size_t)len_of(&all));
    move_records(p);
    pass_shorts(p);
    if (class_of(is_blind ? len_of(&p->own) : p->records->len) == LONG)
        recv_block(p, &p->own, p->r->c->root);
    chempi_hier_flush(p->r); /* what it notes would empty messages */
    take_record(p);
}

static void scatter_elsewhere(const struct part *p)
{
    if (p->is_leader) {
        scatter_by_leader(p);
        return;
    }
    if (class_of(len_of(&p->own)) == LONG)
        recv_block(p, &p->own, p->r->c->root);
    move_records(p);
    if (class_of(p->records->len) == SHORT)
        recv_block(p, &p->own, chempi_hier_local_rank(p->r->h, 0));
    else
        take_record(p);
}

/* ---- both ---- */

/* False: it goes another way, as it does where no node has two members. */
static bool do_parts(struct chempi_hier_run *r,
                     void (*at_root)(const struct part *p),
                     void (*elsewhere)(const struct part *p))
{
    struct part p;

    if (!r->node_comm || r->h->node_count == r->h->size)
        return false;
    p = part_of(r);
    if (r->h->rank == r->c->root)
        at_root(&p);
    else if (r->h->node == p.root_node)
        do_in_root_node(&p);
    else
        elsewhere(&p);
    return true;
}

bool chempi_hier_gatherv(struct chempi_hier_run *r)
{
    return do_parts(r, gather_at_root, gather_elsewhere);
}

bool chempi_hier_scatterv(struct chempi_hier_run *r)
{
    return do_parts(r, scatter_at_root, scatter_elsewhere);
}
