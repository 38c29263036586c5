/* SPDX-License-Identifier: BSD-3-Clause */
/* How long a peer has been silent; see silence.h. */
#include "chempid/tree/silence.h"

void chempi_looks_begin(struct chempi_looks *looks, uint64_t period_ns,
                        uint64_t now_ns)
{
    *looks = (struct chempi_looks){.period_ns = period_ns, .last_ns = now_ns};
}

void chempi_looks_next(struct chempi_looks *looks, uint64_t now_ns)
{
    const uint64_t gap = now_ns - looks->last_ns;

    looks->step_ns = gap < looks->period_ns ? gap : looks->period_ns;
    looks->was_away = gap > CHEMPI_LOOKS_AWAY * looks->period_ns;
    looks->last_ns = now_ns;
}

bool chempi_silence_lasts(struct chempi_silence *silence,
                          const struct chempi_looks *looks, uint64_t limit_ns)
{
    if (looks->was_away && !silence->is_forgiven)
        *silence = (struct chempi_silence){.is_forgiven = true};
    else
        silence->ns += looks->step_ns;
    return silence->ns + looks->period_ns / 2 >= limit_ns;
}
