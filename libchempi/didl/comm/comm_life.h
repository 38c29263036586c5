/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The life of a communicator's struct at one process, for whoever makes some
 * (make/comm_make.h says how their members agree).
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_COMM_LIFE_H
#define CHEMPI_LIBCHEMPI_DIDL_COMM_LIFE_H

#include "libchempi/didl/comm/comm.h"

/*
 * A communicator over the groups (references of its own are taken). remote
 * NULL: an intracommunicator. The error handler is the initial one. The
 * context ids become the communicator's. NULL when out of memory; the caller
 * then still owns the ids.
 */
struct chempi_comm *chempi_comm_make(struct chempi_group *local,
                                     struct chempi_group *remote,
                                     uint32_t send_context,
                                     uint32_t recv_context);

/* NULL, or what of C1 to C3 does not hold (invariant.h). */
const char *chempi_comm_check(const struct chempi_comm *comm);

/* Its context is agreed: processes of other worlds are heard in it from now on,
 * if it is an open one. Holder of the first lane. */
void chempi_comm_listen(struct chempi_comm *comm);

/* What a new communicator takes over from its parent: the error handler. */
void chempi_comm_inherit(struct chempi_comm *comm, struct chempi_comm *parent);

/* Replace the hints by those of info (NULL: none) that we know. */
int chempi_comm_take_hints(struct chempi_comm *comm,
                           const struct chempi_info *info);

/* Undo chempi_comm_make() before the handle was given away; runs attribute
 * callbacks for what was copied. */
void chempi_comm_discard(struct chempi_comm *comm);

#endif
