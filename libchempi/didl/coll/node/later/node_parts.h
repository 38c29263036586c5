/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations of data that fits slots, in three parts: what a member does at
 * the start; whether it can go on; what it does then. Blocking operations wait
 * in between, others come back (node_later.h, whose invariants are meant here).
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_COLL_NODE_NODE_PARTS_H
#define CHEMPI_LIBCHEMPI_DIDL_COLL_NODE_NODE_PARTS_H

#include "libchempi/didl/coll/node/later/node_later.h"
#include "libchempi/didl/coll/node/shm_slot.h"

typedef int chempi_node_part_fn(const struct cell *cell,
                                const struct chempi_coll_call *c);

typedef bool chempi_node_ready_fn(const struct cell *cell,
                                  const struct chempi_coll_call *c);

struct chempi_node_parts {
    chempi_node_part_fn *begin;
    chempi_node_ready_fn *is_ready;
    chempi_node_part_fn *end; /* MPI error class, as begin */
    /* Does the data of all members fit slots (L1)? By the call alone, for which
     * it is asked more than once. */
    bool (*fits)(const struct chempi_coll_call *c);
    /* The next operation of the communicator, if nothing else is under way
     * here: all three, if this member need not wait, or hardly: it has ended.
     * Else it has begun, in this cell, and has no number yet. *rc is what came
     * of it. */
    enum chempi_node_later_begun (*at_once)(struct cell *cell,
                                            struct chempi_coll_state *st,
                                            const struct chempi_coll_call *c,
                                            int *rc);
};

extern const struct chempi_node_parts
    *const chempi_node_parts_by_kind[CHEMPI_COLL_KIND_COUNT]; /* or NULL */
extern const struct chempi_node_parts chempi_node_parts_barrier;
extern const struct chempi_node_parts chempi_node_parts_bcast;
extern const struct chempi_node_parts chempi_node_parts_gather;
extern const struct chempi_node_parts chempi_node_parts_scatter;
extern const struct chempi_node_parts chempi_node_parts_allgather;
extern const struct chempi_node_parts chempi_node_parts_alltoall;
extern const struct chempi_node_parts chempi_node_parts_pair;
extern const struct chempi_node_parts chempi_node_parts_reduce;
extern const struct chempi_node_parts chempi_node_parts_allreduce;
extern const struct chempi_node_parts chempi_node_parts_reduce_scatter;

/* A blocking one in which all meet; parts is a constant. */
static inline int parts_run_meeting(const struct chempi_node_parts *parts,
                                    const struct cell *cell,
                                    const struct chempi_coll_call *c)
{
    int rc = parts->begin(cell, c);

    rc = cell_first_error(chempi_coll_shm_slot_await_others(cell), rc);
    return cell_first_error(rc, parts->end(cell, c));
}

/* ---- numbers and cells ---- */

/* L3 */
static inline bool later_is_cell_free(struct chempi_coll_state *st,
                                      uint32_t number)
{
    const uint32_t before_group =
        (number - 1) / CHEMPI_NODE_LATER_GROUP * CHEMPI_NODE_LATER_GROUP;
    const uint32_t needed = before_group - CHEMPI_NODE_LATER_GROUP;

    return CHEMPI_LIKELY(cell_has_seen_ended(st, number, needed)) ||
           chempi_coll_shm_slot_have_ended(st, needed);
}

/* Is nothing under way here? Then the next operation ends in its turn. */
static inline bool later_is_alone(const struct chempi_coll_state *st)
{
    return st->later.started ==
           atomic_load_explicit(&st->later.finished, memory_order_relaxed);
}

/* The cell of the operation of this number. */
static inline void later_open_cell(struct chempi_coll_state *st,
                                   uint32_t number,
                                   const struct chempi_coll_call *c,
                                   struct cell *cell)
{
    cell->st = st;
    cell->seq = number;
    cell->index = st->cells + number % CHEMPI_NODE_LATER_CELLS;
    cell->slot = cell->index + CHEMPI_NODE_SYNC_SLOTS;
    cell->is_later = true;
    cell->is_handed = false;
    /* L7: of three and more, where all meet */
    cell->has_few = st->size > 2 && (c->kind >= CHEMPI_COLL_ALLGATHER ||
                                     c->kind == CHEMPI_COLL_ALLREDUCE);
    cell->lines = st->lines + cell->index;
}

static inline void later_finish(struct chempi_coll_state *st, uint32_t number)
{
    /* Orders a task's last steps before a blocking one; partner:
     * chempi_coll_node_has_turn(). */
    atomic_store_explicit(&st->later.finished, number, memory_order_release);
    if (CHEMPI_UNLIKELY((number & st->later.unsaid) == 0))
        chempi_coll_shm_slot_say_ended(st, number);
}

