/* SPDX-License-Identifier: BSD-3-Clause */
/* The one mutable context of the process: what MPI_Init set up. */
#ifndef CHEMPI_LIBCHEMPI_DIDL_CTX_H
#define CHEMPI_LIBCHEMPI_DIDL_CTX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/control/client.h"
#include "libchempi/ddi.h"

enum chempi_phase {
    CHEMPI_PHASE_BEFORE, /* not used yet, or no session is left */
    CHEMPI_PHASE_STARTING,
    CHEMPI_PHASE_UP,
    CHEMPI_PHASE_FINALIZING,
    CHEMPI_PHASE_AFTER
};

struct chempi_entry;

struct chempi_ctx {
    _Atomic int phase; /* enum chempi_phase: is the library in use, by the
                          world model or by a session? */
    _Atomic int world; /* enum chempi_phase: the world model alone */
    int thread_level;  /* MPI_THREAD_* that MPI_Init_thread provided */
    const struct chempi_job *job; /* a world of one has a made-up one */
    /* How this process was started (control/entry.h); NULL before that is
     * known, and when the launcher is lost. */
    const struct chempi_entry *entry;
    struct chempi_services services;
    _Atomic uint32_t spins;   /* see chempi_progress_spins() */
    _Atomic uint64_t missing; /* see chempi_conn_missing_count() */
};

extern struct chempi_ctx chempi_ctx;

/* For the API's checks: MPI is usable now. */
static inline bool chempi_ctx_is_up(void)
{
    return CHEMPI_LIKELY(
        atomic_load_explicit(&chempi_ctx.phase, memory_order_acquire) ==
        CHEMPI_PHASE_UP);
}

/* The process is one of the job, and runs on this node: those of other worlds
 * are never here, for no memory is shared with them. */
static inline bool chempi_ctx_is_here(uint32_t proc)
{
    const struct chempi_services *s = &chempi_ctx.services;

    return CHEMPI_LIKELY(proc < s->proc_count) &&
           s->node_of_proc[proc] == s->node;
}

/* Between MPI_Init and MPI_Finalize. */
static inline bool chempi_ctx_has_world(void)
{
    return atomic_load_explicit(&chempi_ctx.world, memory_order_acquire) ==
           CHEMPI_PHASE_UP;
}

#endif
