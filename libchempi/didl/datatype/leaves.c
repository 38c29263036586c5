/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Walking a datatype by its basic types, in the order of its type map, as
 * external32 does. Works from the recipe, so the type need not be committed.
 * Recurses to the depth of the type.
 */
#include <assert.h>

#include "libchempi/didl/datatype/recipe.h"

/* Who is told, passed down the walk. */
struct visit {
    chempi_datatype_leaf_fn *fn;
    void *arg;
};

static bool visit(const struct visit *v, struct chempi_datatype *type,
                  MPI_Count disp, MPI_Count count);

static bool visit_vector(const struct visit *v, struct chempi_datatype *old,
                         const MPI_Count *values, MPI_Count unit,
                         MPI_Count disp)
{
    bool is_on = true;

    for (MPI_Count i = 0; i < values[0] && is_on; i++)
        is_on = visit(v, old, disp + i * values[2] * unit, values[1]);
    return is_on;
}

/* lengths NULL: all `length`. */
static bool visit_pieces(const struct visit *v, struct chempi_datatype *old,
                         MPI_Count count, const MPI_Count *lengths,
                         MPI_Count length, const MPI_Count *displs,
                         MPI_Count unit, MPI_Count disp)
{
    bool is_on = true;

    for (MPI_Count i = 0; i < count && is_on; i++)
        is_on = visit(v, old, disp + displs[i] * unit,
                      lengths ? lengths[i] : length);
    return is_on;
}

static bool visit_struct(const struct visit *v,
                         const struct chempi_datatype_recipe *recipe,
                         MPI_Count disp)
{
    const MPI_Count *lengths = recipe->values + 1;
    const MPI_Count *displs = lengths + recipe->type_count;
    bool is_on = true;

    for (MPI_Count i = 0; i < recipe->type_count && is_on; i++)
        is_on = visit(v, recipe->types[i], disp + displs[i], lengths[i]);
    return is_on;
}

/* Dimension number `level` from the fastest and all faster ones; stride:
 * bytes between neighbours in that dimension. */
static bool visit_subarray(const struct visit *v, struct chempi_datatype *old,
                           const MPI_Count *values, MPI_Count level,
                           MPI_Count stride, MPI_Count disp)
{
    MPI_Count ndims = values[0];
    const MPI_Count *sizes = values + 1;
    const MPI_Count *subsizes = sizes + ndims;
    const MPI_Count *starts = subsizes + ndims;
    MPI_Count d = chempi_datatype_fastest(ndims, starts[ndims], level);
    bool is_on = true;

    if (level == 0)
        return visit(v, old, disp + starts[d] * stride, subsizes[d]);
    for (MPI_Count i = 0; i < subsizes[d] && is_on; i++) {
        MPI_Count below =
            chempi_datatype_fastest(ndims, starts[ndims], level - 1);

        is_on = visit_subarray(v, old, values, level - 1, stride / sizes[below],
                               disp + (starts[d] + i) * stride);
    }
    return is_on;
}

static bool visit_darray(const struct visit *v, struct chempi_datatype *old,
                         const MPI_Count *values, MPI_Count level,
                         MPI_Count stride, MPI_Count disp);

/* n elements of one dimension from element `first` on. */
static bool visit_share(const struct visit *v, struct chempi_datatype *old,
                        const MPI_Count *values, MPI_Count level,
                        MPI_Count stride, MPI_Count disp, MPI_Count first,
                        MPI_Count n)
{
    MPI_Count ndims = values[2];
    MPI_Count order = values[4 * ndims + 3];
    bool is_on = true;

    if (level == 0)
        return visit(v, old, disp + first * stride, n);
    for (MPI_Count i = 0; i < n && is_on; i++) {
        MPI_Count below = chempi_datatype_fastest(ndims, order, level - 1);

        is_on =
            visit_darray(v, old, values, level - 1, stride / values[3 + below],
                         disp + (first + i) * stride);
    }
    return is_on;
}

