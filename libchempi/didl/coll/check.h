/* SPDX-License-Identifier: BSD-3-Clause */
/* Argument checks of collectives beyond those of the generated API layer. */
#ifndef CHEMPI_LIBCHEMPI_DIDL_COLL_CHECK_H
#define CHEMPI_LIBCHEMPI_DIDL_COLL_CHECK_H

#include "libchempi/didl/coll/call.h"

/* Operation and type, aliased buffers, MPI_IN_PLACE where it is not allowed,
 * arrays of counts and types. MPI error class with words. */
int chempi_coll_check(const struct chempi_coll_call *c);

#endif
