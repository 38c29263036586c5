/* SPDX-License-Identifier: BSD-3-Clause */
/* How far cores are from each other; see distance.h. */
#define _GNU_SOURCE /* sched_getcpu */
#include "libchempi/didl/coll/node/cores/distance.h"

#include <sched.h>

#include "common/base/clock.h"
#include "libchempi/didl/locality/affinity.h"

enum {
    SLOW_NS = 220,   /* a half between 190 and 250; distance.h */
    LOST_NS = 2000,  /* who takes so long has lost the core meanwhile */
    FRESH_NS = 5000, /* after that a line may be anywhere */
    RISE = 8,        /* points */
    FALL = 4,
    MOST = 32,
    BESIDE = 2048 /* bytes to another line of the same page */
};

uint32_t chempi_distance_judge(uint32_t points, uint64_t took_ns)
{
    if (took_ns >= LOST_NS)
        return points;
    if (took_ns < SLOW_NS)
        return points > FALL ? points - FALL : 0;
    return points + RISE < MOST ? points + RISE : MOST;
}

bool chempi_distance_is_elsewhere(const struct chempi_yield_policy *policy,
                                  int member)
{
    const int here = chempi_affinity_is_roomy() ? -1 : sched_getcpu();
    const uint32_t core = atomic_load_explicit(&policy->presence[member].core,
                                               memory_order_relaxed);

    return here >= 0 && core != 0 && core != (uint32_t)here + 1;
}

/* What the clock takes is not what the line takes, nor is what it takes to find
 * the page, for which another line of it is read first. */
static uint64_t time_look(const void *word)
{
    uint64_t first_ns;
    uint64_t before_ns;
    uint64_t after_ns;

    (void)*(const volatile unsigned char *)((uintptr_t)word ^ BESIDE);
    first_ns = chempi_clock_ns();
    before_ns = chempi_clock_ns();
    (void)*(const volatile unsigned char *)word;
    after_ns = chempi_clock_ns();
    return after_ns - before_ns > before_ns - first_ns
               ? after_ns - before_ns - (before_ns - first_ns)
               : 0;
}

static bool is_fresh(uint64_t wrote_ns)
{
    return chempi_clock_ns() - wrote_ns < FRESH_NS;
}

static void note(_Atomic uint32_t *distance, uint64_t took_ns)
{
    const uint32_t before =
        atomic_load_explicit(distance, memory_order_relaxed);
    const uint32_t after = chempi_distance_judge(before, took_ns);

    if (after != before)
        atomic_store_explicit(distance, after, memory_order_relaxed);
}

void chempi_distance_look(const struct chempi_yield_policy *policy, int member,
                          uint64_t wrote_ns, const void *word)
{
    if (chempi_distance_is_elsewhere(policy, member) && is_fresh(wrote_ns))
        note(policy->distance, time_look(word));
}

void chempi_distance_look_at_time(const struct chempi_yield_policy *policy,
                                  int member, const _Atomic uint64_t *wrote_ns)
{
    uint64_t took_ns;

    if (!chempi_distance_is_elsewhere(policy, member))
        return;
    took_ns = time_look((const void *)(uintptr_t)wrote_ns);
    if (is_fresh(atomic_load_explicit(wrote_ns, memory_order_relaxed)))
        note(policy->distance, took_ns);
}