/* The next one, which has begun and ended. */
static inline void later_end_next(struct chempi_coll_state *st)
{
    const uint32_t number = st->later.started + 1;

    st->later.begun = number;
    st->later.started = number;
    st->later.last_task = number;
    later_finish(st, number);
}

/* ---- at once ---- */

enum { CELL_LOOKS = 8 };

/* Have all come, of those who are about to? To look takes as long as to make a
 * request, and is in vain where they share cores. */
CHEMPI_INLINE bool parts_are_soon(chempi_node_ready_fn *is_ready,
                                  const struct cell *cell,
                                  const struct chempi_coll_call *c)
{
    bool is = is_ready(cell, c);

    if (!is && chempi_progress_spins() > 0)
        for (int i = 0; i < CELL_LOOKS && !is; i++) {
            CHEMPI_CPU_RELAX();
            is = is_ready(cell, c);
        }
    return is;
}

CHEMPI_INLINE bool parts_do(chempi_node_part_fn *begin,
                            chempi_node_ready_fn *is_ready,
                            chempi_node_part_fn *end, const struct cell *cell,
                            const struct chempi_coll_call *c, int *rc)
{
    *rc = begin(cell, c);
    if (!parts_are_soon(is_ready, cell, c))
        return false;
    *rc = cell_first_error(*rc, end(cell, c));
    return true;
}

CHEMPI_INLINE bool parts_open(struct cell *cell, struct chempi_coll_state *st,
                              const struct chempi_coll_call *c)
{
    const uint32_t number = st->later.started + 1;

    if (!later_is_alone(st) || !later_is_cell_free(st, number))
        return false;
    later_open_cell(st, number, c, cell);
    return true;
}

CHEMPI_INLINE enum chempi_node_later_begun parts_close(const struct cell *cell,
                                                       bool has_ended)
{
    if (CHEMPI_UNLIKELY(!has_ended))
        return CHEMPI_NODE_LATER_HAS_BEGUN;
    later_end_next(cell->st);
    return CHEMPI_NODE_LATER_HAS_ENDED;
}

/* An operation's parts, and what is made of them to do it at once. */
#define CHEMPI_NODE_PARTS(parts, fits_fn, at_once_fn, begin_fn, is_ready_fn,   \
                          end_fn)                                              \
    static enum chempi_node_later_begun at_once_fn(                            \
        struct cell *cell, struct chempi_coll_state *st,                       \
        const struct chempi_coll_call *c, int *rc)                             \
    {                                                                          \
        if (!parts_open(cell, st, c))                                          \
            return CHEMPI_NODE_LATER_HAS_NOT_BEGUN;                            \
        return parts_close(                                                    \
            cell, parts_do(begin_fn, is_ready_fn, end_fn, cell, c, rc));       \
    }                                                                          \
    const struct chempi_node_parts parts = {begin_fn, is_ready_fn, end_fn,     \
                                            fits_fn, at_once_fn}

/* ---- calls ---- */

/* Is it an exchange of two members? */
static inline bool parts_are_of_pair(const struct chempi_coll_call *c)
{
    return c->comm->size == 2 && c->kind >= CHEMPI_COLL_ALLGATHER &&
           c->kind <= CHEMPI_COLL_ALLTOALLW;
}

/* Of what fits slots; NULL: it does not. */
static inline const struct chempi_node_parts *
parts_for(const struct chempi_coll_call *c)
{
    const struct chempi_node_parts *parts =
        parts_are_of_pair(c) ? &chempi_node_parts_pair
                             : chempi_node_parts_by_kind[c->kind];

    return parts && parts->fits(c) ? parts : NULL;
}

/* What later_try() does of an operation in steps. */
enum chempi_node_later_begun
chempi_node_later_try_steps(void *room, struct chempi_coll_state *st,
                            const struct chempi_coll_call *c, int *rc);

/* Start a call if that begins it: if nothing else is under way here, of those
 * whose data fits slots, and tasks. It has ended then if this member need not
 * wait for anything; else chempi_node_later_stay() comes next. room:
 * CHEMPI_COLL_INLINE_BYTES of a schedule that is not made as yet; the operation
 * there begins with its cell. Under the lane lock. */
static inline enum chempi_node_later_begun
later_try(const struct chempi_coll_call *c, void *room, int *rc)
{
    struct chempi_coll_state *st = c->comm->coll;
    const struct chempi_node_parts *parts;

    if (CHEMPI_UNLIKELY(!st || st->later_cells == 0))
        return CHEMPI_NODE_LATER_HAS_NOT_BEGUN;
    parts = parts_for(c);
    return parts ? parts->at_once(room, st, c, rc)
                 : chempi_node_later_try_steps(room, st, c, rc);
}

/* What has begun there, as that says, is not over: perhaps it has moved. */
enum chempi_node_later_begun
chempi_node_later_stay(void *room, const struct chempi_coll_call *c,
                       enum chempi_node_later_begun begun, int *rc);

#endif
