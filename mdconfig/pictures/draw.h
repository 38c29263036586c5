/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes and networks, drawn. */
#ifndef CHEMPI_MDCONFIG_DRAW_H
#define CHEMPI_MDCONFIG_DRAW_H

#include <stdio.h>

#include "mdconfig/routes/route.h"

#define CHEMPI_DRAW_MAX 64u /* networks, and classes of nodes, at most */

/*
 * Draw networks as bars and classes of nodes as boxes that hang from them.
 * With from != CHEMPI_SEARCH_NONE the ways of messages of `len` bytes from
 * that node are drawn in. Errors: -E2BIG: too many networks or classes.
 */
int chempi_draw(const struct chempi_graph *graph, uint32_t from, uint64_t len,
                FILE *out);

#endif
