/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the launcher says of the processors of this host: whether each process
 * of the job has a core, and which ones this process was bound to without
 * anybody's asking for it (chempirun(1), --bind).
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_AFFINITY_H
#define CHEMPI_LIBCHEMPI_DIDL_AFFINITY_H

#include <stdbool.h>
#include <stdint.h>

/* Read the environment; `procs` are the processes of this node, which count
 * where it says nothing. */
void chempi_affinity_init(uint32_t procs);

/* Does each process of the job on this host have a processor? */
bool chempi_affinity_is_roomy(void);

/* Has this process processors that no other of any job is bound to? */
bool chempi_affinity_is_own(void);

/* Threads are announced (the level is above MPI_THREAD_SINGLE): all of this
 * process shall run where the job may, unless it has several processors, or
 * has chosen others by itself. Idempotent. */
void chempi_affinity_widen(void);

#endif
