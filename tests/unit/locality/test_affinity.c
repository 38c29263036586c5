/* SPDX-License-Identifier: BSD-3-Clause */
/* What a process makes of the processors that the launcher tells it of. */
#define _GNU_SOURCE /* barriers, setenv */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "common/control/client.h"
#include "common/host/cpus.h"
#include "libchempi/didl/locality/affinity.h"
#include "libchempi/didl/transport/progress/backoff.h"

static struct chempi_cpus allowed; /* at least two */

static void skip_small_hosts(void)
{
    cr_assert_eq(chempi_cpus_get(&allowed), 0);
    if (chempi_cpus_count(&allowed) < 2)
        cr_skip_test("one processor only");
}

/* The first `count` of those that are allowed. */
static struct chempi_cpus first(uint32_t count)
{
    struct chempi_cpus cpus = {{0}};

    for (uint32_t cpu = 0; count > 0; cpu++)
        if (chempi_cpus_has(&allowed, cpu)) {
            chempi_cpus_add(&cpus, cpu);
            count--;
        }
    return cpus;
}

static void tell(const char *variable, const struct chempi_cpus *cpus)
{
    char text[CHEMPI_CPUS_TEXT_MAX];

    cr_assert(chempi_cpus_format(cpus, text, sizeof(text)));
    cr_assert_eq(setenv(variable, text, 1), 0);
}

/* As the launcher does by default. */
static struct chempi_cpus bind_to(uint32_t count)
{
    const struct chempi_cpus own = first(count);

    cr_assert_eq(chempi_cpus_set(0, &own), 0);
    tell(CHEMPI_CPUS_ENV, &own);
    tell(CHEMPI_HOST_CPUS_ENV, &allowed);
    chempi_affinity_init(2);
    return own;
}

static void check_mask(const struct chempi_cpus *cpus)
{
    struct chempi_cpus now;

    cr_assert_eq(chempi_cpus_get(&now), 0);
    cr_assert_arr_eq(&now, cpus, sizeof(now));
}

Test(affinity, a_core_is_own_until_there_are_threads)
{
    skip_small_hosts();
    (void)bind_to(1);
    cr_assert(chempi_affinity_is_own());
    cr_assert(chempi_affinity_is_roomy());
    chempi_affinity_widen();
    cr_assert_not(chempi_affinity_is_own());
    check_mask(&allowed);
}

Test(affinity, threads_share_several_processors)
{
    struct chempi_cpus own;

    skip_small_hosts();
    own = bind_to(2);
    cr_assert(chempi_affinity_is_own());
    chempi_affinity_widen();
    cr_assert_not(chempi_affinity_is_own());
    check_mask(&own);
}

static pthread_barrier_t meeting;

static void *run_elsewhere(void *arg)
{
    const struct chempi_cpus *chosen = arg;

    cr_assert_eq(chempi_cpus_set(0, chosen), 0);
    (void)pthread_barrier_wait(&meeting);
    (void)pthread_barrier_wait(&meeting);
    check_mask(chosen);
    return NULL;
}

Test(affinity, a_thread_keeps_what_it_has_chosen)
{
    struct chempi_cpus chosen;
    pthread_t thread;

    skip_small_hosts();
    chosen = first(2);
    for (uint32_t cpu = 0;; cpu++) /* the second only */
        if (chempi_cpus_has(&chosen, cpu)) {
            chosen.bits[cpu / 8] &= (uint8_t) ~(1u << (cpu % 8));
            break;
        }
    (void)bind_to(1);
    cr_assert_eq(pthread_barrier_init(&meeting, NULL, 2), 0);
    cr_assert_eq(pthread_create(&thread, NULL, run_elsewhere, &chosen), 0);
    (void)pthread_barrier_wait(&meeting);
    chempi_affinity_widen();
    (void)pthread_barrier_wait(&meeting);
    cr_assert_eq(pthread_join(thread, NULL), 0);
    check_mask(&allowed);
}

Test(affinity, other_processors_than_were_given_are_not_own)
{
    struct chempi_cpus own;

    skip_small_hosts();
    (void)bind_to(1);
    own = first(2); /* binding has failed, or somebody has undone it */
    cr_assert_eq(chempi_cpus_set(0, &own), 0);
    chempi_affinity_init(2);
    cr_assert_not(chempi_affinity_is_own());
    cr_assert(chempi_affinity_is_roomy());
    chempi_affinity_init(3);
    cr_assert_not(chempi_affinity_is_roomy());
}

Test(affinity, ranks_that_asked_for_cores_have_room_but_own_none)
{
    skip_small_hosts();
    (void)bind_to(1);
    cr_assert_eq(unsetenv(CHEMPI_CPUS_ENV), 0);
    chempi_affinity_init(2);
    cr_assert(chempi_affinity_is_roomy());
    cr_assert_not(chempi_affinity_is_own());
    cr_assert_eq(unsetenv(CHEMPI_HOST_CPUS_ENV), 0);
    chempi_affinity_init(2);
    cr_assert_not(chempi_affinity_is_roomy());
}

/* ---- giving the core away ------------------------------------------------ */

