/* SPDX-License-Identifier: BSD-3-Clause */
/* The predefined operations on representatives of every group of types. */
#include <criterion/criterion.h>
#include <limits.h>
#include <stdint.h>

#include "libchempi/didl/datatype/basic_type.h"
#include "libchempi/didl/op/op.h"
#include "libchempi/didl/op/op_loops.h"

static chempi_op_loop *loop(enum chempi_op_index op,
                            enum chempi_basic_type elem)
{
    cr_assert_not_null(chempi_op_loops[op][elem]);
    return chempi_op_loops[op][elem];
}

Test(op, integers_wrap_and_compare_with_their_sign)
{
    int16_t in[3] = {INT16_MAX, -5, 300};
    int16_t inout[3] = {1, 3, 300};
    int8_t low[2] = {-1, 5};
    int8_t other[2] = {1, -5};

    loop(CHEMPI_OP_SUM, CHEMPI_BASIC_TYPE_I16)(in, inout, 3);
    cr_assert(inout[0] == INT16_MIN && inout[1] == -2 && inout[2] == 600);
    loop(CHEMPI_OP_PROD, CHEMPI_BASIC_TYPE_I16)(in, inout, 3);
    cr_assert(inout[1] == 10 && inout[2] == (int16_t)(uint16_t)(180000u));
    loop(CHEMPI_OP_MIN, CHEMPI_BASIC_TYPE_I8)(low, other, 2);
    cr_assert(other[0] == -1 && other[1] == -5);
    loop(CHEMPI_OP_MAX, CHEMPI_BASIC_TYPE_U8)(low, other, 2);
    cr_assert(other[0] == -1 && other[1] == -5); /* 255, 251 */
}

Test(op, logical_operations_give_zero_or_one)
{
    int32_t in[4] = {0, 0, 7, 7};
    int32_t land[4] = {0, 8, 0, 8};
    int32_t lxor[4] = {0, 8, 0, 8};

    loop(CHEMPI_OP_LAND, CHEMPI_BASIC_TYPE_I32)(in, land, 4);
    loop(CHEMPI_OP_LXOR, CHEMPI_BASIC_TYPE_L32)(in, lxor, 4);
    cr_assert(land[0] == 0 && land[1] == 0 && land[2] == 0 && land[3] == 1);
    cr_assert(lxor[0] == 0 && lxor[1] == 1 && lxor[2] == 1 && lxor[3] == 0);
}

Test(op, complex_numbers_multiply)
{
    double in[2] = {1, 2};
    double inout[2] = {3, -1};
    float sum_in[4] = {1, 2, 3, 4};
    float sum[4] = {10, 20, 30, 40};

    loop(CHEMPI_OP_PROD, CHEMPI_BASIC_TYPE_C64)(in, inout, 1);
    cr_assert(inout[0] == 5.0 && inout[1] == 5.0);
    loop(CHEMPI_OP_SUM, CHEMPI_BASIC_TYPE_C32)(sum_in, sum, 2);
    cr_assert(sum[0] == 11 && sum[1] == 22 && sum[2] == 33 && sum[3] == 44);
}

Test(op, half_precision_rounds_to_nearest_even)
{
    /* 1.0, 2048, smallest subnormal, largest finite */
    uint16_t in[4] = {0x3c00, 0x6800, 0x0001, 0x7bff};
    uint16_t inout[4] = {0x3c00, 0x3c00, 0x0001, 0x7bff};
    uint16_t three[1] = {0x4200};
    uint16_t big[1] = {0x6800};

    loop(CHEMPI_OP_SUM, CHEMPI_BASIC_TYPE_F16)(in, inout, 4);
    cr_assert_eq(inout[0], 0x4000);
    cr_assert_eq(inout[1], 0x6800); /* 2049 is a tie: to even */
    cr_assert_eq(inout[2], 0x0002);
    cr_assert_eq(inout[3], 0x7c00); /* infinity */
    loop(CHEMPI_OP_SUM, CHEMPI_BASIC_TYPE_F16)(three, big, 1);
    cr_assert_eq(big[0], 0x6802); /* 2051 is a tie: up to 2052 */
}

