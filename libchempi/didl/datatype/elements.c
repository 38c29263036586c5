/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much a status tells of (MPI 5.0, sections 3.2.5 and 5.1.11): whole
 * elements, basic elements, and setting them for generalized requests.
 */
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/datatype/recipe.h"
#include "libchempi/didl/elem.h"
#include "libchempi/didl/error.h"
#include "libchempi/didl/status.h"

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

/* Bytes to account for, basic elements found in them. */
struct tally {
    MPI_Count left;
    MPI_Count elements;
};

/* Basic elements that begin a run of a predefined type. */
static bool tally_leaf(void *arg, struct chempi_datatype *leaf, MPI_Count disp,
                       MPI_Count n)
{
    struct tally *tally = arg;
    const struct chempi_elem_info *info = &chempi_elem_table[leaf->elem_kind];
    MPI_Count whole = tally->left / leaf->size;

    (void)disp;
    if (whole > n)
        whole = n;
    tally->left -= whole * leaf->size;
    tally->elements += whole * leaf->elements;
    if (whole == n)
        return true;
    if (leaf->elements == 2 &&
        tally->left >= chempi_elem_table[info->first].size) {
        tally->left -= chempi_elem_table[info->first].size;
        tally->elements++;
    }
    return false;
}

int chempi_status_get_elements(const MPI_Status *status,
                               struct chempi_datatype *datatype,
                               MPI_Count *count)
{
    MPI_Count bytes = chempi_status_bytes(status);
    struct tally tally = {0};

    if (datatype->size == 0) {
        *count = bytes == 0 ? 0 : MPI_UNDEFINED;
        return MPI_SUCCESS;
    }
    tally.left = bytes % datatype->size;
    tally.elements = bytes / datatype->size * datatype->elements;
    if (tally.left > 0)
        (void)chempi_datatype_for_leaves(datatype, 0, 1, tally_leaf, &tally);
    *count = tally.left == 0 ? tally.elements : MPI_UNDEFINED;
    return MPI_SUCCESS;
}

/* Bytes of the first `left` basic elements. */
struct span {
    MPI_Count left;
    MPI_Count bytes;
};

static bool span_leaf(void *arg, struct chempi_datatype *leaf, MPI_Count disp,
                      MPI_Count n)
{
    struct span *span = arg;
    const struct chempi_elem_info *info = &chempi_elem_table[leaf->elem_kind];
    MPI_Count whole = span->left / leaf->elements;

    (void)disp;
    if (whole > n)
        whole = n;
    span->left -= whole * leaf->elements;
    span->bytes += whole * leaf->size;
    if (whole == n)
        return true;
    if (span->left > 0) { /* the first half of a pair */
        span->left--;
        span->bytes += chempi_elem_table[info->first].size;
    }
    return false;
}

/* count is of basic elements: MPI_Get_elements will return it. */
int chempi_status_set_elements(MPI_Status *status,
                               struct chempi_datatype *datatype,
                               MPI_Count count)
{
    struct span span = {0};
    bool is_overflown = false;

    if (count > 0 && datatype->elements == 0)
        return chempi_error_set(MPI_ERR_TYPE,
                                "the datatype has no elements, "
                                "so there cannot be %lld",
                                (long long)count);
    if (count > 0) {
        span.left = count % datatype->elements;
        span.bytes = chempi_datatype_muladd(count / datatype->elements,
                                            datatype->size, 0, &is_overflown);
    }
    if (count < 0 || is_overflown)
        return chempi_error_set(MPI_ERR_COUNT,
                                "%lld elements of a datatype "
                                "of %lld bytes",
                                (long long)count, (long long)datatype->size);
    if (span.left > 0)
        (void)chempi_datatype_for_leaves(datatype, 0, 1, span_leaf, &span);
    chempi_status_set_bytes(status, span.bytes);
    return MPI_SUCCESS;
}