Test(backoff, only_who_computes_is_a_stranger_and_only_where_there_is_room)
{
    struct chempi_backoff backoff;

    chempi_backoff_init(&backoff);
    cr_assert_eq(chempi_backoff_judge(&backoff, true, 500, 1500),
                 CHEMPI_BACKOFF_NOBODY);
    cr_assert_eq(chempi_backoff_judge(&backoff, true, 500, 1501),
                 CHEMPI_BACKOFF_PEER);
    cr_assert_eq(chempi_backoff_judge(&backoff, false, 0, 9000000),
                 CHEMPI_BACKOFF_PEER);
    cr_assert_not(chempi_backoff_is(&backoff, 9000000));
    cr_assert_eq(chempi_backoff_judge(&backoff, true, 0, 300001),
                 CHEMPI_BACKOFF_STRANGER);
    cr_assert(chempi_backoff_is(&backoff, 300001 + CHEMPI_BACKOFF_MIN_NS - 1));
    cr_assert_not(chempi_backoff_is(&backoff, 300001 + CHEMPI_BACKOFF_MIN_NS));
}

Test(backoff, the_time_doubles_to_its_end_and_shrinks_where_nobody_is)
{
    struct chempi_backoff backoff;
    uint64_t now_ns = 0;

    chempi_backoff_init(&backoff);
    for (int i = 0; i < 10; i++) {
        cr_assert_eq(
            chempi_backoff_judge(&backoff, true, now_ns, now_ns + 1000000),
            CHEMPI_BACKOFF_STRANGER);
        now_ns = backoff.until_ns;
    }
    cr_assert_eq(backoff.length_ns, CHEMPI_BACKOFF_MAX_NS);
    for (int i = 0; i < 1000; i++)
        (void)chempi_backoff_judge(&backoff, true, now_ns, now_ns);
    cr_assert_leq(backoff.length_ns, CHEMPI_BACKOFF_MIN_NS);
    cr_assert_gt(backoff.length_ns, CHEMPI_BACKOFF_MIN_NS / 2);
}

Test(backoff, who_meets_a_peer_again_and_again_parts_but_not_too_often)
{
    struct chempi_backoff backoff;
    uint32_t parted = 0;

    chempi_backoff_init(&backoff);
    for (uint32_t i = 1; i < CHEMPI_BACKOFF_PEERS_MAX; i++)
        cr_assert_not(chempi_backoff_parts(&backoff, 0));
    cr_assert(chempi_backoff_parts(&backoff, 0));
    for (uint64_t now_ns = 1; now_ns < 100 * CHEMPI_BACKOFF_STAY_MIN_NS;
         now_ns += 2000)
        parted += chempi_backoff_parts(&backoff, now_ns);
    cr_assert_eq(parted, 6); /* after 1, 3, 7, 15, 31 and 63 times the least */
}

Test(backoff, a_core_that_is_free_ends_the_count_and_the_patience)
{
    struct chempi_backoff backoff;
    uint64_t now_ns = 0;

    chempi_backoff_init(&backoff);
    for (uint32_t i = 1; i < CHEMPI_BACKOFF_PEERS_MAX; i++)
        cr_assert_not(chempi_backoff_parts(&backoff, 0));
    cr_assert_eq(chempi_backoff_judge(&backoff, true, 0, 0),
                 CHEMPI_BACKOFF_NOBODY);
    cr_assert_not(chempi_backoff_parts(&backoff, 0));
    for (int i = 0; i < 10000; i++)
        now_ns += chempi_backoff_parts(&backoff, now_ns) ? backoff.stay_ns : 0;
    cr_assert_eq(backoff.stay_ns, CHEMPI_BACKOFF_STAY_MAX_NS);
    for (int i = 0; i < 1000; i++)
        (void)chempi_backoff_judge(&backoff, true, 0, 0);
    cr_assert_leq(backoff.stay_ns, CHEMPI_BACKOFF_STAY_MIN_NS);
}

Test(backoff, a_core_is_shared_when_somebody_has_it_each_time)
{
    const uint64_t guest_ns = CHEMPI_BACKOFF_GUEST_NS + 1;
    struct chempi_backoff backoff;

    chempi_backoff_init(&backoff);
    for (int i = 0; i < 1000; i++) /* a system call after a long wait */
        cr_assert_not(chempi_backoff_is_shared(&backoff, 0, 2000));
    for (uint32_t i = 1; i < CHEMPI_BACKOFF_GUESTS_MAX; i++)
        cr_assert_not(chempi_backoff_is_shared(&backoff, 0, guest_ns));
    cr_assert_not(chempi_backoff_is_shared(&backoff, 0, 2000));
    for (uint32_t i = 1; i < CHEMPI_BACKOFF_GUESTS_MAX; i++)
        cr_assert_not(chempi_backoff_is_shared(&backoff, 0, guest_ns));
    cr_assert(chempi_backoff_is_shared(&backoff, 0, guest_ns));
}

/* Where it runs then is the system's affair again. */
Test(affinity, who_parts_from_a_core_may_still_run_wherever_it_might)
{
    const int here = sched_getcpu();
    struct chempi_cpus one = {{0}};

    skip_small_hosts();
    chempi_affinity_part();
    check_mask(&allowed);
    cr_assert_geq(here, 0);
    chempi_cpus_add(&one, (uint32_t)here);
    cr_assert_eq(chempi_cpus_set(0, &one), 0);
    chempi_affinity_part(); /* there is nowhere to go */
    check_mask(&one);
    cr_assert_eq(sched_getcpu(), here);
}
