/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A memory that runs out: the library under test takes what it needs through
 * chempi_sys, and from some piece on gets nothing. The library's own threads
 * take memory, too, so the counts are atomic, and the functions are put in
 * place before MPI_Init and stay there.
 */
#ifndef CHEMPI_TESTS_MPI_INSIDE_STARVE_H
#define CHEMPI_TESTS_MPI_INSIDE_STARVE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/sys.h"

/* What counts as a piece: without the small ones that devices need for what
 * arrives a job ends. */
struct starve_sizes {
    size_t least; /* this many bytes or more */
    size_t also;  /* or exactly this many; 0: no others */
};

/* Before MPI_Init: malloc, calloc and realloc go through this file. The caller
 * may change what else `starve_sys` holds, also before MPI_Init. */
void starve_start(struct starve_sizes sizes);
extern struct chempi_sys starve_sys;

/* From now on `pieces` are given, then none: as many are refused, only the next
 * one, or all until starve_end(). */
void starve_some(int pieces, int count);
void starve_one(int pieces);
void starve_all(int pieces);
void starve_end(void);

/* What has waited for memory has waited for no time: it may not be long that
 * others take, where these are slow. */
void starve_be_patient(void);

/* How many have been refused since this was last asked, and how many of any
 * size have been given. */
int starve_refused(void);
int starve_given(void);

#endif
