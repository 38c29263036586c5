/* SPDX-License-Identifier: BSD-3-Clause */
/* An array argument that is int[] in the one form of a call and MPI_Count[]
 * or MPI_Aint[] in its large-count form. */
#ifndef CHEMPI_LIBCHEMPI_DIDL_COUNT_ARRAY_H
#define CHEMPI_LIBCHEMPI_DIDL_COUNT_ARRAY_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

struct chempi_count_array {
    const void *p; /* NULL when the caller passed NULL */
    bool is_wide;  /* elements are 64 bits */
};

static inline MPI_Count chempi_count_array_get(struct chempi_count_array b,
                                               size_t i)
{
    return b.is_wide ? ((const MPI_Count *)b.p)[i] : ((const int *)b.p)[i];
}

#endif
