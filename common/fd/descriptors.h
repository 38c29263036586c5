/* SPDX-License-Identifier: BSD-3-Clause */
/* How many descriptors this process may have, and who gets the last of them. */
#ifndef CHEMPI_COMMON_FD_DESCRIPTORS_H
#define CHEMPI_COMMON_FD_DESCRIPTORS_H

#include <stdbool.h>
#include <stdint.h>

/* The limit as it is now; 0: it cannot be had. */
uint64_t chempi_descriptors_limit(void);

/* Lift the soft limit to the hard one; false: it is there, or cannot be. */
bool chempi_descriptors_lift(void);

/*
 * May a stranger have this descriptor, which was just opened and so is the
 * lowest that was free? What the process may need for itself is kept back: 64,
 * and 4 for each process of its own job, but no more than a quarter of the
 * limit. That is lifted first.
 */
bool chempi_descriptors_are_spare(int fd, uint32_t proc_count);

#endif
