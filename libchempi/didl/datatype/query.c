/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Questions about a datatype: sizes, names, envelope and contents (MPI 5.0,
 * sections 5.1.5 to 5.1.13), and types found by their properties (19.1.9).
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "common/base/sys.h"
#include "common/containers/list.h"
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/datatype/basic_type.h"
#include "libchempi/didl/datatype/recipe.h"
#include "libchempi/didl/error/error.h"

int chempi_datatype_get_address(const void *location, MPI_Aint *address)
{
    *address = (MPI_Aint)location;
    return MPI_SUCCESS;
}

int chempi_datatype_size(struct chempi_datatype *datatype, MPI_Count *size)
{
    *size = datatype->size;
    return MPI_SUCCESS;
}

int chempi_datatype_get_extent(struct chempi_datatype *datatype, MPI_Count *lb,
                               MPI_Count *extent)
{
    *lb = datatype->lb;
    *extent = datatype->extent;
    return MPI_SUCCESS;
}

int chempi_datatype_get_true_extent(struct chempi_datatype *datatype,
                                    MPI_Count *true_lb, MPI_Count *true_extent)
{
    *true_lb = datatype->true_lb;
    *true_extent = datatype->true_extent;
    return MPI_SUCCESS;
}

int chempi_datatype_set_name(struct chempi_datatype *datatype,
                             const char *type_name)
{
    (void)snprintf(datatype->name, sizeof(datatype->name), "%s", type_name);
    return MPI_SUCCESS;
}

int chempi_datatype_get_name(struct chempi_datatype *datatype, char *type_name,
                             int *resultlen)
{
    *resultlen = snprintf(type_name, MPI_MAX_OBJECT_NAME, "%s",
                          datatype ? datatype->name : "MPI_DATATYPE_NULL");
    return MPI_SUCCESS;
}

/* ---- envelope and contents ---- */

/* Does value i stay an int in the large-count form of this constructor? */
static bool is_always_int(const struct chempi_datatype_recipe *recipe,
                          MPI_Count i)
{
    MPI_Count ndims;

    if (recipe->combiner == MPI_COMBINER_SUBARRAY)
        return i == 0 || i == recipe->value_count - 1; /* ndims, order */
    if (recipe->combiner == MPI_COMBINER_DARRAY) {
        ndims = recipe->values[2];
        return i < 3 || i >= 3 + ndims; /* all but gsizes */
    }
    return false;
}

/* How the values divide into ints, addresses and large counts. */
static void count_kinds(const struct chempi_datatype_recipe *recipe,
                        MPI_Count *ints, MPI_Count *addresses, MPI_Count *large)
{
    *ints = recipe->int_count;
    *addresses = recipe->value_count - recipe->int_count;
    *large = 0;
    if (!recipe->is_wide)
        return;
    *ints = 0;
    *addresses = 0;
    for (MPI_Count i = 0; i < recipe->value_count; i++)
        *ints += is_always_int(recipe, i);
    *large = recipe->value_count - *ints;
}

static int need_wide(void)
{
    return chempi_error_set(MPI_ERR_TYPE,
                            "the datatype was made with large "
                            "counts: ask for it with the _c form of this call");
}

int chempi_datatype_get_envelope_wide(struct chempi_datatype *datatype,
                                      MPI_Count *num_integers,
                                      MPI_Count *num_addresses,
                                      MPI_Count *num_large_counts,
                                      MPI_Count *num_datatypes, int *combiner)
{
    const struct chempi_datatype_recipe *recipe = datatype->recipe;

    if (!recipe) {
        *num_integers = 0;
        *num_addresses = 0;
        *num_large_counts = 0;
        *num_datatypes = 0;
        *combiner = MPI_COMBINER_NAMED;
        return MPI_SUCCESS;
    }
    count_kinds(recipe, num_integers, num_addresses, num_large_counts);
    *num_datatypes = recipe->type_count;
    *combiner = recipe->combiner;
    return MPI_SUCCESS;
}

