/* SPDX-License-Identifier: BSD-3-Clause */
/* Facts of the element kinds on this machine. */
#include "libchempi/didl/datatype/basic_type.h"

#include <stdbool.h>
#include <stddef.h>
#include <wchar.h>

/* One number of C type `type`. */
#define ONE(kind, type)                                                        \
    [CHEMPI_BASIC_TYPE_##                                                      \
        kind] = {sizeof(type),           sizeof(type),                         \
                 _Alignof(type),         CHEMPI_BASIC_TYPE_##kind,             \
                 CHEMPI_BASIC_TYPE_NONE, 0}

/* A complex number of two `part`s. */
#define TWO(kind, part, type)                                                  \
    [CHEMPI_BASIC_TYPE_##kind] = {                                             \
        2 * sizeof(type),         2 * sizeof(type),         _Alignof(type),    \
        CHEMPI_BASIC_TYPE_##part, CHEMPI_BASIC_TYPE_##part, sizeof(type)}

/* A pair laid out as `type`. */
#define PAIR(one, two, type, tone, ttwo)                                       \
    [CHEMPI_BASIC_TYPE_PAIR_##one##_##two] = {sizeof(tone) + sizeof(ttwo),     \
                                              sizeof(type),                    \
                                              _Alignof(type),                  \
                                              CHEMPI_BASIC_TYPE_##one,         \
                                              CHEMPI_BASIC_TYPE_##two,         \
                                              offsetof(type, index)}

#define NAMELESS(one, two, tone, ttwo)                                         \
    [CHEMPI_BASIC_TYPE_NAMELESS_##one##_##two] = {                             \
        sizeof(tone) + sizeof(ttwo),                                           \
        sizeof(struct chempi_basic_type_nameless_##one##_##two),               \
        _Alignof(struct chempi_basic_type_nameless_##one##_##two),             \
        CHEMPI_BASIC_TYPE_##one,                                               \
        CHEMPI_BASIC_TYPE_##two,                                               \
        offsetof(struct chempi_basic_type_nameless_##one##_##two, index)},

/* 16 bytes with the alignment of long double, as Fortran compilers do. */
struct quad {
    _Alignas(16) unsigned char bytes[16];
};

struct two_float {
    float value;
    float index;
};

struct two_double {
    double value;
    double index;
};

const struct chempi_basic_type_info
    chempi_basic_type_table[CHEMPI_BASIC_TYPE_COUNT] = {
        ONE(BYTE, char),
        ONE(PACKED, char),
        ONE(CHAR, char),
        ONE(WCHAR, wchar_t),
        ONE(I8, int8_t),
        ONE(I16, int16_t),
        ONE(I32, int32_t),
        ONE(I64, int64_t),
        ONE(I128, struct quad),
        ONE(U8, uint8_t),
        ONE(U16, uint16_t),
        ONE(U32, uint32_t),
        ONE(U64, uint64_t),
        ONE(F16, int16_t),
        ONE(F32, float),
        ONE(F64, double),
        ONE(FLD, long double),
        ONE(F128, struct quad),
        TWO(C16, F16, int16_t),
        TWO(C32, F32, float),
        TWO(C64, F64, double),
        TWO(CLD, FLD, long double),
        TWO(C128, F128, struct quad),
        ONE(BOOL, bool),
        ONE(L8, int8_t),
        ONE(L16, int16_t),
        ONE(L32, int32_t),
        ONE(L64, int64_t),
        ONE(L128, struct quad),
        PAIR(F32, I32, struct chempi_basic_type_float_int, float, int),
        PAIR(F64, I32, struct chempi_basic_type_double_int, double, int),
        [CHEMPI_BASIC_TYPE_PAIR_LONG_I32] =
            {sizeof(long) + sizeof(int),
             sizeof(struct chempi_basic_type_long_int),
             _Alignof(struct chempi_basic_type_long_int), CHEMPI_BASIC_TYPE_I64,
             CHEMPI_BASIC_TYPE_I32,
             offsetof(struct chempi_basic_type_long_int, index)},
        PAIR(I32, I32, struct chempi_basic_type_2int, int, int),
        PAIR(I16, I32, struct chempi_basic_type_short_int, short, int),
        PAIR(FLD, I32, struct chempi_basic_type_long_double_int, long double,
             int),
        PAIR(F32, F32, struct two_float, float, float),
        PAIR(F64, F64, struct two_double, double, double),
        CHEMPI_BASIC_TYPE_NAMELESS(NAMELESS)};

_Static_assert(sizeof(long) == 8, "MPI_LONG_INT is taken for (I64, I32)");
