/* SPDX-License-Identifier: BSD-3-Clause */
/* See within.h. */
#include "fortran/lib/buffer/within.h"

/* Bytes that are used, from the array's first on. */
struct reach {
    MPI_Count low;
    MPI_Count high;
};

static MPI_Count sum(MPI_Count a, MPI_Count b)
{
    MPI_Count out;

    if (!CHEMPI_ADD_OVERFLOWS(a, b, &out))
        return out;
    return a < 0 ? INT64_MIN : INT64_MAX;
}

static MPI_Count product(MPI_Count a, MPI_Count b)
{
    MPI_Count out;

    if (!CHEMPI_MUL_OVERFLOWS(a, b, &out))
        return out;
    return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
}

static void include(struct reach *r, MPI_Count from, MPI_Count to)
{
    r->low = from < r->low ? from : r->low;
    r->high = to > r->high ? to : r->high;
}

/* An array, whose bytes may not be passed by. */
struct bounds {
    MPI_Count bytes;
    bool has_gaps;
};

/* False: it does not say what it is, or may not mean it. */
static bool read_bounds(struct bounds *out, const CFI_cdesc_t *d)
{
    struct chempi_section section;

    if (d->rank == 0 || !chempi_section_read(&section, d))
        return false;
    out->bytes = (MPI_Count)(chempi_section_count(&section) * section.elem_len);
    out->has_gaps = chempi_section_has_gaps(&section);
    return out->has_gaps ||
           (chempi_choice_watcher && d->dim[d->rank - 1].extent != 1);
}

struct layout {
    MPI_Count extent;
    MPI_Count start; /* of the data, from an element's first byte on */
    MPI_Count bytes;
};

/* False: it is none, which C refuses, or may mean what follows the array. */
static bool read_layout(struct layout *out, MPI_Datatype type,
                        const struct bounds *bounds)
{
    MPI_Count lb;

    return chempi_is_object(type) && type != MPI_DATATYPE_NULL &&
           (bounds->has_gaps || (uintptr_t)type < CHEMPI_PREDEFINED_END) &&
           !PMPI_Type_get_extent_c(type, &lb, &out->extent) &&
           !PMPI_Type_get_true_extent_c(type, &out->start, &out->bytes);
}

/* `count` elements, `offset` bytes from the array's first on. */
static void use(struct reach *r, MPI_Count offset, MPI_Count count,
                const struct layout *layout)
{
    const MPI_Count first = sum(offset, layout->start);
    const MPI_Count last = sum(first, product(count - 1, layout->extent));

    if (count <= 0 || layout->bytes == 0)
        return;
    include(r, first, sum(first, layout->bytes));
    include(r, last, sum(last, layout->bytes));
}

static int judge(const struct chempi_choice *x, const struct bounds *bounds,
                 const struct reach *r, const struct chempi_caller *caller)
{
    if (r->low >= 0 && r->high <= bounds->bytes)
        return MPI_SUCCESS;
    if (bounds->has_gaps)
        return chempi_choice_fail(caller, MPI_ERR_COUNT, x->name,
                                  "is an array section with gaps, and count "
                                  "and datatype reach beyond it");
    chempi_choice_watcher(caller->name, x->name, r->high, bounds->bytes);
    return MPI_SUCCESS;
}

int chempi_within_count(const struct chempi_choice *x, const CFI_cdesc_t *d,
                        MPI_Count count, MPI_Count times, MPI_Datatype type,
                        const struct chempi_caller *caller)
{
    struct reach r = {0};
    struct bounds bounds;
    struct layout layout;

    if (count <= 0 || !read_bounds(&bounds, d) ||
        !read_layout(&layout, type, &bounds))
        return MPI_SUCCESS;
    use(&r, 0, product(count, times), &layout);
    return judge(x, &bounds, &r, caller);
}

static MPI_Count count_at(const struct chempi_counts *c, int i)
{
    return c->is_wide ? ((const MPI_Count *)c->counts)[i]
                      : ((const int *)c->counts)[i];
}

static MPI_Count displ_at(const struct chempi_counts *c, int i)
{
    return c->is_far ? ((const MPI_Aint *)c->displs)[i]
                     : ((const int *)c->displs)[i];
}

int chempi_within_each(const struct chempi_choice *x, const CFI_cdesc_t *d,
                       const struct chempi_counts *counts, MPI_Datatype type,
                       const struct chempi_caller *caller)
{
    struct reach r = {0};
    struct bounds bounds;
    struct layout layout;
    MPI_Count at = 0;

    if (!read_bounds(&bounds, d) || !read_layout(&layout, type, &bounds))
        return MPI_SUCCESS;
    for (int i = 0; i < counts->n; i++) {
        const MPI_Count count = count_at(counts, i);

        if (counts->displs)
            at = displ_at(counts, i);
        use(&r, product(at, layout.extent), count, &layout);
        if (!counts->displs && count > 0)
            at = sum(at, count);
    }
    return judge(x, &bounds, &r, caller);
}

int chempi_within_types(const struct chempi_choice *x, const CFI_cdesc_t *d,
                        const struct chempi_counts *counts,
                        const MPI_Datatype types[],
                        const struct chempi_caller *caller)
{
    struct reach r = {0};
    struct bounds bounds;
    struct layout layout;

    if (!read_bounds(&bounds, d))
        return MPI_SUCCESS;
    for (int i = 0; i < counts->n; i++) {
        if (count_at(counts, i) <= 0)
            continue;
        if (!read_layout(&layout, types[i], &bounds))
            return MPI_SUCCESS;
        use(&r, displ_at(counts, i), count_at(counts, i), &layout);
    }
    return judge(x, &bounds, &r, caller);
}
