/* SPDX-License-Identifier: BSD-3-Clause */
/* Locking; see lane.h. */
#define _GNU_SOURCE /* sched_yield */
#include "libchempi/didl/transport/lane.h"

#include <errno.h>
#include <sched.h>

#include "common/base/invariant.h"

struct chempi_lane chempi_lane_main = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
};

enum {
    RELAXES_MAX = 1000, /* before the core is given away */
    YIELDS_MAX = 32     /* before a thread sleeps until the lock is free */
};

void chempi_lane_relax(uint32_t *relaxes)
{
    if (++*relaxes < RELAXES_MAX)
        CHEMPI_CPU_RELAX();
    else
        (void)sched_yield();
}

static void take(struct chempi_lane *lane)
{
    atomic_store_explicit(&lane->holder, pthread_self(), memory_order_relaxed);
}

/* Who holds it lets go within a poll, and may need this core for that: to
 * sleep and be woken costs both more. */
static void wait_for_lock(struct chempi_lane *lane)
{
    int rc = EBUSY;

    atomic_fetch_add_explicit(&lane->wanted, 1, memory_order_relaxed);
    for (int i = 0; rc != 0 && i < YIELDS_MAX; i++) {
        (void)sched_yield();
        rc = pthread_mutex_trylock(&lane->lock);
    }
    if (rc != 0)
        (void)pthread_mutex_lock(&lane->lock);
    atomic_fetch_sub_explicit(&lane->wanted, 1, memory_order_relaxed);
}

static void lock(struct chempi_lane *lane)
{
    if (pthread_mutex_trylock(&lane->lock) != 0)
        wait_for_lock(lane);
    take(lane);
}

void chempi_lane_lock_slow(struct chempi_lane *lane)
{
    if (lane->on_lock & CHEMPI_LANE_LOCKS)
        lock(lane);
    if (lane->on_lock & CHEMPI_LANE_LENT)
        lane->lender->retake(lane);
}

const char *chempi_lane_check(const struct chempi_lane *lane)
{
    if (lane->owed == 0 && lane->on_unlock & CHEMPI_LANE_OWES)
        return "lane L4: nothing is owed, and who leaves is told so";
    return ((lane->on_lock & CHEMPI_LANE_LOCKS) != 0) == lane->is_locking &&
                   ((lane->on_unlock & CHEMPI_LANE_LOCKS) != 0) ==
                       lane->is_locking
               ? NULL
               : "lane L5: it locks at one end only";
}

void chempi_lane_unlock_slow(struct chempi_lane *lane, bool has_posted)
{
    const struct chempi_lane_lender *lender =
        lane->on_unlock & CHEMPI_LANE_OWES ? lane->lender : NULL;

    CHEMPI_CHECK(chempi_lane_check(lane));
    if (lender)
        lender->leave(lane, has_posted);
    chempi_lane_pause(lane);
    if (lender)
        lender->left(lane);
}

void chempi_lane_set_locking(struct chempi_lane *lane, bool is_locking)
{
    lane->is_locking = is_locking;
    if (is_locking) {
        lane->on_lock |= CHEMPI_LANE_LOCKS;
        lane->on_unlock |= CHEMPI_LANE_LOCKS;
    } else {
        lane->on_lock &= (uint8_t)~CHEMPI_LANE_LOCKS;
        lane->on_unlock &= (uint8_t)~CHEMPI_LANE_LOCKS;
    }
}

bool chempi_lane_is_mine(struct chempi_lane *lane)
{
    return atomic_load_explicit(&lane->holder, memory_order_relaxed) ==
           pthread_self();
}

void chempi_lane_sleep(struct chempi_lane *lane, pthread_cond_t *cond)
{
    atomic_store_explicit(&lane->holder, 0, memory_order_relaxed);
    (void)pthread_cond_wait(cond, &lane->lock);
    take(lane);
}

void chempi_lane_yield(struct chempi_lane *lane)
{
    if (!lane->is_locking ||
        atomic_load_explicit(&lane->wanted, memory_order_relaxed) == 0)
        return;
    chempi_lane_pause(lane);
    (void)sched_yield();
    lock(lane);
}
