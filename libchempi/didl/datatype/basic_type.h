/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the elements of a predefined datatype are, as arithmetic and external
 * representations see them. Several datatypes share a kind (MPI_INT and
 * MPI_INT32_T); a kind fixes size, alignment and meaning on this machine.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_BASIC_TYPE_H
#define CHEMPI_LIBCHEMPI_DIDL_BASIC_TYPE_H

#include <stdint.h>

/* Pairs without a name: X(kind of value, kind of index, their C types). */
#define CHEMPI_BASIC_TYPE_NAMELESS_OF(X, value, V)                             \
    X(value, I32, V, int32_t)                                                  \
    X(value, U32, V, uint32_t)                                                 \
    X(value, I64, V, int64_t)                                                  \
    X(value, U64, V, uint64_t)
#define CHEMPI_BASIC_TYPE_NAMELESS(X)                                          \
    CHEMPI_BASIC_TYPE_NAMELESS_OF(X, I16, int16_t)                             \
    CHEMPI_BASIC_TYPE_NAMELESS_OF(X, U16, uint16_t)                            \
    CHEMPI_BASIC_TYPE_NAMELESS_OF(X, I32, int32_t)                             \
    CHEMPI_BASIC_TYPE_NAMELESS_OF(X, U32, uint32_t)                            \
    CHEMPI_BASIC_TYPE_NAMELESS_OF(X, I64, int64_t)                             \
    CHEMPI_BASIC_TYPE_NAMELESS_OF(X, U64, uint64_t)                            \
    CHEMPI_BASIC_TYPE_NAMELESS_OF(X, F32, float)                               \
    CHEMPI_BASIC_TYPE_NAMELESS_OF(X, F64, double)                              \
    CHEMPI_BASIC_TYPE_NAMELESS_OF(X, FLD, long double)

enum chempi_basic_type {
    CHEMPI_BASIC_TYPE_NONE = 0, /* not made of one basic type */
    CHEMPI_BASIC_TYPE_BYTE,     /* MPI_BYTE: bitwise operations only */
    CHEMPI_BASIC_TYPE_PACKED,   /* MPI_PACKED: no arithmetic */
    CHEMPI_BASIC_TYPE_CHAR,     /* MPI_CHAR, MPI_CHARACTER: no arithmetic */
    CHEMPI_BASIC_TYPE_WCHAR,    /* wchar_t: no arithmetic */
    CHEMPI_BASIC_TYPE_I8,
    CHEMPI_BASIC_TYPE_I16,
    CHEMPI_BASIC_TYPE_I32,
    CHEMPI_BASIC_TYPE_I64,
    CHEMPI_BASIC_TYPE_I128, /* MPI_INTEGER16 */
    CHEMPI_BASIC_TYPE_U8,
    CHEMPI_BASIC_TYPE_U16,
    CHEMPI_BASIC_TYPE_U32,
    CHEMPI_BASIC_TYPE_U64,
    CHEMPI_BASIC_TYPE_F16, /* MPI_REAL2: IEEE binary16 */
    CHEMPI_BASIC_TYPE_F32,
    CHEMPI_BASIC_TYPE_F64,
    CHEMPI_BASIC_TYPE_FLD,  /* long double */
    CHEMPI_BASIC_TYPE_F128, /* MPI_REAL16: IEEE binary128 */
    CHEMPI_BASIC_TYPE_C16,  /* complex of F16, F32, ... */
    CHEMPI_BASIC_TYPE_C32,
    CHEMPI_BASIC_TYPE_C64,
    CHEMPI_BASIC_TYPE_CLD,
    CHEMPI_BASIC_TYPE_C128,
    CHEMPI_BASIC_TYPE_BOOL, /* C and C++ bool */
    CHEMPI_BASIC_TYPE_L8,   /* Fortran LOGICAL of so many bits; non-zero is true
                             */
    CHEMPI_BASIC_TYPE_L16,
    CHEMPI_BASIC_TYPE_L32,
    CHEMPI_BASIC_TYPE_L64,
    CHEMPI_BASIC_TYPE_L128,
    /* Pairs of value and index, laid out as a C struct { value; index; }. */
    CHEMPI_BASIC_TYPE_PAIR_F32_I32,  /* MPI_FLOAT_INT */
    CHEMPI_BASIC_TYPE_PAIR_F64_I32,  /* MPI_DOUBLE_INT */
    CHEMPI_BASIC_TYPE_PAIR_LONG_I32, /* MPI_LONG_INT */
    CHEMPI_BASIC_TYPE_PAIR_I32_I32,  /* MPI_2INT, MPI_2INTEGER */
    CHEMPI_BASIC_TYPE_PAIR_I16_I32,  /* MPI_SHORT_INT */
    CHEMPI_BASIC_TYPE_PAIR_FLD_I32,  /* MPI_LONG_DOUBLE_INT */
    CHEMPI_BASIC_TYPE_PAIR_F32_F32,  /* MPI_2REAL */
    CHEMPI_BASIC_TYPE_PAIR_F64_F64,  /* MPI_2DOUBLE_PRECISION */
/* Those that MPI_Type_get_value_index makes. */
#define CHEMPI_BASIC_TYPE_ENUMERATOR(value, index, V, I)                       \
    CHEMPI_BASIC_TYPE_NAMELESS_##value##_##index,
    CHEMPI_BASIC_TYPE_NAMELESS(CHEMPI_BASIC_TYPE_ENUMERATOR)
#undef CHEMPI_BASIC_TYPE_ENUMERATOR
        CHEMPI_BASIC_TYPE_COUNT
};

#define CHEMPI_BASIC_TYPE_PAIR_FIRST CHEMPI_BASIC_TYPE_PAIR_F32_I32
#define CHEMPI_BASIC_TYPE_PAIR_LAST                                            \
    CHEMPI_BASIC_TYPE_PAIR_F64_F64 /* with a name */

/* The C types behind the padded pairs. */
struct chempi_basic_type_float_int {
    float value;
    int index;
};
struct chempi_basic_type_double_int {
    double value;
    int index;
};
struct chempi_basic_type_long_int {
    long value;
    int index;
};
struct chempi_basic_type_2int {
    int value;
    int index;
};
struct chempi_basic_type_short_int {
    short value;
    int index;
};
struct chempi_basic_type_long_double_int {
    long double value;
    int index;
};

#define CHEMPI_BASIC_TYPE_STRUCT(first, second, V, I)                          \
    struct chempi_basic_type_nameless_##first##_##second {                     \
        V value;                                                               \
        I index;                                                               \
    };
CHEMPI_BASIC_TYPE_NAMELESS(CHEMPI_BASIC_TYPE_STRUCT)
#undef CHEMPI_BASIC_TYPE_STRUCT

/* Facts of one kind. */
struct chempi_basic_type_info {
    uint8_t size;   /* bytes of data; of a pair without padding */
    uint8_t extent; /* bytes from one element to the next */
    uint8_t align;  /* bytes, as in a C struct */
    uint8_t
        first; /* enum chempi_basic_type of the first or only number in it */
    uint8_t second;    /* of the second number (complex, pairs), or NONE */
    uint8_t second_at; /* byte offset of the second number, or 0 */
};

/* Indexed by enum chempi_basic_type; NONE is all zero. */
extern const struct chempi_basic_type_info
    chempi_basic_type_table[CHEMPI_BASIC_TYPE_COUNT];

#endif
