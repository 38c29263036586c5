/* SPDX-License-Identifier: BSD-3-Clause */
/* Pairs of classes of nodes that lose their ways, in words. */
#ifndef CHEMPI_MDCONFIG_LOSS_H
#define CHEMPI_MDCONFIG_LOSS_H

#include "mdconfig/routes/graph.h"

/*
 * " between a[0,1] and b, c; from d to e" for marks[a * classes + b], which are
 * used up (common/words/pairs.h): three groups at most, and the number of pairs
 * of nodes if there are more, or, with is_whole, each group on a line of its
 * own, with all names. malloc'ed.
 */
char *chempi_loss_put(const struct chempi_graph *graph, uint8_t *marks,
                      bool is_whole);

#endif
