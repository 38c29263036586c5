/* SPDX-License-Identifier: BSD-3-Clause */
/* Datatypes through the public calls, in a world of one. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/datatype/typemap.h"

#define ARENA (1 << 20) /* bytes; displacement 0 is the middle */
#define MIDDLE (ARENA / 2)
#define ELEMENTS_MAX 3

static unsigned char *arena;
static unsigned char *packed;
static unsigned char *expected;
static int deletions; /* of attributes */

static void start(void)
{
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    arena = malloc(ARENA);
    packed = malloc(ARENA);
    expected = malloc(ARENA);
}

static void stop(void)
{
    free(arena);
    free(packed);
    free(expected);
    MPI_Finalize();
}

static void scramble(unsigned char *bytes)
{
    for (size_t i = 0; i < ARENA; i++)
        bytes[i] = (unsigned char)typemap_random(256);
}

static void check_bounds(const struct typemap *map)
{
    MPI_Aint lb, extent, true_lb, true_ub, got_lb, got_extent;
    MPI_Count size;

    MPI_Type_size_c(map->type, &size);
    cr_assert_eq(size, typemap_size(map));
    MPI_Type_get_extent(map->type, &lb, &extent);
    cr_assert_eq(extent, map->ub - map->lb, "extent %ld, not %ld", (long)extent,
                 (long)(map->ub - map->lb));
    cr_assert_eq(lb, map->lb, "lower bound %ld, not %ld", (long)lb,
                 (long)map->lb);
    MPI_Type_get_true_extent(map->type, &got_lb, &got_extent);
    typemap_true_bounds(map, &true_lb, &true_ub);
    cr_assert_eq(got_lb, true_lb);
    cr_assert_eq(got_extent, true_ub - true_lb);
}

/* The address of a byte of entry k of element i. */
static unsigned char *byte_of(const struct typemap *map, int i, size_t k, int b)
{
    return arena + MIDDLE + i * (map->ub - map->lb) + map->entries[k].disp + b;
}

static void check_pack(const struct typemap *map, int count)
{
    size_t n = 0;
    int position = 0;
    int size;

    scramble(arena);
    for (int i = 0; i < count; i++)
        for (size_t k = 0; k < map->count; k++)
            for (int b = 0; b < map->entries[k].size; b++)
                expected[n++] = *byte_of(map, i, k, b);
    MPI_Pack_size(count, map->type, MPI_COMM_SELF, &size);
    cr_assert_eq((size_t)size, n);
    cr_assert_eq(MPI_Pack(arena + MIDDLE, count, map->type, packed, size,
                          &position, MPI_COMM_SELF),
                 MPI_SUCCESS);
    cr_assert_eq(position, size);
    cr_assert(memcmp(packed, expected, n) == 0);
}

/* Overlapping entries would make the result depend on the order. */
static bool has_overlap(const struct typemap *map, int count)
{
    bool is_found = false;

    memset(arena, 0, ARENA);
    for (int i = 0; i < count; i++)
        for (size_t k = 0; k < map->count; k++)
            for (int b = 0; b < map->entries[k].size; b++)
                is_found |= (*byte_of(map, i, k, b))++ != 0;
    return is_found;
}

static void check_unpack(const struct typemap *map, int count)
{
    int size = (int)typemap_size(map) * count;
    int position = 0;
    size_t n = 0;

    if (has_overlap(map, count))
        return;
    scramble(packed);
    memset(arena, 7, ARENA);
    for (int i = 0; i < count; i++)
        for (size_t k = 0; k < map->count; k++)
            for (int b = 0; b < map->entries[k].size; b++)
                *byte_of(map, i, k, b) = packed[n++];
    memcpy(expected, arena, ARENA);
    memset(arena, 7, ARENA);
    cr_assert_eq(MPI_Unpack(packed, size, &position, arena + MIDDLE, count,
                            map->type, MPI_COMM_SELF),
                 MPI_SUCCESS);
    cr_assert_eq(position, size);
    cr_assert(memcmp(arena, expected, ARENA) == 0);
}

