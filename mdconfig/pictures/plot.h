/* SPDX-License-Identifier: BSD-3-Clause */
/* Time over message size between two nodes, drawn. */
#ifndef CHEMPI_MDCONFIG_PLOT_H
#define CHEMPI_MDCONFIG_PLOT_H

#include <stdio.h>

#include "mdconfig/routes/route.h"

/* Draw the envelope with its switching points and the ways that come nearest
 * to it, or, with is_figures, write the same as comma-separated values: a row
 * for each size, a column for each way. False when there is no way. */
bool chempi_plot(const struct chempi_graph *graph, uint32_t from, uint32_t to,
                 bool is_figures, FILE *out);

#endif