int chempi_datatype_get_envelope(struct chempi_datatype *datatype,
                                 int *num_integers, int *num_addresses,
                                 int *num_datatypes, int *combiner)
{
    MPI_Count ints;
    MPI_Count addresses;
    MPI_Count large;
    MPI_Count types;
    int found;

    (void)chempi_datatype_get_envelope_wide(datatype, &ints, &addresses, &large,
                                            &types, &found);
    if (large > 0)
        return need_wide();
    *num_integers = (int)ints; /* came in as int counts */
    *num_addresses = (int)addresses;
    *num_datatypes = (int)types;
    *combiner = found;
    return MPI_SUCCESS;
}

static int too_few(const char *what, MPI_Count have, MPI_Count need)
{
    return chempi_error_set(MPI_ERR_ARG,
                            "room for %lld %s, the datatype has "
                            "%lld",
                            (long long)have, what, (long long)need);
}

/* The types that a type was made of, as new objects for the user to free:
 * what is done to them must not show in those of the program. */
static int give_types(const struct chempi_datatype_recipe *recipe,
                      MPI_Datatype out[])
{
    for (MPI_Count i = 0; i < recipe->type_count; i++) {
        struct chempi_datatype *type = recipe->types[i];

        if (!type->is_predefined)
            type = chempi_datatype_copy_of(type);
        if (type) {
            out[i] = type->handle;
            continue;
        }
        while (i-- > 0) {
            chempi_datatype_release(chempi_datatype_lookup(out[i]));
            out[i] = MPI_DATATYPE_NULL;
        }
        return MPI_ERR_NO_MEM;
    }
    return MPI_SUCCESS;
}

int chempi_datatype_get_contents_wide(
    struct chempi_datatype *datatype, MPI_Count max_integers,
    MPI_Count max_addresses, MPI_Count max_large_counts,
    MPI_Count max_datatypes, int array_of_integers[],
    MPI_Aint array_of_addresses[], MPI_Count array_of_large_counts[],
    MPI_Datatype array_of_datatypes[])
{
    const struct chempi_datatype_recipe *recipe = datatype->recipe;
    MPI_Count ints;
    MPI_Count addresses;
    MPI_Count large;

    if (!recipe)
        return chempi_error_set(MPI_ERR_TYPE,
                                "%s is predefined and has no "
                                "contents",
                                datatype->name);
    count_kinds(recipe, &ints, &addresses, &large);
    if (max_integers < ints)
        return too_few("integers", max_integers, ints);
    if (max_addresses < addresses)
        return too_few("addresses", max_addresses, addresses);
    if (max_large_counts < large)
        return too_few("large counts", max_large_counts, large);
    if (max_datatypes < recipe->type_count)
        return too_few("datatypes", max_datatypes, recipe->type_count);
    ints = 0;
    addresses = 0;
    large = 0;
    for (MPI_Count i = 0; i < recipe->value_count; i++) {
        MPI_Count value = recipe->values[i];

        if (recipe->is_wide ? is_always_int(recipe, i) : i < recipe->int_count)
            array_of_integers[ints++] = (int)value;
        else if (recipe->is_wide)
            array_of_large_counts[large++] = value;
        else
            array_of_addresses[addresses++] = value;
    }
    return give_types(recipe, array_of_datatypes);
}

int chempi_datatype_get_contents(struct chempi_datatype *datatype,
                                 int max_integers, int max_addresses,
                                 int max_datatypes, int array_of_integers[],
                                 MPI_Aint array_of_addresses[],
                                 MPI_Datatype array_of_datatypes[])
{
    MPI_Count ints;
    MPI_Count addresses;
    MPI_Count large = 0;

    if (datatype->recipe)
        count_kinds(datatype->recipe, &ints, &addresses, &large);
    if (large > 0)
        return need_wide();
    return chempi_datatype_get_contents_wide(
        datatype, max_integers, max_addresses, 0, max_datatypes,
        array_of_integers, array_of_addresses, NULL, array_of_datatypes);
}

