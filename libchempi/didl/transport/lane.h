/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Locking. A lane has its own queues, lock and device endpoints; every
 * communicator belongs to one. There is one lane in this version, but nothing
 * outside lane.[ch], progress and conn may assume that.
 *
 * The lock costs one predicted branch unless MPI_THREAD_MULTIPLE was asked
 * for. It is never held while sleeping and never while user code (attribute
 * callbacks, user reduction functions, error handlers) runs.
 *
 *   L1  is_locking changes only while no other thread can be in MPI
 *   L2  wanted counts threads that are blocked in lock; a thread that polls
 *       in a loop lets go of the lock whenever it is not 0
 *   L3  holder is the thread that has locked; 0 while the lock is free, and at
 *       the end of a wait for the lock. Only its own thread can find itself
 *       there
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_LANE_H
#define CHEMPI_LIBCHEMPI_DIDL_LANE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/compiler.h"

struct chempi_lane {
    pthread_mutex_t lock;
    _Atomic uint32_t wanted;
    _Atomic pthread_t holder; /* L3 */
    bool is_locking;
};

extern struct chempi_lane chempi_lane_main;

void chempi_lane_lock_slow(struct chempi_lane *lane);

static inline void chempi_lane_lock(struct chempi_lane *lane)
{
    if (CHEMPI_UNLIKELY(lane->is_locking))
        chempi_lane_lock_slow(lane);
}

static inline void chempi_lane_unlock(struct chempi_lane *lane)
{
    if (CHEMPI_UNLIKELY(lane->is_locking)) {
        atomic_store_explicit(&lane->holder, 0, memory_order_relaxed);
        (void)pthread_mutex_unlock(&lane->lock);
    }
}

/* Has the calling thread locked it? */
bool chempi_lane_is_mine(struct chempi_lane *lane);

/* Holder of the lock: sleep until the condition is signalled. */
void chempi_lane_sleep(struct chempi_lane *lane, pthread_cond_t *cond);

/* Holder of the lock: let others in if they want to. */
void chempi_lane_yield(struct chempi_lane *lane);

#endif
