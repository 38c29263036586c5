/* SPDX-License-Identifier: BSD-3-Clause */
/* Reduction operations (MPI 5.0, section 6.9). */
#ifndef CHEMPI_LIBCHEMPI_DIDL_OP_H
#define CHEMPI_LIBCHEMPI_DIDL_OP_H

#include <mpi.h>

#include "libchempi/didl/base/object.h"
#include "libchempi/didl/datatype/datatype.h"

struct chempi_op {
    struct chempi_object obj;
    bool is_commutative;
    bool is_predefined;
    bool is_wide; /* user function has the MPI_Count form */
    MPI_User_function *fn;
    MPI_User_function_c *fn_c;
    MPI_Op handle;
};

/* Predefined operations by the low bits of their handle, 0x20 to 0x3f. */
extern struct chempi_op chempi_op_predefined[32];

/* NULL when the handle names no operation. */
static inline struct chempi_op *chempi_op_lookup(MPI_Op handle)
{
    uintptr_t h = (uintptr_t)handle;
    struct chempi_op *op = (struct chempi_op *)(void *)handle;

    if (h - 0x20u < 0x20u)
        op = &chempi_op_predefined[h - 0x20u];
    else if (!chempi_handle_is_address(handle))
        return NULL;
    return op->obj.magic == CHEMPI_MAGIC_OP ? op : NULL;
}

/* MPI_SUCCESS, or MPI_ERR_OP with words when op is not defined on type. */
int chempi_op_check(struct chempi_op *op, struct chempi_datatype *type);

/* inout[i] = in[i] op inout[i], count elements; any count. */
void chempi_op_apply(struct chempi_op *op, const void *in, void *inout,
                     MPI_Count count, struct chempi_datatype *type);

void chempi_op_release(struct chempi_op *op);

#endif
