/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The interface by which debuggers find the ranks of a job (MPIR Process
 * Acquisition Interface, version 1.0): they read MPIR_proctable of the
 * launcher, to which they attach at any time, or under which they start it.
 *
 * Of a job that is started under a debugger (MPIR_being_debugged is set by
 * then) the ranks are held in MPI_Init until MPIR_Breakpoint has returned.
 */
#ifndef CHEMPI_CHEMPID_MPIR_H
#define CHEMPI_CHEMPID_MPIR_H

#include <stdbool.h>
#include <stdint.h>

#include "chempid/job/spec.h"
#include "common/control/wire.h"

/* Is this launcher run by a debugger? */
bool chempi_mpir_is_debugged(void);

/* PIDS of a node: note the ranks' processes. What is malformed is ignored.
 * host: where all ranks are; NULL: their nodes' names are hosts'. */
void chempi_mpir_take(const struct chempi_spec *spec, const char *host,
                      struct chempi_reader *r);
/* All ranks run: tell the debugger, if there is one. */
void chempi_mpir_start(const struct chempi_spec *spec);
/* The job ends since this has happened; its ranks are still there. */
void chempi_mpir_abort(const char *why);
void chempi_mpir_fini(void);

#endif
