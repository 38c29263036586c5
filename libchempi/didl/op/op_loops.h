/* SPDX-License-Identifier: BSD-3-Clause */
/* The loops of the predefined reduction operations, by operation and kind of
 * element. */
#ifndef CHEMPI_LIBCHEMPI_DIDL_OP_LOOPS_H
#define CHEMPI_LIBCHEMPI_DIDL_OP_LOOPS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/base/compiler.h"
#include "libchempi/didl/datatype/basic_type.h"

/* Predefined operations by the low five bits of their handle. */
enum chempi_op_index {
    CHEMPI_OP_NULL = 0x00,
    CHEMPI_OP_SUM = 0x01,
    CHEMPI_OP_MIN = 0x02,
    CHEMPI_OP_MAX = 0x03,
    CHEMPI_OP_PROD = 0x04,
    CHEMPI_OP_BAND = 0x08,
    CHEMPI_OP_BOR = 0x09,
    CHEMPI_OP_BXOR = 0x0a,
    CHEMPI_OP_LAND = 0x10,
    CHEMPI_OP_LOR = 0x11,
    CHEMPI_OP_LXOR = 0x12,
    CHEMPI_OP_MINLOC = 0x18,
    CHEMPI_OP_MAXLOC = 0x19,
    CHEMPI_OP_REPLACE = 0x1c,
    CHEMPI_OP_NO_OP = 0x1d,
    CHEMPI_OP_COUNT = 0x20
};

/* inout[i] = in[i] op inout[i] for i < n; in and inout do not overlap. Both
 * are aligned as the type demands. */
typedef void chempi_op_loop(const void *in, void *inout, size_t n);

/* NULL where MPI does not define the operation on the kind. REPLACE and NO_OP
 * have no loops: they do not look at the elements. */
typedef chempi_op_loop *const chempi_op_loop_row[CHEMPI_BASIC_TYPE_COUNT];
extern chempi_op_loop_row chempi_op_loops[CHEMPI_OP_COUNT];

/*
 * The same as fast as this processor can, for many elements; the results have
 * the same bits, but for which NaN comes of two. With vectors of 32 bytes a sum
 * of 4 KiB of doubles takes 36 ns instead of 78.
 */
#if defined(__x86_64__)
extern chempi_op_loop_row chempi_op_loops_avx2[CHEMPI_OP_COUNT];
static inline chempi_op_loop_row *chempi_op_fast_loops(void)
{
    return CHEMPI_CPU_HAS("avx2") ? chempi_op_loops_avx2 : chempi_op_loops;
}
#else
static inline chempi_op_loop_row *chempi_op_fast_loops(void)
{
    return chempi_op_loops;
}
#endif

/*
 * What Fortran's .TRUE. and .FALSE. look like, for LOGICAL of 1, 2, 4, 8 and
 * 16 bytes. Where it is not set, every value but 0 is true, and 1 is written.
 * Set at most once (MPI_Abi_set_fortran_booleans): values, then is_set.
 */
enum { CHEMPI_OP_LOGICAL_SIZES = 5, CHEMPI_OP_LOGICAL_MAX = 16 /* bytes */ };

struct chempi_op_booleans {
    _Atomic bool is_set;
    unsigned char yes[CHEMPI_OP_LOGICAL_MAX];
    unsigned char no[CHEMPI_OP_LOGICAL_MAX];
};

extern struct chempi_op_booleans chempi_op_booleans[CHEMPI_OP_LOGICAL_SIZES];

#endif
