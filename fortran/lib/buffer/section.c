/* SPDX-License-Identifier: BSD-3-Clause */
/* Array sections with gaps. */
#include "fortran/lib/buffer/section.h"

#include <stdlib.h>
#include <string.h>

bool chempi_section_read(struct chempi_section *s, const CFI_cdesc_t *d)
{
    int rank = 0;

    s->base = d->base_addr;
    s->elem_len = d->elem_len;
    for (int i = 0; i < d->rank; i++) {
        size_t extent = (size_t)d->dim[i].extent;
        ptrdiff_t stride = d->dim[i].sm;

        if (d->dim[i].extent < 0)
            return false;
        if (extent == 1)
            continue;
        if (rank &&
            s->dim[rank - 1].stride * (ptrdiff_t)s->dim[rank - 1].extent ==
                stride) {
            s->dim[rank - 1].extent *= extent;
            continue;
        }
        s->dim[rank].extent = extent;
        s->dim[rank++].stride = stride;
    }
    s->rank = rank;
    return true;
}

size_t chempi_section_count(const struct chempi_section *s)
{
    size_t n = 1;

    for (int i = 0; i < s->rank; i++)
        n *= s->dim[i].extent;
    return n;
}

bool chempi_section_has_gaps(const struct chempi_section *s)
{
    return chempi_section_count(s) != 0 && s->rank != 0 &&
           !(s->rank == 1 && s->dim[0].stride == (ptrdiff_t)s->elem_len);
}

/* Where the next row of the first dimension starts; false at the end. */
static bool next_row(const struct chempi_section *s, size_t *index, char **row)
{
    for (int i = 1; i < s->rank; i++) {
        *row += s->dim[i].stride;
        if (++index[i] < s->dim[i].extent)
            return true;
        *row -= s->dim[i].stride * (ptrdiff_t)s->dim[i].extent;
        index[i] = 0;
    }
    return false;
}

static void copy(const struct chempi_section *s, char *packed, bool is_gather)
{
    size_t index[CFI_MAX_RANK] = {0};
    size_t n = s->rank ? s->dim[0].extent : 1;
    ptrdiff_t stride = s->rank ? s->dim[0].stride : 0;
    char *row = s->base;

    if (chempi_section_count(s) == 0)
        return;
    do {
        char *at = row;

        for (size_t i = 0; i < n; i++) {
            if (is_gather)
                memcpy(packed, at, s->elem_len);
            else
                memcpy(at, packed, s->elem_len);
            packed += s->elem_len;
            at += stride;
        }
    } while (next_row(s, index, &row));
}

void chempi_section_gather(const struct chempi_section *s, void *to)
{
    copy(s, to, true);
}

void chempi_section_scatter(const struct chempi_section *s, const void *from)
{
    union {
        const void *in;
        void *out; /* only read */
    } packed = {.in = from};

    copy(s, packed.out, false);
}

/* Free the type of an inner dimension after the one around it was made. */
static int replace(int rc, MPI_Datatype *type, MPI_Datatype outer)
{
    (void)PMPI_Type_free(type);
    *type = outer;
    return rc;
}

/* The type of the section's first `rank` dimensions, all of them. */
static int make_slab(const struct chempi_section *s, int rank,
                     MPI_Count per_element, MPI_Datatype type,
                     MPI_Datatype *made)
{
    MPI_Datatype outer = MPI_DATATYPE_NULL;
    int rc = PMPI_Type_contiguous_c(per_element, type, made);

    for (int i = 0; i < rank && rc == MPI_SUCCESS; i++) {
        rc = PMPI_Type_create_hvector_c((MPI_Count)s->dim[i].extent, 1,
                                        s->dim[i].stride, *made, &outer);
        rc = replace(rc, made, outer);
    }
    return rc;
}

/* Join two types, the second at an offset, into *made. */
static int join(MPI_Datatype *made, MPI_Datatype *tail, MPI_Count offset)
{
    const MPI_Count lengths[2] = {1, 1};
    const MPI_Count offsets[2] = {0, offset};
    const MPI_Datatype types[2] = {*made, *tail};
    MPI_Datatype outer = MPI_DATATYPE_NULL;
    int rc = PMPI_Type_create_struct_c(2, lengths, offsets, types, &outer);

    (void)PMPI_Type_free(tail);
    return replace(rc, made, outer);
}

/* The first `count` > 0 elements of the first `rank` dimensions: whole slabs,
 * and a part of one more. */
static int make_prefix(const struct chempi_section *s, int rank, size_t count,
                       MPI_Count per_element, MPI_Datatype type,
                       MPI_Datatype *made)
{
    MPI_Datatype tail = MPI_DATATYPE_NULL;
    MPI_Datatype outer = MPI_DATATYPE_NULL;
    ptrdiff_t stride;
    size_t slab = 1;
    size_t whole;
    int rc;

    if (rank == 0)
        return make_slab(s, 0, per_element, type, made);
    for (int i = 0; i < rank - 1; i++)
        slab *= s->dim[i].extent;
    whole = count / slab;
    stride = s->dim[rank - 1].stride;
    if (whole == 0)
        return make_prefix(s, rank - 1, count, per_element, type, made);
    rc = make_slab(s, rank - 1, per_element, type, made);
    if (rc)
        return rc;
    rc = PMPI_Type_create_hvector_c((MPI_Count)whole, 1, stride, *made, &outer);
    rc = replace(rc, made, outer);
    if (rc || count % slab == 0)
        return rc;
    rc = make_prefix(s, rank - 1, count % slab, per_element, type, &tail);
    return rc ? rc : join(made, &tail, (MPI_Count)whole * stride);
}

int chempi_section_type(const struct chempi_section *s, size_t count,
                        MPI_Count per_element, MPI_Datatype type,
                        MPI_Datatype *made)
{
    int rc = make_prefix(s, s->rank, count, per_element, type, made);

    return rc ? rc : PMPI_Type_commit(made);
}