static bool visit_darray(const struct visit *v, struct chempi_datatype *old,
                         const MPI_Count *values, MPI_Count level,
                         MPI_Count stride, MPI_Count disp)
{
    MPI_Count ndims = values[2];
    const MPI_Count *gsizes = values + 3;
    const MPI_Count *psizes = gsizes + 3 * ndims;
    MPI_Count d = chempi_datatype_fastest(ndims, psizes[ndims], level);
    MPI_Count coord = values[1];
    struct chempi_datatype_share share;
    bool is_on = true;

    for (MPI_Count k = ndims - 1; k > d; k--)
        coord /= psizes[k];
    chempi_datatype_share_of(gsizes[d], (int)gsizes[ndims + d],
                             gsizes[2 * ndims + d], psizes[d],
                             coord % psizes[d], &share);
    for (MPI_Count i = 0; i < share.count && is_on; i++)
        is_on = visit_share(v, old, values, level, stride, disp,
                            share.start + i * share.stride, share.block);
    if (is_on && share.rest > 0)
        is_on = visit_share(v, old, values, level, stride, disp,
                            share.rest_start, share.rest);
    return is_on;
}

/* Bytes between neighbours in the slowest dimension. */
static MPI_Count slowest_stride(const MPI_Count *sizes, MPI_Count ndims,
                                MPI_Count order, MPI_Count extent)
{
    for (MPI_Count i = 0; i + 1 < ndims; i++)
        extent *= sizes[chempi_datatype_fastest(ndims, order, i)];
    return extent;
}

static bool visit_one(const struct visit *v, struct chempi_datatype *type,
                      MPI_Count disp)
{
    const struct chempi_datatype_recipe *recipe = type->recipe;
    const MPI_Count *n = recipe->values;
    struct chempi_datatype *old =
        recipe->type_count > 0 ? recipe->types[0] : NULL;

    switch (recipe->combiner) {
    case MPI_COMBINER_CONTIGUOUS:
        return visit(v, old, disp, n[0]);
    case MPI_COMBINER_VECTOR:
        return visit_vector(v, old, n, old->extent, disp);
    case MPI_COMBINER_HVECTOR:
        return visit_vector(v, old, n, 1, disp);
    case MPI_COMBINER_INDEXED:
        return visit_pieces(v, old, n[0], n + 1, 0, n + 1 + n[0], old->extent,
                            disp);
    case MPI_COMBINER_HINDEXED:
        return visit_pieces(v, old, n[0], n + 1, 0, n + 1 + n[0], 1, disp);
    case MPI_COMBINER_INDEXED_BLOCK:
        return visit_pieces(v, old, n[0], NULL, n[1], n + 2, old->extent, disp);
    case MPI_COMBINER_HINDEXED_BLOCK:
        return visit_pieces(v, old, n[0], NULL, n[1], n + 2, 1, disp);
    case MPI_COMBINER_STRUCT:
        return visit_struct(v, recipe, disp);
    case MPI_COMBINER_SUBARRAY:
        return visit_subarray(
            v, old, n, n[0] - 1,
            slowest_stride(n + 1, n[0], n[3 * n[0] + 1], old->extent), disp);
    case MPI_COMBINER_DARRAY:
        return visit_darray(
            v, old, n, n[2] - 1,
            slowest_stride(n + 3, n[2], n[4 * n[2] + 3], old->extent), disp);
    default:
        return visit(v, old, disp, 1); /* dup, resized */
    }
}

static bool visit(const struct visit *v, struct chempi_datatype *type,
                  MPI_Count disp, MPI_Count count)
{
    bool is_on = true;

    if (type->is_predefined)
        return count == 0 || v->fn(v->arg, type, disp, count);
    for (MPI_Count i = 0; i < count && is_on && type->size > 0; i++)
        is_on = visit_one(v, type, disp + i * type->extent);
    return is_on;
}

bool chempi_datatype_for_leaves(struct chempi_datatype *type, MPI_Count count,
                                chempi_datatype_leaf_fn *fn, void *arg)
{
    struct visit v = {.fn = fn, .arg = arg};

    assert(!type->recipe ||
           type->recipe->depth <= CHEMPI_DATATYPE_WALK_DEPTH_MAX);
    return visit(&v, type, 0, count);
}
