/* SPDX-License-Identifier: BSD-3-Clause */
/* Locking; see lane.h. */
#define _GNU_SOURCE /* sched_yield, syscall */
#include "libchempi/didl/transport/lane.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/invariant.h"
#include "common/wake/futex.h"

enum {
    RELAXES_MAX = 1000, /* before the core is given away */
    YIELDS_MAX = 32,    /* before a thread sleeps until the lock is free */
    SLEEP_MAX_MS = 10   /* where sleeps are bounded, L8 */
};

bool chempi_lane_register_barrier(void)
{
    return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0,
                   0) == 0;
}

void chempi_lane_barrier(void)
{
    (void)syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

void chempi_lane_relax(uint32_t *relaxes)
{
    if (++*relaxes < RELAXES_MAX)
        CHEMPI_CPU_RELAX();
    else
        (void)sched_yield();
}

/* ---- the lock ---- */

static inline bool try_lock(struct chempi_lane *lane)
{
    uint32_t free_word = 0;

    if (!atomic_compare_exchange_strong_explicit(&lane->is_held, &free_word, 1,
                                                 memory_order_acquire,
                                                 memory_order_relaxed))
        return false;
    atomic_store_explicit(&lane->holder, pthread_self(), memory_order_relaxed);
    return true;
}

static void sleep_ms(struct chempi_lane *lane, int limit_ms)
{
    if (!lane->is_ordered && (limit_ms < 0 || limit_ms > SLEEP_MAX_MS))
        limit_ms = SLEEP_MAX_MS;
    chempi_futex_wait(&lane->is_held, 1, limit_ms);
}

/* L8. False: the time is over; limit_ms is -1 for none. */
static bool sleep_for_lock(struct chempi_lane *lane, int limit_ms)
{
    const uint64_t since_ns = chempi_clock_ns();
    bool is_mine;

    atomic_fetch_add_explicit(&lane->sleepers, 1, memory_order_seq_cst);
    if (lane->is_ordered)
        chempi_lane_barrier(); /* partner: chempi_lane_release() */
    while (!(is_mine = try_lock(lane))) {
        uint64_t gone_ms = (chempi_clock_ns() - since_ns) / 1000000;

        if (limit_ms >= 0 && gone_ms >= (uint64_t)limit_ms)
            break;
        sleep_ms(lane, limit_ms < 0 ? -1 : limit_ms - (int)gone_ms);
    }
    atomic_fetch_sub_explicit(&lane->sleepers, 1, memory_order_relaxed);
    return is_mine;
}

/* Who holds it lets go within a poll, and may need this core for that: to
 * sleep and be woken costs both more. False: as above. */
static bool wait_for_lock(struct chempi_lane *lane, int limit_ms)
{
    bool is_mine = false;

    atomic_fetch_add_explicit(&lane->wanted, 1, memory_order_relaxed);
    for (int i = 0; !is_mine && i < YIELDS_MAX; i++) {
        (void)sched_yield();
        is_mine = try_lock(lane);
    }
    if (!is_mine)
        is_mine = sleep_for_lock(lane, limit_ms);
    atomic_fetch_sub_explicit(&lane->wanted, 1, memory_order_relaxed);
    return is_mine;
}

static inline void lock(struct chempi_lane *lane)
{
    if (CHEMPI_UNLIKELY(!try_lock(lane)))
        (void)wait_for_lock(lane, -1);
}

bool chempi_lane_lock_within(struct chempi_lane *lane, int limit_ms)
{
    return try_lock(lane) || wait_for_lock(lane, limit_ms);
}

bool chempi_lane_try(struct chempi_lane *lane)
{
    return !lane->is_locking || try_lock(lane);
}

void chempi_lane_drop(struct chempi_lane *lane)
{
    atomic_store_explicit(&lane->holder, 0, memory_order_relaxed);
    atomic_store_explicit(&lane->is_held, 0, memory_order_release);
    atomic_signal_fence(memory_order_seq_cst); /* partner: sleep_for_lock() */
    if (CHEMPI_UNLIKELY(
            atomic_load_explicit(&lane->sleepers, memory_order_relaxed)))
        chempi_futex_wake(&lane->is_held);
}

void chempi_lane_release(struct chempi_lane *lane)
{
    const bool has_deferred = lane->has_deferred;

    lane->has_deferred = false;
    chempi_lane_drop(lane);
    if (CHEMPI_UNLIKELY(has_deferred))
        lane->run_deferred(lane);
}

/* ---- a lane ---- */

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
        lane->is_ordered = chempi_lane_register_barrier();
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

void chempi_lane_yield_slow(struct chempi_lane *lane)
{
    if (atomic_load_explicit(&lane->wanted, memory_order_relaxed) == 0)
        return;
    chempi_lane_pause(lane);
    (void)sched_yield();
    lock(lane);
}
