/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Progress and waiting (architecture, section 6): poll the devices that have
 * work, spin as long as the machine has a core to spare, then sleep on the
 * wake word or in epoll until a peer or the kernel wakes the process.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_PROGRESS_PROGRESS_H
#define CHEMPI_LIBCHEMPI_DIDL_PROGRESS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/containers/list.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/where/wait_report.h"

/* True when the wait is over. Called under the lane lock; must be cheap, and
 * stay true when asked again. */
typedef bool chempi_progress_done_fn(void *arg);

/* Advance everything once; returns the number of events. Takes the lock. */
int chempi_progress_poll(void);

/*
 * Make progress until done(arg), sleeping when nothing happens. Whoever makes
 * done() true must either do so from this process's progress, or publish it
 * in shared memory and then call chempi_progress_rouse_local() for this rank.
 * Takes the lock itself; returns without it. 0, or an MPI error class when the
 * job is being torn down. Use for conditions in shared memory (node-local
 * collectives) as well as for requests. words(..., object) says what is waited
 * for (wait_report.h).
 */
int chempi_progress_wait_for(chempi_progress_done_fn *done, void *arg,
                             chempi_wait_report_fn *words, const void *object);
static inline int chempi_progress_wait(chempi_progress_done_fn *done, void *arg)
{
    return chempi_progress_wait_for(done, arg, NULL, NULL);
}

/* The same by who holds the lock, and does when it returns; not meanwhile. */
int chempi_progress_wait_locked(chempi_progress_done_fn *done, void *arg,
                                chempi_wait_report_fn *words,
                                const void *object);

/*
 * The same for what another lane does, or the first one, by who holds its lock.
 * done() is called by who has that lane's lock.
 */
int chempi_progress_wait_in_other(struct chempi_lane *lane,
                                  chempi_progress_done_fn *done, void *arg,
                                  chempi_wait_report_fn *words,
                                  const void *object);
static inline int chempi_progress_wait_in(struct chempi_lane *lane,
                                          chempi_progress_done_fn *done,
                                          void *arg,
                                          chempi_wait_report_fn *words,
                                          const void *object)
{
    return CHEMPI_LIKELY(chempi_lane_count == 1) || lane == &chempi_lane_main
               ? chempi_progress_wait_locked(done, arg, words, object)
               : chempi_progress_wait_in_other(lane, done, arg, words, object);
}

/* The same for what several lanes do (bit i: chempi_lanes[i]), without a
 * lock. done() is called under the first one's: it looks at atomic members, or
 * locks others by itself, which holds up whoever needs the first one. */
int chempi_progress_wait_among(uint32_t lanes, chempi_progress_done_fn *done,
                               void *arg, chempi_wait_report_fn *words,
                               const void *object);

/* chempi_progress_poll() by who waits for what lanes do, without a lock. */
int chempi_progress_poll_others(uint32_t lanes);
static inline int chempi_progress_poll_among(uint32_t lanes)
{
    return CHEMPI_LIKELY(lanes == 1) ? chempi_progress_poll()
                                     : chempi_progress_poll_others(lanes);
}
static inline int chempi_progress_poll_in(const struct chempi_lane *lane)
{
    return CHEMPI_LIKELY(lane == &chempi_lane_main)
               ? chempi_progress_poll()
               : chempi_progress_poll_others(1u << lane->number);
}

/* How many unsuccessful polls are worth while at the moment before the core
 * is given away (learned; 0 on a machine with more ranks than cores). */
static inline uint32_t chempi_progress_spins(void)
{
    return atomic_load_explicit(&chempi_ctx.spins, memory_order_relaxed);
}

/* Wake another local rank (by its local rank number) if it sleeps, after
 * work for it has been published in shared memory. */
static inline void chempi_progress_rouse_local(uint32_t local_rank)
{
    const struct chempi_services *s = &chempi_ctx.services;

    chempi_wake_peer(&s->wakes[local_rank], s->wake_fds[local_rank],
                     s->is_wake_registered);
}

/* The same for work that must not wait for the rank's next call: its agent is
 * woken, too (agent.h). */
