/* SPDX-License-Identifier: BSD-3-Clause */
/* An array argument that is int[] in the one form of a call and MPI_Count[]
 * or MPI_Aint[] in its large-count form. */
#ifndef CHEMPI_LIBCHEMPI_DIDL_BIGS_H
#define CHEMPI_LIBCHEMPI_DIDL_BIGS_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

struct chempi_bigs {
    const void *p; /* NULL when the caller passed NULL */
    bool is_wide;  /* elements are 64 bits */
};

static inline MPI_Count chempi_bigs_get(struct chempi_bigs b, size_t i)
{
    return b.is_wide ? ((const MPI_Count *)b.p)[i] : ((const int *)b.p)[i];
}

#endif
