/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The search for a better placing, apart from MPI: vertices with weighted
 * edges, places that belong to nodes, and what a message between two nodes
 * costs.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_TOPO_REORDER_SEARCH_H
#define CHEMPI_LIBCHEMPI_DIDL_TOPO_REORDER_SEARCH_H

#include <stdint.h>

#include "libchempi/didl/topo/reorder.h"

/* Where the places (ranks of the old communicator) are. */
struct chempi_reorder_nodes {
    int place_count;
    int node_count;
    const int *node_of; /* [place_count] */
    int class_count;
    const int *class_of;   /* [node_count] */
    const uint64_t *costs; /* [class_count][class_count + 1]: of one message
                              from a node of this class to another node of that
                              class; last: within a node of this class */
};

/* Sum over the edges of weight times distance when vertex v is at place
 * order[v] (NULL: v). */
uint64_t chempi_reorder_cost(const struct chempi_reorder_graph *g,
                             const struct chempi_reorder_nodes *nodes,
                             const int *order);

/*
 * order[0..place_count) becomes a permutation of the places that costs less
 * than the present one. 1; 0 when none was found; -ENOMEM. Deterministic;
 * time and memory are bounded by about the number of edges and places.
 */
int chempi_reorder_search(const struct chempi_reorder_graph *g,
                          const struct chempi_reorder_nodes *nodes, int *order);

#endif
