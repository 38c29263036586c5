/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of the lane's lock: exclusion, sleeping, handing over, time limits. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>

#include "libchempi/didl/transport/lane.h"

#define THREADS 4
#define ROUNDS 20000
#define SLEEPS 300

static struct chempi_lane lane;
static long counter; /* guarded by the lane */
static _Atomic bool is_over;

static void start(pthread_t *thread, void *(*run)(void *))
{
    cr_assert(pthread_create(thread, NULL, run, NULL) == 0);
}

static void lock_always(void)
{
    lane = (struct chempi_lane){0};
    chempi_lane_set_locking(&lane, true);
}

static void *count(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        chempi_lane_lock(&lane);
        counter++;
        if (i % 64 == 0)
            chempi_lane_yield(&lane);
        chempi_lane_unlock(&lane);
    }
    return NULL;
}

Test(lane, lets_one_thread_in_at_a_time)
{
    pthread_t threads[THREADS];

    lock_always();
    for (int i = 0; i < THREADS; i++)
        start(&threads[i], count);
    for (int i = 0; i < THREADS; i++)
        (void)pthread_join(threads[i], NULL);
    cr_assert(counter == (long)THREADS * ROUNDS);
    cr_assert(lane.wanted == 0 && lane.sleepers == 0);
}

static void *come_and_go(void *arg)
{
    (void)arg;
    while (!is_over) {
        chempi_lane_lock(&lane);
        counter++;
        chempi_lane_unlock(&lane);
    }
    return NULL;
}

/* Lets go of the lock when both others sleep, again and again. */
static void wake_all(void)
{
    pthread_t threads[2];

    start(&threads[0], come_and_go);
    start(&threads[1], come_and_go);
    for (int i = 0; i < SLEEPS; i++) {
        long before;

        chempi_lane_lock(&lane);
        before = counter;
        while (lane.sleepers < 2)
            (void)sched_yield();
        cr_assert(counter == before);
        chempi_lane_unlock(&lane);
    }
    is_over = true;
    (void)pthread_join(threads[0], NULL);
    (void)pthread_join(threads[1], NULL);
    cr_assert(lane.wanted == 0 && lane.sleepers == 0);
}

Test(lane, wakes_who_sleeps)
{
    lock_always();
    wake_all();
}

Test(lane, wakes_who_sleeps_where_the_kernel_has_no_barrier)
{
    lock_always();
    lane.is_ordered = false;
    wake_all();
}

static void *come_once(void *arg)
{
    (void)arg;
    chempi_lane_lock(&lane);
    is_over = true;
    chempi_lane_unlock(&lane);
    return NULL;
}

Test(lane, a_thread_that_polls_lets_others_in)
{
    pthread_t thread;

    lock_always();
    chempi_lane_lock(&lane);
    start(&thread, come_once);
    while (!is_over)
        chempi_lane_yield(&lane);
    cr_assert(chempi_lane_is_mine(&lane));
    chempi_lane_unlock(&lane);
    (void)pthread_join(thread, NULL);
}

static void *try_for_a_moment(void *arg)
{
    (void)arg;
    cr_assert(!chempi_lane_is_mine(&lane));
    cr_assert(!chempi_lane_lock_within(&lane, 0));
    cr_assert(!chempi_lane_lock_within(&lane, 3));
    return NULL;
}

Test(lane, gives_up_when_the_time_is_over)
{
    pthread_t thread;

    lock_always();
    cr_assert(chempi_lane_lock_within(&lane, 0));
    cr_assert(chempi_lane_is_mine(&lane));
    start(&thread, try_for_a_moment);
    (void)pthread_join(thread, NULL);
    chempi_lane_unlock(&lane);
    cr_assert(!chempi_lane_is_mine(&lane));
    cr_assert(lane.wanted == 0 && lane.sleepers == 0);
}

Test(lane, costs_nothing_while_it_does_not_lock)
{
    lane = (struct chempi_lane){0};
    chempi_lane_lock(&lane);
    cr_assert(lane.is_held == 0);
    chempi_lane_unlock(&lane);
    chempi_lane_set_locking(&lane, true);
    chempi_lane_set_locking(&lane, false);
    chempi_lane_lock(&lane);
    cr_assert(lane.is_held == 0);
}
