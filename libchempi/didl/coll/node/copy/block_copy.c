/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks of collectives, piece by piece; see block_copy.h. */
#include "libchempi/didl/coll/node/copy/block_copy.h"

#include "common/base/copy.h"

bool chempi_coll_block_copy_own(struct chempi_node_task *t,
                                const struct chempi_coll_place *from,
                                const struct chempi_coll_place *to,
                                bool is_long, uint64_t *done)
{
    const uint64_t left = block_len(from) - *done;
    const uint64_t n =
        left < CHEMPI_COLL_CMA_PIECE_MAX ? left : CHEMPI_COLL_CMA_PIECE_MAX;

    if (CHEMPI_UNLIKELY(block_len(from) > block_len(to))) {
        task_note(t, chempi_coll_shm_slot_wrong_amount(
                         t->cell.st->rank, block_len(from), block_len(to)));
        return false;
    }
    if (n == 0)
        return false; /* types may be NULL */
    if (is_long && from->type->is_contiguous && to->type->is_contiguous)
        chempi_copy_past((void *)(uintptr_t)(block_address(to) + *done),
                         (const void *)(uintptr_t)(block_address(from) + *done),
                         (size_t)n);
    else
        chempi_datatype_copy_piece(from->buf, from->count, from->type, to->buf,
                                   to->count, to->type, *done, n);
    t->copied += n;
    *done += n;
    return n < left;
}

int chempi_coll_block_copy_piece(struct chempi_block_copy *b, uint32_t local,
                                 uint64_t remote,
                                 const struct chempi_coll_place *own,
                                 uint64_t n, bool is_put)
{
    const struct chempi_datatype *type = own->type;
    void *buf = NULL;
    int code;

    if (CHEMPI_LIKELY(type->is_contiguous))
        buf = chempi_coll_plus(own->buf, type->true_lb + (MPI_Count)b->done);
    else if (b->done == 0)
        chempi_segment_init(&b->iter, own->buf, (uint64_t)own->count,
                            type->layout);
    code = is_put ? chempi_coll_cma_copy_put_next(local, remote + b->done, n,
                                                  buf, &b->iter)
                  : chempi_coll_cma_copy_next(local, remote + b->done, n, buf,
                                              &b->iter);
    b->done += n;
    return code;
}

bool chempi_coll_block_copy_next(struct chempi_node_task *t,
                                 struct chempi_block_copy *b, int i,
                                 uint64_t from, uint64_t len,
                                 const struct chempi_coll_place *to)
{
    uint64_t n = len - b->done;

    if (CHEMPI_UNLIKELY(len != block_len(to))) {
        task_note(t, chempi_coll_shm_slot_wrong_amount(i, len, block_len(to)));
        return false;
    }
    if (n == 0 || b->code)
        return false;
    if (n > CHEMPI_COLL_CMA_PIECE_MAX)
        n = CHEMPI_COLL_CMA_PIECE_MAX;
    b->code = chempi_coll_block_copy_piece(b, t->cell.st->local_ranks[i], from,
                                           to, n, false);
    t->copied += n;
    return true;
}

void chempi_coll_block_copy_end(struct chempi_node_task *t)
{
    t->is_void = chempi_coll_shm_slot_is_refused(&t->cell, 1);
    task_end(t);
}
