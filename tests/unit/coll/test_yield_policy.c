/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waits in meetings where ranks outnumber cores: when the core is given away
 * at once (two looks, one after each time) and when it is kept for a while.
 * The others are what they say in memory; this process stays on one core.
 */
#define _GNU_SOURCE /* sched_getcpu */
#include <criterion/criterion.h>
#include <mpi.h>
#include <sched.h>

#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/base/setting.h"
#include "libchempi/didl/coll/node/cores/yield_policy.h"

enum { SIZE = 4, AWAY = 2, MANY_WAITS = 1000 };

struct chempi_ctx chempi_ctx;

static struct {
    struct chempi_yield_policy_presence presence[SIZE];
    uint16_t neighbours[SIZE];
    struct chempi_yield_policy policy;
    uint32_t core; /* where this process runs, as it says it */
    int looks;
    int looks_until_done; /* 0: never */
} t;

static void start(void)
{
    cpu_set_t one;
    int cpu = sched_getcpu();

    cr_assert_geq(cpu, 0);
    CPU_ZERO(&one);
    CPU_SET((size_t)cpu, &one);
    if (sched_setaffinity(0, sizeof(one), &one) != 0)
        cr_skip_test("this process may not be bound to a core");
    t.core = (uint32_t)cpu + 1;
    t.policy.presence = t.presence;
    t.policy.neighbours = t.neighbours;
    t.policy.size = SIZE;
    t.policy.rank = 1;
}

/* Member m has met the others so often, and runs there. */
static void put(int m, uint32_t met, uint32_t core)
{
    atomic_store(&t.presence[m].met, met);
    atomic_store(&t.presence[m].core, core);
}

static bool look(void *arg)
{
    (void)arg;
    t.looks++;
    return t.looks == t.looks_until_done;
}

static bool is_missed(const void *policy, int member)
{
    return chempi_yield_policy_is_missed(policy, member);
}

/* Come to a meeting and wait; how often it was looked at. */
static int meet(void)
{
    chempi_yield_policy_come(&t.policy);
    t.looks = 0;
    (void)chempi_yield_policy_wait(&t.policy, is_missed, &t.policy, look, NULL);
    return t.looks;
}

static int spins(void)
{
    return (int)chempi_setting(CHEMPI_SET_COLL_NODE_SPINS);
}

TestSuite(user_shares, .init = start);

Test(user_shares, says_where_it_is_and_how_often_it_came)
{
    (void)meet();
    (void)meet();
    cr_assert_eq(atomic_load(&t.presence[1].met), 2);
    cr_assert_eq(atomic_load(&t.presence[1].core), t.core);
}

Test(user_shares, gives_the_core_to_a_neighbour_that_is_missing)
{
    put(0, 1, t.core);
    put(2, 0, t.core);
    put(3, 1, t.core + 1);
    cr_assert_eq(meet(), AWAY);
}

Test(user_shares, keeps_the_core_when_who_is_missing_runs_elsewhere)
{
    put(0, 1, t.core);
    put(2, 1, t.core);
    put(3, 0, t.core + 1);
    cr_assert_eq(meet(), AWAY * (1 + spins()));
}

Test(user_shares, keeps_the_core_for_a_limited_time)
{
    const uint64_t most = UINT64_C(1) << 30;

    atomic_store(&chempi_setting_values[CHEMPI_SET_COLL_NODE_SPINS], most);
    cr_assert_lt(meet(), 10000);
}

Test(user_shares, takes_who_is_at_the_next_meeting_for_present)
{
    put(0, 2, t.core);
    put(2, 2, t.core);
    put(3, 1, t.core + 1);
    cr_assert_gt(meet(), AWAY);
}

Test(user_shares, stops_when_it_is_done)
{
    put(0, 0, t.core + 1);
    t.looks_until_done = 5;
    chempi_yield_policy_come(&t.policy);
    cr_assert(
        chempi_yield_policy_wait(&t.policy, is_missed, &t.policy, look, NULL));
    cr_assert_eq(t.looks, 5);
}

Test(user_shares, counts_meetings_over_the_end_of_the_range)
{
    t.policy.met = UINT32_MAX;
    put(0, UINT32_MAX, t.core);
    cr_assert_eq(meet(), AWAY);
    put(0, 1, t.core);
    cr_assert_gt(meet(), AWAY);
}

/* In few waits when the core was kept in vain. */
Test(user_shares, finds_a_neighbour_that_came_to_this_core)
{
    int waits = 0;

    for (int m = 0; m < SIZE; m++)
        put(m, 0, t.core + 1);
    cr_assert_gt(meet(), AWAY);
    put(0, 0, t.core);
    while (meet() > AWAY)
        cr_assert_lt(++waits, 8);
}

/* Later when the core is given away, as it is not lost meanwhile. */
Test(user_shares, notices_that_a_neighbour_has_left)
{
    int waits = 0;

    for (int m = 0; m < SIZE; m++)
        put(m, 0, t.core);
    cr_assert_eq(meet(), AWAY);
    for (int m = 0; m < SIZE; m++)
        put(m, 0, t.core + 1);
    while (meet() == AWAY)
        cr_assert_lt(++waits, MANY_WAITS);
}
