/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that is missing; see shortage.h. */
#define _GNU_SOURCE /* clock_gettime */
#include "libchempi/services/shortage.h"

#include "common/base/clock.h"

#define PAUSE_NS UINT64_C(1000000000) /* nobody has asked for so long */

const char chempi_shortage_left[] = "memory is missing";

bool chempi_shortage_may_wait(struct chempi_shortage *shortage)
{
    const uint64_t now_ns = chempi_clock_ns();

    if (shortage->since_ns == 0 || now_ns - shortage->refused_ns > PAUSE_NS)
        shortage->since_ns = now_ns; /* another one */
    shortage->refused_ns = now_ns;
    return now_ns - shortage->since_ns <= CHEMPI_SHORTAGE_PATIENCE_NS;
}
