/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Choice buffers given by C descriptors (type(*), dimension(..)). A contiguous
 * one costs a look at its dimensions. Of a section with gaps, a buffer with
 * one count and one type becomes one element of a derived datatype; where
 * that cannot say it (several counts, reductions, types with gaps of their
 * own) the section is copied, for non-blocking operations until they are
 * complete (keep.h).
 */
#ifndef CHEMPI_FORTRAN_CHOICE_H
#define CHEMPI_FORTRAN_CHOICE_H

#include <ISO_Fortran_binding.h>

#include "fortran/lib/binding.h"
#include "fortran/lib/buffer/section.h"
#include "fortran/lib/error.h"

/* How long C uses the buffer. */
enum chempi_span {
    CHEMPI_SPAN_CALL,       /* until the call returns */
    CHEMPI_SPAN_REQUEST,    /* until its request is complete */
    CHEMPI_SPAN_PERSISTENT, /* whenever its request is active */
    CHEMPI_SPAN_UNKNOWN     /* longer, and nothing tells until when */
};

#define CHEMPI_WAY_IN 1u  /* C reads it */
#define CHEMPI_WAY_OUT 2u /* C writes it */

struct chempi_choice {
    const char *name; /* of the argument */
    void *address;
    MPI_Count count;
    MPI_Datatype type;
    struct chempi_choice_held *held; /* NULL: nothing to do afterwards */
};

/* Who is to hear of a call that uses more bytes than the array that is its
 * argument has: a checker (startup.c), or NULL. Written when the library is
 * loaded. */
typedef void chempi_watcher_fn(const char *call, const char *argument,
                               MPI_Count used, MPI_Count there);
extern chempi_watcher_fn *chempi_choice_watcher;

static inline bool chempi_choice_is_contiguous(const CFI_cdesc_t *d)
{
    CFI_index_t next = (CFI_index_t)d->elem_len;

    for (int i = 0; i < d->rank; i++) {
        if (d->dim[i].sm != next)
            return false;
        next *= d->dim[i].extent;
    }
    return true;
}

/* The slow halves of the functions below, for what is not contiguous. */
int chempi_choice_hold_buf(struct chempi_choice *x, const CFI_cdesc_t *d,
                           unsigned way, enum chempi_span span,
                           const struct chempi_caller *caller);
int chempi_choice_hold_copy(struct chempi_choice *x, const CFI_cdesc_t *d,
                            unsigned way, enum chempi_span span,
                            const struct chempi_caller *caller);
int chempi_choice_refuse(const char *name, const CFI_cdesc_t *d,
                         const struct chempi_caller *caller);
/* Have the watcher look at a contiguous one. */
void chempi_choice_watch(const struct chempi_choice *x, const CFI_cdesc_t *d,
                         const struct chempi_caller *caller);
/* Raise an error of a class: "CALL: NAME SENTENCE". */
int chempi_choice_fail(const struct chempi_caller *caller, int errclass,
                       const char *name, const char *sentence);
void chempi_choice_let_go(struct chempi_choice_held *held, int rc, int request);

/*
 * x->address, count and type say the buffer d to C; x->name is set. Return
 * MPI_SUCCESS or an error that has been raised; then there is nothing to end.
 */
static inline int chempi_choice_buf(struct chempi_choice *x,
                                    const CFI_cdesc_t *d, MPI_Count count,
                                    MPI_Datatype type, unsigned way,
                                    enum chempi_span span,
                                    const struct chempi_caller *caller)
{
    x->address = chempi_in_address(d->base_addr);
    x->count = count;
    x->type = type;
    x->held = NULL;
    if (CHEMPI_LIKELY(chempi_choice_is_contiguous(d))) {
        if (CHEMPI_UNLIKELY(chempi_choice_watcher))
            chempi_choice_watch(x, d, caller);
        return MPI_SUCCESS;
    }
    return chempi_choice_hold_buf(x, d, way, span, caller);
}

static inline int chempi_choice_copy(struct chempi_choice *x,
                                     const CFI_cdesc_t *d, unsigned way,
                                     enum chempi_span span,
                                     const struct chempi_caller *caller)
{
    x->address = chempi_in_address(d->base_addr);
    x->held = NULL;
    if (CHEMPI_LIKELY(chempi_choice_is_contiguous(d)))
        return MPI_SUCCESS;
    return chempi_choice_hold_copy(x, d, way, span, caller);
}

/* For buffers that must be contiguous, unless no byte of them is used. */
static inline int chempi_choice_part(struct chempi_choice *x,
                                     const CFI_cdesc_t *d, bool is_used,
                                     const struct chempi_caller *caller)
{
    x->address = chempi_in_place_or_automatic(d->base_addr);
    x->held = NULL;
    if (!is_used || chempi_choice_is_contiguous(d))
        return MPI_SUCCESS;
    return chempi_choice_refuse(x->name, d, caller);
}

/*
 * After the call, which returned rc: give back what was made for it. What a
 * request needs (its Fortran handle; MPI_REQUEST_NULL's where there is none)
 * is kept until that is complete.
 */
static inline void chempi_choice_end(struct chempi_choice *x, int rc,
                                     int request)
{
    if (CHEMPI_UNLIKELY(x->held))
        chempi_choice_let_go(x->held, rc, request);
}

#endif