/* Every prefix of whole basic elements is counted as such. */
static void check_elements(const struct typemap *map)
{
    MPI_Status status;
    MPI_Count elements;
    MPI_Count count;

    for (size_t k = 0; k <= 2 * map->count; k += 1 + map->count / 7) {
        MPI_Status_set_elements_c(&status, map->type, (MPI_Count)k);
        MPI_Get_elements_c(&status, map->type, &elements);
        cr_assert_eq(elements, (MPI_Count)k);
        MPI_Get_count_c(&status, map->type, &count);
        if (map->count > 0 && k % map->count == 0)
            cr_assert_eq(count, (MPI_Count)(k / map->count));
        else if (map->count > 0)
            cr_assert_eq(count, MPI_UNDEFINED);
    }
}

static void check_external(const struct typemap *map, int count)
{
    MPI_Aint size;
    MPI_Aint position = 0;

    if (has_overlap(map, count))
        return;
    MPI_Pack_external_size("external32", count, map->type, &size);
    scramble(packed);
    memset(arena, 7, ARENA);
    cr_assert_eq(MPI_Unpack_external("external32", packed, size, &position,
                                     arena + MIDDLE, count, map->type),
                 MPI_SUCCESS);
    cr_assert_eq(position, size);
    position = 0;
    cr_assert_eq(MPI_Pack_external("external32", arena + MIDDLE, count,
                                   map->type, expected, size, &position),
                 MPI_SUCCESS);
    cr_assert_eq(position, size);
    for (size_t k = 0; k < map->count; k++)
        if (map->entries[k].basic == MPI_LONG_DOUBLE)
            return; /* not every binary128 fits a long double */
    cr_assert(memcmp(packed, expected, (size_t)size) == 0);
}

static void check_type(int depth, bool is_wide)
{
    struct typemap map = typemap_make(depth, is_wide);
    int count = (int)typemap_random(ELEMENTS_MAX + 1);

    check_bounds(&map);
    MPI_Type_commit(&map.type);
    check_pack(&map, count);
    check_unpack(&map, count);
    check_elements(&map);
    check_external(&map, count);
    typemap_free(&map);
}

Test(types, are_what_their_type_maps_say, .init = start, .fini = stop)
{
    for (int i = 0; i < 300; i++)
        check_type(1 + (int)typemap_random(4), false);
}

Test(types, are_the_same_when_made_with_large_counts, .init = start,
     .fini = stop)
{
    for (int i = 0; i < 300; i++)
        check_type(1 + (int)typemap_random(4), true);
}

Test(types, have_the_sizes_of_the_language, .init = start, .fini = stop)
{
    static const struct {
        MPI_Datatype type;
        int size;
        int extent;
    } known[] = {{MPI_CHAR, 1, 1},
                 {MPI_SHORT, 2, 2},
                 {MPI_INT, 4, 4},
                 {MPI_LONG, sizeof(long), sizeof(long)},
                 {MPI_LONG_DOUBLE, sizeof(long double), sizeof(long double)},
                 {MPI_FLOAT_INT, 8, 8},
                 {MPI_DOUBLE_INT, 12, 16},
                 {MPI_LONG_INT, 12, 16},
                 {MPI_SHORT_INT, 6, 8},
                 {MPI_2INT, 8, 8},
                 {MPI_LONG_DOUBLE_INT, 20, 32},
                 {MPI_C_BOOL, 1, 1},
                 {MPI_WCHAR, 4, 4},
                 {MPI_INTEGER, 4, 4},
                 {MPI_DOUBLE_PRECISION, 8, 8},
                 {MPI_DOUBLE_COMPLEX, 16, 16},
                 {MPI_2DOUBLE_PRECISION, 16, 16},
                 {MPI_COMPLEX32, 32, 32},
                 {MPI_REAL2, 2, 2},
                 {MPI_COUNT, 8, 8},
                 {MPI_PACKED, 1, 1}};

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        MPI_Aint lb, extent;
        int size;

        MPI_Type_size(known[i].type, &size);
        MPI_Type_get_extent(known[i].type, &lb, &extent);
        cr_assert_eq(size, known[i].size);
        cr_assert_eq(extent, known[i].extent);
        cr_assert_eq(lb, 0);
    }
}

Test(types, agree_with_the_sizes_in_their_handles, .init = start, .fini = stop)
{
    for (uintptr_t h = 0x240; h < 0x300; h++) {
        MPI_Datatype type = (MPI_Datatype)h;
        int size;

        if ((h & 0x40) && MPI_Type_size(type, &size) == MPI_SUCCESS)
            cr_assert_eq(size, 1 << ((h >> 3) & 7), "handle %#lx", (long)h);
    }
}

