/* SPDX-License-Identifier: BSD-3-Clause */
/* What the launcher's event loop has in hand (run.h), for the files that it is
 * made of. */
#ifndef CHEMPI_CHEMPID_RUN_STATE_H
#define CHEMPI_CHEMPID_RUN_STATE_H

#include <ev.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chempid/job/spec.h"
#include "chempid/launcher/console.h"
#include "chempid/launcher/gateway_failures.h"
#include "chempid/launcher/verdict.h"
#include "chempid/options/options.h"
#include "chempid/process/signals.h"
#include "chempid/remote/branches.h"
#include "chempid/tree/hub.h"
#include "chempid/where/deadlock.h"
#include "chempid/where/wait_query.h"
#include "chempid/worlds/worlds.h"
#include "common/base/err.h"
#include "common/control/wire.h"

struct run {
    struct ev_loop *loop;
    const struct chempi_options *opt;
    const struct chempi_spec *spec;
    struct chempi_hub hub;
    struct chempi_console console;
    struct chempi_verdict verdict;
    struct chempi_gateway_failures failures;
    struct chempi_branches branches;
    struct chempi_writer stats;
    struct chempi_signals signals;
    ev_timer limit; /* --timeout */
    ev_timer grace;
    ev_timer quiet; /* since the last sign of a job that ends (U5) */
    struct chempi_wait_query query;  /* where ranks wait */
    struct chempi_deadlock deadlock; /* open with --check */
    struct chempi_worlds worlds;     /* what ranks ask for */
    bool is_late; /* the job is to be ended when they have told */
    char host[CHEMPI_NODE_NAME_MAX]; /* of all ranks; "": each node its own */
    bool has_killed;                 /* U2 */
    bool has_left;   /* somebody has insisted: not even for readers is waited */
    bool is_taken;   /* slots that were to be free, before it has begun (U6) */
    bool has_begun;  /* all nodes have their part */
    bool is_ordered; /* the first launcher ends this world, and says why */
    sigset_t blocked_before;
    bool has_absent;     /* some rank ended without initializing; all know */
    uint32_t interrupts; /* by signals that end the job; 3: or more */
    bool has_concluded;  /* what there is to say of its end is written, or
                            queued; then its exit status: */
    int status;
    struct chempi_err taken; /* U6 */
};

#endif
