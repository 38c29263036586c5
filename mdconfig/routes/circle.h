/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Do ways lead through gateways in a circle? A message that has come over
 * network n to gateways G goes on to the next gateways H behind network m:
 * (n, G) hands to (m, H). A gateway that waited for room at the next one could
 * then wait for itself, were ours of that kind (doc/routing.md says why they
 * are not). All ways of all tables count, with all gateways that share the
 * load or are alternates.
 */
#ifndef CHEMPI_MDCONFIG_CIRCLE_H
#define CHEMPI_MDCONFIG_CIRCLE_H

#include "mdconfig/routes/route.h"

/* True when there is a circle; `text` then names it, "gw1 (from sci), ...". */
bool chempi_circle_find(const struct chempi_graph *graph, char *text,
                        size_t len);

#endif
