/* SPDX-License-Identifier: BSD-3-Clause */
/* What the programs in mistakes.c and windows.c share. */
#ifndef MISTAKES_H
#define MISTAKES_H

#include <mpi.h>

#define world MPI_COMM_WORLD

extern int rank;
extern int size;

/* Longer than it takes to find a deadlock. */
void compute(void);

/* ---- windows.c ---- */

void put_against_fence(void);
void add_against_post(void);
void unchecked_start(void);
void store_before_fence(void);
void store_before_post(void);
void differing_fences(void);
void fence_and_free(void);
void differing_sizes(void);
void differing_accumulates(void);
void add_of_newest(void);
void add_of_another(void);
void forgotten_promise(void);
void exclusive_turns(void);
void adding_threads(void);
void queried_memory(void);
void two_windows(void);
void changed_promise(void);
void other_elements(void);
void kept_promises(void);

#endif
