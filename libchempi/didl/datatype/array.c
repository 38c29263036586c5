/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Array constructors (MPI 5.0, sections 5.1.3 and 5.1.4): a subarray of an
 * array, and one process's share of a distributed array. Both have explicit
 * bounds, those of the whole array.
 */
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/datatype/recipe.h"
#include "libchempi/didl/error/error.h"

#define MULADD chempi_datatype_muladd

static int check_order(int order)
{
    if (order == MPI_ORDER_C || order == MPI_ORDER_FORTRAN)
        return MPI_SUCCESS;
    return chempi_error_set(MPI_ERR_ARG,
                            "order %d is neither MPI_ORDER_C nor "
                            "MPI_ORDER_FORTRAN",
                            order);
}

static int check_subarray(int ndims, struct chempi_count_array sizes,
                          struct chempi_count_array subsizes,
                          struct chempi_count_array starts)
{
    if (ndims <= 0)
        return chempi_error_set(MPI_ERR_ARG, "ndims is %d", ndims);
    for (size_t d = 0; d < (size_t)ndims; d++) {
        MPI_Count size = chempi_count_array_get(sizes, d);
        MPI_Count sub = chempi_count_array_get(subsizes, d);
        MPI_Count start = chempi_count_array_get(starts, d);

        if (size < 1 || sub < 1 || sub > size || start < 0 ||
            start > size - sub)
            return chempi_error_set(
                MPI_ERR_ARG,
                "dimension %zu: %lld elements from %lld are not "
                "inside an array of %lld",
                d, (long long)sub, (long long)start, (long long)size);
    }
    return MPI_SUCCESS;
}

/*
 * Bounds of an array that is being described dimension by dimension, fastest
 * first: displacements of the first and last element, and the distance
 * between neighbours of the next dimension.
 */
struct extent {
    MPI_Count first;
    MPI_Count last;
    MPI_Count count; /* elements */
    MPI_Count stride;
    bool is_overflown;
};

static void add_dimension(struct extent *e, MPI_Count first, MPI_Count last,
                          MPI_Count count, MPI_Count size)
{
    e->first = MULADD(first, e->stride, e->first, &e->is_overflown);
    e->last = MULADD(last, e->stride, e->last, &e->is_overflown);
    e->count = MULADD(e->count, count, 0, &e->is_overflown);
    e->stride = MULADD(e->stride, size, 0, &e->is_overflown);
}

/* Bounds of e->count elements between e->first and e->last in an array that
 * spans [0, e->stride). */
static struct chempi_datatype_bounds bounds_of(const struct extent *e,
                                               struct chempi_datatype *old)
{
    struct chempi_datatype_bounds bounds = CHEMPI_DATATYPE_BOUNDS_INIT;

    if (e->count > 0) {
        chempi_datatype_bounds_add(&bounds, old, e->first, 1, 0);
        if (e->count > 1)
            chempi_datatype_bounds_add(&bounds, old, e->last, 1, 0);
    }
    bounds.size = MULADD(e->count, old->size, 0, &bounds.is_overflown);
    bounds.external_size = chempi_datatype_external_size(old, e->count, 0);
    bounds.elements = MULADD(e->count, old->elements, 0, &bounds.is_overflown);
    chempi_datatype_bounds_resize(&bounds, 0, e->stride);
    bounds.is_overflown |= e->is_overflown;
    return bounds;
}

int chempi_datatype_create_subarray(int ndims,
                                    struct chempi_count_array array_of_sizes,
                                    struct chempi_count_array array_of_subsizes,
                                    struct chempi_count_array array_of_starts,
                                    int order, struct chempi_datatype *oldtype,
                                    MPI_Datatype *newtype)
{
    struct extent e = {.count = 1, .stride = oldtype->extent};
    struct chempi_datatype_bounds bounds;
    struct chempi_datatype *type;
    MPI_Count *values;
    int rc = check_subarray(ndims, array_of_sizes, array_of_subsizes,
                            array_of_starts);

    if (rc == MPI_SUCCESS)
        rc = check_order(order);
    if (rc != MPI_SUCCESS)
        return rc;
    type = chempi_datatype_make(MPI_COMBINER_SUBARRAY, array_of_sizes.is_wide,
                                3 * ndims + 2, 3 * ndims + 2, 1);
    if (!type)
        return MPI_ERR_NO_MEM;
    chempi_datatype_note_type(type, 0, oldtype);
    values = type->recipe->values;
    values[0] = ndims;
    values[3 * ndims + 1] = order;
    for (int i = 0; i < ndims; i++) {
        values[1 + i] = chempi_count_array_get(array_of_sizes, (size_t)i);
        values[1 + ndims + i] =
            chempi_count_array_get(array_of_subsizes, (size_t)i);
        values[1 + 2 * ndims + i] =
            chempi_count_array_get(array_of_starts, (size_t)i);
    }
    for (int i = 0; i < ndims; i++) {
        size_t d = (size_t)chempi_datatype_fastest(ndims, order, i);
        MPI_Count start = chempi_count_array_get(array_of_starts, d);
        MPI_Count sub = chempi_count_array_get(array_of_subsizes, d);

        add_dimension(&e, start, start + sub - 1, sub,
                      chempi_count_array_get(array_of_sizes, d));
    }
    bounds = bounds_of(&e, oldtype);
    return chempi_datatype_give(type, &bounds, newtype);
}

static MPI_Count share_size(const struct chempi_datatype_share *share)
{
    return share->count * share->block + share->rest;
}