/* ---- types by their properties ---- */

/* Predefined types of one class by size; a row ends the class's list. */
struct by_size {
    int typeclass;
    int size; /* bytes */
    MPI_Datatype type;
};

int chempi_datatype_match_size(int typeclass, int size, MPI_Datatype *datatype)
{
    static const struct by_size table[] = {
        {MPI_TYPECLASS_INTEGER, 1, MPI_INTEGER1},
        {MPI_TYPECLASS_INTEGER, 2, MPI_INTEGER2},
        {MPI_TYPECLASS_INTEGER, 4, MPI_INTEGER4},
        {MPI_TYPECLASS_INTEGER, 8, MPI_INTEGER8},
        {MPI_TYPECLASS_INTEGER, 16, MPI_INTEGER16},
        {MPI_TYPECLASS_REAL, 2, MPI_REAL2},
        {MPI_TYPECLASS_REAL, 4, MPI_REAL4},
        {MPI_TYPECLASS_REAL, 8, MPI_REAL8},
        {MPI_TYPECLASS_REAL, 16, MPI_REAL16},
        {MPI_TYPECLASS_COMPLEX, 4, MPI_COMPLEX4},
        {MPI_TYPECLASS_COMPLEX, 8, MPI_COMPLEX8},
        {MPI_TYPECLASS_COMPLEX, 16, MPI_COMPLEX16},
        {MPI_TYPECLASS_COMPLEX, 32, MPI_COMPLEX32},
        {MPIX_TYPECLASS_LOGICAL, 1, MPI_LOGICAL1},
        {MPIX_TYPECLASS_LOGICAL, 2, MPI_LOGICAL2},
        {MPIX_TYPECLASS_LOGICAL, 4, MPI_LOGICAL4},
        {MPIX_TYPECLASS_LOGICAL, 8, MPI_LOGICAL8},
        {MPIX_TYPECLASS_LOGICAL, 16, MPI_LOGICAL16},
    };

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(table); i++)
        if (table[i].typeclass == typeclass && table[i].size == size) {
            *datatype = table[i].type;
            return MPI_SUCCESS;
        }
    return chempi_error_set(MPI_ERR_ARG, "no datatype of class %d has %d bytes",
                            typeclass, size);
}

/* ---- Fortran 90 kinds ---- */

/*
 * Types by precision and range are made once per request and stay for ever:
 * they are predefined, and the same request gives the same handle.
 */
static struct {
    pthread_mutex_t lock;
    struct chempi_list made; /* of struct f90_type */
} f90 = {.lock = PTHREAD_MUTEX_INITIALIZER, .made = {&f90.made, &f90.made}};

struct f90_type {
    struct chempi_list link;
    struct chempi_datatype *type;
};

/* Decimal digits and exponent range of the kinds of a compiler. */
struct f90_kind {
    int precision;
    int range;
    MPI_Datatype real;
    MPI_Datatype complex;
};

static struct chempi_datatype *find_f90_locked(int combiner, const int *args,
                                               int n)
{
    CHEMPI_LIST_FOR (link, &f90.made) {
        struct chempi_datatype *type =
            CHEMPI_CONTAINER_OF(link, struct f90_type, link)->type;
        bool is_same = type->recipe->combiner == combiner;

        for (int i = 0; i < n && is_same; i++)
            is_same = type->recipe->values[i] == args[i];
        if (is_same)
            return type;
    }
    return NULL;
}

