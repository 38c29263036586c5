/* SPDX-License-Identifier: BSD-3-Clause */
/* Argument checks of collectives beyond those of the generated API layer. */
#ifndef CHEMPI_LIBCHEMPI_DIDL_COLL_CHECK_H
#define CHEMPI_LIBCHEMPI_DIDL_COLL_CHECK_H

#include "libchempi/didl/coll/call.h"

/* Operation and type, aliased buffers, MPI_IN_PLACE where it is not allowed,
 * arrays of counts and types. MPI error class with words. Buffers that are not
 * significant at this process become null. */
int chempi_coll_check(struct chempi_coll_call *c);

/* The first n of an array of counts must not be negative, and the types must
 * be committed where the counts are not 0; nor may the arrays be null, unless
 * n is 0. MPI error class with words, in which the array has this name. */
int chempi_coll_check_counts(struct chempi_count_array counts, int n,
                             const char *name);
int chempi_coll_check_types(struct chempi_count_array counts,
                            const MPI_Datatype *types, int n, const char *name);

#endif
