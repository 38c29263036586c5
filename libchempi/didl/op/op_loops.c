/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The loops of the predefined reduction operations (MPI 5.0, section 6.9.2).
 * Simple loops over restrict pointers, so that the compiler vectorizes them.
 *
 * Signed integers are added and multiplied as unsigned ones, which gives the
 * two's complement result without undefined behaviour; only MIN and MAX know
 * the sign. Half precision numbers, which have no C type, are widened
 * to float and rounded once per operation.
 *
 * The build compiles this file once for every processor, and again for those
 * with wider vectors, whose table it gives a name of its own.
 */
#include "libchempi/didl/op/op_loops.h"

#include <complex.h>
#include <stdbool.h>
#include <string.h>

#include "common/base/compiler.h"

/* inout[i] = expr of a (in) and b (inout), both of type T. */
#define LOOP(name, T, expr)                                                    \
    static void name(const void *in_, void *inout_, size_t n)                  \
    {                                                                          \
        const T *restrict in = in_;                                            \
        T *restrict inout = inout_;                                            \
                                                                               \
        for (size_t i = 0; i < n; i++) {                                       \
            const T a = in[i];                                                 \
            const T b = inout[i];                                              \
                                                                               \
            inout[i] = (T)(expr);                                              \
        }                                                                      \
    }

