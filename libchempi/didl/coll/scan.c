/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scan and exscan over messages (MPI 5.0, section 6.11).
 *
 * Short data: recursive doubling. Every process carries the combination of a
 * group of ranks that ends with its own, and the prefix of its own; operands
 * stay in the order of ranks. In the last round nobody's group is wanted any
 * more: only prefixes are completed.
 *
 * Long data: a chain. Every process adds its own to what the one before it
 * sends and hands that on, segment behind segment, so that all are at work
 * and everything is sent and combined once. Two members have nobody to keep at
 * work: their segments are longer.
 */
#include "libchempi/didl/coll/sched.h"

enum {
    SLICE_BYTES = 16 * 1024 * 1024,
    SEGMENT_BYTES = 64 * 1024,
    CHAIN_MIN_BYTES = 2 * SEGMENT_BYTES,
    NODE_SEGMENT_BYTES = 8 * 1024, /* of members on one node, */
    NODE_CHAIN_MIN_BYTES = 4 * NODE_SEGMENT_BYTES,
    NODE_CHAIN_MAX_BYTES = 32 * NODE_SEGMENT_BYTES, /* up to here */
    TWO_MIN_BYTES = 256 * 1024,                     /* from here on of two: */
    TWO_SEGMENT_BYTES = 128 * 1024
};

struct prefix {
    MPI_Count count;
    struct chempi_datatype *type;
    void *group; /* of all ranks that agree with mine above the mask's bit */
    void *tmp;
    void *result;
    bool has_result; /* exscan: rank 0 never has one */
};

static void copy(struct chempi_coll_sched *s, const struct prefix *p,
                 const void *src, void *dst)
{
    chempi_coll_copy(s, src, p->count, p->type, dst, p->count, p->type);
}

/* tmp holds what the group of a lower peer came to. */
static void extend_result(struct chempi_coll_sched *s, struct prefix *p)
{
    if (p->has_result)
        chempi_coll_combine(s, p->tmp, p->result, p->count, p->type);
    else
        copy(s, p, p->tmp, p->result);
    p->has_result = true;
}

/* tmp holds what the peer's whole group came to. */
static void take_in(struct chempi_coll_sched *s, struct prefix *p, int peer)
{
    void *t;

    if (peer > s->rank) {
        if (s->op->is_commutative) {
            chempi_coll_combine(s, p->tmp, p->group, p->count, p->type);
            return;
        }
        chempi_coll_combine(s, p->group, p->tmp, p->count, p->type);
        t = p->group;
        p->group = p->tmp;
        p->tmp = t;
        return;
    }
    extend_result(s, p);
    chempi_coll_combine(s, p->tmp, p->group, p->count, p->type);
}

static void last_round(struct chempi_coll_sched *s, struct prefix *p,
                       const void *group, int peer)
{
    if (peer >= s->size)
        return;
    if (peer > s->rank) {
        chempi_coll_send(s, group, p->count, p->type, peer);
        chempi_coll_fence(s); /* the next slice writes its group there */
        return;
    }
    chempi_coll_recv(s, p->has_result ? p->tmp : p->result, p->count, p->type,
                     peer);
    if (!p->has_result)
        return;
    chempi_coll_fence(s);
    extend_result(s, p);
}

static void build_slice(struct chempi_coll_sched *s, struct prefix *p,
                        const void *in, bool is_inclusive)
{
    int mask = 1;

    p->has_result = is_inclusive;
    if (is_inclusive && in != p->result)
        copy(s, p, in, p->result);
    if (s->size <= 2) { /* no group is ever made up */
        last_round(s, p, in, s->rank ^ 1);
        return;
    }
    copy(s, p, in, p->group);
    for (; 2 * mask < s->size; mask *= 2) {
        int peer = s->rank ^ mask;

        if (peer >= s->size)
            continue;
        chempi_coll_recv(s, p->tmp, p->count, p->type, peer);
        chempi_coll_send(s, p->group, p->count, p->type, peer);
        chempi_coll_fence(s);
        take_in(s, p, peer);
    }
    last_round(s, p, p->group, s->rank ^ mask);
}

static void build_doubling(struct chempi_coll_sched *s,
                           const struct chempi_coll_call *c)
{
    const void *in = c->send.buf == MPI_IN_PLACE ? c->recv.buf : c->send.buf;
    MPI_Count slice = c->recv.count;
    struct prefix p = {.type = c->recv.type};

    if (c->recv.type->size > 0 && slice > SLICE_BYTES / c->recv.type->size)
        slice = SLICE_BYTES / c->recv.type->size + 1;
    if (s->size > 2)
        p.group = chempi_coll_temp(s, slice, c->recv.type);
    if (s->size > 2 || (c->kind == CHEMPI_COLL_SCAN && s->rank > 0))
        p.tmp = chempi_coll_temp(s, slice, c->recv.type);
    for (MPI_Count at = 0; at < c->recv.count; at += slice) {
        p.count = c->recv.count - at < slice ? c->recv.count - at : slice;
        p.result = chempi_coll_at(c->recv.buf, at, c->recv.type);
        build_slice(s, &p, chempi_coll_at(in, at, c->recv.type),
                    c->kind == CHEMPI_COLL_SCAN);
    }
}

/* ---- the chain ---- */

struct chain {
    const struct chempi_coll_call *c;
    const void *in;
    bool is_ex;
    bool is_direct;  /* what comes is received where the result belongs */
    bool is_last;    /* nothing is handed on */
    MPI_Count step;  /* elements of a segment */
    void *before[2]; /* what comes, in turn; unless is_direct */
    void *own;       /* exscan: what is handed on */
};

