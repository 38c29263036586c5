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
    if (CHEMPI_UNLIKELY(lane->is_locking))
        (void)pthread_mutex_unlock(&lane->lock);
}

/* Holder of the lock: let others in if they want to. */
void chempi_lane_yield(struct chempi_lane *lane);

#endif
