/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Can gateways wait for each other's buffers in a circle? A message that has
 * come over network n to gateways G holds a buffer there while it waits for
 * one at the next gateways H behind network m: (n, G) waits for (m, H). If
 * these waits, taken over all ways of all tables with all gateways that share
 * the load or are alternates, form no circle, no set of messages can block each
 * other; destinations always drain.
 */
#ifndef CHEMPI_MDCONFIG_CIRCLE_H
#define CHEMPI_MDCONFIG_CIRCLE_H

#include "mdconfig/route.h"

/* True when there is a circle; `text` then names it, "gw1 (from sci), ...". */
bool chempi_circle_find(const struct chempi_graph *graph, char *text,
                        size_t len);

#endif
