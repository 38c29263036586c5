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
#include "libchempi/didl/coll/node/chain_calls.h"
#include "libchempi/didl/coll/node/later/node_parts.h"

/* Combine the data of members 0 to last in their order, from byte `at` on,
 * count elements, in the receive buffer. */
static void fold(const struct cell *cell, const struct chempi_coll_call *c,
                 uint64_t len, int last, uint64_t at, MPI_Count count)
{
    cell_take(c->recv.buf, cell_data(cell, last, len) + at, count,
              c->recv.type);
    for (int i = last - 1; i >= 0; i--)
        chempi_op_apply(c->op, cell_data(cell, i, len) + at, c->recv.buf, count,
                        c->recv.type);
}

static uint64_t whole_len(const struct chempi_coll_call *c)
{
    return (uint64_t)(chempi_coll_node_whole_count(c, (int)c->comm->size) *
                      c->recv.type->extent);
}

/* The same but for reduce-scatters. */
static uint64_t vector_len(const struct chempi_coll_call *c)
{
    return (uint64_t)(c->recv.count * c->recv.type->extent);
}

static bool fits(const struct chempi_coll_call *c)
{
    return c->op->is_predefined && cell_has_plain(c->recv.type) &&
           whole_len(c) <= CHEMPI_NODE_BULK_BYTES;
}

