/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a member of an exchange says of its blocks (node_alltoall.c): its row,
 * in its slot, or on its board if it is longer. That is an entry per member,
 * then the blocks that are HERE.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_COLL_NODE_EXCHANGE_ROW_H
#define CHEMPI_LIBCHEMPI_DIDL_COLL_NODE_EXCHANGE_ROW_H

#include <string.h>

#include "libchempi/didl/coll/node/shm_slot.h"

struct chempi_exchange_entry {
    uint64_t at;   /* HERE: bytes from the row's start; DIRECT: address */
    uint64_t what; /* length << 2 | enum mark */
};

enum {
    /* Members of whom a row of entries fits a slot. */
    CHEMPI_EXCHANGE_ROWS_MAX =
        CHEMPI_NODE_BULK_BYTES / sizeof(struct chempi_exchange_entry),
    CHEMPI_EXCHANGE_HERE_MAX = 4096 /* bytes of a block in a row */
};

/* In the mark of a row's line. */
enum {
    HAS_DIRECT = 1,
    ON_BOARD = 2,
    NO_ROW = 4,    /* the member takes all blocks for small ones */
    HAS_RINGS = 8, /* it has rings for its large blocks, or no such blocks */
    NEEDS_RINGS = 16,
    IS_LONG = 32,        /* as much as goes past the caches, if all have so */
    ON_SECOND_BOARD = 64 /* with ON_BOARD: on which one */
};

struct chempi_exchange_row {
    unsigned char *start;
    uint64_t room; /* bytes */
};

/* Member m's. */
struct chempi_exchange_row chempi_coll_exchange_row_of(const struct cell *cell,
                                                       int m);

/* Where this member's row goes; start is NULL when there is no slot. Its line's
 * mark says if it is on a board. */
struct chempi_exchange_row
chempi_coll_exchange_row_begin(const struct cell *cell,
                               const struct chempi_coll_call *c, int *rc);

static inline struct chempi_exchange_entry
chempi_coll_exchange_row_entry(const struct cell *cell, int from, int to)
{
    struct chempi_exchange_entry entry;

    memcpy(&entry,
           chempi_coll_exchange_row_of(cell, from).start +
               (size_t)to * sizeof(entry),
           sizeof(entry));
    return entry;
}

#endif