Test(types, give_their_contents_back, .init = start, .fini = stop)
{
    int lengths[] = {1, 2};
    MPI_Aint displs[] = {0, 16};
    MPI_Datatype members[] = {MPI_INT, MPI_DOUBLE};
    MPI_Datatype type, got[2];
    int ints[3];
    MPI_Aint addresses[2];
    int ni, na, nd, combiner;

    MPI_Type_create_struct(2, lengths, displs, members, &type);
    MPI_Type_get_envelope(type, &ni, &na, &nd, &combiner);
    cr_assert_eq(combiner, MPI_COMBINER_STRUCT);
    cr_assert(ni == 3 && na == 2 && nd == 2);
    MPI_Type_get_contents(type, 3, 2, 2, ints, addresses, got);
    cr_assert(ints[0] == 2 && ints[1] == 1 && ints[2] == 2);
    cr_assert(addresses[0] == 0 && addresses[1] == 16);
    cr_assert(got[0] == MPI_INT && got[1] == MPI_DOUBLE);
    MPI_Type_free(&type);
}

static int count_deletions(MPI_Datatype type, int keyval, void *value,
                           void *extra)
{
    (void)type;
    (void)keyval;
    (void)value;
    (void)extra;
    deletions++;
    return MPI_SUCCESS;
}

Test(types, in_contents_are_objects_of_their_own, .init = start, .fini = stop)
{
    MPI_Datatype inner, outer, got;
    char name[MPI_MAX_OBJECT_NAME];
    int in[8] = {0, 1, 2, 3}, out[2], value[1], keyval, len, flag;
    int position = 0;
    void *attribute;

    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, count_deletions, &keyval,
                           NULL);
    MPI_Type_vector(2, 1, 3, MPI_INT, &inner);
    MPI_Type_commit(&inner);
    MPI_Type_set_attr(inner, keyval, &keyval);
    MPI_Type_contiguous(2, inner, &outer);
    MPI_Type_get_contents(outer, 1, 0, 1, value, NULL, &got);
    MPI_Type_set_name(got, "other");
    MPI_Type_get_name(inner, name, &len);
    cr_assert_eq(len, 0, "named %s", name);
    MPI_Type_commit(&got);
    MPI_Pack(in, 1, got, out, sizeof(out), &position, MPI_COMM_SELF);
    cr_assert(position == 8 && out[0] == 0 && out[1] == 3);
    MPI_Type_free(&got);
    cr_assert_eq(deletions, 0);
    MPI_Type_get_attr(inner, keyval, &attribute, &flag);
    cr_assert(flag && attribute == &keyval);
    MPI_Type_free(&inner);
    cr_assert_eq(deletions, 1);
    MPI_Type_free(&outer);
    MPI_Type_free_keyval(&keyval);
}

Test(types, beyond_63_bits_are_refused, .init = start, .fini = stop)
{
    int lengths[] = {1, 1};
    MPI_Aint apart[] = {-(INT64_C(1) << 62) - 8, (INT64_C(1) << 62) + 8};
    MPI_Aint end[] = {INT64_MAX - 4, 0};
    MPI_Datatype members[] = {MPI_CHAR, MPI_DOUBLE};
    MPI_Datatype type;

    cr_assert_neq(MPI_Type_create_hindexed(2, lengths, apart, MPI_INT, &type),
                  MPI_SUCCESS);
    cr_assert_neq(MPI_Type_create_struct(2, lengths, end, members, &type),
                  MPI_SUCCESS);
}

Test(types, of_huge_counts_are_measured_at_once, .init = start, .fini = stop)
{
    const MPI_Count elements = (INT64_C(1) << 45) + 3;
    MPI_Datatype row, table;
    MPI_Status status;
    MPI_Count count, size;

    MPI_Type_vector_c(INT64_C(1) << 40, 1, 2, MPI_LONG, &row);
    MPI_Type_contiguous_c(1 << 10, row, &table);
    MPI_Status_set_elements_c(&status, table, elements);
    MPI_Get_elements_c(&status, table, &count);
    cr_assert_eq(count, elements);
    MPI_Pack_external_size_c("external32", 1, table, &size);
    cr_assert_eq(size, INT64_C(1) << 52);
    MPI_Type_free(&row);
    MPI_Type_free(&table);
}

