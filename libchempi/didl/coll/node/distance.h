/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How far from each other the cores are on which members run. What a member
 * writes and another one reads goes from one core's caches to the other's, in
 * 20 to 60 ns where these share a cache, and in more than 100 where they do
 * not. Data that passes through shared memory goes this way twice, there and,
 * to be written over, back; data that the kernel copies once. A virtual
 * machine's host may change the distance from one second to the next. So
 * members measure it all the time: how long it takes to read a line that
 * another one has just written, on another core. (One that was written some
 * time ago may be in no cache any more, and to find its page may take as long.)
 *
 *   -   another member on this one's core may have read the line before, so to
 *       be quick says less than to be slow, and points fall slower than they
 *       rise; but one slow look is no proof
 *   -   each member has an opinion of its own, by any thread
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_COLL_NODE_DISTANCE_H
#define CHEMPI_LIBCHEMPI_DIDL_COLL_NODE_DISTANCE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "libchempi/didl/coll/node/yield_policy.h"

enum { CHEMPI_DISTANCE_FAR = 16 /* points */ };

/* Points after a look that took so long. */
uint32_t chempi_distance_judge(uint32_t points, uint64_t took_ns);

/* The word is in a line that this member, not the own, has just written, and
 * that this process has not read since. */
void chempi_distance_look(struct chempi_yield_policy *crowd, int member,
                          const uint32_t *word);

static inline bool
chempi_distance_is_far(const struct chempi_yield_policy *crowd)
{
    return atomic_load_explicit(&crowd->distance, memory_order_relaxed) >=
           CHEMPI_DISTANCE_FAR;
}

#endif
