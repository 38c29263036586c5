/* SPDX-License-Identifier: BSD-3-Clause */
/* From those who raise events to the one who listens; see event.h. */
#include "libchempi/didl/transport/event.h"

#include <stdatomic.h>
#include <stddef.h>

static const struct chempi_event_listener *_Atomic listener;

static const struct chempi_event_listener *get(void)
{
    return atomic_load_explicit(&listener, memory_order_acquire);
}

void chempi_event_listen(const struct chempi_event_listener *who)
{
    atomic_store_explicit(&listener, who, memory_order_release);
}

bool chempi_event_is_wanted(enum chempi_event event)
{
    const struct chempi_event_listener *who = get();

    return who && who->wants(event);
}

void chempi_event_raise(enum chempi_event event,
                        const int32_t elements[CHEMPI_EVENT_ELEMENTS])
{
    const struct chempi_event_listener *who = get();

    if (who && who->wants(event))
        who->raise(event, elements);
}

void chempi_event_deliver(void)
{
    const struct chempi_event_listener *who = get();

    if (who)
        who->deliver();
}
