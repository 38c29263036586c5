/* SPDX-License-Identifier: BSD-3-Clause */
/* The area of a persistent operation, on which all members agree. */
#ifndef CHEMPI_LIBCHEMPI_DIDL_COLL_NODE_NODE_OWN_H
#define CHEMPI_LIBCHEMPI_DIDL_COLL_NODE_NODE_OWN_H

#include <stdbool.h>

struct chempi_coll_state;
struct chempi_comm;

/*
 * Collective, over messages. True: all members have one, and are in the area of
 * the first one's. Whom that did not reach says so as who is not there does:
 * all go by messages. *rc: MPI_SUCCESS or an error class.
 */
bool chempi_node_own_share(struct chempi_comm *comm,
                           struct chempi_coll_state *own, int *rc);

#endif
