/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reductions in a node's shared memory of data that fits a slot; larger ones
 * are in node_fold.c. One wait per process and operation is the aim: the last
 * one that arrives does what there is to do for all. On a machine with more
 * ranks than cores that is one context switch per rank.
 */
#include <string.h>

#include "libchempi/didl/coll/cell.h"
#include "libchempi/didl/error.h"

/*
 * acc = the data of members [first, last] in order, from byte `at` on, count
 * elements.
 */
static void fold(const struct cell *cell, const struct chempi_coll_call *c,
                 uint64_t len, int first, int last, void *acc, uint64_t at,
                 MPI_Count count)
{
    memcpy(acc, cell_data(cell, last, len) + at,
           (size_t)(count * c->rtype->extent));
    for (int i = last - 1; i >= first; i--)
        chempi_op_apply(c->op, cell_data(cell, i, len) + at, acc, count,
                        c->rtype);
}

static const void *input(const struct chempi_coll_call *c)
{
    return c->sbuf == MPI_IN_PLACE ? c->rbuf : c->sbuf;
}

/* Into member m's line or slot; reductions keep elements as the user has them,
 * with their padding, so that the operation can work on the slots. */
static int put(const struct cell *cell, int m, const void *buf, uint64_t len)
{
    int rc = MPI_SUCCESS;
    unsigned char *slot;

    cell_line(cell, m)->len = len;
    slot = chempi_coll_cell_room(cell, m, len, &rc);
    if (CHEMPI_LIKELY(slot && len > 0))
        memcpy(slot, buf, (size_t)len);
    return rc;
}

static int reduce(struct chempi_coll_state *st,
                  const struct chempi_coll_call *c, uint64_t len)
{
    struct cell cell;
    int rc = chempi_coll_cell_open(st, &cell);

    rc = cell_first_error(rc, put(&cell, st->rank, input(c), len));
    if (st->rank != c->root) {
        cell_hand_in(&cell, c->root);
        return rc;
    }
    rc = cell_first_error(rc, chempi_coll_cell_collect(&cell));
    rc = cell_first_error(rc, chempi_coll_cell_check(&cell, len));
    if (!rc && len > 0)
        fold(&cell, c, len, 0, st->size - 1, c->rbuf, 0, c->rcount);
    return rc;
}

/* The last that arrives folds for all. */
static int allreduce_many(const struct cell *cell,
                          const struct chempi_coll_call *c, uint64_t len)
{
    struct chempi_coll_state *st = cell->st;
    struct chempi_node_line *line = cell_common(cell);
    int rc;

    *cell_expected(cell) += (uint32_t)st->size;
    if (cell_arrive(cell)) {
        rc = chempi_coll_cell_check(cell, len);
        if (!rc && len > 0)
            fold(cell, c, len, 0, st->size - 1, c->rbuf, 0, c->rcount);
        rc = cell_first_error(rc, put(cell, st->size, c->rbuf, len));
        line->mark = (uint32_t)rc;
        cell_publish(line, cell->seq);
        chempi_coll_cell_rouse_others(st);
        return rc;
    }
    rc = chempi_coll_cell_wait(&line->seq, cell->seq);
    if (!rc && line->mark != MPI_SUCCESS)
        rc = chempi_error_set(MPI_ERR_COUNT,
                              "the ranks take part with different amounts of "
                              "data");
    if (!rc && len > 0)
        memcpy(c->rbuf, cell_data(cell, st->size, len), (size_t)len);
    return rc;
}

static int allreduce(struct chempi_coll_state *st,
                     const struct chempi_coll_call *c, uint64_t len)
{
    struct cell cell;
    int rc;

    cell_open_sync(st, &cell);
    rc = put(&cell, st->rank, input(c), len);
    if (st->size > 2)
        return cell_first_error(rc, allreduce_many(&cell, c, len));
    rc = cell_first_error(rc, chempi_coll_cell_meet(&cell));
    rc = cell_first_error(rc, chempi_coll_cell_check(&cell, len));
    if (!rc && len > 0)
        fold(&cell, c, len, 0, 1, c->rbuf, 0, c->rcount);
    return rc;
}

static int reduce_scatter(struct chempi_coll_state *st,
                          const struct chempi_coll_call *c, uint64_t len)
{
    MPI_Count own = chempi_coll_part_count(c, st->rank);
    MPI_Count before = 0;
    struct cell cell;
    int rc;

    for (int i = 0; i < st->rank; i++)
        before += chempi_coll_part_count(c, i);
    cell_open_sync(st, &cell);
    rc = put(&cell, st->rank, input(c), len);
    rc = cell_first_error(rc, chempi_coll_cell_meet(&cell));
    rc = cell_first_error(rc, chempi_coll_cell_check(&cell, len));
    if (!rc && own > 0)
        fold(&cell, c, len, 0, st->size - 1, c->rbuf,
             (uint64_t)(before * c->rtype->extent), own);
    return rc;
}

/* ---- scan and exscan ---- */

/*
 * Up to SCAN_MAX bytes: a member shows its own data, waits for those before
 * it, looks back for the nearest that has already shown the sum up to itself,
 * adds what lies between, and shows its own sum: the last of many ranks need
 * not add everything again, and nobody waits for those after it.
 */
enum { SCAN_MAX = 16, SUM_AT = SCAN_MAX };
static_assert(offsetof(struct chempi_node_place, ready) >= SUM_AT + SCAN_MAX,
              "both fit a line before its word");

struct look_back {
    const struct cell *cell;
    int from; /* the nearest member whose sum is there */
};

