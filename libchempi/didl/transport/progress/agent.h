/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The agent: a thread that makes progress while the application is away and
 * owes it (lane.h, L4). doc/agent.md has the protocol; a model of it is
 * checked by tests/unit/transport/agent_model.py.
 *
 *   -   it exists from the first time that the application leaves with
 *       something owed, until the library is no longer in use
 *   A2  without the lane's lock it is in the lane only between storing
 *       lane->has_agent and clearing it, and only if it saw AWAY_OWED and no
 *       visit in between, after a barrier on all threads of the process
 *   A3  the application stores AWAKE, or is_visited (lane.h, L7), and waits for
 *       has_agent to be false, before it enters a lane that is lent
 *   A4  URGENT is cleared only by who is in the lane and polls afterwards
 *   A5  with the lane's lock (MPI_THREAD_MULTIPLE) the agent takes it, like
 *       any other thread; AWAY_OWED then says that nobody polls
 *   -   it runs no function of the user's
 *   A7  watches is true while it sleeps in epoll_wait, from before its bit in
 *       the bell is set. A call clears the bit and makes a descriptor readable;
 *       the application may read that first, and the agent sleeps on, without
 *       a bit. So who leaves looks for that, and calls again
 *   A8  while nothing has been owed for long, the agent is off duty: others
 * find has_agent 0 in the wake page and do not ring. Leaving with something
 *       owed puts it on duty, orders all producers, and polls: who saw 0 has
 *       published before that
 *   A9  other lanes that owe (lane.h, L10) are dry when they are found so under
 *       their locks. Where somebody is in one, URGENT is set again: who leaves
 *       it may have looked before the work came that rang
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_PROGRESS_AGENT_H
#define CHEMPI_LIBCHEMPI_DIDL_PROGRESS_AGENT_H

#include <stdbool.h>
#include <stdint.h>

#include "libchempi/didl/transport/lane.h"

/* Offer the lane to an agent, unless a setting says no; after progress. */
void chempi_agent_init(void);

/* Is there an agent, or one as soon as something is owed? Any thread. */
bool chempi_agent_is_offered(void);

/* End the agent, if there is one; another may be born later. By a thread that
 * does not hold the lane's lock, while no other one is in MPI. */
void chempi_agent_stop(void);

/* The same, and none is born until the next chempi_agent_init(). */
void chempi_agent_fini(void);

/* An operation begins of those for which others ring; of many in turn with
 * nothing owed the agent goes off duty (A8). Holder of the lane. */
void chempi_agent_count_begun(void);
static inline void chempi_agent_note_begun(void)
{
    if (CHEMPI_UNLIKELY(chempi_lane_main.is_on_duty))
        chempi_agent_count_begun();
}

/* Since the process began. */
struct chempi_agent_stats {
    uint64_t births;
    uint64_t wakes;  /* times that it was woken */
    uint64_t turns;  /* polls in which something happened */
    uint64_t pauses; /* between being woken and going in, or not */
};

/* Any thread. */
struct chempi_agent_stats chempi_agent_stats(void);

#endif
