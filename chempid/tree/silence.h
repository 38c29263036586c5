/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long a peer has been silent, as far as this process can tell.
 *
 * The process looks at all of its peers once per period. What counts is not
 * the time that has passed, but the part of it in which this process has run:
 *
 *   S1  a look adds no more than a period to a silence, however late it comes:
 *       who is starved of processors takes longer to blame others, not for ever
 *   S2  after an absence (more than CHEMPI_LOOKS_AWAY periods without a look:
 *       stopped, suspended) a peer begins anew, once per silence: it may have
 *       been away for the same reason, and has not run yet
 *   -   only a steady clock counts; whoever sets the time of day blames nobody
 *
 * Times are in nanoseconds of a clock that the caller reads. Not thread-safe.
 */
#ifndef CHEMPI_CHEMPID_SILENCE_H
#define CHEMPI_CHEMPID_SILENCE_H

#include <stdbool.h>
#include <stdint.h>

#define CHEMPI_LOOKS_AWAY 2 /* periods */

/* Of this process at all its peers. */
struct chempi_looks {
    uint64_t period_ns;
    uint64_t last_ns;
    uint64_t step_ns; /* what the last look adds to a silence (S1) */
    bool was_away;    /* before it */
};

/* Of one peer; zero when it has been heard. */
struct chempi_silence {
    uint64_t ns;
    bool is_forgiven; /* S2 */
};

/* The first look is due in a period. */
void chempi_looks_begin(struct chempi_looks *looks, uint64_t period_ns,
                        uint64_t now_ns);
/* A look begins. */
void chempi_looks_next(struct chempi_looks *looks, uint64_t now_ns);

/* In this look the peer was found silent since the one before. Returns whether
 * it has been for limit_ns, to half a period. */
bool chempi_silence_lasts(struct chempi_silence *silence,
                          const struct chempi_looks *looks, uint64_t limit_ns);

#endif
