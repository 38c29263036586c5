/* SPDX-License-Identifier: BSD-3-Clause */
/* Which calls go along SPSC rings: scans, and reductions of some length to a
 * root (node_scan.c). All members get the same answers. */
#ifndef CHEMPI_LIBCHEMPI_DIDL_COLL_NODE_CHAIN_CALLS_H
#define CHEMPI_LIBCHEMPI_DIDL_COLL_NODE_CHAIN_CALLS_H

#include "libchempi/didl/base/setting.h"
#include "libchempi/didl/coll/node/node.h"

enum {
    CHEMPI_CHAIN_MOST_EXTENT =
        CHEMPI_SPSC_RING_LEAST / 4 - CHEMPI_SPSC_RING_GRAIN,
    CHEMPI_CHAIN_MESSAGE_ABOVE = 16 << 10 /* bytes; an exscan of two */
};

/* Must it go by messages? */
static inline bool chain_is_unsuited(const struct chempi_coll_call *c)
{
    const struct chempi_datatype *type = c->recv.type;

    if (!(type->is_predefined || type->is_contiguous) || type->true_lb != 0)
        return true;
    if (CHEMPI_UNLIKELY(type->extent > CHEMPI_CHAIN_MOST_EXTENT))
        return true;
    /* Elements are combined in the order of ranks, from rank 0 on. */
    if (c->kind == CHEMPI_COLL_REDUCE)
        return !c->op->is_commutative && c->root != (int)c->comm->size - 1;
    /* An exscan of two just moves data: one copy instead of two. */
    return c->comm->size == 2 && c->kind == CHEMPI_COLL_EXSCAN &&
           c->recv.count * type->extent > CHEMPI_CHAIN_MESSAGE_ABOVE;
}

/* A reduction does so as long as all of it fits a cache, and when it fits no
 * board (A9): what does is sooner there in two meetings than one member after
 * the other. Of two members one copies from the other. */
static inline bool chain_is_right_length(const struct chempi_coll_call *c)
{
    const uint64_t len = (uint64_t)(c->recv.count * c->recv.type->extent);

    return c->comm->size > 2 &&
           (len <= CHEMPI_NODE_STREAM_BYTES / (uint64_t)c->comm->size ||
            len > CHEMPI_NODE_STREAM_MAX) &&
           chempi_setting(CHEMPI_SET_COLL_NODE_STREAM);
}

/* Does it go along SPSC rings, if there are any? */
static inline bool chain_is_for(const struct chempi_coll_call *c)
{
    switch (c->kind) {
    case CHEMPI_COLL_SCAN:
    case CHEMPI_COLL_EXSCAN:
        return !chain_is_unsuited(c);
    case CHEMPI_COLL_REDUCE:
        return chain_is_right_length(c) && !chain_is_unsuited(c);
    default:
        return false;
    }
}

#endif
