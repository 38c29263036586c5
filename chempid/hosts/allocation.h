/* SPDX-License-Identifier: BSD-3-Clause */
/* The nodes that a batch system has given to this process: Slurm's from its
 * variables, PBS's (and others' of that kind) from the file in PBS_NODEFILE. */
#ifndef CHEMPI_CHEMPID_ALLOCATION_H
#define CHEMPI_CHEMPID_ALLOCATION_H

#include <stdbool.h>

#include "chempid/hosts/hosts.h"

/* Add the nodes with their slots. 1; 0: there is no allocation; -errno with
 * words that name the variable. */
int chempi_allocation_read(struct chempi_hosts *hosts, struct chempi_pool *pool,
                           struct chempi_err *err);

/* Is it Slurm's, so that srun reaches its nodes? */
bool chempi_allocation_is_slurm(void);

/* Names as Slurm writes them, such as "a[00-03,7],b". -EINVAL with words,
 * -ENOMEM, -ENOBUFS. */
int chempi_allocation_names(struct chempi_hosts *hosts,
                            struct chempi_pool *pool, const char *list,
                            struct chempi_err *err);
/* Slots of these nodes as Slurm writes them, such as "4(x3),2"; nodes that it
 * leaves out keep theirs. -EINVAL with words. */
int chempi_allocation_slots(struct chempi_hosts *hosts, const char *list,
                            struct chempi_err *err);

#endif
