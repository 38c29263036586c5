/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The time limit of a job while there is none yet: as long as a daemon is
 * asked, which may stand still.
 *
 * Uses SIGALRM and the process's timer; for a process with one thread.
 */
#ifndef CHEMPI_CHEMPID_EARLY_H
#define CHEMPI_CHEMPID_EARLY_H

/* After so many seconds, less those that are spent, the process ends: with a
 * sentence, and the status of a time limit. 0 or less: never. What it has
 * started and not told of is to end with its descriptors. */
void chempi_early_limit(double seconds, double spent);

/* There is a job now, or nobody to ask. */
void chempi_early_over(void);

#endif
