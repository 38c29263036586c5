/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages through gateways, as a rank sees them: to the engine one more
 * device, to the real devices a user of their endpoints to gateway processes.
 * doc/gateways.md has the whole; internal.h the invariants.
 *
 * Used by conn only, through the table, under the lane lock.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_TRANSPORT_ROUTED_H
#define CHEMPI_LIBCHEMPI_DIDL_TRANSPORT_ROUTED_H

#include "libchempi/ddi.h"
#include "libchempi/didl/transport/conn.h"

extern const struct chempi_dev_ops chempi_routed_ops;

/* For chempi_conn_open(). */
extern const struct chempi_conn_overlay chempi_routed_overlay;

#endif
