/* SPDX-License-Identifier: BSD-3-Clause */
/* Places of messages that were sent; see sent_sites.h. */
#include "libchempi/didl/transport/where/sent_sites.h"

#include <stdlib.h>

#define KEPT 16384u /* messages, a power of two */

/* Those that share an entry overwrite each other. */
struct entry {
    uint32_t proc;
    uint32_t serial;
    uint16_t site; /* 0: unused */
};

static struct entry *entries; /* [KEPT]; NULL: nothing was noted */

/* Messages in a row to one process have entries in a row. */
static struct entry *entry_of(uint32_t proc, uint32_t serial)
{
    return &entries[(proc * 2654435761u + serial) & (KEPT - 1)];
}

void chempi_sent_sites_note(uint32_t proc, uint32_t serial, uint16_t site)
{
    if (!entries)
        entries = calloc(KEPT, sizeof(*entries));
    if (entries)
        *entry_of(proc, serial) = (struct entry){proc, serial, site};
}

uint16_t chempi_sent_sites_find(uint32_t proc, uint32_t serial)
{
    const struct entry *e = entries ? entry_of(proc, serial) : NULL;

    return e && e->proc == proc && e->serial == serial ? e->site : 0;
}