Test(types, made_with_large_counts_are_refused_by_the_int_enquiry,
     .init = start, .fini = stop)
{
    MPI_Datatype type, old;
    MPI_Count ni, na, nc, nd, large[3];
    int i1, i2, i3, combiner, none[1];
    MPI_Aint addresses[1];

    MPI_Type_vector_c(3, 2, 5, MPI_INT, &type);
    cr_assert_neq(MPI_Type_get_envelope(type, &i1, &i2, &i3, &combiner),
                  MPI_SUCCESS);
    MPI_Type_get_envelope_c(type, &ni, &na, &nc, &nd, &combiner);
    cr_assert(ni == 0 && na == 0 && nc == 3 && nd == 1);
    MPI_Type_get_contents_c(type, 0, 0, 3, 1, none, addresses, large, &old);
    cr_assert(large[0] == 3 && large[1] == 2 && large[2] == 5);
    cr_assert_eq(old, MPI_INT);
    MPI_Type_free(&type);
}

Test(types, may_be_larger_than_any_memory, .init = start, .fini = stop)
{
    MPI_Datatype row, matrix;
    MPI_Count size, lb, extent;
    int narrow;

    MPI_Type_vector(1 << 20, 1, 1 << 10, MPI_DOUBLE, &row);
    MPI_Type_contiguous_c(INT64_C(1) << 25, row, &matrix);
    MPI_Type_commit(&matrix);
    MPI_Type_size_c(matrix, &size);
    cr_assert_eq(size, INT64_C(1) << 48);
    MPI_Type_get_extent_c(matrix, &lb, &extent);
    cr_assert_gt(extent, size);
    MPI_Type_size(matrix, &narrow);
    cr_assert_eq(narrow, MPI_UNDEFINED);
    MPI_Type_free(&row);
    MPI_Type_free(&matrix);
}

Test(types, are_freed_only_after_their_last_use, .init = start, .fini = stop)
{
    MPI_Datatype inner, outer;
    int in[16] = {0};
    int out[8];
    int position = 0;

    for (int i = 0; i < 16; i++)
        in[i] = i;
    MPI_Type_vector(2, 1, 2, MPI_INT, &inner);
    MPI_Type_create_resized(inner, 0, 4 * sizeof(int), &outer);
    MPI_Type_free(&inner);
    cr_assert_eq(inner, MPI_DATATYPE_NULL);
    MPI_Type_commit(&outer);
    MPI_Pack(in, 4, outer, out, sizeof(out), &position, MPI_COMM_SELF);
    for (int i = 0; i < 8; i++)
        cr_assert_eq(out[i], 2 * i);
    MPI_Type_free(&outer);
}

Test(types, by_precision_are_the_same_handle_each_time, .init = start,
     .fini = stop)
{
    MPI_Datatype a, b;
    int ni, na, nd, combiner, args[2];

    MPI_Type_create_f90_real(15, 307, &a);
    MPI_Type_create_f90_real(15, 307, &b);
    cr_assert_eq(a, b);
    MPI_Type_get_envelope(a, &ni, &na, &nd, &combiner);
    cr_assert_eq(combiner, MPI_COMBINER_F90_REAL);
    MPI_Type_get_contents(a, 2, 0, 0, args, NULL, NULL);
    cr_assert(args[0] == 15 && args[1] == 307);
}

/* MPI 5.0, section 19.1.9. */
Test(types, by_precision_need_one_that_is_given, .init = start, .fini = stop)
{
    const int none = MPI_UNDEFINED;
    MPI_Datatype type;

    cr_assert_eq(MPI_Type_create_f90_real(none, none, &type), MPI_ERR_ARG);
    cr_assert_eq(MPI_Type_create_f90_complex(none, none, &type), MPI_ERR_ARG);
    cr_assert_eq(MPI_Type_create_f90_integer(none, &type), MPI_ERR_ARG);
    cr_assert_eq(MPI_Type_create_f90_integer(39, &type), MPI_ERR_ARG);
    cr_assert_eq(MPI_Type_create_f90_real(34, none, &type), MPI_ERR_ARG);
    cr_assert_eq(MPI_Type_create_f90_real(none, 4932, &type), MPI_ERR_ARG);
    cr_assert_eq(MPI_Type_create_f90_real(none, 4931, &type), MPI_SUCCESS);
    cr_assert_eq(MPI_Type_create_f90_integer(38, &type), MPI_SUCCESS);
}

