/* SPDX-License-Identifier: BSD-3-Clause */
/* What all of this room reckon with: sums that note overflow, and the share
 * that a process has of a dimension (MPI 5.0, section 5.1.4); see recipe.h. */
#include "libchempi/didl/datatype/recipe.h"

MPI_Count chempi_datatype_muladd(MPI_Count a, MPI_Count b, MPI_Count c,
                                 bool *is_overflown)
{
    MPI_Count product;

    if (a != 0 && b != 0) {
        uint64_t ua = a < 0 ? 0 - (uint64_t)a : (uint64_t)a;
        uint64_t ub = b < 0 ? 0 - (uint64_t)b : (uint64_t)b;

        if (ua > (uint64_t)INT64_MAX / ub) {
            *is_overflown = true;
            return 0;
        }
    }
    product = a * b;
    if (c > 0 ? product > INT64_MAX - c : product < INT64_MIN - c) {
        *is_overflown = true;
        return 0;
    }
    return product + c;
}

void chempi_datatype_share_of(MPI_Count gsize, int distrib, MPI_Count darg,
                              MPI_Count psize, MPI_Count coord,
                              struct chempi_datatype_share *share)
{
    MPI_Count block = gsize;
    MPI_Count end;

    *share = (struct chempi_datatype_share){0};
    if (distrib == MPI_DISTRIBUTE_BLOCK)
        block = darg == MPI_DISTRIBUTE_DFLT_DARG
                    ? gsize / psize + (gsize % psize != 0)
                    : darg;
    else if (distrib == MPI_DISTRIBUTE_CYCLIC)
        block = darg == MPI_DISTRIBUTE_DFLT_DARG ? 1 : darg;
    else
        coord = 0;
    if (coord > (gsize - 1) / block)
        return; /* nothing left for this coordinate */
    share->start = coord * block;
    share->block = block;
    if (distrib != MPI_DISTRIBUTE_CYCLIC) {
        end = gsize - share->start < block ? gsize : share->start + block;
        share->block = end - share->start;
        share->count = 1;
        return;
    }
    /* Whole blocks at start, start + stride, ..., then perhaps a short one. */
    if (psize > gsize / block) {
        share->stride = gsize; /* at most one block each; may be short */
        share->count = share->start + block <= gsize;
        share->rest_start = share->start;
        share->rest = share->count ? 0 : gsize - share->start;
        return;
    }
    share->stride = psize * block;
    share->count = share->start + block <= gsize
                       ? (gsize - share->start - block) / share->stride + 1
                       : 0;
    share->rest_start = share->start + share->count * share->stride;
    if (share->rest_start < gsize)
        share->rest = gsize - share->rest_start;
}
