/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The predefined datatypes (MPI 5.0, sections 3.2, 5.1, 6.9 and 20.3), by the
 * low byte of their ABI handle. They exist before MPI_Init and for ever.
 */
#include "libchempi/didl/datatype/datatype.h"

#include <wchar.h>

#include "libchempi/didl/datatype/basic_type.h"
#include "libchempi/services/layout/layout.h"

/* A pair with a hole has the layout of its C struct. */
static const int64_t short_int_offsets[] = {
    0, offsetof(struct chempi_basic_type_short_int, index)};
static const uint64_t short_int_starts[] = {0, 2, 6};
static struct chempi_layout_node short_int_node = {.refs = 1,
                                                   .kind = CHEMPI_LAYOUT_RUNS,
                                                   .depth = 1,
                                                   .size = 6,
                                                   .count = 2,
                                                   .blocks = 2,
                                                   .offsets = short_int_offsets,
                                                   .starts = short_int_starts};
static const struct chempi_layout short_int_layout = {
    .size = 6,
    .extent = sizeof(struct chempi_basic_type_short_int),
    .root = &short_int_node};

static struct chempi_layout_node wide_int_node = {.refs = 1,
                                                  .kind = CHEMPI_LAYOUT_BLOCK,
                                                  .depth = 1,
                                                  .size = 12,
                                                  .count = 1,
                                                  .blocks = 1};
static const struct chempi_layout wide_int_layout = {
    .size = 12, .extent = 16, .root = &wide_int_node};

static struct chempi_layout_node long_double_int_node = {
    .refs = 1,
    .kind = CHEMPI_LAYOUT_BLOCK,
    .depth = 1,
    .size = sizeof(long double) + sizeof(int),
    .count = 1,
    .blocks = 1};
static const struct chempi_layout long_double_int_layout = {
    .size = sizeof(long double) + sizeof(int),
    .extent = sizeof(struct chempi_basic_type_long_double_int),
    .root = &long_double_int_node};

_Static_assert(sizeof(struct chempi_basic_type_double_int) == 16 &&
                   sizeof(struct chempi_basic_type_long_int) == 16,
               "the layout of pairs of 8 and 4 bytes");

#define COMMON(low, mpi_name, kind)                                            \
    .obj = {.magic = CHEMPI_MAGIC_DATATYPE, .refs = 1}, .is_committed = true,  \
    .is_predefined = true, .elem_kind = CHEMPI_BASIC_TYPE_##kind,              \
    .handle = (MPI_Datatype)(0x200 + (low)), .name = "MPI_" #mpi_name

/* Elements of C type `type`. */
#define ONE(low, mpi_name, kind, type)                                         \
    [low] = {COMMON(low, mpi_name, kind), .is_contiguous = true,               \
             .align = _Alignof(type),     .elements = 1,                       \
             .size = sizeof(type),        .extent = sizeof(type),              \
             .true_extent = sizeof(type)}

/* Complex numbers of two `part`s. */
#define TWO(low, mpi_name, kind, part)                                         \
    [low] = {COMMON(low, mpi_name, kind),    .is_contiguous = true,            \
             .align = _Alignof(part),        .elements = 1,                    \
             .size = 2 * sizeof(part),       .extent = 2 * sizeof(part),       \
             .true_extent = 2 * sizeof(part)}

