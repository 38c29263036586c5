/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reductions in a node's shared memory of data that fits a slot; larger ones
 * are in node_fold.c. One wait per process and operation is the aim: the last
 * one that arrives does what there is to do for all. On a machine with more
 * ranks than cores that is one context switch per rank.
 */
#include <string.h>

#include "libchempi/didl/base/setting.h"
#include "libchempi/didl/coll/coll.h"
#include "libchempi/didl/coll/node/shm_slot.h"

/*
 * acc = the data of members [first, last] in order, from byte `at` on, count
 * elements.
 */
static void fold(const struct cell *cell, const struct chempi_coll_call *c,
                 uint64_t len, int first, int last, void *acc, uint64_t at,
                 MPI_Count count)
{
    cell_take(acc, cell_data(cell, last, len) + at, count, c->rtype);
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
    slot = chempi_coll_shm_slot_room(cell, m, len, &rc);
    if (CHEMPI_LIKELY(slot && len > 0))
        memcpy(slot, buf, (size_t)len);
    return rc;
}

static int reduce(struct chempi_coll_state *st,
                  const struct chempi_coll_call *c, uint64_t len)
{
    struct cell cell;
    int rc = chempi_coll_shm_slot_open(st, &cell);

    if (CHEMPI_UNLIKELY(c->is_void))
        cell_mine(&cell)->len = CELL_VOID;
    else
        rc = cell_first_error(rc, put(&cell, st->rank, input(c), len));
    if (st->rank != c->root) {
        cell_hand_in(&cell, c->root);
        return rc;
    }
    rc = cell_first_error(rc, chempi_coll_shm_slot_collect(&cell));
    rc = cell_first_error(rc, chempi_coll_shm_slot_check(&cell, len));
    if (!rc && len > 0)
        fold(&cell, c, len, 0, st->size - 1, c->rbuf, 0, c->rcount);
    return rc;
}

/* The last one had no result for the others. All lines are there: either they
 * say why, or it had no memory for the common one. */
static CHEMPI_COLD int why_no_result(const struct cell *cell, uint64_t len)
{
    int rc = chempi_coll_shm_slot_check(cell, len);

    return rc ? rc : chempi_coll_shm_slot_mismatch(cell, cell->st->size);
}

/* The last that arrives folds for all. */
static int allreduce_many(const struct cell *cell,
                          const struct chempi_coll_call *c, uint64_t len)
{
    struct chempi_coll_state *st = cell->st;
    struct chempi_node_line *line = cell_common(cell);
    int rc;

    *cell_expected(cell) += (uint32_t)st->size;
    chempi_yield_policy_come(&st->crowd);
    if (cell_arrive(cell)) {
        rc = chempi_coll_shm_slot_check(cell, len);
        if (!rc && len > 0)
            fold(cell, c, len, 0, st->size - 1, c->rbuf, 0, c->rcount);
        rc = cell_first_error(rc, put(cell, st->size, c->rbuf, len));
        line->mark = (uint32_t)rc;
        cell_publish(line, cell->seq);
        chempi_coll_shm_slot_rouse_others(st);
        return rc;
    }
    rc = chempi_coll_shm_slot_wait_for_all(st, &line->seq, cell->seq);
    if (CHEMPI_UNLIKELY(!rc && line->mark != MPI_SUCCESS))
        rc = why_no_result(cell, len);
    if (!rc && len > 0)
        cell_take(c->rbuf, cell_data(cell, st->size, len), c->rcount, c->rtype);
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
    rc = cell_first_error(rc, chempi_coll_shm_slot_meet(&cell));
    rc = cell_first_error(rc, chempi_coll_shm_slot_check(&cell, len));
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
    rc = cell_first_error(rc, chempi_coll_shm_slot_meet(&cell));
    rc = cell_first_error(rc, chempi_coll_shm_slot_check(&cell, len));
    if (!rc && own > 0)
        fold(&cell, c, len, 0, st->size - 1, c->rbuf,
             (uint64_t)(before * c->rtype->extent), own);
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

/* Data of some length to a root goes through SPSC rings, where nobody meets
 * anybody, as long as all of it fits a cache: what does not is better read once
 * by the few that combine it. Of two members one copies from the other. */
static bool is_for_chain(const struct chempi_coll_state *st,
                         const struct chempi_coll_call *c, uint64_t len)
{
    return c->kind == CHEMPI_COLL_REDUCE && st->size > 2 &&
           len <= CHEMPI_NODE_STREAM_BYTES / (uint64_t)st->size &&
           chempi_setting(CHEMPI_SET_COLL_NODE_STREAM);
}

static bool go_by_chain(struct chempi_coll_state *st,
                        const struct chempi_coll_call *c, int tag, int *rc)
{
    if (!chempi_coll_node_scan(st, c, tag, rc))
        return false;
    chempi_coll_count(CHEMPI_COLL_WAY_CHAIN);
    return true;
}

bool chempi_coll_node_reduction(struct chempi_coll_state *st,
                                const struct chempi_coll_call *c, int tag,
                                int *rc)
{
    const struct chempi_datatype *type = c->rtype;
    uint64_t len = (uint64_t)(whole_count(c, st->size) * type->extent);

    if (!(type->is_predefined || type->is_contiguous) || type->true_lb != 0)
        return false;
    if (len > CHEMPI_NODE_BULK_BYTES)
        return (is_for_chain(st, c, len) && go_by_chain(st, c, tag, rc)) ||
               chempi_coll_node_fold(st, c, len, rc);
    switch (c->kind) {
    case CHEMPI_COLL_REDUCE:
        *rc = reduce(st, c, len);
        break;
    case CHEMPI_COLL_ALLREDUCE:
        *rc = allreduce(st, c, len);
        break;
    default:
        *rc = reduce_scatter(st, c, len);
        break;
    }
    return true;
}
