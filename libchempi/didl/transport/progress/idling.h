/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a wait does while nothing comes, and what it learns from that: how often
 * to poll before the core is given away, and when to sleep (progress.c, P4 and
 * P5). One learner for all waits of the process, under the first lane's lock.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_PROGRESS_IDLING_H
#define CHEMPI_LIBCHEMPI_DIDL_PROGRESS_IDLING_H

#include <stdbool.h>
#include <stdint.h>

#include "libchempi/didl/base/setting.h"
#include "libchempi/didl/transport/progress/progress.h"

/* One unsuccessful stretch of polling; all zero at first. */
struct chempi_idling {
    uint32_t polls;
    uint32_t yields;
    uint32_t switches; /* yields in which somebody else ran on this core */
    bool has_asked;    /* whether its own core is wanted */
    uint64_t since_ns; /* of the first yield */
};

/* is_roomy: each process of the job has a core. */
void chempi_idling_init(bool is_roomy);

/* At the end of a wait: if it was over before it gave the core away, more polls
 * are worth while. */
void chempi_idling_spin_longer(void);
static inline void chempi_idling_conclude(const struct chempi_idling *state)
{
    if (state->polls && !state->yields &&
        chempi_progress_spins() <
            (uint32_t)chempi_setting(CHEMPI_SET_PROGRESS_SPINS_MAX))
        chempi_idling_spin_longer();
}

/* The core was given away for so long: learn from it. */
void chempi_idling_judge(struct chempi_idling *state, uint64_t before_ns,
                         uint64_t after_ns);

/* Give the core away once, unless it is this process's own or wanted by a
 * stranger; without the lock meanwhile. */
void chempi_idling_yield(struct chempi_idling *state);

/* Has the core been given away for long enough? Waking from sleep is dear when
 * nobody wants the core. */
bool chempi_idling_is_time_to_sleep(const struct chempi_idling *state);

/* Nothing came while this process kept its own core. Another launcher's rank
 * or a program that somebody has bound may wait for it there: then the core is
 * not its own any more. Without the lock meanwhile. */
void chempi_idling_ask_own_core(struct chempi_idling *state);

/* Times that the core was given away by the two above. */
uint64_t chempi_idling_yield_count(void);

#endif
