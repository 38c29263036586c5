/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much a status tells of (MPI 5.0, sections 3.2.5 and 5.1.11): whole
 * elements, basic elements, and setting them for generalized requests.
 */
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/base/status.h"
#include "libchempi/didl/datatype/basic_type.h"
#include "libchempi/didl/datatype/recipe.h"
#include "libchempi/didl/error/error.h"

int chempi_status_get_count(const MPI_Status *status,
                            struct chempi_datatype *datatype, MPI_Count *count)
{
    MPI_Count bytes = chempi_status_bytes(status);

    if (datatype->size == 0)
        *count = bytes == 0 ? 0 : MPI_UNDEFINED;
    else
        *count = bytes % datatype->size == 0 ? bytes / datatype->size
                                             : MPI_UNDEFINED;
    return MPI_SUCCESS;
}

/*
 * A prefix of some elements, given by its bytes or by its basic elements and
 * measured in the other: what is left of it to walk over, and what was walked.
 * Whole elements of any type are stepped over at once, so the walk costs what
 * the types are made of, whatever the counts.
 */
struct prefix {
    MPI_Count left;
    MPI_Count done;
    bool is_in_bytes; /* `left` is; `done` counts basic elements then */
};

static MPI_Count measure(const struct prefix *p,
                         const struct chempi_datatype *type, bool is_left)
{
    return p->is_in_bytes == is_left ? type->size : type->elements;
}

/* The first number of a pair that ends the prefix. */
static void take_half(struct prefix *p, const struct chempi_datatype *pair)
{
    uint8_t first = chempi_basic_type_table[pair->elem_kind].first;
    MPI_Count bytes = chempi_basic_type_table[first].size;
    MPI_Count need = p->is_in_bytes ? bytes : 1;

    if (pair->elements == 2 && p->left >= need) {
        p->left -= need;
        p->done += p->is_in_bytes ? 1 : bytes;
    }
}

/* Take whole elements of a type off the prefix, at most n; were there n? */
static bool take_whole(struct prefix *p, const struct chempi_datatype *type,
                       MPI_Count n)
{
    MPI_Count whole;

    if (type->size == 0)
        return true;
    whole = p->left / measure(p, type, true);
    if (whole > n)
        whole = n;
    p->left -= whole * measure(p, type, true);
    p->done += whole * measure(p, type, false);
    return whole == n;
}

/* The prefix ends within an element of this type, which is not predefined: take
 * what is whole off it. The type in which it ends then. */
static const struct chempi_datatype *enter(struct prefix *p,
                                           const struct chempi_datatype *type)
{
    const struct chempi_datatype_recipe *recipe = type->recipe;
    MPI_Count i = 0;

    if (recipe->combiner != MPI_COMBINER_STRUCT) { /* of one kind throughout */
        (void)take_whole(p, recipe->types[0],
                         type->size / recipe->types[0]->size);
        return recipe->types[0];
    }
    while (take_whole(p, recipe->types[i], recipe->values[1 + i]))
        i++;
    return recipe->types[i];
}

/* Walk to the end of the prefix. */
static void walk(struct prefix *p, const struct chempi_datatype *type)
{
    (void)take_whole(p, type, INT64_MAX);
    while (p->left > 0 && !type->is_predefined)
        type = enter(p, type);
    if (p->left > 0)
        take_half(p, type);
}

int chempi_status_get_elements(const MPI_Status *status,
                               struct chempi_datatype *datatype,
                               MPI_Count *count)
{
    MPI_Count bytes = chempi_status_bytes(status);
    struct prefix prefix = {.left = bytes, .is_in_bytes = true};

    if (datatype->size == 0) {
        *count = bytes == 0 ? 0 : MPI_UNDEFINED;
        return MPI_SUCCESS;
    }
    walk(&prefix, datatype);
    *count = prefix.left == 0 ? prefix.done : MPI_UNDEFINED;
    return MPI_SUCCESS;
}

/* count is of basic elements: MPI_Get_elements will return it. */
int chempi_status_set_elements(MPI_Status *status,
                               struct chempi_datatype *datatype,
                               MPI_Count count)
{
    struct prefix prefix = {0};
    bool is_overflown = false;

    if (count > 0 && datatype->elements == 0)
        return chempi_error_set(MPI_ERR_TYPE,
                                "the datatype has no elements, "
                                "so there cannot be %lld",
                                (long long)count);
    if (count > 0)
        (void)chempi_datatype_muladd(
            count / datatype->elements, datatype->size,
            count % datatype->elements ? datatype->size : 0, &is_overflown);
    if (count < 0 || is_overflown)
        return chempi_error_set(MPI_ERR_COUNT,
                                "%lld elements of a datatype "
                                "of %lld bytes",
                                (long long)count, (long long)datatype->size);
    prefix.left = count;
    walk(&prefix, datatype);
    chempi_status_set_bytes(status, prefix.done);
    return MPI_SUCCESS;
}