static inline void chempi_progress_urge_local(uint32_t local_rank)
{
    const struct chempi_services *s = &chempi_ctx.services;

    chempi_wake_urge(&s->wakes[local_rank], s->wake_fds[local_rank],
                     s->is_wake_registered);
}

/* The same as the first for several: order once, then look at each. */
static inline void chempi_progress_order_looks(void)
{
    chempi_wake_order_looks(chempi_ctx.services.is_wake_registered);
}

static inline void chempi_progress_look_local(uint32_t local_rank)
{
    const struct chempi_services *s = &chempi_ctx.services;

    chempi_wake_look(&s->wakes[local_rank], s->wake_fds[local_rank]);
}

static inline void chempi_progress_look_urgently_local(uint32_t local_rank)
{
    const struct chempi_services *s = &chempi_ctx.services;

    chempi_wake_look_urgently(&s->wakes[local_rank], s->wake_fds[local_rank]);
}

/* Something completed: wake threads whose wait is over. Under the lock. */
void chempi_progress_notify(void);

/* Another thread of this process has made work for the one that sleeps in a
 * wait, if any. Under the lock. */
void chempi_progress_rouse_own(struct chempi_lane *lane);
static inline void chempi_progress_nudge_in(struct chempi_lane *lane)
{
    if (CHEMPI_UNLIKELY(lane->is_locking))
        chempi_progress_rouse_own(lane);
}
static inline void chempi_progress_nudge(void)
{
    chempi_progress_nudge_in(&chempi_lane_main);
}

/* Have a lane that was added tell the first one (lane.h, L9). */
void chempi_progress_open_lane(struct chempi_lane *lane);

/* Let go of a lane at the end of a call that has made work in it, and of one
 * that only posts (chempi_lane_unlock_posted()). */
static inline void chempi_progress_unlock(struct chempi_lane *lane)
{
    if (CHEMPI_UNLIKELY(lane->on_unlock)) {
        chempi_progress_nudge_in(lane);
        chempi_lane_unlock(lane);
    }
}
static inline void chempi_progress_unlock_posted(struct chempi_lane *lane)
{
    if (CHEMPI_UNLIKELY(lane->on_unlock)) {
        chempi_progress_nudge_in(lane);
        chempi_lane_unlock_posted(lane);
    }
}

/* Measure the machine, make the descriptors for sleeping; after services are
 * set up. 0 or -errno. And the reverse. */
int chempi_progress_init(void);
void chempi_progress_fini(void);

/* A tool's event waits to be told, or the supervisor for an answer; the next
 * wait or poll does it. From any thread. */
void chempi_progress_announce(void);

/* For the agent, under the lane lock: advance the devices once, and hooks that
 * are for it; without other hooks and news, which may run the user's functions.
 * Returns the number of events. */
int chempi_progress_turn(void);

/* If devices keep messages (lane.h, L6), have them leave. Under the lane lock.
 */
void chempi_progress_let_go(void);

/* Is there something to do that nobody will announce, at a device or for a hook
 * of the agent's? The devices are armed for sleep. Under the lane lock. */
bool chempi_progress_is_ready(void);

/* Does a thread poll, or will it when it has run a hook? Under the lock. */
bool chempi_progress_is_attended(void);

struct chempi_progress_stats {
    uint64_t sleeps;
    uint64_t yields;
    uint64_t spins; /* polls in a wait that found nothing */
};

/* In all lanes. Under the first one's lock. */
struct chempi_progress_stats chempi_progress_stats(void);

/*
 * A hook that every poll calls, for work that is nobody's device (collective
 * schedules); returns the number of events. Added and removed under the lane
 * lock; the hook runs under it, also when the process is about to sleep. Other
 * threads publish work for it and then call chempi_progress_rouse_local() for
 * this rank. A poll with no hooks pays one compare.
 */
struct chempi_progress_hook {
    struct chempi_list link;
    int (*poll)(struct chempi_progress_hook *hook);
    /* NULL: poll may run the user's functions or let go of the lock, and the
     * agent calls it not. Else: has it something to do that nobody will
     * announce? */
    bool (*is_ready)(struct chempi_progress_hook *hook);
};

void chempi_progress_add_hook(struct chempi_progress_hook *hook);
void chempi_progress_remove_hook(struct chempi_progress_hook *hook);

#endif
