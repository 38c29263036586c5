/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reductions of which every member gets something, around a ring. The vector
 * has a part for each member. What a part comes to goes from member to member,
 * who combine their inputs with it one after the other, to the one whose part
 * it is. Inputs are read where the user has them, and once; what they come to
 * lies on the stream boards (A9), which stay in the caches.
 *
 *   G1  part p is on the board of member p + 1, who begins it; thus before all
 *       have met in the operation a member writes its own board
 *   G2  in its step s of a round a member combines part rank - 1 - s, when the
 *       member before it has done as many steps of that round. Their lines say
 *       how many they have done in the operation
 *   G3  parts that do not fit a board go in rounds, a slice of each in each. No
 *       member begins a round before all have read the boards of the one
 *       before the last: either all meet between rounds, or nothing is read
 *       behind the last step, and whoever has done that knows that all have
 *       begun the round
 *
 * Operands are in the order of ranks from the one after the part's owner on;
 * so the operation must be commutative.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_COLL_NODE_RING_REDUCE_RING_H
#define CHEMPI_LIBCHEMPI_DIDL_COLL_NODE_RING_REDUCE_RING_H

#include "libchempi/didl/coll/node/shm_slot.h"

struct chempi_reduce_ring {
    const struct cell *cell;
    const struct chempi_coll_call *c;
    const unsigned char *in; /* this member's whole input */
    MPI_Count count;         /* elements of it */
    MPI_Count most;          /* elements of a slice */
    int rounds;
    int round; /* the present one */
    int step;  /* the next one of it; size: none */
};

/* What a round has of a part. */
struct chempi_reduce_ring_slice {
    MPI_Count first; /* element of the vector */
    MPI_Count count;
    unsigned char *data; /* on its board */
};

/* May a vector of so many bytes, more than a board has, go around a ring? All
 * get the same answer. */
bool chempi_reduce_ring_is_for(const struct chempi_coll_state *st,
                               const struct chempi_coll_call *c, uint64_t len);

/* The first step of the first round, before all meet; false: this member has
 * no board, or the ring is not for this operation. When all have met and begun,
 * the other steps can be done. */
bool chempi_reduce_ring_begin(struct chempi_reduce_ring *g,
                              const struct cell *cell,
                              const struct chempi_coll_call *c, const void *in);

/* When all have met: a member that goes another number of rounds than this one,
 * or -1. They bring the same amount, and mean other parts of it: then nobody
 * goes on, and all find one. */
int chempi_reduce_ring_find_odd(const struct chempi_reduce_ring *g);

/* Can the next step be done? Then do it; returns the bytes of its slice. */
bool chempi_reduce_ring_is_due(const struct chempi_reduce_ring *g);
uint64_t chempi_reduce_ring_step(struct chempi_reduce_ring *g);

static inline int
chempi_reduce_ring_member_before(const struct chempi_reduce_ring *g)
{
    const struct chempi_coll_state *st = g->cell->st;

    return (st->rank + st->size - 1) % st->size;
}

static inline bool
chempi_reduce_ring_is_round_over(const struct chempi_reduce_ring *g)
{
    return g->step == g->cell->st->size;
}

/* To the next round and its first step; false: there is none. */
bool chempi_reduce_ring_next_round(struct chempi_reduce_ring *g);

/* Of a part, until the next round begins. */
struct chempi_reduce_ring_slice
chempi_reduce_ring_slice(const struct chempi_reduce_ring *g, int part);

#endif
