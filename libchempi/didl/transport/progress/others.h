/* SPDX-License-Identifier: BSD-3-Clause */
/* What who holds the first lane's lock does for the other lanes (lane.h, L9 and
 * L10; progress.c, P7 to P10). */
#ifndef CHEMPI_LIBCHEMPI_DIDL_PROGRESS_OTHERS_H
#define CHEMPI_LIBCHEMPI_DIDL_PROGRESS_OTHERS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/containers/list.h"
#include "libchempi/didl/transport/lane.h"

struct chempi_comm;

/* A wait for what one lane does, that has joined (progress.c, P7). Only the
 * holder of that lane asks done(). */
struct chempi_others_wait {
    struct chempi_list link; /* in chempi_lane.waits */
    bool (*done)(void *arg);
    void *arg;
    _Atomic bool is_over;
};
bool chempi_others_is_over(void *wait); /* a chempi_progress_done_fn */

/* Holder of the lane: one more thread polls it in a wait of its own; so many
 * more waits have joined (UINT32_MAX: one less). */
void chempi_others_start_polling(struct chempi_lane *lane);
void chempi_others_join(struct chempi_lane *lane, uint32_t more);

/* Advance one once; returns the number of events. Its holder. */
int chempi_others_poll(struct chempi_lane *lane);

/* Is there something to do in it that nobody will announce? The devices are
 * armed for sleep. Its holder. */
bool chempi_others_is_ready(struct chempi_lane *lane);

/* Does a thread poll one of them in a wait of its own? */
bool chempi_others_are_polled(void);

/* Holder of the first lane: advance those that need it. Returns the number of
 * events. */
int chempi_others_poll_all(void);

/* The same: is there something to do, for the agent, in one that the first lane
 * owes for? if_used: what to say of one that another thread polls or has
 * locked. It looks by itself when it leaves, but may have done so already. */
bool chempi_others_are_ready(bool if_used);

/* The same: is there nothing to do in any, and nobody there? */
bool chempi_others_are_quiet(void);

/* Holder of the first lane and of this one, which it lets go of: run all that
 * is deferred there; and that only if there is some, or its debt is paid. */
void chempi_others_run_deferred(struct chempi_lane *lane);
void chempi_others_leave(struct chempi_lane *lane);

/* What releases communicators that other lanes have left. */
void chempi_others_on_gone(void (*release)(struct chempi_comm *comm));

#endif
