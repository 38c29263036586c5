/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which members leave a core that has too many of them, and where they go. The
 * others are what they say in memory.
 */
#define _GNU_SOURCE /* sched_getcpu */
#include <criterion/criterion.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "common/control/client.h"
#include "libchempi/didl/coll/node/cores/placement.h"
#include "libchempi/didl/locality/affinity.h"

enum { MOST = 16, MANY = 100 };

static struct chempi_yield_policy_presence presence[MOST];
static struct chempi_cpus may;

/* A digit for the core of each member. */
static struct chempi_yield_policy policy_of(const char *cores)
{
    struct chempi_yield_policy policy = {.presence = presence,
                                         .size = (int)strlen(cores)};

    for (int i = 0; i < policy.size; i++)
        atomic_store(&presence[i].core, (uint32_t)(cores[i] - '0') + 1);
    return policy;
}

/* Where all of them should run. */
static void check(const char *list, const char *cores, const char *expected)
{
    struct chempi_yield_policy policy = policy_of(cores);
    char chosen[MOST + 1] = "";

    cr_assert_eq(chempi_cpus_parse(list, &may), 0);
    for (policy.rank = 0; policy.rank < policy.size; policy.rank++)
        chosen[policy.rank] =
            (char)('0' + chempi_placement_choose(&policy, &may));
    cr_assert_str_eq(chosen, expected, "of %s on %s", cores, list);
}

Test(placement, an_even_one_stays)
{
    check("0-1", "00110101", "00110101");
    check("0-1", "0101011", "0101011");
    check("0-3", "01230123", "01230123");
}

Test(placement, the_last_ones_of_a_full_core_leave_it)
{
    check("0-1", "0000001100010101", "0000001100111111");
    check("0-1", "1111", "1100");
    check("0-3", "00000000", "00112233");
}

Test(placement, they_do_not_all_take_the_same_place)
{
    check("0-2", "000001112", "000221112");
    check("2-5", "22224444", "22334455");
}

Test(placement, other_cores_and_who_runs_there_do_not_count)
{
    check("0-1", "00022222", "00122222");
    check("1", "0111", "0111");
}

Test(placement, nobody_goes_before_all_have_said_where_they_run)
{
    struct chempi_yield_policy policy = policy_of("000");

    cr_assert_eq(chempi_cpus_parse("0-1", &may), 0);
    policy.rank = 2;
    cr_assert_eq(chempi_placement_choose(&policy, &may), 1);
    atomic_store(&presence[1].core, 0);
    cr_assert_eq(chempi_placement_choose(&policy, &may), 0);
    atomic_store(&presence[1].core, CHEMPI_CPUS_MAX + 1);
    cr_assert_eq(chempi_placement_choose(&policy, &may), 0);
}

/* The largest number of a core that members go to or leave is 1023. */
Test(placement, nobody_goes_where_a_core_has_a_larger_number)
{
    struct chempi_yield_policy policy = policy_of("0000");

    cr_assert_eq(chempi_cpus_parse("0,1023-1024", &may), 0);
    policy.rank = 3;
    cr_assert_eq(chempi_placement_choose(&policy, &may), 1023);
    atomic_store(&presence[2].core, 1023 + 1);
    cr_assert_eq(chempi_placement_choose(&policy, &may), 1023);
    atomic_store(&presence[2].core, 1024 + 1);
    cr_assert_eq(chempi_placement_choose(&policy, &may), 0);
    for (int i = 0; i < policy.size; i++)
        atomic_store(&presence[i].core, 1024 + 1);
    cr_assert_eq(chempi_placement_choose(&policy, &may), 1024);
}

/* ---- this thread --------------------------------------------------------- */

/* One of so many members, the last, on the core of all. */
static struct chempi_yield_policy last_of(int size)
{
    const uint32_t here = (uint32_t)sched_getcpu();
    struct chempi_yield_policy policy = {
        .presence = presence, .size = size, .rank = size - 1};

    for (int i = 0; i < size; i++)
        atomic_store(&presence[i].core, here + 1);
    return policy;
}

static uint32_t said(const struct chempi_yield_policy *policy)
{
    return atomic_load(&presence[policy->rank].core) - 1;
}

static void start(void)
{
    cr_assert_eq(unsetenv(CHEMPI_CPUS_ENV), 0);
    cr_assert_eq(unsetenv(CHEMPI_HOST_CPUS_ENV), 0);
    cr_assert_eq(chempi_cpus_get(&may), 0);
    if (chempi_cpus_count(&may) < 2)
        cr_skip_test("one processor only");
    chempi_affinity_init(MOST * CHEMPI_CPUS_MAX);
}

TestSuite(placement_of_a_thread, .init = start);

/* The kernel may move the thread between its looks: so more than once. */
Test(placement_of_a_thread, leaves_a_full_core_and_may_come_back)
{
    struct chempi_cpus now;
    bool has_moved = false;

    for (int i = 0; i < MANY && !has_moved; i++) {
        struct chempi_yield_policy policy = last_of(MOST);
        const uint32_t from = said(&policy);

        chempi_placement_even_out(&policy);
        has_moved = said(&policy) != from &&
                    said(&policy) == (uint32_t)sched_getcpu() &&
                    atomic_load(&policy.pauses) > 0;
        cr_assert_eq(chempi_cpus_get(&now), 0);
        cr_assert_arr_eq(&now, &may, sizeof(now));
    }
    cr_assert(has_moved);
}

Test(placement_of_a_thread, stays_for_a_while_when_it_has_moved)
{
    struct chempi_yield_policy policy = last_of(MOST);
    int stays = 0;

    atomic_store(&policy.pauses, 3);
    while (atomic_load(&policy.pauses) > 0) {
        chempi_placement_even_out(&policy);
        stays++;
    }
    cr_assert_eq(stays, 3);
}

/* Who has found no other core, either. */
Test(placement_of_a_thread, does_not_look_again_for_a_while)
{
    struct chempi_yield_policy policy = last_of(MOST);

    for (int i = 0; i < MANY && atomic_load(&policy.pauses) == 0; i++) {
        policy = last_of(MOST);
        atomic_store(&presence[0].core, 0); /* it has not said yet */
        chempi_placement_even_out(&policy);
    }
    cr_assert_gt(atomic_load(&policy.pauses), 0);
}

Test(placement_of_a_thread, stays_where_each_process_has_a_core)
{
    struct chempi_yield_policy policy = last_of(MOST);

    chempi_affinity_init(1);
    chempi_placement_even_out(&policy);
    cr_assert_eq(atomic_load(&policy.pauses), 0);
}