Test(types, of_values_and_indexes_find_extremes, .init = start, .fini = stop)
{
    struct {
        double value;
        uint64_t index;
    } wide[] = {{2, 7}, {1, UINT64_MAX}};
    struct {
        float value;
        int64_t index;
    } gap[] = {{-1, 5}, {-1, -5}}, packed_gap = {0, 0};
    MPI_Datatype type, again, members[2];
    int ints, addresses, types, combiner, size, position = 0;
    char text[MPI_MAX_ERROR_STRING];

    MPI_Type_get_value_index(MPI_DOUBLE, MPI_UINT64_T, &type);
    cr_assert_neq(type, MPI_DATATYPE_NULL);
    MPI_Type_get_value_index(MPI_DOUBLE, MPI_UINT64_T, &again);
    cr_assert_eq(type, again);
    MPI_Type_get_envelope(type, &ints, &addresses, &types, &combiner);
    cr_assert(ints == 0 && addresses == 0 && types == 2 &&
              combiner == MPI_COMBINER_VALUE_INDEX);
    MPI_Type_get_contents(type, 0, 0, 2, NULL, NULL, members);
    cr_assert(members[0] == MPI_DOUBLE && members[1] == MPI_UINT64_T);
    MPI_Error_string(MPI_Type_free(&again), text, &size);
    cr_assert(strstr(text, "what MPI_Type_get_value_index gives cannot"), "%s",
              text);
    cr_assert_eq(MPI_Reduce_local(&wide[0], &wide[1], 1, type, MPI_MAXLOC),
                 MPI_SUCCESS);
    cr_assert(wide[1].value == 2 && wide[1].index == 7);
    cr_assert_neq(MPI_Reduce_local(&wide[0], &wide[1], 1, type, MPI_SUM),
                  MPI_SUCCESS);

    MPI_Type_get_value_index(MPI_FLOAT, MPI_INT64_T, &type);
    MPI_Type_size(type, &size);
    cr_assert_eq(size, 12);
    MPI_Reduce_local(&gap[1], &gap[0], 1, type, MPI_MINLOC);
    cr_assert(gap[0].value == -1 && gap[0].index == -5);
    MPI_Pack(&gap[0], 1, type, packed, size, &position, MPI_COMM_SELF);
    cr_assert_eq(position, 12);
    position = 0;
    MPI_Unpack(packed, 12, &position, &packed_gap, 1, type, MPI_COMM_SELF);
    cr_assert(packed_gap.value == -1 && packed_gap.index == -5);

    MPI_Type_get_value_index(MPI_DOUBLE, MPI_INT, &type);
    cr_assert_eq(type, MPI_DOUBLE_INT);
    MPI_Type_get_value_index(MPI_C_COMPLEX, MPI_INT, &type);
    cr_assert_eq(type, MPI_DATATYPE_NULL);
    MPI_Type_get_value_index(MPI_INT, MPI_DOUBLE, &type);
    cr_assert_eq(type, MPI_DATATYPE_NULL);
}

/* Each of a pair of the one before: a walk over them all would not end. */
Test(types, have_external_sizes_however_deep, .init = start, .fini = stop,
     .timeout = 300)
{
    const MPI_Count lens[2] = {1, 1};
    const MPI_Count zeros[2] = {0, 0};
    MPI_Datatype type;
    MPI_Count size;

    MPI_Type_contiguous(3, MPI_LONG, &type);
    for (int depth = 0; depth < 45; depth++) {
        MPI_Datatype both[2] = {type, type};
        MPI_Datatype pair;

        MPI_Type_create_struct_c(2, lens, zeros, both, &pair);
        MPI_Type_free(&type);
        MPI_Type_dup(pair, &type);
        MPI_Type_free(&pair);
    }
    MPI_Pack_external_size_c("external32", 5, type, &size);
    cr_assert_eq(size, (MPI_Count)5 * 3 * 4 << 45, "%lld", (long long)size);
    cr_assert_neq(
        MPI_Pack_external_size_c("external32", (MPI_Count)1 << 20, type, &size),
        MPI_SUCCESS);
    MPI_Type_free(&type);
}

/* ---- nested deeply ---- */

