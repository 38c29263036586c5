/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What happens to connections, for whoever wants to hear it (the tool
 * interface). Nobody listens at first; then nothing is noted.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_EVENT_H
#define CHEMPI_LIBCHEMPI_DIDL_EVENT_H

#include <stdbool.h>
#include <stdint.h>

enum chempi_event {
    CHEMPI_EVENT_RESOLVED, /* process, node, number of ways */
    CHEMPI_EVENT_LOST,     /* process, node, errno */
    CHEMPI_EVENT_COUNT
};

enum { CHEMPI_EVENT_ELEMENTS = 3 };

struct chempi_event_listener {
    /* Does it want this event? From any thread. */
    bool (*wants)(enum chempi_event event);
    /* Note it; from any thread. It is told by the next deliver(). */
    void (*raise)(enum chempi_event event,
                  const int32_t elements[CHEMPI_EVENT_ELEMENTS]);
    /* Tell what was noted; without any lock, may run user code. */
    void (*deliver)(void);
};

/* The listener from now on, to the end of the process. Any thread. */
void chempi_event_listen(const struct chempi_event_listener *listener);

bool chempi_event_is_wanted(enum chempi_event event);
void chempi_event_raise(enum chempi_event event,
                        const int32_t elements[CHEMPI_EVENT_ELEMENTS]);
void chempi_event_deliver(void);

#endif
