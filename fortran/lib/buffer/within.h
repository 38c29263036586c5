/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Does what a call uses lie within the array that it was given?
 *
 * Of a section with gaps nothing else may be used, since (buffer, count,
 * datatype) mean a contiguous copy of it (MPI 5.0, section 19.1.12): an error.
 * What follows a contiguous array may belong to the program's buffer all the
 * same (a datatype that begins at a component of a structure; old programs that
 * declare a(1)), so that only a checker that is loaded hears of those whose
 * datatype is predefined and whose last extent is not 1.
 */
#ifndef CHEMPI_FORTRAN_WITHIN_H
#define CHEMPI_FORTRAN_WITHIN_H

#include "fortran/lib/buffer/choice.h"

/* The counts and displacements of an operation with one for each of n
 * processes. displs NULL: one after the other. */
struct chempi_counts {
    const void *counts;
    const void *displs; /* of elements; of bytes, where there are types */
    bool is_wide;       /* counts are MPI_Count, not int */
    bool is_far;        /* displs are MPI_Aint, not int */
    int n;
};

/* Is anybody to be told of x? */
static inline bool chempi_within_is_asked(const struct chempi_choice *x)
{
    return CHEMPI_UNLIKELY(x->held || chempi_choice_watcher);
}

/* `times` * `count` elements from d on. Return MPI_SUCCESS or an error that has
 * been raised. */
int chempi_within_count(const struct chempi_choice *x, const CFI_cdesc_t *d,
                        MPI_Count count, MPI_Count times, MPI_Datatype type,
                        const struct chempi_caller *caller);
int chempi_within_each(const struct chempi_choice *x, const CFI_cdesc_t *d,
                       const struct chempi_counts *counts, MPI_Datatype type,
                       const struct chempi_caller *caller);
int chempi_within_types(const struct chempi_choice *x, const CFI_cdesc_t *d,
                        const struct chempi_counts *counts,
                        const MPI_Datatype types[],
                        const struct chempi_caller *caller);

#endif