/* Pairs without holes, two `part`s each. */
#define PAIR(low, mpi_name, kind, part)                                        \
    [low] = {COMMON(low, mpi_name, PAIR_##kind),                               \
             .is_contiguous = true,                                            \
             .align = _Alignof(part),                                          \
             .elements = 2,                                                    \
             .size = 2 * sizeof(part),                                         \
             .extent = 2 * sizeof(part),                                       \
             .true_extent = 2 * sizeof(part)}

/* Pairs with padding inside or at the end of struct chempi_basic_type_`c`. */
#define PADDED(low, mpi_name, kind, c, c_value, c_layout)                      \
    [low] = {COMMON(low, mpi_name, PAIR_##kind),                               \
             .align = _Alignof(struct chempi_basic_type_##c),                  \
             .elements = 2,                                                    \
             .size = sizeof(c_value) + sizeof(int),                            \
             .extent = sizeof(struct chempi_basic_type_##c),                   \
             .true_extent =                                                    \
                 offsetof(struct chempi_basic_type_##c, index) + sizeof(int),  \
             .layout = &(c_layout)}

struct quad {
    _Alignas(16) unsigned char bytes[16];
};

struct chempi_datatype chempi_datatype_predefined[256] = {
    ONE(0x01, AINT, I64, MPI_Aint),
    ONE(0x02, COUNT, I64, MPI_Count),
    ONE(0x03, OFFSET, I64, MPI_Offset),
    ONE(0x07, PACKED, PACKED, char),
    ONE(0x08, SHORT, I16, short),
    ONE(0x09, INT, I32, int),
    ONE(0x0a, LONG, I64, long),
    ONE(0x0b, LONG_LONG_INT, I64, long long),
    ONE(0x0c, UNSIGNED_SHORT, U16, unsigned short),
    ONE(0x0d, UNSIGNED, U32, unsigned),
    ONE(0x0e, UNSIGNED_LONG, U64, unsigned long),
    ONE(0x0f, UNSIGNED_LONG_LONG, U64, unsigned long long),
    ONE(0x10, FLOAT, F32, float),
    TWO(0x12, C_COMPLEX, C32, float),
    TWO(0x13, CXX_FLOAT_COMPLEX, C32, float),
    ONE(0x14, DOUBLE, F64, double),
    TWO(0x16, C_DOUBLE_COMPLEX, C64, double),
    TWO(0x17, CXX_DOUBLE_COMPLEX, C64, double),
    ONE(0x18, LOGICAL, L32, int),
    ONE(0x19, INTEGER, I32, int),
    ONE(0x1a, REAL, F32, float),
    TWO(0x1b, COMPLEX, C32, float),
    ONE(0x1c, DOUBLE_PRECISION, F64, double),
    TWO(0x1d, DOUBLE_COMPLEX, C64, double),
    ONE(0x1e, CHARACTER, CHAR, char),
    ONE(0x20, LONG_DOUBLE, FLD, long double),
    TWO(0x24, C_LONG_DOUBLE_COMPLEX, CLD, long double),
    TWO(0x25, CXX_LONG_DOUBLE_COMPLEX, CLD, long double),
    PAIR(0x28, FLOAT_INT, F32_I32, float),
    PADDED(0x29, DOUBLE_INT, F64_I32, double_int, double, wide_int_layout),
    PADDED(0x2a, LONG_INT, LONG_I32, long_int, long, wide_int_layout),
    PAIR(0x2b, 2INT, I32_I32, int),
    PADDED(0x2c, SHORT_INT, I16_I32, short_int, short, short_int_layout),
    PADDED(0x2d, LONG_DOUBLE_INT, FLD_I32, long_double_int, long double,
           long_double_int_layout),
    PAIR(0x30, 2REAL, F32_F32, float),
    PAIR(0x31, 2DOUBLE_PRECISION, F64_F64, double),
    PAIR(0x32, 2INTEGER, I32_I32, int),
    ONE(0x38, C_BOOL, BOOL, bool),
    ONE(0x39, CXX_BOOL, BOOL, bool),
    ONE(0x3c, WCHAR, WCHAR, wchar_t),
    ONE(0x40, INT8_T, I8, int8_t),
    ONE(0x41, UINT8_T, U8, uint8_t),
    ONE(0x43, CHAR, CHAR, char),
    ONE(0x44, SIGNED_CHAR, I8, signed char),
    ONE(0x45, UNSIGNED_CHAR, U8, unsigned char),
    ONE(0x47, BYTE, BYTE, unsigned char),
    ONE(0x48, INT16_T, I16, int16_t),
    ONE(0x49, UINT16_T, U16, uint16_t),
    ONE(0x50, INT32_T, I32, int32_t),
    ONE(0x51, UINT32_T, U32, uint32_t),
    ONE(0x58, INT64_T, I64, int64_t),
    ONE(0x59, UINT64_T, U64, uint64_t),
    ONE(0xc0, LOGICAL1, L8, int8_t),
    ONE(0xc1, INTEGER1, I8, int8_t),
    ONE(0xc8, LOGICAL2, L16, int16_t),
    ONE(0xc9, INTEGER2, I16, int16_t),
    ONE(0xca, REAL2, F16, int16_t),
    ONE(0xd0, LOGICAL4, L32, int32_t),
    ONE(0xd1, INTEGER4, I32, int32_t),
    ONE(0xd2, REAL4, F32, float),
    TWO(0xd3, COMPLEX4, C16, int16_t),
    ONE(0xd8, LOGICAL8, L64, int64_t),
    ONE(0xd9, INTEGER8, I64, int64_t),
    ONE(0xda, REAL8, F64, double),
    TWO(0xdb, COMPLEX8, C32, float),
    ONE(0xe0, LOGICAL16, L128, struct quad),
    ONE(0xe1, INTEGER16, I128, struct quad),
    ONE(0xe2, REAL16, F128, struct quad),
    TWO(0xe3, COMPLEX16, C64, double),
    TWO(0xeb, COMPLEX32, C128, struct quad),
};
