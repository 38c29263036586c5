/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datatype constructors but the arrays' (MPI 5.0, section 5.1.2 and 5.1.7).
 * A constructor notes its arguments and computes the bounds; the layout is
 * compiled by commit.
 */
#include <string.h>

#include "libchempi/api/api_impl.h"
#include "libchempi/didl/datatype/recipe.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/info/attr.h"

#define MULADD chempi_datatype_muladd

static int check_lengths(MPI_Count count, struct chempi_count_array lengths)
{
    for (MPI_Count i = 0; i < count; i++) {
        MPI_Count n = chempi_count_array_get(lengths, (size_t)i);

        if (n < 0)
            return chempi_error_set(MPI_ERR_ARG, "block length %lld is %lld",
                                    (long long)i, (long long)n);
    }
    return MPI_SUCCESS;
}

int chempi_datatype_create_contiguous(MPI_Count count,
                                      struct chempi_datatype *oldtype,
                                      MPI_Datatype *newtype, bool is_wide)
{
    struct chempi_datatype_bounds bounds = CHEMPI_DATATYPE_BOUNDS_INIT;
    struct chempi_datatype *type =
        chempi_datatype_make(MPI_COMBINER_CONTIGUOUS, is_wide, 1, 1, 1);

    if (!type)
        return MPI_ERR_NO_MEM;
    chempi_datatype_note_type(type, 0, oldtype);
    type->recipe->values[0] = count;
    chempi_datatype_bounds_add(&bounds, oldtype, 0, count, oldtype->extent);
    return chempi_datatype_give(type, &bounds, newtype);
}

int chempi_datatype_create_vector(MPI_Count count, MPI_Count blocklength,
                                  MPI_Count stride,
                                  struct chempi_datatype *oldtype,
                                  MPI_Datatype *newtype, int combiner,
                                  bool is_wide)
{
    struct chempi_datatype_bounds bounds = CHEMPI_DATATYPE_BOUNDS_INIT;
    const bool is_of_elements = combiner == MPI_COMBINER_VECTOR;
    struct chempi_datatype *type;

    if (blocklength < 0)
        return chempi_error_set(MPI_ERR_ARG, "the block length is %lld",
                                (long long)blocklength);
    type =
        chempi_datatype_make(combiner, is_wide, is_of_elements ? 3 : 2, 3, 1);
    if (!type)
        return MPI_ERR_NO_MEM;
    chempi_datatype_note_type(type, 0, oldtype);
    type->recipe->values[0] = count;
    type->recipe->values[1] = blocklength;
    type->recipe->values[2] = stride;
    chempi_datatype_bounds_add_rows(&bounds, oldtype, 0, blocklength, count,
                                    MULADD(stride,
                                           is_of_elements ? oldtype->extent : 1,
                                           0, &bounds.is_overflown));
    return chempi_datatype_give(type, &bounds, newtype);
}

int chempi_datatype_create_indexed(
    MPI_Count count, struct chempi_count_array array_of_blocklengths,
    struct chempi_count_array array_of_displacements,
    struct chempi_datatype *oldtype, MPI_Datatype *newtype, int combiner)
{
    struct chempi_datatype_bounds bounds = CHEMPI_DATATYPE_BOUNDS_INIT;
    const bool is_of_elements = combiner == MPI_COMBINER_INDEXED;
    const MPI_Count unit = is_of_elements ? oldtype->extent : 1;
    struct chempi_datatype *type;
    int rc = check_lengths(count, array_of_blocklengths);

    if (rc != MPI_SUCCESS)
        return rc;
    type = chempi_datatype_make(combiner, array_of_blocklengths.is_wide,
                                is_of_elements ? 1 + 2 * count : 1 + count,
                                1 + 2 * count, 1);
    if (!type)
        return MPI_ERR_NO_MEM;
    chempi_datatype_note_type(type, 0, oldtype);
    type->recipe->values[0] = count;
    for (MPI_Count i = 0; i < count; i++) {
        MPI_Count n = chempi_count_array_get(array_of_blocklengths, (size_t)i);
        MPI_Count disp =
            chempi_count_array_get(array_of_displacements, (size_t)i);

        type->recipe->values[1 + i] = n;
        type->recipe->values[1 + count + i] = disp;
        chempi_datatype_bounds_add(&bounds, oldtype,
                                   MULADD(disp, unit, 0, &bounds.is_overflown),
                                   n, oldtype->extent);
    }
    return chempi_datatype_give(type, &bounds, newtype);
}

