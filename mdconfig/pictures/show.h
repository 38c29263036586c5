/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables and descriptions in words. */
#ifndef CHEMPI_MDCONFIG_SHOW_H
#define CHEMPI_MDCONFIG_SHOW_H

#include <stdio.h>

#include "common/table/table.h"
#include "mdconfig/routes/graph.h"

/* What a node's table says: attachments, and its ways to each class. */
void chempi_show_table(const struct chempi_table *table, FILE *out);

/* What a description says: networks, protocols, classes of nodes. */
void chempi_show_desc(const struct chempi_graph *graph, FILE *out);

#endif
