/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scan and exscan over messages (MPI 5.0, section 6.11): recursive doubling.
 * Every process carries the combination of a group of ranks that ends with its
 * own, and the prefix of its own; operands stay in the order of ranks. In the
 * last round nobody's group is wanted any more: only prefixes are completed.
 */
#include "libchempi/didl/coll/sched.h"

enum { SLICE_BYTES = 16 * 1024 * 1024 };

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

void chempi_coll_build_scan(struct chempi_coll_sched *s,
                            const struct chempi_coll_call *c)
{
    const void *in = c->sbuf == MPI_IN_PLACE ? c->rbuf : c->sbuf;
    MPI_Count slice = c->rcount;
    struct prefix p = {.type = c->rtype};

    s->op = c->op;
    if (c->rtype->size > 0 && slice > SLICE_BYTES / c->rtype->size)
        slice = SLICE_BYTES / c->rtype->size + 1;
    if (s->size > 2)
        p.group = chempi_coll_temp(s, slice, c->rtype);
    if (s->size > 2 || (c->kind == CHEMPI_COLL_SCAN && s->rank > 0))
        p.tmp = chempi_coll_temp(s, slice, c->rtype);
    for (MPI_Count at = 0; at < c->rcount; at += slice) {
        p.count = c->rcount - at < slice ? c->rcount - at : slice;
        p.result = chempi_coll_at(c->rbuf, at, c->rtype);
        build_slice(s, &p, chempi_coll_at(in, at, c->rtype),
                    c->kind == CHEMPI_COLL_SCAN);
    }
}