int chempi_datatype_create_indexed_block(
    MPI_Count count, MPI_Count blocklength,
    struct chempi_count_array array_of_displacements,
    struct chempi_datatype *oldtype, MPI_Datatype *newtype, int combiner,
    bool is_wide)
{
    struct chempi_datatype_bounds bounds = CHEMPI_DATATYPE_BOUNDS_INIT;
    const bool is_of_elements = combiner == MPI_COMBINER_INDEXED_BLOCK;
    const MPI_Count unit = is_of_elements ? oldtype->extent : 1;
    struct chempi_datatype *type;

    if (blocklength < 0)
        return chempi_error_set(MPI_ERR_ARG, "the block length is %lld",
                                (long long)blocklength);
    type = chempi_datatype_make(combiner, is_wide,
                                is_of_elements ? 2 + count : 2, 2 + count, 1);
    if (!type)
        return MPI_ERR_NO_MEM;
    chempi_datatype_note_type(type, 0, oldtype);
    type->recipe->values[0] = count;
    type->recipe->values[1] = blocklength;
    for (MPI_Count i = 0; i < count; i++) {
        MPI_Count disp =
            chempi_count_array_get(array_of_displacements, (size_t)i);

        type->recipe->values[2 + i] = disp;
        chempi_datatype_bounds_add(&bounds, oldtype,
                                   MULADD(disp, unit, 0, &bounds.is_overflown),
                                   blocklength, oldtype->extent);
    }
    return chempi_datatype_give(type, &bounds, newtype);
}

int chempi_datatype_create_struct(
    MPI_Count count, struct chempi_count_array array_of_blocklengths,
    struct chempi_count_array array_of_displacements,
    const MPI_Datatype array_of_types[], MPI_Datatype *newtype)
{
    struct chempi_datatype_bounds bounds = CHEMPI_DATATYPE_BOUNDS_INIT;
    struct chempi_datatype *type;
    int rc = check_lengths(count, array_of_blocklengths);

    if (rc != MPI_SUCCESS)
        return rc;
    for (MPI_Count i = 0; i < count; i++)
        if (!chempi_datatype_lookup(array_of_types[i]))
            return chempi_error_set(MPI_ERR_TYPE,
                                    "element %lld of the array "
                                    "of types is no datatype",
                                    (long long)i);
    type =
        chempi_datatype_make(MPI_COMBINER_STRUCT, array_of_blocklengths.is_wide,
                             1 + count, 1 + 2 * count, count);
    if (!type)
        return MPI_ERR_NO_MEM;
    type->recipe->values[0] = count;
    for (MPI_Count i = 0; i < count; i++) {
        struct chempi_datatype *old = chempi_datatype_lookup(array_of_types[i]);
        MPI_Count n = chempi_count_array_get(array_of_blocklengths, (size_t)i);
        MPI_Count disp =
            chempi_count_array_get(array_of_displacements, (size_t)i);

        chempi_datatype_note_type(type, i, old);
        type->recipe->values[1 + i] = n;
        type->recipe->values[1 + count + i] = disp;
        chempi_datatype_bounds_add(&bounds, old, disp, n, old->extent);
    }
    chempi_datatype_bounds_pad(&bounds);
    return chempi_datatype_give(type, &bounds, newtype);
}

int chempi_datatype_create_resized(struct chempi_datatype *oldtype,
                                   MPI_Count lb, MPI_Count extent,
                                   MPI_Datatype *newtype, bool is_wide)
{
    struct chempi_datatype_bounds bounds = CHEMPI_DATATYPE_BOUNDS_INIT;
    struct chempi_datatype *type =
        chempi_datatype_make(MPI_COMBINER_RESIZED, is_wide, 0, 2, 1);

    if (!type)
        return MPI_ERR_NO_MEM;
    chempi_datatype_note_type(type, 0, oldtype);
    type->recipe->values[0] = lb;
    type->recipe->values[1] = extent;
    chempi_datatype_bounds_add(&bounds, oldtype, 0, 1, 0);
    chempi_datatype_bounds_resize(&bounds, lb, extent);
    return chempi_datatype_give(type, &bounds, newtype);
}

int chempi_datatype_dup(struct chempi_datatype *oldtype, MPI_Datatype *newtype)
{
    struct chempi_datatype *type =
        chempi_datatype_make(MPI_COMBINER_DUP, false, 0, 0, 1);
    int rc;

    if (!type)
        return MPI_ERR_NO_MEM;
    chempi_datatype_note_type(type, 0, oldtype);
    type->size = oldtype->size;
    type->elements = oldtype->elements;
    type->lb = oldtype->lb;
    type->extent = oldtype->extent;
    type->true_lb = oldtype->true_lb;
    type->true_extent = oldtype->true_extent;
    type->align = oldtype->align;
    type->elem_kind = oldtype->elem_kind;
    type->recipe->external_size = chempi_datatype_external_size(oldtype, 1, 0);
    type->recipe->is_lb_set = oldtype->recipe && oldtype->recipe->is_lb_set;
    type->recipe->is_ub_set = oldtype->recipe && oldtype->recipe->is_ub_set;
    if (chempi_datatype_is_committed(oldtype))
        rc = chempi_datatype_commit(&type->handle);
    else
        rc = MPI_SUCCESS;
    if (rc == MPI_SUCCESS)
        rc = chempi_attr_copy_all(&oldtype->obj, &type->obj);
    if (rc == MPI_SUCCESS) {
        *newtype = type->handle;
        return MPI_SUCCESS;
    }
    chempi_attr_end_all(&type->obj); /* the first error is reported */
    chempi_datatype_release(type);
    *newtype = MPI_DATATYPE_NULL;
    return rc;
}
