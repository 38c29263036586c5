/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rings in a node's shared memory, one from each member of a communicator to
 * each other, for exchanges of large blocks. A member that runs fills those to
 * others and empties those to itself as far as it can; it waits for no one
 * until it can do neither.
 *
 * Two copies by the processes may take less time than one by the kernel, which
 * looks every page up, while what is in the rings stays in the caches; and when
 * the data comes from and goes to memory, if the second one goes past them
 * (way_choice.h).
 *
 *   -   the member that writes a ring stores head, the one that reads it tail;
 *       both count bytes, ever
 *   R2  tail <= head <= tail + len; what a count has grown by in an operation,
 *       modulo len, is its place in the ring
 *   R3  between two operations that use rings all meet, and each has read
 *       what was for it; so no ring holds bytes of two operations, and each
 *       operation begins at the ring's start, which is in the caches
 *   -   head and tail are data of another process: each is read once and then
 *       checked, and no place outside the ring or the block follows from any.
 *       Nothing tells a wrong length of a block that is to come from a right
 *       one (the caller learns it from the writer): if it is too long, the
 *       reader waits as for a writer that has stopped; if too short, either
 *       it finds the ring damaged, or the rest comes first in the next block
 *   R5  either end goes on only with a quarter of the ring, or what is left of
 *       the block; one end always can while something is left, so that nobody
 *       waits for ever, and nobody is roused for little
 *   R6  who finds a ring damaged damages all others of its own, uses rings no
 *       more, and reports an error; thus whoever waits for it does so, too
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_COLL_NODE_RING_PAIRWISE_RINGS_H
#define CHEMPI_LIBCHEMPI_DIDL_COLL_NODE_RING_PAIRWISE_RINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "libchempi/didl/coll/node/node.h"
#include "libchempi/didl/datatype/datatype.h"

enum {
    CHEMPI_RINGS_RANKS_MAX = 32,
    CHEMPI_RINGS_AREAS = 4,       /* of communicators of a node that have any */
    CHEMPI_RINGS_BYTES = 1 << 20, /* of a member, in all */
    CHEMPI_RINGS_LEN_MAX = 64 << 10, /* of one */
    CHEMPI_RINGS_CONTROL = 4096      /* a page */
};

/* From one member's rings to the next one's, whole pages. */
#define CHEMPI_RINGS_STRIDE                                                    \
    ((size_t)CHEMPI_RINGS_CONTROL + (size_t)CHEMPI_RINGS_BYTES)

/* In shared memory. */
struct chempi_ring {
    _Alignas(CHEMPI_CACHE_LINE) _Atomic uint64_t head;
    _Alignas(CHEMPI_CACHE_LINE) _Atomic uint64_t tail;
};
static_assert(sizeof(struct chempi_ring) * CHEMPI_RINGS_RANKS_MAX <=
                  CHEMPI_RINGS_CONTROL,
              "the control page has a place for each ring");

/* A block that goes to or comes from a member; len 0: none. */
struct chempi_ring_block {
    void *buf;
    MPI_Count count;
    const struct chempi_datatype *type;
    uint64_t len;     /* bytes */
    bool is_unwanted; /* read and forgotten; buf is NULL for MPI_BOTTOM */
    bool is_far;      /* its reader, on a far core: it goes past the caches */
};

/* Can this member use rings, of which it writes its own only if is_writer? Then
 * it gets memory for those. */
bool chempi_coll_pairwise_rings_open(struct chempi_coll_state *st,
                                     bool is_writer);

/* Has this member memory for rings of its own? */
bool chempi_coll_pairwise_rings_are_made(const struct chempi_coll_state *st);

/* How many bytes of a ring a block of so many takes up, of so many members. */
uint64_t chempi_coll_pairwise_rings_take_up(int size, uint64_t len);

/* What the next run takes to or brings from member m; all others are to be
 * told before it. */
void chempi_coll_pairwise_rings_send(struct chempi_coll_state *st, int m,
                                     const struct chempi_ring_block *block);
void chempi_coll_pairwise_rings_recv(struct chempi_coll_state *st, int m,
                                     const struct chempi_ring_block *block);

/* Begin to exchange these blocks; all members do at the same time. is_long:
 * write past the caches; is_later: the others' agents are to hear of it. */
void chempi_coll_pairwise_rings_begin(struct chempi_coll_state *st,
                                      bool is_long, bool is_later);

/* As much as can be done without waiting, up to about a megabyte, which is
 * added to *copied. True: it is over, *rc is 0 or an error class. */
bool chempi_coll_pairwise_rings_step(struct chempi_coll_state *st,
                                     uint64_t *copied, int *rc);

/* Is something left for or from member m, who is another one? */
bool chempi_coll_pairwise_rings_misses(const struct chempi_coll_state *st,
                                       int m);

/* Can the next step do something? */
bool chempi_coll_pairwise_rings_are_due(struct chempi_coll_state *st);

#endif
