/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocks of collectives: a member's own one, which goes where it belongs, and
 * others' ones, which it copies from their memory. Long ones go in pieces of at
 * most CHEMPI_COLL_CMA_PIECE_MAX bytes, a piece in each step of a task.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_COLL_NODE_BLOCK_COPY_H
#define CHEMPI_LIBCHEMPI_DIDL_COLL_NODE_BLOCK_COPY_H

#include <stdbool.h>
#include <stdint.h>

#include "libchempi/didl/coll/node/copy/cma_copy.h"
#include "libchempi/didl/coll/node/later/node_task.h"
#include "libchempi/didl/coll/node/shm_slot.h"

static inline uint64_t block_len(const struct chempi_coll_place *b)
{
    return (uint64_t)chempi_coll_place_bytes(b);
}

static inline uint64_t block_address(const struct chempi_coll_place *b)
{
    return (uint64_t)(uintptr_t)chempi_coll_plus(b->buf, b->type->true_lb);
}

/* All of a block at once, which `to` has room for. MPI_SUCCESS or an error. */
static inline int block_keep(const struct chempi_coll_place *from,
                             const struct chempi_coll_place *to)
{
    const uint64_t len = block_len(from);

    if (len == 0)
        return MPI_SUCCESS; /* types may be NULL */
    if (CHEMPI_UNLIKELY(!from->type->is_contiguous ||
                        !to->type->is_contiguous || len != block_len(to)))
        return chempi_datatype_copy(from->buf, from->count, from->type, to->buf,
                                    to->count, to->type);
    cell_copy(chempi_coll_plus(to->buf, to->type->true_lb),
              chempi_coll_plus(from->buf, from->type->true_lb), len);
    return MPI_SUCCESS;
}

/* The next piece of it, of which *done bytes are there; true: that was not the
 * last one. is_long: past the caches, if there are no gaps in it. */
bool chempi_coll_block_copy_own(struct chempi_node_task *t,
                                const struct chempi_coll_place *from,
                                const struct chempi_coll_place *to,
                                bool is_long, uint64_t *done);

/* A block that is copied from or to another member's memory. Zero before. */
struct chempi_block_copy {
    uint64_t done; /* bytes of it */
    struct chempi_segment iter;
    int code; /* first failure of a copy, of any block */
};

/* Its next n bytes between `own` and address `remote`, where all of it is, of a
 * local rank; with is_put, to there. 0 or -errno; *b counts them. */
int chempi_coll_block_copy_piece(struct chempi_block_copy *b, uint32_t local,
                                 uint64_t remote,
                                 const struct chempi_coll_place *own,
                                 uint64_t n, bool is_put);

/* The next piece of a block of len bytes in all, from member i's memory; false:
 * it is over, or there was no such piece. */
bool chempi_coll_block_copy_next(struct chempi_node_task *t,
                                 struct chempi_block_copy *b, int i,
                                 uint64_t from, uint64_t len,
                                 const struct chempi_coll_place *to);

/* The last step, once all have replied whether a copy has failed. */
chempi_node_step_fn chempi_coll_block_copy_end;

#endif
