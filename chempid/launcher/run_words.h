/* SPDX-License-Identifier: BSD-3-Clause */
/* What the launcher says of a job on standard error, and at its end. */
#ifndef CHEMPI_CHEMPID_RUN_WORDS_H
#define CHEMPI_CHEMPID_RUN_WORDS_H

#include "chempid/launcher/run_state.h"

/* "chempirun: ...", where no loop runs: it waits for whoever reads it. */
void chempi_run_say(const char *text);
/* The same while one does: nothing waits for the reader. */
void chempi_run_tell(struct run *r, const char *text);
/* Nothing of the job is left (U1): its exit status, statistics, and why it has
 * ended, to whoever is to know. */
void chempi_run_conclude(struct run *r);

#endif
