/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The watcher: a thread that waits for descriptors in place of a process that
 * can be woken by its wake word alone, since it has no event descriptor that
 * its neighbours could write to. There is one as soon as such a process opens a
 * device that has descriptors (foreign_device.h).
 *
 *   W1  it is armed by who is about to sleep, or leaves the lane to an agent
 *       that does; it waits once, rings as a peer would, and is not armed any
 *       more. So it does not turn while nobody sleeps
 *   W2  who sleeps publishes that before it arms; the watcher clears `armed`
 *       before it looks who sleeps. So either it finds the sleeper, or the
 *       sleeper finds it not armed, and calls it
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_PROGRESS_WATCHER_H
#define CHEMPI_LIBCHEMPI_DIDL_PROGRESS_WATCHER_H

#include <stdatomic.h>
#include <stdbool.h>

#include "common/base/err.h"
#include "common/wake/wake.h"

extern _Atomic bool chempi_watcher_up; /* watcher.c writes it */

/* Is there one? */
static inline bool chempi_watcher_is_up(void)
{
    return atomic_load_explicit(&chempi_watcher_up, memory_order_acquire);
}

/* Descriptors are waited for from now on: start it where one is needed. Who
 * sleeps otherwise is to be roused. 0 or -errno with words. Holder of the first
 * lane. */
int chempi_watcher_start(struct chempi_err *err);
void chempi_watcher_stop(void);

/* W1, after the sleep was published; nothing if there is none. Any thread. */
void chempi_watcher_arm(void);

/* chempi_wake_sleep() in its presence, or without one; then what is ready has
 * been collected. Without the lane lock. */
void chempi_watcher_sleep(struct chempi_wake *wake, int timeout_ms);

#endif
