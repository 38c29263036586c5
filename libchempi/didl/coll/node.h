/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives in the shared memory of a node. */
#ifndef CHEMPI_LIBCHEMPI_DIDL_COLL_NODE_H
#define CHEMPI_LIBCHEMPI_DIDL_COLL_NODE_H

#include <stdbool.h>

#include "libchempi/didl/coll/call.h"

/* Do the call through shared memory if all members can: true, and *rc is its
 * result. False: go by messages; all members get the same answer. */
bool chempi_coll_node_try(const struct chempi_coll_call *c, int *rc);

#endif
