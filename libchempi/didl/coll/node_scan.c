/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scans of a few bytes in a node's shared memory. A member shows its own data,
 * waits for those before it, looks back for the nearest that has already shown
 * the sum up to itself, adds what lies between, and shows its own sum: the
 * last of many ranks need not add everything again, and nobody waits for those
 * after it until its ring of lines is full (A8 in node.h).
 */
#include <string.h>

#include "libchempi/didl/coll/cell.h"
#include "libchempi/didl/ctx.h"
#include "libchempi/didl/error.h"

enum {
    RING = CHEMPI_NODE_RING,
    RING_BYTES = RING * sizeof(struct chempi_node_line),
    MOST = CHEMPI_NODE_SHORT_SCAN_MAX,
    SUM_AT = MOST
};
static_assert(offsetof(struct chempi_node_place, ready) >= SUM_AT + MOST,
              "both fit a line before its word");
static_assert(RING_BYTES % 4096 == 0, "rings are whole pages");

enum { RING_NONE_YET, RING_ON, RING_OFF };

/* One scan at one member. */
struct step {
    struct chempi_node_line *lines; /* of member 0; see line_of() */
    int rank;
    int from; /* the nearest member whose sum is there */
    uint32_t number;
};

static inline struct chempi_node_line *line_of(const struct step *step, int m)
{
    return step->lines + (size_t)m * RING;
}

/* ---- the ring ---- */

/* Every member gets the memory of its own ring; all learn whether all have. */
static CHEMPI_COLD int make_rings(struct chempi_coll_state *st)
{
    struct chempi_node_line *mine = st->rings + (size_t)st->rank * RING;
    struct cell cell;
    int rc;

    cell_open_sync(st, &cell);
    cell_mine(&cell)->len = CELL_NO_ROOM;
    if (chempi_region_reserve(chempi_ctx.services.region, mine, RING_BYTES,
                              NULL) == 0) {
        memset(mine, 0, RING_BYTES);
        cell_mine(&cell)->len = 0;
    }
    rc = chempi_coll_cell_meet(&cell);
    st->ring_use = RING_ON;
    for (int i = 0; i < st->size; i++)
        if (cell_line(&cell, i)->len != 0)
            st->ring_use = RING_OFF;
    return rc;
}

static int open_step(struct chempi_coll_state *st, struct step *step)
{
    int rc = MPI_SUCCESS;

    if (CHEMPI_UNLIKELY(st->scans + 1 - st->scans_sync > RING))
        rc = chempi_coll_cell_barrier(st);
    step->number = ++st->scans;
    step->lines = st->rings + step->number % RING;
    step->rank = st->rank;
    step->from = 0;
    return rc;
}

/* ---- looking back ---- */

static inline bool has_data(const struct step *step, int m)
{
    return atomic_load_explicit(&line_of(step, m)->seq, memory_order_acquire) ==
           step->number;
}

static inline bool has_sum(const struct step *step, int m)
{
    return atomic_load_explicit(&line_of(step, m)->place.ready,
                                memory_order_acquire) == step->number;
}

static bool is_chain_complete(void *arg)
{
    struct step *step = arg;

    for (int i = step->rank - 1; i >= 0; i--) {
        if (!has_data(step, i))
            return false;
        step->from = i;
        if (has_sum(step, i))
            return true;
    }
    return true; /* the first member's data is its sum */
}

/* What member m did, whose line has another length. */
static CHEMPI_COLD int mismatch(void)
{
    return chempi_error_set(MPI_ERR_COUNT,
                            "the ranks take part with different amounts of "
                            "data");
}

/* sum = all before this member, from the left. */
static int add_before(const struct step *step, const struct chempi_coll_call *c,
                      uint64_t len, void *sum)
{
    _Alignas(16) unsigned char next[MOST];
    int i = step->from;
    const unsigned char *data = line_of(step, i)->data;

    memcpy(sum, has_sum(step, i) ? data + SUM_AT : data, (size_t)len);
    for (;;) {
        if (CHEMPI_UNLIKELY(line_of(step, i)->len != len))
            return mismatch();
        if (++i == step->rank)
            return MPI_SUCCESS;
        memcpy(next, line_of(step, i)->data, (size_t)len);
        chempi_op_apply(c->op, sum, next, c->rcount, c->rtype);
        memcpy(sum, next, (size_t)len);
    }
}

/* ---- the operation ---- */

static int run(struct chempi_coll_state *st, const struct chempi_coll_call *c,
               uint64_t len)
{
    const void *input = c->sbuf == MPI_IN_PLACE ? c->rbuf : c->sbuf;
    _Alignas(16) unsigned char before[MOST];
    _Alignas(16) unsigned char sum[MOST];
    bool is_first = st->rank == 0;
    struct chempi_node_line *line;
    struct step step;
    int rc = open_step(st, &step);

    line = line_of(&step, st->rank);
    line->len = len;
    memcpy(sum, input, (size_t)len);
    memcpy(line->data, sum, (size_t)len);
    cell_publish(line, step.number);
    if (!is_first) {
        rc = cell_first_error(rc,
                              chempi_coll_cell_await(is_chain_complete, &step));
        rc = cell_first_error(rc, add_before(&step, c, len, before));
        if (!rc)
            chempi_op_apply(c->op, before, sum, c->rcount, c->rtype);
        memcpy(line->data + SUM_AT, sum, (size_t)len);
        /* Orders the sum before its word; partner: has_sum(). */
        atomic_store_explicit(&line->place.ready, step.number,
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

bool chempi_coll_node_short_scan(struct chempi_coll_state *st,
                                 const struct chempi_coll_call *c, uint64_t len,
                                 int *rc)
{
    *rc = MPI_SUCCESS;
    if (CHEMPI_UNLIKELY(st->ring_use == RING_NONE_YET))
        *rc = make_rings(st);
    if (CHEMPI_UNLIKELY(st->ring_use == RING_OFF))
        return false;
    *rc = cell_first_error(*rc, run(st, c, len));
    return true;
}
