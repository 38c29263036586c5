/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Daemons that claim the name of a known node with another address: the same
 * one, started anew, or a second one of this name.
 *
 *   -   the address that is known is called first; the new one is believed
 *       when no daemon of this name answers there, and refused when one does,
 *       or when the cluster file has the known one
 *   R2  until then nobody is told of the new address, and who joins with it
 *       waits for its answer
 *
 * Two of a name that join through different nodes at the same moment are both
 * in; each node keeps the one that it has heard of first and logs the other.
 */
#ifndef CHEMPI_CHEMPID_RIVALS_H
#define CHEMPI_CHEMPID_RIVALS_H

#include <stdbool.h>

#include "chempid/tree/nodes/members.h"
#include "common/containers/list.h"

#define CHEMPI_RIVALS_MAX 64u /* under way */

struct chempi_conn;
struct chempi_daemon;

struct chempi_rivals {
    struct chempi_list all;
    uint32_t count;
};

void chempi_rivals_init(struct chempi_rivals *rivals);
void chempi_rivals_fini(struct chempi_rivals *rivals);

/* `from` says that the node has another address than the known one; joins: it
 * says so of itself. */
void chempi_rivals_try(struct chempi_daemon *d, struct chempi_conn *from,
                       const struct chempi_member *known,
                       const struct chempi_member *claim, bool joins);
/* A daemon has greeted, or a connection is lost: was it called for this? */
void chempi_rivals_greeted(struct chempi_daemon *d, struct chempi_conn *conn);
void chempi_rivals_lost(struct chempi_daemon *d, struct chempi_conn *conn);

#endif
