/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pairs of a value and an index for MPI_MINLOC and MPI_MAXLOC (MPI 5.0, section
 * 6.9.4): those with names, and others of C's integers and floating-point
 * numbers, which are made when asked for the first time and stay for ever: the
 * same request gives the same handle.
 */
#include <pthread.h>
#include <stdlib.h>

#include "common/base/sys.h"
#include "common/containers/list.h"
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/datatype/basic_type.h"
#include "libchempi/didl/datatype/recipe.h"
#include "libchempi/didl/error/error.h"

static struct {
    pthread_mutex_t lock;
    struct chempi_list made; /* of struct pair */
} pairs = {.lock = PTHREAD_MUTEX_INITIALIZER,
           .made = {&pairs.made, &pairs.made}};

struct pair {
    struct chempi_list link;
    struct chempi_datatype *type;
};

/* The pair with a name, or MPI_DATATYPE_NULL. */
static MPI_Datatype find_named(MPI_Datatype value, MPI_Datatype index)
{
    static const MPI_Datatype table[][3] = {
        {MPI_FLOAT, MPI_INT, MPI_FLOAT_INT},
        {MPI_DOUBLE, MPI_INT, MPI_DOUBLE_INT},
        {MPI_LONG, MPI_INT, MPI_LONG_INT},
        {MPI_INT, MPI_INT, MPI_2INT},
        {MPI_SHORT, MPI_INT, MPI_SHORT_INT},
        {MPI_LONG_DOUBLE, MPI_INT, MPI_LONG_DOUBLE_INT},
        {MPI_REAL, MPI_REAL, MPI_2REAL},
        {MPI_DOUBLE_PRECISION, MPI_DOUBLE_PRECISION, MPI_2DOUBLE_PRECISION},
        {MPI_INTEGER, MPI_INTEGER, MPI_2INTEGER},
    };

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(table); i++)
        if (table[i][0] == value && table[i][1] == index)
            return table[i][2];
    return MPI_DATATYPE_NULL;
}

/* The kind of the pair without a name, or CHEMPI_BASIC_TYPE_NONE. */
static uint8_t find_kind(const struct chempi_datatype *value,
                         const struct chempi_datatype *index)
{
    if (!value->is_predefined || !index->is_predefined)
        return CHEMPI_BASIC_TYPE_NONE;
    for (int kind = CHEMPI_BASIC_TYPE_PAIR_LAST + 1;
         kind < CHEMPI_BASIC_TYPE_COUNT; kind++)
        if (chempi_basic_type_table[kind].first == value->elem_kind &&
            chempi_basic_type_table[kind].second == index->elem_kind)
            return (uint8_t)kind;
    return CHEMPI_BASIC_TYPE_NONE;
}

static struct chempi_datatype *
find_made_locked(const struct chempi_datatype *value,
                 const struct chempi_datatype *index)
{
    CHEMPI_LIST_FOR (link, &pairs.made) {
        struct chempi_datatype *type =
            CHEMPI_CONTAINER_OF(link, struct pair, link)->type;

        if (type->recipe->types[0] == value && type->recipe->types[1] == index)
            return type;
    }
    return NULL;
}

/* Where the two numbers lie; NULL when out of memory. */
static const struct chempi_layout *
lay_out(const struct chempi_basic_type_info *info)
{
    const int64_t offsets[] = {0, info->second_at};
    const uint64_t lens[] = {chempi_basic_type_table[info->first].size,
                             chempi_basic_type_table[info->second].size};
    struct chempi_layout *layout = chempi_sys->malloc(sizeof(*layout));
    const struct chempi_layout_node *root =
        layout ? chempi_layout_blocks(2, offsets, lens) : NULL;

    if (!root) {
        free(layout);
        return NULL;
    }
    *layout = (struct chempi_layout){
        .size = info->size, .extent = info->extent, .root = root};
    return layout;
}

static struct chempi_datatype *make_locked(struct chempi_datatype *value,
                                           struct chempi_datatype *index,
                                           uint8_t kind)
{
    const struct chempi_basic_type_info *info = &chempi_basic_type_table[kind];
    struct chempi_datatype *type =
        chempi_datatype_make(MPI_COMBINER_VALUE_INDEX, false, 0, 0, 2);
    struct pair *pair = type ? chempi_sys->malloc(sizeof(*pair)) : NULL;

    if (pair && info->size < info->extent)
        type->layout = lay_out(info);
    if (!pair || (info->size < info->extent && !type->layout)) {
        free(pair);
        chempi_datatype_release(type);
        return NULL;
    }
    type->is_contiguous = info->size == info->extent;
    type->is_committed = true;
    type->is_predefined = true;
    type->elem_kind = kind;
    type->align = info->align;
    type->elements = 2;
    type->size = info->size;
    type->extent = info->extent;
    type->true_extent =
        info->second_at + chempi_basic_type_table[info->second].size;
    type->recipe->types[0] = value;
    type->recipe->types[1] = index;
    pair->type = type;
    chempi_list_append(&pairs.made, &pair->link);
    return type;
}

int chempi_datatype_get_value_index(struct chempi_datatype *value_type,
                                    struct chempi_datatype *index_type,
                                    MPI_Datatype *pair_type)
{
    struct chempi_datatype *type;
    uint8_t kind = find_kind(value_type, index_type);

    *pair_type = find_named(value_type->handle, index_type->handle);
    if (*pair_type != MPI_DATATYPE_NULL || kind == CHEMPI_BASIC_TYPE_NONE)
        return MPI_SUCCESS;
    (void)pthread_mutex_lock(&pairs.lock);
    type = find_made_locked(value_type, index_type);
    if (!type)
        type = make_locked(value_type, index_type, kind);
    (void)pthread_mutex_unlock(&pairs.lock);
    if (!type)
        return chempi_error_set(MPI_ERR_NO_MEM, "no room for a datatype");
    *pair_type = type->handle;
    return MPI_SUCCESS;
}