static MPI_Count share_last(const struct chempi_datatype_share *share)
{
    if (share->rest > 0)
        return share->rest_start + share->rest - 1;
    return share->start + (share->count - 1) * share->stride + share->block - 1;
}

static int check_dimension(int d, MPI_Count gsize, int distrib, int darg,
                           int psize)
{
    if (gsize < 1 || psize < 1)
        return chempi_error_set(MPI_ERR_ARG,
                                "dimension %d: %lld elements "
                                "over %d processes",
                                d, (long long)gsize, psize);
    if (distrib != MPI_DISTRIBUTE_BLOCK && distrib != MPI_DISTRIBUTE_CYCLIC &&
        distrib != MPI_DISTRIBUTE_NONE)
        return chempi_error_set(MPI_ERR_ARG,
                                "dimension %d: unknown "
                                "distribution %d",
                                d, distrib);
    if (distrib == MPI_DISTRIBUTE_NONE)
        return psize == 1 ? MPI_SUCCESS
                          : chempi_error_set(MPI_ERR_ARG,
                                             "dimension %d is not distributed "
                                             "but has %d processes",
                                             d, psize);
    if (darg == MPI_DISTRIBUTE_DFLT_DARG)
        return MPI_SUCCESS;
    if (darg < 1)
        return chempi_error_set(MPI_ERR_ARG,
                                "dimension %d: distribution "
                                "argument %d",
                                d, darg);
    if (distrib == MPI_DISTRIBUTE_BLOCK && (MPI_Count)darg * psize < gsize)
        return chempi_error_set(MPI_ERR_ARG,
                                "dimension %d: %d blocks of %d "
                                "do not hold %lld elements",
                                d, psize, darg, (long long)gsize);
    return MPI_SUCCESS;
}

static int check_darray(int size, int rank, int ndims,
                        struct chempi_count_array gsizes, const int *distribs,
                        const int *dargs, const int *psizes)
{
    MPI_Count product = 1;

    if (ndims <= 0)
        return chempi_error_set(MPI_ERR_ARG, "ndims is %d", ndims);
    if (size < 1 || rank < 0 || rank >= size)
        return chempi_error_set(MPI_ERR_ARG, "rank %d of %d processes", rank,
                                size);
    for (int d = 0; d < ndims; d++) {
        int rc = check_dimension(d, chempi_count_array_get(gsizes, (size_t)d),
                                 distribs[d], dargs[d], psizes[d]);

        if (rc != MPI_SUCCESS)
            return rc;
        product *= psizes[d];
        if (product > size)
            break;
    }
    if (product != size)
        return chempi_error_set(MPI_ERR_ARG,
                                "the process grid does not have "
                                "%d processes",
                                size);
    return MPI_SUCCESS;
}

static void note_darray(MPI_Count *values, int ndims,
                        struct chempi_count_array gsizes, const int *distribs,
                        const int *dargs, const int *psizes)
{
    for (int d = 0; d < ndims; d++) {
        values[3 + d] = chempi_count_array_get(gsizes, (size_t)d);
        values[3 + ndims + d] = distribs[d];
        values[3 + 2 * ndims + d] = dargs[d];
        values[3 + 3 * ndims + d] = psizes[d];
    }
}

/* The coordinate of a rank in a process grid, which is always row-major. */
static MPI_Count coordinate(const int *psizes, int ndims, int rank, size_t d)
{
    for (int i = ndims - 1; i > (int)d; i--)
        rank /= psizes[i];
    return rank % psizes[d];
}

int chempi_datatype_create_darray(int size, int rank, int ndims,
                                  struct chempi_count_array array_of_gsizes,
                                  const int array_of_distribs[],
                                  const int array_of_dargs[],
                                  const int array_of_psizes[], int order,
                                  struct chempi_datatype *oldtype,
                                  MPI_Datatype *newtype)
{
    struct extent e = {.count = 1, .stride = oldtype->extent};
    struct chempi_datatype_bounds bounds;
    struct chempi_datatype *type;
    int rc = check_darray(size, rank, ndims, array_of_gsizes, array_of_distribs,
                          array_of_dargs, array_of_psizes);

    if (rc == MPI_SUCCESS)
        rc = check_order(order);
    if (rc != MPI_SUCCESS)
        return rc;
    type = chempi_datatype_make(MPI_COMBINER_DARRAY, array_of_gsizes.is_wide,
                                4 * ndims + 4, 4 * ndims + 4, 1);
    if (!type)
        return MPI_ERR_NO_MEM;
    chempi_datatype_note_type(type, 0, oldtype);
    type->recipe->values[0] = size;
    type->recipe->values[1] = rank;
    type->recipe->values[2] = ndims;
    type->recipe->values[4 * ndims + 3] = order;
    note_darray(type->recipe->values, ndims, array_of_gsizes, array_of_distribs,
                array_of_dargs, array_of_psizes);
    for (int i = 0; i < ndims; i++) {
        size_t d = (size_t)chempi_datatype_fastest(ndims, order, i);
        MPI_Count gsize = chempi_count_array_get(array_of_gsizes, d);
        struct chempi_datatype_share share;

        chempi_datatype_share_of(
            gsize, array_of_distribs[d], array_of_dargs[d], array_of_psizes[d],
            coordinate(array_of_psizes, ndims, rank, d), &share);
        add_dimension(&e, share.count > 0 ? share.start : share.rest_start,
                      share_size(&share) ? share_last(&share) : 0,
                      share_size(&share), gsize);
    }
    bounds = bounds_of(&e, oldtype);
    return chempi_datatype_give(type, &bounds, newtype);
}
