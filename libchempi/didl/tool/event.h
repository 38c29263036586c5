/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events (MPI 5.0, section 15.3.8). They are raised under the lane lock, put
 * into a bounded queue, and told to the user's callbacks from the next call
 * that makes progress, without any lock.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_TOOL_EVENT_H
#define CHEMPI_LIBCHEMPI_DIDL_TOOL_EVENT_H

#include <stdbool.h>
#include <stdint.h>

enum chempi_tool_event {
    CHEMPI_EVENT_RESOLVED, /* process, node, number of ways */
    CHEMPI_EVENT_LOST,     /* process, node, errno */
    CHEMPI_EVENT_COUNT
};

enum { CHEMPI_EVENT_ELEMENTS = 3 };

/* Under the lane lock. Costs a load when no tool wants the event. */
void chempi_tool_event_raise(enum chempi_tool_event event,
                             const int32_t elements[CHEMPI_EVENT_ELEMENTS]);

/* Has a tool registered for it? From any thread. */
bool chempi_tool_event_is_wanted(enum chempi_tool_event event);

/* Run the callbacks for what was raised; without any lock. */
void chempi_tool_event_deliver(void);

#endif