/* A predefined datatype like `base` with an envelope of its own. */
static struct chempi_datatype *make_f90_locked(int combiner, const int *args,
                                               int n, MPI_Datatype base)
{
    const struct chempi_datatype *like = chempi_datatype_lookup(base);
    struct chempi_datatype *type =
        chempi_datatype_make(combiner, false, n, n, 0);
    struct f90_type *entry = type ? chempi_sys->malloc(sizeof(*entry)) : NULL;

    if (!entry) {
        chempi_datatype_release(type);
        return NULL;
    }
    type->is_predefined = true;
    type->is_committed = true;
    type->is_contiguous = true;
    type->elem_kind = like->elem_kind;
    type->align = like->align;
    type->elements = like->elements;
    type->size = like->size;
    type->extent = like->extent;
    type->true_extent = like->true_extent;
    for (int i = 0; i < n; i++)
        type->recipe->values[i] = args[i];
    entry->type = type;
    chempi_list_append(&f90.made, &entry->link);
    return type;
}

static int get_f90(int combiner, const int *args, int n, MPI_Datatype base,
                   MPI_Datatype *newtype)
{
    struct chempi_datatype *type;

    (void)pthread_mutex_lock(&f90.lock);
    type = find_f90_locked(combiner, args, n);
    if (!type)
        type = make_f90_locked(combiner, args, n, base);
    (void)pthread_mutex_unlock(&f90.lock);
    if (!type)
        return chempi_error_set(MPI_ERR_NO_MEM, "no room for a datatype");
    *newtype = type->handle;
    return MPI_SUCCESS;
}

static const struct f90_kind *find_kind(int p, int r)
{
    static const struct f90_kind kinds[] = {
        {6, 37, MPI_REAL4, MPI_COMPLEX8},
        {15, 307, MPI_REAL8, MPI_COMPLEX16},
        {18, 4931, MPI_LONG_DOUBLE, MPI_C_LONG_DOUBLE_COMPLEX},
        {33, 4931, MPI_REAL16, MPI_COMPLEX32},
    };

    if (p == MPI_UNDEFINED && r == MPI_UNDEFINED) {
        (void)chempi_error_set(MPI_ERR_ARG,
                               "both the digits and the exponent range are "
                               "MPI_UNDEFINED; one of them must be given");
        return NULL;
    }
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(kinds); i++)
        if ((p == MPI_UNDEFINED || p <= kinds[i].precision) &&
            (r == MPI_UNDEFINED || r <= kinds[i].range))
            return &kinds[i];
    (void)chempi_error_set(MPI_ERR_ARG,
                           "no kind has %d digits and a decimal "
                           "exponent range of %d",
                           p, r);
    return NULL;
}

int chempi_datatype_create_f90_real(int p, int r, MPI_Datatype *newtype)
{
    const struct f90_kind *kind = find_kind(p, r);
    int args[] = {p, r};

    if (!kind)
        return MPI_ERR_ARG;
    return get_f90(MPI_COMBINER_F90_REAL, args, 2, kind->real, newtype);
}

int chempi_datatype_create_f90_complex(int p, int r, MPI_Datatype *newtype)
{
    const struct f90_kind *kind = find_kind(p, r);
    int args[] = {p, r};

    if (!kind)
        return MPI_ERR_ARG;
    return get_f90(MPI_COMBINER_F90_COMPLEX, args, 2, kind->complex, newtype);
}

int chempi_datatype_create_f90_integer(int r, MPI_Datatype *newtype)
{
    static const struct {
        int range;
        MPI_Datatype type;
    } kinds[] = {{2, MPI_INTEGER1},
                 {4, MPI_INTEGER2},
                 {9, MPI_INTEGER4},
                 {18, MPI_INTEGER8},
                 {38, MPI_INTEGER16}};

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(kinds) && r != MPI_UNDEFINED; i++)
        if (r <= kinds[i].range)
            return get_f90(MPI_COMBINER_F90_INTEGER, &r, 1, kinds[i].type,
                           newtype);
    return chempi_error_set(MPI_ERR_ARG,
                            "no integer kind has a decimal range "
                            "of %d%s",
                            r, r == MPI_UNDEFINED ? " (MPI_UNDEFINED)" : "");
}
