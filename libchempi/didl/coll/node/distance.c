/* SPDX-License-Identifier: BSD-3-Clause */
/* How far cores are from each other; see distance.h. */
#define _GNU_SOURCE /* sched_getcpu */
#include "libchempi/didl/coll/node/distance.h"

#include <sched.h>

#include "common/base/clock.h"
#include "common/base/compiler.h"
#include "libchempi/didl/control/affinity.h"

enum {
    SLOW_NS = 80,
    LOST_NS = 2000, /* who takes so long has lost the core meanwhile */
    RISE = 8,
    MOST = 32,    /* points */
    BESIDE = 2048 /* bytes to another line of the same page */
};

uint32_t chempi_distance_judge(uint32_t points, uint64_t took_ns)
{
    if (took_ns >= LOST_NS)
        return points;
    if (took_ns < SLOW_NS)
        return points > 0 ? points - 1 : 0;
    return points + RISE < MOST ? points + RISE : MOST;
}

/* As far as members say. */
static bool is_elsewhere(const struct chempi_yield_policy *crowd, int member)
{
    const int here = sched_getcpu();
    const uint32_t core = atomic_load_explicit(&crowd->presence[member].core,
                                               memory_order_relaxed);

    return here >= 0 && core != 0 && core != (uint32_t)here + 1;
}

/* What the clock takes is not what the line takes, nor is what it takes to find
 * the page, for which a prefetch of another line is enough. */
static uint64_t time_look(const uint32_t *word)
{
    uint64_t first_ns;
    uint64_t before_ns;
    uint64_t after_ns;

    CHEMPI_PREFETCH((const void *)((uintptr_t)word ^ BESIDE));
    first_ns = chempi_clock_ns();
    before_ns = chempi_clock_ns();
    (void)*(const volatile uint32_t *)word;
    after_ns = chempi_clock_ns();
    return after_ns - before_ns > before_ns - first_ns
               ? after_ns - before_ns - (before_ns - first_ns)
               : 0;
}

void chempi_distance_look(struct chempi_yield_policy *crowd, int member,
                          const uint32_t *word)
{
    uint32_t points;

    if (chempi_affinity_is_roomy() || !is_elsewhere(crowd, member))
        return;
    points = atomic_load_explicit(&crowd->distance, memory_order_relaxed);
    atomic_store_explicit(&crowd->distance,
                          chempi_distance_judge(points, time_look(word)),
                          memory_order_relaxed);
}
