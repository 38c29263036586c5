/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that is missing, and may be there again soon: whoever needs it for
 * what has come or is to be sent leaves that where it is and asks again in a
 * later progress(), before which the process does not sleep. It is an error
 * when the shortage has lasted for too long.
 */
#ifndef CHEMPI_LIBCHEMPI_SERVICES_SHORTAGE_H
#define CHEMPI_LIBCHEMPI_SERVICES_SHORTAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/compiler.h"

#define CHEMPI_SHORTAGE_PATIENCE_NS UINT64_C(10000000000)

/* What functions that say why a peer breaks the rules (NULL: it does not) say
 * of what stays where it is. */
extern const char chempi_shortage_left[];

struct chempi_shortage {
    uint64_t since_ns;   /* 0: there is memory */
    uint64_t refused_ns; /* when there was none last */
};

/* There is none. True: wait for it; false: that has been in vain for
 * CHEMPI_SHORTAGE_PATIENCE_NS. A shortage has ended, too, when nobody has asked
 * for a while. */
bool chempi_shortage_may_wait(struct chempi_shortage *shortage);

/* There is some. */
static inline void chempi_shortage_end(struct chempi_shortage *shortage)
{
    if (CHEMPI_UNLIKELY(shortage->since_ns != 0))
        shortage->since_ns = 0;
}

/* There was none when last asked. */
static inline bool chempi_shortage_is(const struct chempi_shortage *shortage)
{
    return shortage->since_ns != 0;
}

#endif