Test(op, extreme_values_keep_the_least_index)
{
    struct chempi_basic_type_double_int in[3] = {{1.5, 4}, {2.0, 7}, {3.0, 1}};
    struct chempi_basic_type_double_int inout[3] = {
        {1.5, 6}, {1.0, 8}, {4.0, 2}};

    loop(CHEMPI_OP_MAXLOC, CHEMPI_BASIC_TYPE_PAIR_F64_I32)(in, inout, 3);
    cr_assert(inout[0].value == 1.5 && inout[0].index == 4);
    cr_assert(inout[1].value == 2.0 && inout[1].index == 7);
    cr_assert(inout[2].value == 4.0 && inout[2].index == 2);
}

Test(op, operations_are_missing_where_the_standard_has_none)
{
    cr_assert_null(chempi_op_loops[CHEMPI_OP_MAX][CHEMPI_BASIC_TYPE_C64]);
    cr_assert_null(chempi_op_loops[CHEMPI_OP_BAND][CHEMPI_BASIC_TYPE_F64]);
    cr_assert_null(chempi_op_loops[CHEMPI_OP_SUM][CHEMPI_BASIC_TYPE_BYTE]);
    cr_assert_null(chempi_op_loops[CHEMPI_OP_LAND][CHEMPI_BASIC_TYPE_C32]);
    cr_assert_null(chempi_op_loops[CHEMPI_OP_MINLOC][CHEMPI_BASIC_TYPE_I32]);
    cr_assert_null(
        chempi_op_loops[CHEMPI_OP_SUM][CHEMPI_BASIC_TYPE_PAIR_I32_I32]);
    cr_assert_null(chempi_op_lookup(MPI_OP_NULL));
}

enum { ROOM = 1 << 14, ELEMENTS = 259, SEED = 12345 };

/* Bytes of which no number is infinite or none, however they are read. */
static void fill(unsigned char *data, uint32_t seed)
{
    for (int i = 0; i < ROOM; i++) {
        seed = seed * 1664525u + 1013904223u;
        data[i] = (unsigned char)(seed >> 24 & 0xbf);
    }
}

/* Extreme values with an index have padding, and are no vectors. */
Test(op, wide_vectors_give_the_same_bits)
{
    static _Alignas(64) unsigned char in[ROOM];
    static _Alignas(64) unsigned char plain[ROOM];
    static _Alignas(64) unsigned char fast[ROOM];

    fill(in, SEED);
    for (int op = CHEMPI_OP_SUM; op <= CHEMPI_OP_LXOR; op++)
        for (int kind = 0; kind < CHEMPI_BASIC_TYPE_COUNT; kind++) {
            size_t extent = (size_t)chempi_basic_type_table[kind].extent;

            if (!chempi_op_loops[op][kind]) {
                cr_assert_null(chempi_op_fast_loops()[op][kind]);
                continue;
            }
            cr_assert_lt((ELEMENTS + 1) * extent, ROOM);
            fill(plain, SEED + 1);
            fill(fast, SEED + 1);
            for (size_t n = 0; n <= ELEMENTS; n += n < 40 ? 1 : 73) {
                chempi_op_loops[op][kind](in + extent, plain, n);
                chempi_op_fast_loops()[op][kind](in + extent, fast, n);
                cr_assert_arr_eq(plain, fast, ROOM, "operation %d, kind %d", op,
                                 kind);
            }
        }
}

static void add_one(void *in, void *inout, int *len, MPI_Datatype *type)
{
    (void)in;
    (void)type;
    for (int i = 0; i < *len; i++)
        ((char *)inout)[i]++;
    *len = 0; /* must not confuse the caller */
}

Test(op, user_functions_get_the_handle_and_all_elements)
{
    struct chempi_op op = {.fn = add_one};
    struct chempi_datatype type = {.size = 1, .extent = 1};
    char data[5] = {0};

    chempi_op_apply(&op, data, data, 5, &type);
    for (int i = 0; i < 5; i++)
        cr_assert_eq(data[i], 1);
}
