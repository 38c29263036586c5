/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the launcher says of the processors of this host: whether each process
 * of the job has one, and which ones this process was bound to without
 * anybody's asking for it (chempirun(1), --bind).
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_LOCALITY_AFFINITY_H
#define CHEMPI_LIBCHEMPI_DIDL_LOCALITY_AFFINITY_H

#include <stdbool.h>
#include <stdint.h>

struct chempi_cpus;

/* Read the environment; `procs` are the processes of the job, which count as
 * those of this host where it says nothing. */
void chempi_affinity_init(uint32_t procs);

/* Does each process of the job on this host have a processor? Where the ranks
 * are bound, all that they are bound to are counted. */
bool chempi_affinity_is_roomy(void);

/* Processors of this host that the job's processes may run on, as far as is
 * known; at least one. */
uint32_t chempi_affinity_cores(void);

/* Processors of this host for each process on it, as far as is known; 0: less
 * than one. */
uint32_t chempi_affinity_cores_each(void);

/* Has this process processors of its own, and no thread but one? No rank was
 * bound to them when the job began, and no job gets them by default while it
 * runs; one that asks for them (--bind core) does, and whoever is not bound
 * may run on them. */
bool chempi_affinity_is_own(void);

/* No processor is this process's own any more: threads are announced (the level
 * is above MPI_THREAD_SINGLE), which may want them all, or others run on its
 * own. If it was bound to one, its threads shall run where the job may, except
 * those that have chosen others by themselves. Idempotent. */
void chempi_affinity_widen(void);

/* Let the calling thread run on another of the processors that it may run on,
 * if there is one; it may come back later. */
void chempi_affinity_part(void);

/* Let the calling thread, which may run on these, run on one of them; it may
 * leave it later. False: it may not be moved. */
bool chempi_affinity_go(const struct chempi_cpus *may, uint32_t cpu);

/* A thread of the library's own: let it run wherever the job may on this host,
 * though its process has a processor of its own. */
void chempi_affinity_free_thread(void);

#endif
