/* SPDX-License-Identifier: BSD-3-Clause */
/* What the loops know of Fortran's LOGICAL; see op_loops.h. */
#include "libchempi/didl/op/op_loops.h"

struct chempi_op_booleans chempi_op_booleans[CHEMPI_OP_LOGICAL_SIZES];
