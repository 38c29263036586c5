/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The numbers of ranks that "chempirun --soft" permits (MPI 5.0, section
 * 11.8.4): triplets as of Fortran 90 with commas between them; "a" is itself,
 * "a:b" all from a to b, "a:b:c" every c-th of these, downwards with a
 * negative c. Numbers below 1 are ignored, so that "0:N" means "up to N".
 */
#ifndef CHEMPI_CHEMPID_PROCESS_COUNT_RANGE_H
#define CHEMPI_CHEMPID_PROCESS_COUNT_RANGE_H

#include <stdint.h>

/* NULL, or what is wrong with a list. */
const char *chempi_count_range_check(const char *list);

/* Of a good list: the largest permitted number that is not above max; the
 * smallest one of all. 0: there is none. */
uint32_t chempi_count_range_largest(const char *list, uint32_t max);
uint32_t chempi_count_range_smallest(const char *list);

#endif
