/* SPDX-License-Identifier: BSD-3-Clause */
/* Why a message takes its way: the time by part, and every alternative. */
#ifndef CHEMPI_MDCONFIG_EXPLAIN_H
#define CHEMPI_MDCONFIG_EXPLAIN_H

#include <stdio.h>

#include "mdconfig/routes/route.h"

/* Print the chosen way of `len` bytes between two nodes, its time by part,
 * and what was rejected with the reason. False when there is no way. */
bool chempi_explain(const struct chempi_graph *graph, uint32_t from,
                    uint32_t to, uint64_t len, FILE *out);
/* The same as JSON: all that was rejected, and times in microseconds. */
bool chempi_explain_json(const struct chempi_graph *graph, uint32_t from,
                         uint32_t to, uint64_t len, FILE *out);

#endif
