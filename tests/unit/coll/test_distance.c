/* SPDX-License-Identifier: BSD-3-Clause */
/* When cores count as far from each other. */
#define _GNU_SOURCE /* unsetenv */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "common/control/client.h"
#include "libchempi/didl/coll/node/distance.h"
#include "libchempi/didl/control/affinity.h"

enum { QUICK_NS = 5, NEAR_NS = 50, FAR_NS = 120, LOST_NS = 10000, MANY = 1000 };

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

/* Two of three looks find what somebody on this core has read before. */
Test(distance, quick_looks_between_slow_ones_change_nothing)
{
    uint32_t points = chempi_distance_judge(CHEMPI_DISTANCE_FAR, FAR_NS);

    for (int i = 0; i < MANY; i++) {
        points = chempi_distance_judge(points, i % 3 ? QUICK_NS : FAR_NS);
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
    cr_assert_lt(looks, 20);
}

Test(distance, who_loses_its_core_in_a_look_learns_nothing)
{
    cr_assert_eq(chempi_distance_judge(0, LOST_NS), 0);
    cr_assert_eq(chempi_distance_judge(20, LOST_NS), 20);
}

/* ---- looks --------------------------------------------------------------- */

static struct chempi_yield_policy_presence presence[2];
static const uint32_t word;

/* Looks at a word that this member has read; points after it. */
static uint32_t look(uint32_t points)
{
    struct chempi_yield_policy crowd = {
        .presence = presence, .size = 2, .distance = points};

    chempi_distance_look(&crowd, 1, &word);
    return crowd.distance;
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
    cr_assert_eq(look(20), 20);
}

Test(distance, is_not_measured_where_each_rank_has_a_core)
{
    start(1);
    atomic_store(&presence[1].core, UINT32_MAX);
    cr_assert_eq(look(20), 20);
}

/* What interrupts a look makes it slow, so there are more. */
Test(distance, falls_when_a_line_from_elsewhere_is_here)
{
    bool has_fallen = false;

    start(MANY * MANY);
    atomic_store(&presence[1].core, UINT32_MAX);
    for (int i = 0; i < MANY && !has_fallen; i++)
        has_fallen = look(20) == 19;
    cr_assert(has_fallen);
}