static const void *input(const struct chempi_coll_call *c)
{
    return c->send.buf == MPI_IN_PLACE ? c->recv.buf : c->send.buf;
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

static int reduce_begin(const struct cell *cell,
                        const struct chempi_coll_call *c)
{
    int rc = MPI_SUCCESS;

    if (CHEMPI_UNLIKELY(c->is_void))
        cell_mine(cell)->len = CELL_VOID;
    else
        rc = put(cell, cell->st->rank, input(c), vector_len(c));
    if (!cell_is_root(cell, c))
        cell_hand_in(cell, c->root);
    return rc;
}

static bool is_reduce_ready(const struct cell *cell,
                            const struct chempi_coll_call *c)
{
    return !cell_is_root(cell, c) || chempi_coll_shm_slot_is_collected(cell);
}

static int reduce_end(const struct cell *cell, const struct chempi_coll_call *c)
{
    const uint64_t len = vector_len(c);
    int rc;

    if (!cell_is_root(cell, c))
        return MPI_SUCCESS;
    rc = chempi_coll_shm_slot_check(cell, len);
    if (!rc && len > 0)
        fold(cell, c, len, cell->st->size - 1, 0, c->recv.count);
    return rc;
}

CHEMPI_NODE_PARTS(chempi_node_parts_reduce, fits, reduce_at_once, reduce_begin,
                  is_reduce_ready, reduce_end);

static int reduce(struct chempi_coll_state *st,
                  const struct chempi_coll_call *c)
{
    struct cell cell;
    int rc = chempi_coll_shm_slot_open_hand_in(st, &cell, c->root);

    rc = cell_first_error(rc, reduce_begin(&cell, c));
    if (!cell_is_root(&cell, c))
        return rc;
    rc = cell_first_error(rc, chempi_coll_shm_slot_collect(&cell));
    rc = cell_first_error(rc, reduce_end(&cell, c));
    if (vector_len(c) > CHEMPI_NODE_LINE_BYTES || rc)
        chempi_coll_shm_slot_say_taken(&cell);
    return rc;
}

/* The last one had no result for the others. All lines are there: either they
 * say why, or it had no memory for the common one. */
static CHEMPI_COLD int why_no_result(const struct cell *cell, uint64_t len)
{
    int rc = chempi_coll_shm_slot_check(cell, len);

    return rc ? rc : chempi_coll_shm_slot_mismatch(cell, cell->st->size);
}

/* Come to the meeting; true: as the last one, who has folded for all. */
static bool fold_if_last(const struct cell *cell,
                         const struct chempi_coll_call *c, uint64_t len,
                         int *rc)
{
    struct chempi_coll_state *st = cell->st;
    struct chempi_node_line *line = cell_common(cell);

    if (!cell_come(cell))
        return false;
    *rc = chempi_coll_shm_slot_check(cell, len);
    if (!*rc && len > 0)
        fold(cell, c, len, st->size - 1, 0, c->recv.count);
    *rc = cell_first_error(*rc, put(cell, st->size, c->recv.buf, len));
    line->mark = (uint32_t)*rc;
    cell_publish(line, cell->seq);
    chempi_coll_shm_slot_rouse_all(cell);
    return true;
}

static int take_result(const struct cell *cell,
                       const struct chempi_coll_call *c, uint64_t len)
{
    if (CHEMPI_UNLIKELY(cell_common(cell)->mark != MPI_SUCCESS))
        return why_no_result(cell, len);
    if (len > 0)
        cell_take(c->recv.buf, cell_data(cell, cell->st->size, len),
                  c->recv.count, c->recv.type);
    return MPI_SUCCESS;
}

/* Of two members each folds for itself. */
static int fold_both(const struct cell *cell, const struct chempi_coll_call *c,
                     uint64_t len)
{
    int rc = chempi_coll_shm_slot_check(cell, len);

    if (!rc && len > 0)
        fold(cell, c, len, 1, 0, c->recv.count);
    return rc;
}

static int allreduce(struct chempi_coll_state *st,
                     const struct chempi_coll_call *c)
{
    const uint64_t len = vector_len(c);
    struct cell cell;
    int code;
    int rc;

    cell_open_sync(st, &cell);
    rc = put(&cell, st->rank, input(c), len);
    if (st->size == 2) {
        rc = cell_first_error(rc, chempi_coll_shm_slot_meet(&cell));
        return cell_first_error(rc, fold_both(&cell, c, len));
    }
    if (fold_if_last(&cell, c, len, &code))
        return cell_first_error(rc, code);
    code = chempi_coll_shm_slot_wait_for_all(st, &cell_common(&cell)->seq,
                                             cell.seq);
    return cell_first_error(rc, code ? code : take_result(&cell, c, len));
}

static int allreduce_begin(const struct cell *cell,
                           const struct chempi_coll_call *c)
{
    const uint64_t len = vector_len(c);
    int rc = put(cell, cell->st->rank, input(c), len);
    int code = MPI_SUCCESS;

    if (cell->st->size == 2)
        chempi_coll_shm_slot_come(cell);
    else
        (void)fold_if_last(cell, c, len, &code);
    return cell_first_error(rc, code);
}

static int allreduce_end(const struct cell *cell,
                         const struct chempi_coll_call *c)
{
    const uint64_t len = vector_len(c);

    return cell->st->size == 2 ? fold_both(cell, c, len)
                               : take_result(cell, c, len);
}

CHEMPI_NODE_PARTS(chempi_node_parts_allreduce, fits, allreduce_at_once,
                  allreduce_begin, chempi_coll_shm_slot_is_over, allreduce_end);

static int reduce_scatter_begin(const struct cell *cell,
                                const struct chempi_coll_call *c)
{
    int rc = put(cell, cell->st->rank, input(c), whole_len(c));

    chempi_coll_shm_slot_come(cell);
    return rc;
}

static int reduce_scatter_end(const struct cell *cell,
                              const struct chempi_coll_call *c)
{
    const uint64_t len = whole_len(c);
    struct chempi_coll_state *st = cell->st;
    MPI_Count own = chempi_coll_part_count(c, st->rank);
    MPI_Count before = 0;
    int rc = chempi_coll_shm_slot_check(cell, len);

    for (int i = 0; i < st->rank; i++)
        before += chempi_coll_part_count(c, i);
    if (!rc && own > 0)
        fold(cell, c, len, st->size - 1,
             (uint64_t)(before * c->recv.type->extent), own);
    return rc;
}

CHEMPI_NODE_PARTS(chempi_node_parts_reduce_scatter, fits,
                  reduce_scatter_at_once, reduce_scatter_begin,
                  chempi_coll_shm_slot_is_over, reduce_scatter_end);

/* ---- which ---- */

static bool go_by_chain(struct chempi_coll_state *st,
                        const struct chempi_coll_call *c, int tag, int *rc)
{
    if (!chain_is_for(c) || !chempi_coll_node_scan(st, c, tag, rc))
        return false;
    chempi_coll_count(CHEMPI_COLL_WAY_CHAIN);
    return true;
}

bool chempi_coll_node_reduction(struct chempi_coll_state *st,
                                const struct chempi_coll_call *c, int tag,
                                int *rc)
{
    struct cell cell;

    if (!cell_has_plain(c->recv.type))
        return false;
    if (whole_len(c) > CHEMPI_NODE_BULK_BYTES)
        return go_by_chain(st, c, tag, rc) ||
               chempi_coll_node_fold(st, c, tag, rc);
    switch (c->kind) {
    case CHEMPI_COLL_REDUCE:
        *rc = reduce(st, c);
        break;
    case CHEMPI_COLL_ALLREDUCE:
        *rc = allreduce(st, c);
        break;
    default:
        cell_open_sync(st, &cell);
        *rc = parts_run_meeting(&chempi_node_parts_reduce_scatter, &cell, c);
        break;
    }
    return true;
}
