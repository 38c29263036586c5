/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What must outlive a call until its request is complete: copies of sections,
 * converted arrays of handles, a communicator that C writes late. It is given
 * back when a procedure of this library finds the request complete; a request
 * that C code completes keeps its memory (and does not fill its section).
 *
 * Each such thing begins with an item, made before C is called: once the
 * operation runs, nothing is allocated for it, so that nothing can be lost.
 */
#ifndef CHEMPI_FORTRAN_KEEP_H
#define CHEMPI_FORTRAN_KEEP_H

#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/base/compiler.h"

struct chempi_keep_item;

/* What may be done to a thing; none of it fails. */
struct chempi_keep_verbs {
    void (*fetch)(struct chempi_keep_item *item);  /* before a start */
    void (*finish)(struct chempi_keep_item *item); /* after completion */
    void (*drop)(struct chempi_keep_item *item);   /* give back its memory */
};

struct chempi_keep_item {
    const struct chempi_keep_verbs *verbs;
    struct chempi_keep_item *next; /* from here on keep.c's own */
    const int *claimer;
    int request;
    bool is_active;
};

/* Requests' kept things; 0 makes every call below unnecessary. */
extern _Atomic long chempi_keep_count;

static inline bool chempi_keep_any(void)
{
    return CHEMPI_UNLIKELY(
        atomic_load_explicit(&chempi_keep_count, memory_order_relaxed) != 0);
}

/* Keep for a request (its Fortran handle) a thing, whose verbs are set; if it
 * is complete, finish and drop the thing instead. */
void chempi_keep_add(int request, struct chempi_keep_item *item,
                     bool is_persistent);

/*
 * Memory that a request may need: `size` bytes, NULL when there are none;
 * afterwards chempi_keep_memory() or chempi_keep_room_free() (NULL: nothing).
 */
void *chempi_keep_room(size_t size);
void chempi_keep_memory(int request, void *room, bool is_persistent);
void chempi_keep_room_free(void *room);

/*
 * A cell that C writes a communicator to, whose handle goes to *to at last;
 * NULL when there is no memory. Afterwards one of the other two.
 */
MPI_Comm *chempi_keep_new_comm(int *to);
void chempi_keep_comm(int request, MPI_Comm *cell);
void chempi_keep_comm_free(MPI_Comm *cell);

/* `request` is about to be started again: refresh its copies. */
void chempi_keep_start(int request);

/*
 * Around a call of C that may complete or free requests[0..n-1]: other threads'
 * new requests may have these handles before it has returned, so that what
 * belongs to the old ones is claimed first. `requests` is what claims: nobody
 * else may wait for the same ones meanwhile.
 */
void chempi_keep_claim(const int *requests, int n);
void chempi_keep_release(const int *requests, int n);

/* In between: which[0..n_which-1] are the indices (from 0) of those that the
 * call found complete, or all n are when which is NULL; after[] is what they
 * are now. Fill sections and, where a request is gone (MPI_REQUEST_NULL), give
 * everything back. */
void chempi_keep_settle(const int *requests, const MPI_Request *after, int n,
                        const int *which, int n_which);

/* In between: *request was freed by its owner; an active one keeps its things
 * for ever, because the operation may still use them. */
void chempi_keep_freed(const int *request);

/* A new request has this handle: what stands there is of one that C code has
 * completed. */
void chempi_keep_forget(int request);

#endif