/* One int, said in one more way. */
static MPI_Datatype wrap(MPI_Datatype old, int way)
{
    const MPI_Aint at = 0;
    const int one = 1;
    const int first = 0;
    MPI_Datatype made = MPI_DATATYPE_NULL;

    switch (way % 7) {
    case 0:
        MPI_Type_dup(old, &made);
        break;
    case 1:
        MPI_Type_contiguous(1, old, &made);
        break;
    case 2:
        MPI_Type_create_resized(old, 0, sizeof(int), &made);
        break;
    case 3:
        MPI_Type_create_hvector(1, 1, 0, old, &made);
        break;
    case 4:
        MPI_Type_create_hindexed(1, &one, &at, old, &made);
        break;
    case 5:
        MPI_Type_create_struct(1, &one, &at, &old, &made);
        break;
    default:
        MPI_Type_create_subarray(1, &one, &one, &first, MPI_ORDER_C, old,
                                 &made);
        break;
    }
    return made;
}

static int class_of(int error)
{
    int class = MPI_SUCCESS;

    MPI_Error_class(error, &class);
    return class;
}

static void pack_one(MPI_Datatype type, int levels)
{
    const int value = 0x1234;
    unsigned char external[4];
    MPI_Aint at = 0;
    int out = 0;
    int position = 0;
    int error;

    MPI_Pack(&value, 1, type, &out, sizeof(out), &position, MPI_COMM_SELF);
    cr_assert(position == sizeof(int) && out == value);
    error = MPI_Pack_external("external32", &value, 1, type, external,
                              sizeof(external), &at);
    if (levels > 1001)
        cr_assert_eq(class_of(error), MPI_ERR_TYPE);
    else
        cr_assert(error == MPI_SUCCESS && at == 4 && external[2] == 0x12);
}

static void look_into(MPI_Datatype type)
{
    int counts[3];
    int ints[8];
    MPI_Aint addresses[4];
    MPI_Datatype inner;
    int combiner;

    MPI_Type_get_envelope(type, &counts[0], &counts[1], &counts[2], &combiner);
    cr_assert_eq(counts[2], 1);
    MPI_Type_get_contents(type, 8, 4, 1, ints, addresses, &inner);
    MPI_Type_free(&inner);
}

static void nest(int levels)
{
    MPI_Datatype type = MPI_INT;
    MPI_Status status;
    int count = -1;

    for (int i = 0; i < levels; i++) {
        MPI_Datatype made = wrap(type, i);

        if (i > 0)
            MPI_Type_free(&type);
        type = made;
    }
    look_into(type);
    MPI_Type_commit(&type);
    pack_one(type, levels);
    MPI_Status_set_elements(&status, type, 1);
    MPI_Get_elements(&status, type, &count);
    cr_assert_eq(count, 1);
    look_into(type);
    MPI_Type_free(&type);
}

Test(types, may_be_nested_deeply, .init = start, .fini = stop, .timeout = 300)
{
    nest(2);
    nest(1000);
    nest(1001);
    nest(1002);
    nest(200000);
}

/* A list of ints, each but the last one with the rest of the list. */
static MPI_Datatype list_of(int count, bool is_rest_first)
{
    const int ones[2] = {1, 1};
    MPI_Datatype type = MPI_INT;

    for (int i = 1; i < count; i++) {
        MPI_Aint places[2] = {0, 0};
        MPI_Datatype types[2] = {MPI_INT, MPI_INT};
        MPI_Datatype made;

        types[!is_rest_first] = type;
        places[is_rest_first] = i * (MPI_Aint)sizeof(int);
        MPI_Type_create_struct(2, ones, places, types, &made);
        if (i > 1)
            MPI_Type_free(&type);
        type = made;
    }
    return type;
}

Test(types, may_hold_data_on_each_level, .init = start, .fini = stop,
     .timeout = 300)
{
    enum { COUNT = 3000 };

    for (int way = 0; way < 2; way++) {
        MPI_Datatype type = list_of(COUNT, way);
        int *from = (int *)(void *)arena;
        const int *to = (const int *)(const void *)packed;
        MPI_Status status;
        int position = 0;
        int count = -1;

        MPI_Type_commit(&type);
        for (int i = 0; i < COUNT; i++)
            from[i] = i;
        MPI_Pack(from, 1, type, packed, ARENA, &position, MPI_COMM_SELF);
        cr_assert_eq(position, COUNT * (int)sizeof(int));
        for (int i = 0; i < COUNT; i++)
            cr_assert_eq(to[i], way ? i : COUNT - 1 - i);
        MPI_Status_set_elements(&status, type, COUNT / 2);
        MPI_Get_elements(&status, type, &count);
        cr_assert_eq(count, COUNT / 2);
        MPI_Get_count(&status, type, &count);
        cr_assert_eq(count, MPI_UNDEFINED);
        MPI_Type_free(&type);
    }
}

