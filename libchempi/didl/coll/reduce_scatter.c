/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reduce_scatter and reduce_scatter_block over messages (MPI 5.0, section
 * 6.10).
 *
 *   small totals, or an operation that does not commute: reduce to rank 0,
 *   then scatter
 *   otherwise, and always with two members: pairwise exchange, one block of
 * temporary memory; block i is combined in the order i-1, i-2, ... of its
 * contributors
 */
#include "libchempi/didl/base/setting.h"
#include "libchempi/didl/coll/sched.h"

static MPI_Count count_of(const struct chempi_coll_call *c, int i)
{
    if (c->kind == CHEMPI_COLL_REDUCE_SCATTER_BLOCK)
        return c->recv.count;
    return chempi_count_array_get(c->recv.counts, (size_t)i);
}

/* Elements before block i. */
static MPI_Count start_of(const struct chempi_coll_call *c, int i)
{
    MPI_Count sum = 0;

    if (c->kind == CHEMPI_COLL_REDUCE_SCATTER_BLOCK)
        return c->recv.count * i;
    for (int k = 0; k < i; k++)
        sum += count_of(c, k);
    return sum;
}

static void build_pairwise(struct chempi_coll_sched *s,
                           const struct chempi_coll_call *c, const void *in)
{
    MPI_Count own = count_of(c, s->rank);
    const void *mine = chempi_coll_at(in, start_of(c, s->rank), c->recv.type);
    void *acc = c->recv.buf;
    void *tmp = NULL;

    /* In place, the result's room still holds block 0, which has to go out
     * first. */
    if (c->send.buf == MPI_IN_PLACE)
        acc = chempi_coll_temp(s, own, c->recv.type);
    if (s->size > 2)
        tmp = chempi_coll_temp(s, own, c->recv.type);
    if (s->size == 1)
        chempi_coll_copy(s, mine, own, c->recv.type, acc, own, c->recv.type);
    for (int i = 1; i < s->size; i++) {
        int dest = (s->rank + i) % s->size;
        int source = (s->rank + s->size - i) % s->size;
        MPI_Count n = count_of(c, dest);

        if (own > 0)
            chempi_coll_recv(s, i > 1 ? tmp : acc, own, c->recv.type, source);
        if (n > 0)
            chempi_coll_send(
                s, chempi_coll_at(in, start_of(c, dest), c->recv.type), n,
                c->recv.type, dest);
        chempi_coll_fence(s);
        chempi_coll_combine(s, i > 1 ? tmp : mine, acc, own, c->recv.type);
    }
    if (acc != c->recv.buf)
        chempi_coll_copy(s, acc, own, c->recv.type, c->recv.buf, own,
                         c->recv.type);
}

static void build_by_root(struct chempi_coll_sched *s,
                          const struct chempi_coll_call *c, const void *in,
                          MPI_Count total)
{
    bool is_root = s->rank == 0;
    void *all = is_root ? chempi_coll_temp(s, total, c->recv.type) : NULL;
    struct chempi_coll_call reduce = {
        .kind = CHEMPI_COLL_REDUCE,
        .comm = c->comm,
        .send.buf = (void *)(uintptr_t)in,
        .recv.buf = all,
        .recv.count = total,
        .recv.type = c->recv.type,
        .op = c->op,
    };
    MPI_Count own = count_of(c, s->rank);

    chempi_coll_build_reduce(s, &reduce);
    chempi_coll_fence(s);
    if (!is_root) {
        if (own > 0)
            chempi_coll_recv(s, c->recv.buf, own, c->recv.type, 0);
        return;
    }
    for (int i = 1; i < s->size; i++) {
        MPI_Count n = count_of(c, i);

        if (n > 0)
            chempi_coll_send(s,
                             chempi_coll_at(all, start_of(c, i), c->recv.type),
                             n, c->recv.type, i);
        chempi_coll_throttle(s);
    }
    chempi_coll_copy(s, all, own, c->recv.type, c->recv.buf, own, c->recv.type);
}

void chempi_coll_build_reduce_scatter(struct chempi_coll_sched *s,
                                      const struct chempi_coll_call *c)
{
    const void *in = c->send.buf == MPI_IN_PLACE ? c->recv.buf : c->send.buf;
    MPI_Count total = start_of(c, s->size);

    s->op = c->op;
    if (total == 0)
        return;
    if (c->op->is_commutative &&
        (s->size == 2 ||
         total * c->recv.type->size >=
             chempi_setting_signed(CHEMPI_SET_COLL_REDUCE_SCATTER_PAIRWISE)))
        build_pairwise(s, c, in);
    else
        build_by_root(s, c, in, total);
}
