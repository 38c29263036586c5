/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies from and to a root's memory: the root says where blocks lie, the
 * others copy, all at the same time, and say so; who is not allowed to gets a
 * message.
 *
 *   -   the cell's `finished` counts those who have said so since the root
 *       began to expect them; the one that makes it `goal` rouses the root
 *   -   a member's place.met is whether it has, for words; whoever writes the
 *       rest of its line clears that
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_COLL_NODE_ROOT_COPIES_H
#define CHEMPI_LIBCHEMPI_DIDL_COLL_NODE_ROOT_COPIES_H

#include "libchempi/didl/coll/node/copy/cma_copy.h"
#include "libchempi/didl/coll/node/shm_slot.h"

/* In the mark of a line: where a block is. */
enum chempi_root_mark {
    BLOCK_HERE,
    BLOCK_BY_MESSAGE,
    BLOCK_DIRECT,
    BLOCK_PIECES,
    /* In the common line of a scatter, with all blocks in it: */
    ROW_EVEN, /* .. of the line's len bytes each */
    ROW_TABLE /* .. of different lengths, and a table before them */
};

/* What a member says of its copy. */
enum chempi_root_reply {
    REPLY_COPIED,
    REPLY_REFUSED, /* and will be the next time */
    REPLY_PASSED   /* the root has not offered a place for it */
};

/* May copies be tried, as far as this process knows? */
static inline bool
chempi_coll_root_copies_are_on(const struct chempi_coll_state *st)
{
    return !st->is_refused && !st->is_refused_root &&
           chempi_coll_cma_copy_is_on();
}

/* May others be told to copy a block of the root's? */
static inline bool
chempi_coll_root_copies_are_open(const struct chempi_coll_state *st,
                                 const struct chempi_datatype *type)
{
    return type->is_contiguous && chempi_coll_root_copies_are_on(st);
}

static inline uint64_t
chempi_coll_root_copies_address(const void *buf,
                                const struct chempi_datatype *type)
{
    return (uint64_t)(uintptr_t)chempi_coll_plus(buf, type->true_lb);
}

/* Root: before it publishes where its memory is. */
void chempi_coll_root_copies_expect(const struct cell *cell);

/* Root: from now on who is the last of so many to say so rouses it; it waits
 * for `finished` to have that value. */
void chempi_coll_root_copies_set_goal(const struct cell *cell, uint32_t goal);

void chempi_coll_root_copies_say(const struct cell *cell, int root,
                                 enum chempi_root_reply reply);

/* Root, when all have said so: must member i get a message after all? */
bool chempi_coll_root_copies_has_refused(const struct cell *cell, int i);

#endif
