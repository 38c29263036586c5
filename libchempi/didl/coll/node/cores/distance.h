/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How far from each other the cores are on which members run. What a member
 * writes and another one reads goes from one core's caches to the other's, in
 * 20 to 60 ns where these share a cache, in 120 to 190 where they are near each
 * other, and in 250 where they are not. Data that passes through shared memory
 * goes this way twice, there and, to be written over, back; data that the
 * kernel copies once. Between far cores most of it is the way back: a store
 * waits until the other core has given the line up. So what is for a far core
 * is written past the caches (nt_copy.h), which waits for nothing; who reads it
 * takes as long as from the other core's. Nearer ones lose by that: where a
 * line takes 130 to 190 ns, broadcasts, allreductions, allgathers and exchanges
 * of 64 KiB to 1 MiB took 1.05 to 1.6 times as long so. A virtual machine's
 * host may change the distance from one second to the next. So members measure
 * it all the time: how long it takes to read a line that another one has just
 * written, on another core.
 *
 *   -   a line that was written some time ago may be in no cache any more, or
 * in this core's, where another member has read it. So whoever writes one says
 * when, and who reads it much later learns nothing, as where programs compute
 * between operations, or between start and wait
 *   -   one slow look is no proof
 *   -   of the processes of a node each may learn it in any operation, by any
 *       thread, and all have one opinion: of many members few see fresh lines.
 *       It is advice, and changes at any time
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_COLL_NODE_DISTANCE_H
#define CHEMPI_LIBCHEMPI_DIDL_COLL_NODE_DISTANCE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "libchempi/didl/coll/node/cores/yield_policy.h"

enum { CHEMPI_DISTANCE_FAR = 16 /* points */ };

/* Points after a look that took so long. */
uint32_t chempi_distance_judge(uint32_t points, uint64_t took_ns);

/* Does this member, not the own, run on another core? As far as members say. */
bool chempi_distance_is_elsewhere(const struct chempi_yield_policy *policy,
                                  int member);

/* The word is in a line that this member, not the own, wrote at that time, by
 * chempi_clock_ns(), and that this process has not read since. The rest of its
 * page may be read, too. */
void chempi_distance_look(const struct chempi_yield_policy *policy, int member,
                          uint64_t wrote_ns, const void *word);

/* The same where the word is that time. */
void chempi_distance_look_at_time(const struct chempi_yield_policy *policy,
                                  int member, const _Atomic uint64_t *wrote_ns);

static inline bool
chempi_distance_is_far(const struct chempi_yield_policy *policy)
{
    return atomic_load_explicit(policy->distance, memory_order_relaxed) >=
           CHEMPI_DISTANCE_FAR;
}

/* Had what this member reads better be written past the caches? */
static inline bool
chempi_distance_is_far_from(const struct chempi_yield_policy *policy,
                            int member)
{
    return CHEMPI_UNLIKELY(chempi_distance_is_far(policy)) &&
           chempi_distance_is_elsewhere(policy, member);
}

#endif
