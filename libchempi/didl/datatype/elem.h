/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the elements of a predefined datatype are, as arithmetic and external
 * representations see them. Several datatypes share a kind (MPI_INT and
 * MPI_INT32_T); a kind fixes size, alignment and meaning on this machine.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_ELEM_H
#define CHEMPI_LIBCHEMPI_DIDL_ELEM_H

#include <stdint.h>

/* Pairs without a name: X(kind of value, kind of index, their C types). */
#define CHEMPI_ELEM_NAMELESS_OF(X, value, V)                                   \
    X(value, I32, V, int32_t)                                                  \
    X(value, U32, V, uint32_t)                                                 \
    X(value, I64, V, int64_t)                                                  \
    X(value, U64, V, uint64_t)
#define CHEMPI_ELEM_NAMELESS(X)                                                \
    CHEMPI_ELEM_NAMELESS_OF(X, I16, int16_t)                                   \
    CHEMPI_ELEM_NAMELESS_OF(X, U16, uint16_t)                                  \
    CHEMPI_ELEM_NAMELESS_OF(X, I32, int32_t)                                   \
    CHEMPI_ELEM_NAMELESS_OF(X, U32, uint32_t)                                  \
    CHEMPI_ELEM_NAMELESS_OF(X, I64, int64_t)                                   \
    CHEMPI_ELEM_NAMELESS_OF(X, U64, uint64_t)                                  \
    CHEMPI_ELEM_NAMELESS_OF(X, F32, float)                                     \
    CHEMPI_ELEM_NAMELESS_OF(X, F64, double)                                    \
    CHEMPI_ELEM_NAMELESS_OF(X, FLD, long double)

enum chempi_elem {
    CHEMPI_ELEM_NONE = 0, /* not made of one basic type */
    CHEMPI_ELEM_BYTE,     /* MPI_BYTE: bitwise operations only */
    CHEMPI_ELEM_PACKED,   /* MPI_PACKED: no arithmetic */
    CHEMPI_ELEM_CHAR,     /* MPI_CHAR, MPI_CHARACTER: no arithmetic */
    CHEMPI_ELEM_WCHAR,    /* wchar_t: no arithmetic */
    CHEMPI_ELEM_I8,
    CHEMPI_ELEM_I16,
    CHEMPI_ELEM_I32,
    CHEMPI_ELEM_I64,
    CHEMPI_ELEM_I128, /* MPI_INTEGER16 */
    CHEMPI_ELEM_U8,
    CHEMPI_ELEM_U16,
    CHEMPI_ELEM_U32,
    CHEMPI_ELEM_U64,
    CHEMPI_ELEM_F16, /* MPI_REAL2: IEEE binary16 */
    CHEMPI_ELEM_F32,
    CHEMPI_ELEM_F64,
    CHEMPI_ELEM_FLD,  /* long double */
    CHEMPI_ELEM_F128, /* MPI_REAL16: IEEE binary128 */
    CHEMPI_ELEM_C16,  /* complex of F16, F32, ... */
    CHEMPI_ELEM_C32,
    CHEMPI_ELEM_C64,
    CHEMPI_ELEM_CLD,
    CHEMPI_ELEM_C128,
    CHEMPI_ELEM_BOOL, /* C and C++ bool */
    CHEMPI_ELEM_L8,   /* Fortran LOGICAL of so many bits; non-zero is true */
    CHEMPI_ELEM_L16,
    CHEMPI_ELEM_L32,
    CHEMPI_ELEM_L64,
    CHEMPI_ELEM_L128,
    /* Pairs of value and index, laid out as a C struct { value; index; }. */
    CHEMPI_ELEM_PAIR_F32_I32,  /* MPI_FLOAT_INT */
    CHEMPI_ELEM_PAIR_F64_I32,  /* MPI_DOUBLE_INT */
    CHEMPI_ELEM_PAIR_LONG_I32, /* MPI_LONG_INT */
    CHEMPI_ELEM_PAIR_I32_I32,  /* MPI_2INT, MPI_2INTEGER */
    CHEMPI_ELEM_PAIR_I16_I32,  /* MPI_SHORT_INT */
    CHEMPI_ELEM_PAIR_FLD_I32,  /* MPI_LONG_DOUBLE_INT */
    CHEMPI_ELEM_PAIR_F32_F32,  /* MPI_2REAL */
    CHEMPI_ELEM_PAIR_F64_F64,  /* MPI_2DOUBLE_PRECISION */
/* Those that MPI_Type_get_value_index makes. */
#define CHEMPI_ELEM_ENUMERATOR(value, index, V, I)                             \
    CHEMPI_ELEM_NAMELESS_##value##_##index,
    CHEMPI_ELEM_NAMELESS(CHEMPI_ELEM_ENUMERATOR)
#undef CHEMPI_ELEM_ENUMERATOR
        CHEMPI_ELEM_COUNT
};

#define CHEMPI_ELEM_PAIR_FIRST CHEMPI_ELEM_PAIR_F32_I32
#define CHEMPI_ELEM_PAIR_LAST CHEMPI_ELEM_PAIR_F64_F64 /* with a name */

/* The C types behind the padded pairs. */
struct chempi_elem_float_int {
    float value;
    int index;
};
struct chempi_elem_double_int {
    double value;
    int index;
};
struct chempi_elem_long_int {
    long value;
    int index;
};
struct chempi_elem_2int {
    int value;
    int index;
};
struct chempi_elem_short_int {
    short value;
    int index;
};
struct chempi_elem_long_double_int {
    long double value;
    int index;
};

#define CHEMPI_ELEM_STRUCT(first, second, V, I)                                \
    struct chempi_elem_nameless_##first##_##second {                           \
        V value;                                                               \
        I index;                                                               \
    };
CHEMPI_ELEM_NAMELESS(CHEMPI_ELEM_STRUCT)
#undef CHEMPI_ELEM_STRUCT

/* Facts of one kind. */
struct chempi_elem_info {
    uint8_t size;      /* bytes of data; of a pair without padding */
    uint8_t extent;    /* bytes from one element to the next */
    uint8_t align;     /* bytes, as in a C struct */
    uint8_t first;     /* enum chempi_elem of the first or only number in it */
    uint8_t second;    /* of the second number (complex, pairs), or NONE */
    uint8_t second_at; /* byte offset of the second number, or 0 */
};

/* Indexed by enum chempi_elem; NONE is all zero. */
extern const struct chempi_elem_info chempi_elem_table[CHEMPI_ELEM_COUNT];

#endif
