/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Locking. A lane has its own queues, lock and device endpoints; every
 * communicator belongs to one. There is one lane in this version, but nothing
 * outside lane.[ch], progress and conn may assume that.
 *
 * The lock costs one predicted branch unless MPI_THREAD_MULTIPLE was asked
 * for. It is never held while sleeping and never while user code (attribute
 * callbacks, user reduction functions, error handlers) runs.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_LANE_H
#define CHEMPI_LIBCHEMPI_DIDL_LANE_H

#include <pthread.h>
#include <stdbool.h>

#include "common/base/compiler.h"

struct chempi_lane {
    pthread_mutex_t lock;
    bool is_locking; /* set before threads can exist, then constant */
};

extern struct chempi_lane chempi_lane_main;

static inline void chempi_lane_lock(struct chempi_lane *lane)
{
    if (CHEMPI_UNLIKELY(lane->is_locking))
        (void)pthread_mutex_lock(&lane->lock);
}

static inline void chempi_lane_unlock(struct chempi_lane *lane)
{
    if (CHEMPI_UNLIKELY(lane->is_locking))
        (void)pthread_mutex_unlock(&lane->lock);
}

#endif
