/* SPDX-License-Identifier: BSD-3-Clause */
/* Meetings where ranks outnumber cores; see yield_policy.h. */
#define _GNU_SOURCE /* sched_getcpu */
#include "libchempi/didl/coll/node/cores/yield_policy.h"

#include <sched.h>

#include "libchempi/didl/base/setting.h"

enum {
    YIELDS = 2,      /* before progress is made */
    LOOKS = 64,      /* waits after which the neighbours may have moved */
    LOOKS_EARLY = 8, /* .. when some member has not said where it runs */
    SPINS_MAX = 1000 /* whatever the setting says: no progress is made */
};

static uint32_t current_core(void)
{
    int core = sched_getcpu();

    return core < 0 ? 0 : (uint32_t)core + 1;
}

void chempi_yield_policy_say_here(struct chempi_yield_policy *policy)
{
    chempi_yield_policy_say_core(policy, current_core());
}

/* M3 */
static void find_neighbours(struct chempi_yield_policy *policy)
{
    policy->neighbour_count = 0;
    policy->next = 0;
    policy->looks_left = LOOKS;
    for (int i = 0; i < policy->size; i++) {
        uint32_t core = atomic_load_explicit(&policy->presence[i].core,
                                             memory_order_relaxed);

        if (core == 0)
            policy->looks_left = LOOKS_EARLY;
        else if (core == policy->core && i != policy->rank)
            policy->neighbours[policy->neighbour_count++] = (uint16_t)i;
    }
}

static void look_around(struct chempi_yield_policy *policy)
{
    uint32_t core = current_core();

    chempi_yield_policy_say_core(policy, core);
    if (core != policy->core) {
        policy->core = core;
        policy->looks_left = 0;
    }
    if (policy->looks_left == 0)
        find_neighbours(policy);
    policy->looks_left--;
}

/* Does a member that has not come need this core? */
static bool is_core_wanted(struct chempi_yield_policy *policy,
                           chempi_yield_policy_misses_fn *misses,
                           const void *object)
{
    for (int i = 0; i < policy->neighbour_count; i++) {
        if (misses(object, policy->neighbours[policy->next]))
            return true;
        if (++policy->next == policy->neighbour_count)
            policy->next = 0;
    }
    return policy->core == 0;
}

static bool spin(chempi_progress_done_fn *done, void *arg)
{
    uint64_t spins = chempi_setting(CHEMPI_SET_COLL_NODE_SPINS);

    spins = spins < SPINS_MAX ? spins : SPINS_MAX;
    while (spins-- > 0) {
        CHEMPI_CPU_RELAX();
        if (done(arg))
            return true;
    }
    return false;
}

bool chempi_yield_policy_wait(struct chempi_yield_policy *policy,
                              chempi_yield_policy_misses_fn *misses,
                              const void *object, chempi_progress_done_fn *done,
                              void *arg)
{
    for (int i = 0; i < YIELDS; i++) {
        look_around(policy);
        if (!is_core_wanted(policy, misses, object)) {
            if (spin(done, arg))
                return true;
            policy->looks_left /= 2; /* are they still where they were? */
        }
        (void)sched_yield();
        if (done(arg))
            return true;
    }
    return false;
}