static MPI_Count count_at(const struct chain *h, MPI_Count at)
{
    MPI_Count left = h->c->recv.count - at;

    return left < h->step ? left : h->step;
}

static void *before_at(const struct chain *h, MPI_Count at)
{
    return h->is_direct ? chempi_coll_at(h->c->recv.buf, at, h->c->recv.type)
                        : h->before[at / h->step % 2];
}

static void begin_chain(struct chempi_coll_sched *s, const struct chain *h)
{
    struct chempi_datatype *type = h->c->recv.type;

    for (MPI_Count at = 0; at < h->c->recv.count; at += h->step) {
        const void *in = chempi_coll_at(h->in, at, type);
        MPI_Count n = count_at(h, at);

        chempi_coll_send(s, in, n, type, s->rank + 1);
        if (!h->is_ex && h->in != h->c->recv.buf)
            chempi_coll_copy(s, in, n, type,
                             chempi_coll_at(h->c->recv.buf, at, type), n, type);
        if (s->size == 2)
            chempi_coll_fence_but(s, 1);
        else
            chempi_coll_throttle(s);
    }
}

static void receive_before(struct chempi_coll_sched *s, const struct chain *h,
                           MPI_Count at)
{
    if (at < h->c->recv.count)
        chempi_coll_recv(s, before_at(h, at), count_at(h, at), h->c->recv.type,
                         s->rank - 1);
}

/* What came is there: the sum is made and handed on. */
static void extend_chain(struct chempi_coll_sched *s, const struct chain *h,
                         MPI_Count at)
{
    struct chempi_datatype *type = h->c->recv.type;
    const void *in = chempi_coll_at(h->in, at, type);
    void *out = chempi_coll_at(h->c->recv.buf, at, type);
    void *sum = h->is_ex ? h->own : out;
    MPI_Count n = count_at(h, at);

    if (!h->is_ex && h->is_direct) {
        chempi_coll_combine(s, in, sum, n, type); /* commutes */
    } else if (!h->is_ex || !h->is_last) {
        if (in != sum)
            chempi_coll_copy(s, in, n, type, sum, n, type);
        chempi_coll_combine(s, before_at(h, at), sum, n, type);
    }
    if (!h->is_last)
        chempi_coll_send(s, sum, n, type, s->rank + 1);
    if (h->is_ex && !h->is_direct)
        chempi_coll_copy(s, before_at(h, at), n, type, out, n, type);
}

static void build_chain(struct chempi_coll_sched *s,
                        const struct chempi_coll_call *c, MPI_Count step)
{
    bool is_in_place = c->send.buf == MPI_IN_PLACE;
    struct chain h = {
        .c = c,
        .in = is_in_place ? c->recv.buf : c->send.buf,
        .is_ex = c->kind == CHEMPI_COLL_EXSCAN,
        .is_last = s->rank == s->size - 1,
        .step = step,
    };

    if (s->rank == 0) {
        begin_chain(s, &h);
        return;
    }
    if (h.is_ex)
        h.is_direct = !is_in_place || h.is_last;
    else
        h.is_direct = !is_in_place && c->op->is_commutative;
    for (int i = 0; i < 2 && !h.is_direct; i++)
        h.before[i] = chempi_coll_temp(s, step, c->recv.type);
    if (h.is_ex && !h.is_last)
        h.own = chempi_coll_temp(s, step, c->recv.type);
    receive_before(s, &h, 0);
    for (MPI_Count at = 0; at < c->recv.count; at += step) {
        receive_before(s, &h, at + step);
        chempi_coll_fence_but(s, at + step < c->recv.count); /* the next one */
        extend_chain(s, &h, at);
    }
    chempi_coll_fence(s);
}

/* Elements of a chain's segments, or 0: it would take too long to fill. On a
 * node a message costs little and processors are few, so that to send and to
 * combine everything once counts most: segments are short. */
static MPI_Count chain_step(const struct chempi_coll_sched *s,
                            const struct chempi_coll_call *c)
{
    MPI_Count len = c->recv.count * c->recv.type->size;
    MPI_Count segment = SEGMENT_BYTES;
    MPI_Count min = CHAIN_MIN_BYTES;
    int fill = 4; /* chain and data: how many times as long it may be */
    MPI_Count step;

    if (s->size < 2 || (s->size == 2 && c->kind == CHEMPI_COLL_EXSCAN))
        return 0;
    if (s->size > 2 && len >= NODE_CHAIN_MIN_BYTES &&
        len <= NODE_CHAIN_MAX_BYTES && chempi_coll_is_on_one_node(s)) {
        segment = NODE_SEGMENT_BYTES;
        min = NODE_CHAIN_MIN_BYTES;
        fill = 8;
    }
    if (len < min || (s->size - 2) * segment > fill * len)
        return 0;
    if (s->size == 2 && len >= TWO_MIN_BYTES) /* segments of one size */
        return c->recv.count / (len / TWO_SEGMENT_BYTES + 1) + 1;
    step = segment / c->recv.type->size;
    return step > 0 ? step : 1;
}

void chempi_coll_build_scan(struct chempi_coll_sched *s,
                            const struct chempi_coll_call *c)
{
    MPI_Count step = chain_step(s, c);

    s->op = c->op;
    if (step)
        build_chain(s, c, step);
    else
        build_doubling(s, c);
}
