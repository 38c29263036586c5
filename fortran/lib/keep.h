/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What must outlive a call until its request is complete: copies of sections,
 * converted arrays of handles, a communicator that C writes late. It is given
 * back when a procedure of this library finds the request complete; a request
 * that C code completes keeps its memory (and does not fill its section).
 */
#ifndef CHEMPI_FORTRAN_KEEP_H
#define CHEMPI_FORTRAN_KEEP_H

#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "common/base/compiler.h"

struct chempi_held;

/* Requests' kept things; 0 makes every call below unnecessary. */
extern _Atomic long chempi_keep_count;

static inline bool chempi_keep_any(void)
{
    return CHEMPI_UNLIKELY(
        atomic_load_explicit(&chempi_keep_count, memory_order_relaxed) != 0);
}

/*
 * Keep for a request (its Fortran handle): a copied section; memory for
 * free(); a cell whose communicator's handle goes to *to. All belong to the
 * table afterwards. If memory for the note is missing, the thing is leaked,
 * which is the only safe thing to do.
 */
void chempi_keep_section(int request, struct chempi_held *held,
                         bool is_persistent);
void chempi_keep_memory(int request, void *memory, bool is_persistent);
void chempi_keep_comm(int request, MPI_Comm *cell, int *to);

/* `request` is about to be started again: refresh its copies. */
void chempi_keep_start(int request);

/*
 * A call found `request` complete, and has it as `after` now: fill sections
 * and, when the request is gone (MPI_REQUEST_NULL), give everything back.
 */
void chempi_keep_done(int request, MPI_Request after);

/* The request was freed by its owner; an active one keeps its things for
 * ever, because the operation may still use them. */
void chempi_keep_freed(int request);

/*
 * The same for the requests of a wait or test: which[0..n_which-1] are the
 * indices (from 0) of those that are complete, or all n are when which is
 * NULL.
 */
void chempi_keep_settle(const int *before, const MPI_Request *after, int n,
                        const int *which, int n_which);

#endif