#define LOOPS_ORDER(s, T)                                                      \
    LOOP(min_##s, T, a < b ? a : b)                                            \
    LOOP(max_##s, T, a > b ? a : b)

/* W: unsigned type of at least int's width, where T's arithmetic wraps. */
#define LOOPS_BITS(s, T, W)                                                    \
    LOOP(sum_##s, T, (W)a + (W)b)                                              \
    LOOP(prod_##s, T, (W)a *(W)b)                                              \
    LOOP(band_##s, T, a &b)                                                    \
    LOOP(bor_##s, T, a | b)                                                    \
    LOOP(bxor_##s, T, a ^ b)                                                   \
    LOOP(land_##s, T, (a != 0) & (b != 0))                                     \
    LOOP(lor_##s, T, (a != 0) | (b != 0))                                      \
    LOOP(lxor_##s, T, (a != 0) ^ (b != 0))

#define LOOPS_FLOAT(s, T)                                                      \
    LOOPS_ORDER(s, T)                                                          \
    LOOP(sum_##s, T, a + b)                                                    \
    LOOP(prod_##s, T, a *b)

#define LOOPS_TRUTH(s, T)                                                      \
    LOOP(land_##s, T, (a != 0) & (b != 0))                                     \
    LOOP(lor_##s, T, (a != 0) | (b != 0))                                      \
    LOOP(lxor_##s, T, (a != 0) ^ (b != 0))

/* Fortran's LOGICAL of so many bits, number i in chempi_op_booleans. */
#define LOOP_LOGICAL(op, bits, T, i, expr)                                     \
    static void op##_l##bits(const void *in_, void *inout_, size_t n)          \
    {                                                                          \
        const struct chempi_op_booleans *known = &chempi_op_booleans[i];       \
        const T *in = in_;                                                     \
        T *inout = inout_;                                                     \
        T yes;                                                                 \
        T no;                                                                  \
                                                                               \
        if (!atomic_load_explicit(&known->is_set, memory_order_acquire)) {     \
            op##_u##bits(in_, inout_, n);                                      \
            return;                                                            \
        }                                                                      \
        memcpy(&yes, known->yes, sizeof(yes));                                 \
        memcpy(&no, known->no, sizeof(no));                                    \
        for (size_t k = 0; k < n; k++) {                                       \
            bool a = in[k] != no;                                              \
            bool b = inout[k] != no;                                           \
                                                                               \
            inout[k] = (expr) ? yes : no;                                      \
        }                                                                      \
    }

#define LOOPS_LOGICAL(bits, T, i)                                              \
    LOOP_LOGICAL(land, bits, T, i, a &&b)                                      \
    LOOP_LOGICAL(lor, bits, T, i, a || b)                                      \
    LOOP_LOGICAL(lxor, bits, T, i, a != b)

LOOPS_BITS(u8, uint8_t, uint32_t)
LOOPS_BITS(u16, uint16_t, uint32_t)
LOOPS_BITS(u32, uint32_t, uint32_t)
LOOPS_BITS(u64, uint64_t, uint64_t)
LOOPS_BITS(u128, chempi_u128, chempi_u128)
LOOPS_ORDER(u8, uint8_t)
LOOPS_ORDER(u16, uint16_t)
LOOPS_ORDER(u32, uint32_t)
LOOPS_ORDER(u64, uint64_t)
LOOPS_ORDER(i8, int8_t)
LOOPS_ORDER(i16, int16_t)
LOOPS_ORDER(i32, int32_t)
LOOPS_ORDER(i64, int64_t)
LOOPS_ORDER(i128, chempi_i128)
LOOPS_FLOAT(f32, float)
LOOPS_FLOAT(f64, double)
LOOPS_FLOAT(fld, long double)
LOOPS_FLOAT(f128, chempi_f128)
LOOPS_LOGICAL(8, uint8_t, 0)
LOOPS_LOGICAL(16, uint16_t, 1)
LOOPS_LOGICAL(32, uint32_t, 2)
LOOPS_LOGICAL(64, uint64_t, 3)
LOOPS_LOGICAL(128, chempi_u128, 4)
LOOPS_TRUTH(f32, float)
LOOPS_TRUTH(f64, double)
LOOPS_TRUTH(fld, long double)

LOOP(prod_c32, float _Complex, a *b)
LOOP(prod_c64, double _Complex, a *b)
LOOP(prod_cld, long double _Complex, a *b)

/* A sum of complex numbers is one of twice as many real ones. */
#define LOOP_TWICE(name, part)                                                 \
    static void name(const void *in, void *inout, size_t n)                    \
    {                                                                          \
        part(in, inout, 2 * n);                                                \
    }

LOOP_TWICE(sum_c32, sum_f32)
LOOP_TWICE(sum_c64, sum_f64)
LOOP_TWICE(sum_cld, sum_fld)
LOOP_TWICE(sum_c128, sum_f128)

struct c128 {
    chempi_f128 re;
    chempi_f128 im;
};

static struct c128 mul_c128(struct c128 a, struct c128 b)
{
    return (struct c128){
        .re = a.re * b.re - a.im * b.im,
        .im = a.re * b.im + a.im * b.re,
    };
}

static void prod_c128(const void *in_, void *inout_, size_t n)
{
    const struct c128 *restrict in = in_;
    struct c128 *restrict inout = inout_;

    for (size_t i = 0; i < n; i++)
        inout[i] = mul_c128(in[i], inout[i]);
}

/* IEEE binary16 to float, exact. */
static float half_widen(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
    uint32_t exponent = (h >> 10) & 0x1fu;
    uint32_t fraction = h & 0x3ffu;
    uint32_t bits;
    float f;

    if (exponent == 0x1f)
        bits = sign | 0x7f800000u | fraction << 13;
    else if (exponent != 0)
        bits = sign | (exponent + 112u) << 23 | fraction << 13;
    else {
        f = (float)fraction * 0x1p-24f; /* zero or subnormal */
        return sign ? -f : f;
    }
    memcpy(&f, &bits, sizeof(f));
    return f;
}

/* Float to IEEE binary16, to nearest, ties to even. */
static uint16_t half_round(float f)
{
    uint32_t bits;
    uint32_t sign;
    uint32_t mag;
    uint32_t unit;
    uint32_t rest;

    memcpy(&bits, &f, sizeof(bits));
    sign = (bits >> 16) & 0x8000u;
    mag = bits & 0x7fffffffu;
    if (mag > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u); /* NaN */
    if (mag >= 0x477ff000u)
        return (uint16_t)(sign | 0x7c00u); /* rounds to infinity */
    if (mag < 0x33000000u)
        return (uint16_t)sign; /* below half of the least subnormal */
    if (mag >= 0x38800000u) {
        unit = 13; /* normal: drop 13 fraction bits, rebias */
        mag -= 112u << 23;
    } else {
        unit = 126u - (mag >> 23); /* subnormal: 14 to 24 bits to drop */
        mag = (mag & 0x7fffffu) | 0x800000u;
    }
    rest = mag & ((1u << unit) - 1u);
    mag >>= unit;
    if (rest > 1u << (unit - 1u) || (rest == 1u << (unit - 1u) && (mag & 1u)))
        mag++;
    return (uint16_t)(sign | mag);
}

#define LOOP_HALF(name, expr)                                                  \
    static void name(const void *in_, void *inout_, size_t n)                  \
    {                                                                          \
        const uint16_t *restrict in = in_;                                     \
        uint16_t *restrict inout = inout_;                                     \
                                                                               \
        for (size_t i = 0; i < n; i++) {                                       \
            float a = half_widen(in[i]);                                       \
            float b = half_widen(inout[i]);                                    \
                                                                               \
            inout[i] = half_round(expr);                                       \
        }                                                                      \
    }

LOOP_HALF(sum_f16, a + b)
LOOP_HALF(prod_f16, a *b)
LOOP_HALF(min_f16, a < b ? a : b)
LOOP_HALF(max_f16, a > b ? a : b)
LOOP_TWICE(sum_c16, sum_f16)

static void prod_c16(const void *in_, void *inout_, size_t n)
{
    const uint16_t *restrict in = in_;
    uint16_t *restrict inout = inout_;

    for (size_t i = 0; i < 2 * n; i += 2) {
        float ar = half_widen(in[i]);
        float ai = half_widen(in[i + 1]);
        float br = half_widen(inout[i]);
        float bi = half_widen(inout[i + 1]);

        inout[i] = half_round(ar * br - ai * bi);
        inout[i + 1] = half_round(ar * bi + ai * br);
    }
}

struct pair_f32_f32 {
    float value;
    float index;
};

struct pair_f64_f64 {
    double value;
    double index;
};

/* The extreme value with its index; of equal values the least index. */
#define LOOP_LOC(name, T, better)                                              \
    static void name(const void *in_, void *inout_, size_t n)                  \
    {                                                                          \
        const T *restrict in = in_;                                            \
        T *restrict inout = inout_;                                            \
                                                                               \
        for (size_t i = 0; i < n; i++) {                                       \
            if (in[i].value better inout[i].value) {                           \
                inout[i].value = in[i].value;                                  \
                inout[i].index = in[i].index;                                  \
            } else if (in[i].value == inout[i].value &&                        \
                       in[i].index < inout[i].index) {                         \
                inout[i].index = in[i].index;                                  \
            }                                                                  \
        }                                                                      \
    }

#define LOOPS_LOC(s, T)                                                        \
    LOOP_LOC(minloc_##s, T, <)                                                 \
    LOOP_LOC(maxloc_##s, T, >)

LOOPS_LOC(f32_i32, struct chempi_basic_type_float_int)
LOOPS_LOC(f64_i32, struct chempi_basic_type_double_int)
LOOPS_LOC(long_i32, struct chempi_basic_type_long_int)
LOOPS_LOC(i32_i32, struct chempi_basic_type_2int)
LOOPS_LOC(i16_i32, struct chempi_basic_type_short_int)
LOOPS_LOC(fld_i32, struct chempi_basic_type_long_double_int)
LOOPS_LOC(f32_f32, struct pair_f32_f32)
LOOPS_LOC(f64_f64, struct pair_f64_f64)

#define LOOPS_NAMELESS(value, index, V, I)                                     \
    LOOPS_LOC(nameless_##value##_##index,                                      \
              struct chempi_basic_type_nameless_##value##_##index)
CHEMPI_BASIC_TYPE_NAMELESS(LOOPS_NAMELESS)

/* Operations whose result does not depend on the sign. MPI_CHAR is no type
 * for arithmetic in the standard's eyes; programs use it, and it harms no one
 * to treat it as the small integer that it is. */
#define ROW_ANY_SIGN(op)                                                       \
    [CHEMPI_BASIC_TYPE_I8] = op##_u8, [CHEMPI_BASIC_TYPE_I16] = op##_u16,      \
    [CHEMPI_BASIC_TYPE_I32] = op##_u32, [CHEMPI_BASIC_TYPE_I64] = op##_u64,    \
    [CHEMPI_BASIC_TYPE_I128] = op##_u128, [CHEMPI_BASIC_TYPE_U8] = op##_u8,    \
    [CHEMPI_BASIC_TYPE_U16] = op##_u16, [CHEMPI_BASIC_TYPE_U32] = op##_u32,    \
    [CHEMPI_BASIC_TYPE_U64] = op##_u64, [CHEMPI_BASIC_TYPE_CHAR] = op##_u8

#define ROW_SIGNED(op)                                                         \
    [CHEMPI_BASIC_TYPE_I8] = op##_i8, [CHEMPI_BASIC_TYPE_I16] = op##_i16,      \
    [CHEMPI_BASIC_TYPE_I32] = op##_i32, [CHEMPI_BASIC_TYPE_I64] = op##_i64,    \
    [CHEMPI_BASIC_TYPE_I128] = op##_i128, [CHEMPI_BASIC_TYPE_U8] = op##_u8,    \
    [CHEMPI_BASIC_TYPE_U16] = op##_u16, [CHEMPI_BASIC_TYPE_U32] = op##_u32,    \
    [CHEMPI_BASIC_TYPE_U64] = op##_u64, [CHEMPI_BASIC_TYPE_CHAR] = op##_i8

#define ROW_FLOAT(op)                                                          \
    [CHEMPI_BASIC_TYPE_F16] = op##_f16, [CHEMPI_BASIC_TYPE_F32] = op##_f32,    \
    [CHEMPI_BASIC_TYPE_F64] = op##_f64, [CHEMPI_BASIC_TYPE_FLD] = op##_fld,    \
    [CHEMPI_BASIC_TYPE_F128] = op##_f128

#define ROW_COMPLEX(op)                                                        \
    [CHEMPI_BASIC_TYPE_C16] = op##_c16, [CHEMPI_BASIC_TYPE_C32] = op##_c32,    \
    [CHEMPI_BASIC_TYPE_C64] = op##_c64, [CHEMPI_BASIC_TYPE_CLD] = op##_cld,    \
    [CHEMPI_BASIC_TYPE_C128] = op##_c128

#define ROW_LOGICAL(op)                                                        \
    [CHEMPI_BASIC_TYPE_BOOL] = op##_u8, [CHEMPI_BASIC_TYPE_L8] = op##_l8,      \
    [CHEMPI_BASIC_TYPE_L16] = op##_l16, [CHEMPI_BASIC_TYPE_L32] = op##_l32,    \
    [CHEMPI_BASIC_TYPE_L64] = op##_l64, [CHEMPI_BASIC_TYPE_L128] = op##_l128

/* Not in the standard's table, but other implementations have it. */
#define ROW_TRUTH(op)                                                          \
    [CHEMPI_BASIC_TYPE_F32] = op##_f32, [CHEMPI_BASIC_TYPE_F64] = op##_f64,    \
    [CHEMPI_BASIC_TYPE_FLD] = op##_fld

#define ROW_LOC(op)                                                            \
    [CHEMPI_BASIC_TYPE_PAIR_F32_I32] = op##_f32_i32,                           \
    [CHEMPI_BASIC_TYPE_PAIR_F64_I32] = op##_f64_i32,                           \
    [CHEMPI_BASIC_TYPE_PAIR_LONG_I32] = op##_long_i32,                         \
    [CHEMPI_BASIC_TYPE_PAIR_I32_I32] = op##_i32_i32,                           \
    [CHEMPI_BASIC_TYPE_PAIR_I16_I32] = op##_i16_i32,                           \
    [CHEMPI_BASIC_TYPE_PAIR_FLD_I32] = op##_fld_i32,                           \
    [CHEMPI_BASIC_TYPE_PAIR_F32_F32] = op##_f32_f32,                           \
    [CHEMPI_BASIC_TYPE_PAIR_F64_F64] = op##_f64_f64

#define ENTRY_MINLOC(value, index, V, I)                                       \
    [CHEMPI_BASIC_TYPE_NAMELESS_##value##_##index] =                           \
        minloc_nameless_##value##_##index,
#define ENTRY_MAXLOC(value, index, V, I)                                       \
    [CHEMPI_BASIC_TYPE_NAMELESS_##value##_##index] =                           \
        maxloc_nameless_##value##_##index,

_Static_assert(sizeof(bool) == 1, "BOOL is handled as one byte");

#ifndef CHEMPI_OP_LOOPS
#define CHEMPI_OP_LOOPS chempi_op_loops
#endif

chempi_op_loop
    *const CHEMPI_OP_LOOPS[CHEMPI_OP_COUNT][CHEMPI_BASIC_TYPE_COUNT] = {
        [CHEMPI_OP_SUM] = {ROW_ANY_SIGN(sum), ROW_FLOAT(sum), ROW_COMPLEX(sum)},
        [CHEMPI_OP_PROD] = {ROW_ANY_SIGN(prod), ROW_FLOAT(prod),
                            ROW_COMPLEX(prod)},
        [CHEMPI_OP_MIN] = {ROW_SIGNED(min), ROW_FLOAT(min)},
        [CHEMPI_OP_MAX] = {ROW_SIGNED(max), ROW_FLOAT(max)},
        [CHEMPI_OP_BAND] = {ROW_ANY_SIGN(band), [CHEMPI_BASIC_TYPE_BYTE] =
                                                    band_u8},
        [CHEMPI_OP_BOR] = {ROW_ANY_SIGN(bor), [CHEMPI_BASIC_TYPE_BYTE] =
                                                  bor_u8},
        [CHEMPI_OP_BXOR] = {ROW_ANY_SIGN(bxor), [CHEMPI_BASIC_TYPE_BYTE] =
                                                    bxor_u8},
        [CHEMPI_OP_LAND] = {ROW_ANY_SIGN(land), ROW_LOGICAL(land),
                            ROW_TRUTH(land)},
        [CHEMPI_OP_LOR] = {ROW_ANY_SIGN(lor), ROW_LOGICAL(lor), ROW_TRUTH(lor)},
        [CHEMPI_OP_LXOR] = {ROW_ANY_SIGN(lxor), ROW_LOGICAL(lxor),
                            ROW_TRUTH(lxor)},
        [CHEMPI_OP_MINLOC] = {ROW_LOC(minloc),
                              CHEMPI_BASIC_TYPE_NAMELESS(ENTRY_MINLOC)},
        [CHEMPI_OP_MAXLOC] = {ROW_LOC(maxloc),
                              CHEMPI_BASIC_TYPE_NAMELESS(ENTRY_MAXLOC)},
};
