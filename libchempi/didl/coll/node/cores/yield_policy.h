/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Meetings where ranks outnumber cores. A member that waits should give its
 * core away as long as another one that has not come yet runs on the same core,
 * and keep it when the missing ones run elsewhere: giving it to a member that
 * waits, too, costs two changes of context for nothing. So every member says
 * how often it has met the others and where it ran last.
 *
 *   -   a member writes its own presence only; met is stored at each meeting,
 *       core when it has changed
 *   -   all of it is advice: whatever it says, a wait is bounded by
 *       chempi_progress_wait()
 *   M3  the neighbours are those that said this member's core when it looked
 *       last; it looks again when it runs on another core and once in a while,
 *       the sooner the more often it has kept its core in vain
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_COLL_NODE_YIELD_POLICY_H
#define CHEMPI_LIBCHEMPI_DIDL_COLL_NODE_YIELD_POLICY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/compiler.h"
#include "libchempi/didl/transport/progress/progress.h"

/* Of one member, in shared memory. */
struct chempi_yield_policy_presence {
    _Alignas(CHEMPI_CACHE_LINE) _Atomic uint32_t met; /* ever; wraps */
    _Atomic uint32_t core; /* 1 + its number; 0: not known */
};

/* What a member knows of the others. */
struct chempi_yield_policy {
    struct chempi_yield_policy_presence *presence; /* [size] */
    uint16_t *neighbours; /* [neighbour_count] members */
    int size;
    int rank;
    int neighbour_count;
    int next;                   /* of the neighbours: who was missed last */
    uint32_t met;               /* this member's */
    uint32_t core;              /* in the last wait */
    uint32_t looks_left;        /* 0: look for neighbours */
    _Atomic uint32_t pauses;    /* operations before the next move
                                   (placement.h), by any thread */
    _Atomic uint32_t *distance; /* of the node's cores: points (distance.h) */
};

/* Say where this member runs: 1 + the number of its core. */
static inline void
chempi_yield_policy_say_core(const struct chempi_yield_policy *policy,
                             uint32_t core)
{
    _Atomic uint32_t *said = &policy->presence[policy->rank].core;

    if (atomic_load_explicit(said, memory_order_relaxed) != core)
        atomic_store_explicit(said, core, memory_order_relaxed);
}

/* The same of where it is just now. */
void chempi_yield_policy_say_here(struct chempi_yield_policy *policy);

/* This member comes to the next meeting; before it counts as arrived. */
static inline void chempi_yield_policy_come(struct chempi_yield_policy *policy)
{
    /* Advice, and most often read on this core: no order is needed. */
    atomic_store_explicit(&policy->presence[policy->rank].met, ++policy->met,
                          memory_order_relaxed);
}

/* This member has come and waits; has member m not come yet? For words. */
static inline bool
chempi_yield_policy_is_missed(const struct chempi_yield_policy *policy, int m)
{
    const uint32_t met =
        atomic_load_explicit(&policy->presence[m].met, memory_order_relaxed);

    return (int32_t)(met - policy->met) < 0;
}

/* Is the wait, arg, for what this member, not the own, does? */
typedef bool chempi_yield_policy_misses_fn(const void *arg, int member);

/* For who has come and waits for the others, of whom misses(object, m) says
 * that m is missing: until done(arg), or until it is better to make progress,
 * too. Returns done(arg). Gives the core away; no lock may be held. */
bool chempi_yield_policy_wait(struct chempi_yield_policy *policy,
                              chempi_yield_policy_misses_fn *misses,
                              const void *object, chempi_progress_done_fn *done,
                              void *arg);

#endif
