/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of exchanges; see exchange_row.h. */
#include "libchempi/didl/coll/node/exchange_row.h"

#include "libchempi/didl/base/ctx.h"

static unsigned char *board_of(const struct chempi_coll_state *st, int m,
                               uint32_t which)
{
    size_t i = (size_t)m * CHEMPI_NODE_BOARDS + which;

    return st->boards + i * CHEMPI_NODE_BOARD_BYTES;
}

/* The marks of this member's next board; 0: there is no memory for it, a slot
 * must do. The mark says which one it is: one that takes part with another
 * amount of data uses none. */
static uint32_t take_board(struct chempi_coll_state *st)
{
    const uint32_t which = st->rows % CHEMPI_NODE_BOARDS;

    if (CHEMPI_UNLIKELY(!st->is_reserved[which]) &&
        chempi_region_reserve(chempi_ctx.services.region,
                              board_of(st, st->rank, which),
                              CHEMPI_NODE_BOARD_BYTES, NULL) != 0)
        return 0;
    st->is_reserved[which] = true;
    st->rows++;
    return ON_BOARD | (which ? ON_SECOND_BOARD : 0);
}
static_assert(CHEMPI_NODE_BOARDS == 2, "a bit says which");

struct chempi_exchange_row chempi_coll_exchange_row_of(const struct cell *cell,
                                                       int m)
{
    const uint32_t mark = cell_line(cell, m)->mark;

    if (mark & ON_BOARD)
        return (struct chempi_exchange_row){
            board_of(cell->st, m, !!(mark & ON_SECOND_BOARD)),
            CHEMPI_NODE_BOARD_BYTES};
    return (struct chempi_exchange_row){cell_slot(cell, m),
                                        CHEMPI_NODE_BULK_BYTES};
}

struct chempi_exchange_row
chempi_coll_exchange_row_begin(const struct cell *cell,
                               const struct chempi_coll_call *c, int *rc)
{
    struct chempi_coll_state *st = cell->st;
    uint64_t len = (uint64_t)st->size * sizeof(struct chempi_exchange_entry);

    for (int i = 0; i < st->size; i++) {
        struct chempi_coll_place from = chempi_coll_sent(c, i);

        if (i != st->rank && (uint64_t)chempi_coll_place_bytes(&from) <=
                                 CHEMPI_EXCHANGE_HERE_MAX)
            len += (uint64_t)chempi_coll_place_bytes(&from);
    }
    if (len > CHEMPI_NODE_BULK_BYTES) {
        cell_mine(cell)->mark = take_board(st);
        if (cell_mine(cell)->mark)
            return chempi_coll_exchange_row_of(cell, st->rank);
    }
    len = len <= CHEMPI_NODE_PAGE_BYTES ? CHEMPI_NODE_PAGE_BYTES
                                        : CHEMPI_NODE_BULK_BYTES;
    return (struct chempi_exchange_row){
        chempi_coll_shm_slot_room(cell, st->rank, len, rc), len};
}
