/* SPDX-License-Identifier: BSD-3-Clause */
/* When cores count as far from each other. */
#define _GNU_SOURCE /* unsetenv */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/control/client.h"
#include "libchempi/didl/coll/node/cores/distance.h"
#include "libchempi/didl/locality/affinity.h"

enum {
    QUICK_NS = 5,
    NEAR_NS = 180,
    FAR_NS = 250,
    LOST_NS = 10000,
    OLD_NS = 10000,
    MANY = 1000
};

static bool is_far(uint32_t points)
{
    return points >= CHEMPI_DISTANCE_FAR;
}

Test(distance, one_slow_look_is_no_proof)
{
    uint32_t points = chempi_distance_judge(0, FAR_NS);

    cr_assert(points > 0 && !is_far(points));
    cr_assert(is_far(chempi_distance_judge(points, FAR_NS)));
}

Test(distance, cores_are_near_until_looks_are_slow)
{
    uint32_t points = 0;

    for (int i = 0; i < MANY; i++)
        points = chempi_distance_judge(points, i % 2 ? NEAR_NS : QUICK_NS);
    cr_assert_eq(points, 0);
}

/* One of two looks finds what somebody on this core has read before. */
Test(distance, quick_looks_between_slow_ones_change_nothing)
{
    uint32_t points = 3 * CHEMPI_DISTANCE_FAR / 2;

    for (int i = 0; i < MANY; i++) {
        points = chempi_distance_judge(points, i % 2 ? FAR_NS : QUICK_NS);
        cr_assert(is_far(points), "after %d", i);
    }
}

Test(distance, far_cores_may_come_near_again)
{
    uint32_t points = 0;
    int looks = 0;

    for (int i = 0; i < MANY; i++)
        points = chempi_distance_judge(points, FAR_NS);
    while (is_far(points) && looks++ < MANY)
        points = chempi_distance_judge(points, NEAR_NS);
    cr_assert_lt(looks, 6);
}

Test(distance, who_loses_its_core_in_a_look_learns_nothing)
{
    cr_assert_eq(chempi_distance_judge(0, LOST_NS), 0);
    cr_assert_eq(chempi_distance_judge(20, LOST_NS), 20);
}

/* ---- looks --------------------------------------------------------------- */

enum { POINTS = 20, PAGE_WORDS = 1024 };

static struct chempi_yield_policy_presence presence[2];
static _Alignas(4096) const uint32_t page[PAGE_WORDS];
static _Atomic uint32_t distance;

/* Looks at a word that this member has read; has that changed the points? */
static bool learns_from(uint64_t wrote_ns)
{
    const struct chempi_yield_policy policy = {
        .presence = presence, .size = 2, .distance = &distance};

    atomic_store(&distance, POINTS);
    chempi_distance_look(&policy, 1, wrote_ns, page);
    return atomic_load(&distance) != POINTS;
}

static bool learns_from_time(uint64_t wrote_ns)
{
    static _Alignas(4096) _Atomic uint64_t time_page[PAGE_WORDS / 2];
    const struct chempi_yield_policy policy = {
        .presence = presence, .size = 2, .distance = &distance};

    atomic_store(&distance, POINTS);
    atomic_store(&time_page[0], wrote_ns);
    chempi_distance_look_at_time(&policy, 1, time_page);
    return atomic_load(&distance) != POINTS;
}

/* Who loses its core meanwhile is late, so there are more looks than one. */
static bool learns_from_fresh_lines(void)
{
    for (int i = 0; i < MANY; i++)
        if (learns_from(chempi_clock_ns()))
            return true;
    return false;
}

static void start(uint32_t procs)
{
    cr_assert_eq(unsetenv(CHEMPI_CPUS_ENV), 0);
    cr_assert_eq(unsetenv(CHEMPI_HOST_CPUS_ENV), 0);
    chempi_affinity_init(procs);
}

Test(distance, a_member_that_has_not_said_its_core_is_not_looked_at)
{
    start(MANY * MANY);
    atomic_store(&presence[1].core, 0);
    cr_assert(!learns_from_fresh_lines());
}

Test(distance, is_not_measured_where_each_rank_has_a_core)
{
    start(1);
    atomic_store(&presence[1].core, UINT32_MAX);
    cr_assert(!learns_from_fresh_lines());
}

Test(distance, is_learned_from_lines_that_have_just_been_written_elsewhere)
{
    start(MANY * MANY);
    atomic_store(&presence[1].core, UINT32_MAX);
    cr_assert(learns_from_fresh_lines());
}

Test(distance, is_learned_from_a_time_that_has_just_been_written_elsewhere)
{
    bool has_learned = false;

    start(MANY * MANY);
    atomic_store(&presence[1].core, UINT32_MAX);
    for (int i = 0; i < MANY && !has_learned; i++)
        has_learned = learns_from_time(chempi_clock_ns());
    cr_assert(has_learned);
}

/* Nor from those of a process that has another clock. */
Test(distance, is_not_learned_from_lines_that_were_written_long_ago)
{
    start(MANY * MANY);
    atomic_store(&presence[1].core, UINT32_MAX);
    for (int i = 0; i < MANY; i++) {
        cr_assert(!learns_from(chempi_clock_ns() - OLD_NS));
        cr_assert(!learns_from(chempi_clock_ns() + CHEMPI_NS_PER_S));
        cr_assert(!learns_from(0));
        cr_assert(!learns_from_time(chempi_clock_ns() - OLD_NS));
        cr_assert(!learns_from_time(0));
    }
}

/* ---- who is far ---------------------------------------------------------- */

Test(distance, only_members_on_other_cores_are_far_and_only_from_far_cores)
{
    const struct chempi_yield_policy policy = {
        .presence = presence, .size = 2, .distance = &distance};

    start(MANY * MANY);
    atomic_store(&presence[1].core, UINT32_MAX);
    atomic_store(&distance, CHEMPI_DISTANCE_FAR - 1);
    cr_assert(!chempi_distance_is_far_from(&policy, 1));
    atomic_store(&distance, CHEMPI_DISTANCE_FAR);
    cr_assert(chempi_distance_is_far_from(&policy, 1));
    atomic_store(&presence[1].core, 0);
    cr_assert(!chempi_distance_is_far_from(&policy, 1));
}
