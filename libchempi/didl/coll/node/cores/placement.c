/* SPDX-License-Identifier: BSD-3-Clause */
/* Members on cores; see placement.h. */
#define _GNU_SOURCE /* sched_getcpu */
#include "libchempi/didl/coll/node/cores/placement.h"

#include <sched.h>

#include "libchempi/didl/locality/affinity.h"

enum {
    PAUSES = 8,      /* operations after a look */
    CORES_MAX = 1024 /* numbers; where there are more, nobody moves */
};

/* 1 + its number; 0: not known. */
static uint32_t core_of(const struct chempi_yield_policy *policy, int member)
{
    return atomic_load_explicit(&policy->presence[member].core,
                                memory_order_relaxed);
}

static uint32_t fair_share(uint32_t members, uint32_t cores)
{
    return (members + cores - 1) / cores;
}

/* Members on this one's core that come before it. */
static uint32_t place_in_core(const struct chempi_yield_policy *policy)
{
    const uint32_t core = core_of(policy, policy->rank);
    uint32_t place = 0;

    for (int i = 0; i < policy->rank; i++)
        place += core_of(policy, i) == core;
    return place;
}

/* Members on each of these cores; returns how many these are, 0: some have not
 * said where they run. */
static uint32_t count_members(const struct chempi_yield_policy *policy,
                              const struct chempi_cpus *may,
                              uint16_t counts[CORES_MAX])
{
    uint32_t members = 0;

    for (int i = 0; i < policy->size; i++) {
        const uint32_t core = core_of(policy, i);

        if (core == 0 || core > CORES_MAX)
            return 0;
        if (!chempi_cpus_has(may, core - 1))
            continue;
        counts[core - 1]++;
        members++;
    }
    return members;
}

uint32_t chempi_placement_choose(const struct chempi_yield_policy *policy,
                                 const struct chempi_cpus *may)
{
    const uint32_t here = core_of(policy, policy->rank) - 1;
    uint16_t counts[CORES_MAX] = {0};
    uint16_t seen[CORES_MAX] = {0};
    const uint32_t cores = chempi_cpus_count(may);
    const uint32_t members = count_members(policy, may, counts);
    const uint32_t share = cores > 0 ? fair_share(members, cores) : 0;
    uint32_t before = 0; /* this one, of those that should go */

    if (members == 0 || !chempi_cpus_has(may, here) ||
        place_in_core(policy) < share)
        return here;
    for (int i = 0; i < policy->rank; i++) {
        const uint32_t core = core_of(policy, i) - 1;

        if (core < CORES_MAX && chempi_cpus_has(may, core))
            before += ++seen[core] > share;
    }
    for (uint32_t cpu = 0; cpu < CORES_MAX; cpu++) {
        if (!chempi_cpus_has(may, cpu) || counts[cpu] >= share)
            continue;
        if (before < share - counts[cpu])
            return cpu;
        before -= share - counts[cpu];
    }
    return here;
}

static void leave_core(struct chempi_yield_policy *policy)
{
    struct chempi_cpus may;
    uint32_t to;

    if (chempi_cpus_get(&may) < 0)
        return;
    to = chempi_placement_choose(policy, &may);
    if (to + 1 != core_of(policy, policy->rank) && chempi_affinity_go(&may, to))
        chempi_yield_policy_say_core(policy, to + 1);
}

void chempi_placement_even_out(struct chempi_yield_policy *policy)
{
    const int here = chempi_affinity_is_roomy() ? -1 : sched_getcpu();
    const uint32_t pauses =
        atomic_load_explicit(&policy->pauses, memory_order_relaxed);

    if (here < 0)
        return;
    chempi_yield_policy_say_core(policy, (uint32_t)here + 1);
    if (pauses > 0)
        atomic_store_explicit(&policy->pauses, pauses - 1,
                              memory_order_relaxed);
    else if (place_in_core(policy) >=
             fair_share((uint32_t)policy->size, chempi_affinity_cores())) {
        leave_core(policy);
        atomic_store_explicit(&policy->pauses, PAUSES, memory_order_relaxed);
    }
}