/* Twice of the one before: what is compiled once only ends. */
Test(types, are_compiled_once_each, .init = start, .fini = stop, .timeout = 300)
{
    const int ones[3] = {1, 1, 1};
    MPI_Datatype type = MPI_INT;
    MPI_Count size;

    for (int i = 0; i < 45; i++) {
        MPI_Datatype types[3] = {type, MPI_BYTE, type};
        MPI_Aint places[3] = {0, 0, 0};
        MPI_Aint lb;
        MPI_Datatype made;

        MPI_Type_get_extent(type, &lb, &places[1]);
        places[2] = places[1] + (MPI_Aint)sizeof(int);
        MPI_Type_create_struct(3, ones, places, types, &made);
        if (i > 0)
            MPI_Type_free(&type);
        type = made;
    }
    cr_assert_eq(MPI_Type_commit(&type), MPI_SUCCESS);
    MPI_Type_size_c(type, &size);
    cr_assert_eq(size, ((MPI_Count)5 << 45) - 1);
    MPI_Type_free(&type);
}

Test(types, in_external32_are_big_endian, .init = start, .fini = stop)
{
    int value = 0x01020304;
    long wide = -2;
    long double pi = 3.14159265358979323846L, back;
    unsigned char out[16];
    MPI_Aint position = 0;

    MPI_Pack_external("external32", &value, 1, MPI_INT, out, sizeof(out),
                      &position);
    cr_assert(position == 4 && out[0] == 1 && out[3] == 4);
    position = 0;
    MPI_Pack_external("external32", &wide, 1, MPI_LONG, out, sizeof(out),
                      &position);
    cr_assert(position == 4 && out[0] == 0xff && out[3] == 0xfe);
    position = 0;
    wide = 0;
    MPI_Unpack_external("external32", out, 4, &position, &wide, 1, MPI_LONG);
    cr_assert_eq(wide, -2);
    position = 0;
    MPI_Pack_external("external32", &pi, 1, MPI_LONG_DOUBLE, out, sizeof(out),
                      &position);
    cr_assert(position == 16 && out[0] == 0x40 && out[1] == 0x00);
    position = 0;
    MPI_Unpack_external("external32", out, 16, &position, &back, 1,
                        MPI_LONG_DOUBLE);
    cr_assert(back == pi);
}

static void *commit(void *arg)
{
    MPI_Datatype type = arg; /* a handle of one's own */

    MPI_Type_commit(&type);
    return NULL;
}

static void check_column(MPI_Datatype type)
{
    int out[3] = {-1, -1, -1};
    int position = 0;

    for (int i = 0; i < 6; i++)
        ((int *)(void *)arena)[i] = i;
    MPI_Type_commit(&type);
    MPI_Pack(arena, 1, type, out, sizeof(out), &position, MPI_COMM_SELF);
    cr_assert(out[0] == 0 && out[1] == 2 && out[2] == 4);
    MPI_Type_free(&type);
}

/* No thread may look at what commit is writing: ThreadSanitizer sees it. */
static void copy_while_another_commits(bool is_dup)
{
    MPI_Datatype type, outer, copy;
    pthread_t other;
    int count;

    MPI_Type_vector(3, 1, 2, MPI_INT, &type);
    MPI_Type_contiguous(1, type, &outer);
    cr_assert_eq(pthread_create(&other, NULL, commit, type), 0);
    if (is_dup)
        MPI_Type_dup(type, &copy);
    else
        MPI_Type_get_contents(outer, 1, 0, 1, &count, NULL, &copy);
    pthread_join(other, NULL);
    check_column(copy);
    check_column(type);
    MPI_Type_free(&outer);
}

static void start_with_threads(void)
{
    int provided;

    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    cr_assert_eq(provided, MPI_THREAD_MULTIPLE);
    arena = malloc(ARENA);
}

static void stop_with_threads(void)
{
    free(arena);
    MPI_Finalize();
}

Test(types, are_copied_while_another_thread_commits_them,
     .init = start_with_threads, .fini = stop_with_threads)
{
    for (int i = 0; i < 50; i++)
        copy_while_another_commits(i % 2);
}