static bool has_sum(const struct cell *cell, int m)
{
    return atomic_load_explicit(&cell_line(cell, m)->place.ready,
                                memory_order_acquire) == cell->seq;
}

static bool is_chain_complete(void *arg)
{
    struct look_back *look = arg;

    for (int i = look->cell->st->rank - 1; i >= 0; i--) {
        if (atomic_load_explicit(&cell_line(look->cell, i)->seq,
                                 memory_order_acquire) != look->cell->seq)
            return false;
        look->from = i;
        if (has_sum(look->cell, i))
            return true;
    }
    return true; /* the first member's data is its sum */
}

/* sum = all before this member, from the left. */
static int add_before(const struct look_back *look,
                      const struct chempi_coll_call *c, uint64_t len, void *sum)
{
    const struct cell *cell = look->cell;
    _Alignas(16) unsigned char next[SCAN_MAX];
    int i = look->from;
    const unsigned char *data = cell_line(cell, i)->data;

    memcpy(sum, has_sum(cell, i) ? data + SUM_AT : data, (size_t)len);
    for (;;) {
        if (CHEMPI_UNLIKELY(cell_line(cell, i)->len != len))
            return chempi_coll_cell_mismatch(cell, i);
        if (++i == cell->st->rank)
            return MPI_SUCCESS;
        memcpy(next, cell_line(cell, i)->data, (size_t)len);
        chempi_op_apply(c->op, sum, next, c->rcount, c->rtype);
        memcpy(sum, next, (size_t)len);
    }
}

static int scan_short(struct chempi_coll_state *st,
                      const struct chempi_coll_call *c, uint64_t len)
{
    _Alignas(16) unsigned char before[SCAN_MAX];
    _Alignas(16) unsigned char sum[SCAN_MAX];
    bool is_first = st->rank == 0;
    struct chempi_node_line *line;
    struct look_back look;
    struct cell cell;
    int rc = chempi_coll_cell_open(st, &cell);

    line = cell_mine(&cell);
    look = (struct look_back){.cell = &cell};
    line->len = len;
    memcpy(sum, input(c), (size_t)len);
    memcpy(line->data, sum, (size_t)len);
    atomic_store_explicit(&line->place.ready, cell.seq - 1,
                          memory_order_relaxed);
    cell_publish(line, cell.seq);
    if (!is_first) {
        rc = cell_first_error(rc,
                              chempi_coll_cell_await(is_chain_complete, &look));
        rc = cell_first_error(rc, add_before(&look, c, len, before));
        if (!rc)
            chempi_op_apply(c->op, before, sum, c->rcount, c->rtype);
        memcpy(line->data + SUM_AT, sum, (size_t)len);
        /* Orders the sum before its word; partner: has_sum(). */
        atomic_store_explicit(&line->place.ready, cell.seq,
                              memory_order_release);
    }
    /* Nobody else is called: who sleeps waits for the next before it. */
    if (st->rank + 1 < st->size)
        cell_rouse(st, st->rank + 1);
    if (rc)
        return rc;
    if (c->kind == CHEMPI_COLL_SCAN)
        memcpy(c->rbuf, sum, (size_t)len);
    else if (!is_first)
        memcpy(c->rbuf, before, (size_t)len);
    return rc;
}

static int scan(struct chempi_coll_state *st, const struct chempi_coll_call *c,
                uint64_t len)
{
    int last = c->kind == CHEMPI_COLL_SCAN ? st->rank : st->rank - 1;
    struct cell cell;
    int rc;

    if (len <= SCAN_MAX && len > 0)
        return scan_short(st, c, len);
    cell_open_sync(st, &cell);
    rc = put(&cell, st->rank, input(c), len);
    rc = cell_first_error(rc, chempi_coll_cell_meet(&cell));
    rc = cell_first_error(rc, chempi_coll_cell_check(&cell, len));
    if (!rc && len > 0 && last >= 0)
        fold(&cell, c, len, 0, last, c->rbuf, 0, c->rcount);
    return rc;
}

/* ---- which ---- */

/* Elements that every member brings. */
static MPI_Count whole_count(const struct chempi_coll_call *c, int size)
{
    MPI_Count total = 0;

    if (c->kind != CHEMPI_COLL_REDUCE_SCATTER &&
        c->kind != CHEMPI_COLL_REDUCE_SCATTER_BLOCK)
        return c->rcount;
    for (int i = 0; i < size; i++)
        total += chempi_coll_part_count(c, i);
    return total;
}

bool chempi_coll_node_reduction(struct chempi_coll_state *st,
                                const struct chempi_coll_call *c, int tag,
                                int *rc)
{
    const struct chempi_datatype *type = c->rtype;
    uint64_t len = (uint64_t)(whole_count(c, st->size) * type->extent);

    (void)tag;
    if (!(type->is_predefined || type->is_contiguous) || type->true_lb != 0)
        return false;
    if (len > CHEMPI_NODE_BULK_BYTES)
        return chempi_coll_node_fold(st, c, len, rc);
    switch (c->kind) {
    case CHEMPI_COLL_REDUCE:
        *rc = reduce(st, c, len);
        break;
    case CHEMPI_COLL_ALLREDUCE:
        *rc = allreduce(st, c, len);
        break;
    case CHEMPI_COLL_SCAN:
    case CHEMPI_COLL_EXSCAN:
        *rc = scan(st, c, len);
        break;
    default:
        *rc = reduce_scatter(st, c, len);
        break;
    }
    return true;
}
