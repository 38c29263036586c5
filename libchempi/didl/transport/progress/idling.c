/* SPDX-License-Identifier: BSD-3-Clause */
/* Giving the core away, and learning from it; see idling.h. */
#include "libchempi/didl/transport/progress/idling.h"

#include <sched.h>

#include "common/base/clock.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/locality/affinity.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/progress/backoff.h"

enum { SPINS_ROOMY = 64 }; /* in a wait, at least, while is_roomy */

static struct {
    bool is_roomy;
    struct chempi_backoff backoff; /* P5 */
    uint64_t yields;
} learner;

static uint32_t spins_max(void)
{
    return (uint32_t)chempi_setting(CHEMPI_SET_PROGRESS_SPINS_MAX);
}

static void set_spins(uint32_t spins)
{
    const uint32_t least = learner.is_roomy ? SPINS_ROOMY : 0;

    if (spins < least)
        spins = least;
    if (spins > spins_max())
        spins = spins_max();
    atomic_store_explicit(&chempi_ctx.spins, spins, memory_order_relaxed);
}

void chempi_idling_init(bool is_roomy)
{
    learner.is_roomy = is_roomy;
    learner.yields = 0;
    chempi_backoff_init(&learner.backoff);
    /* Where processes share cores somebody else wants this one: each of a crowd
     * would spin in its first waits until it has learned that. */
    set_spins(is_roomy ? spins_max() : 0);
}

void chempi_idling_spin_longer(void)
{
    const uint32_t spins = chempi_progress_spins();

    set_spins(spins + spins / 16 + 1);
}

void chempi_idling_judge(struct chempi_idling *state, uint64_t before_ns,
                         uint64_t after_ns)
{
    switch (chempi_backoff_judge(&learner.backoff, learner.is_roomy, before_ns,
                                 after_ns)) {
    case CHEMPI_BACKOFF_NOBODY:
        chempi_idling_spin_longer();
        state->polls = 0; /* spin on; ask again after as many polls */
        break;
    case CHEMPI_BACKOFF_STRANGER:
        state->since_ns = after_ns;
        break;
    case CHEMPI_BACKOFF_PEER:
        state->switches++;
        set_spins(chempi_progress_spins() / 2);
        if (learner.is_roomy &&
            chempi_backoff_parts(&learner.backoff, after_ns))
            chempi_affinity_part();
        break;
    }
}

void chempi_idling_yield(struct chempi_idling *state)
{
    const uint64_t before_ns = chempi_clock_ns();

    if (!state->since_ns)
        state->since_ns = before_ns;
    state->yields++;
    if (chempi_affinity_is_own() ||
        chempi_backoff_is(&learner.backoff, before_ns)) {
        state->polls = 0;
        return;
    }
    learner.yields++;
    chempi_lane_pause(&chempi_lane_main);
    (void)sched_yield();
    chempi_lane_lock(&chempi_lane_main);
    chempi_idling_judge(state, before_ns, chempi_clock_ns());
}

/* Does somebody else want the core? With more processes than cores it is the
 * job itself, and one switch says so. */
static bool is_wanted(const struct chempi_idling *state, uint64_t now_ns)
{
    if (chempi_backoff_is(&learner.backoff, now_ns))
        return true;
    return state->switches > (learner.is_roomy ? state->yields / 2 : 0);
}

bool chempi_idling_is_time_to_sleep(const struct chempi_idling *state)
{
    const uint64_t now_ns = chempi_clock_ns();
    uint64_t limit_ns;

    if (!state->yields)
        return false;
    limit_ns = chempi_setting(is_wanted(state, now_ns)
                                  ? CHEMPI_SET_PROGRESS_YIELD_WANTED
                                  : CHEMPI_SET_PROGRESS_YIELD_ALONE);
    return now_ns - state->since_ns >= limit_ns;
}

void chempi_idling_ask_own_core(struct chempi_idling *state)
{
    uint64_t before_ns;
    uint64_t after_ns;

    state->has_asked = true;
    learner.yields++;
    chempi_lane_pause(&chempi_lane_main);
    before_ns = chempi_clock_ns();
    (void)sched_yield();
    after_ns = chempi_clock_ns();
    chempi_lane_lock(&chempi_lane_main);
    if (chempi_backoff_is_shared(&learner.backoff, before_ns, after_ns))
        chempi_affinity_widen();
}

uint64_t chempi_idling_yield_count(void)
{
    return learner.yields;
}
