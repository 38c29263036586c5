/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Placing the vertices of a topology on the processes of a communicator so
 * that heavy edges cross cheap networks: what MPI's "reorder" asks for.
 * doc/topologies.md describes the cost and the search.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_TOPO_REORDER_H
#define CHEMPI_LIBCHEMPI_DIDL_TOPO_REORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct chempi_comm;

struct chempi_reorder_edge {
    int from;
    int to;
    int weight;
};

struct chempi_reorder_graph {
    int count; /* vertices */
    size_t edge_count;
    size_t edge_room;
    struct chempi_reorder_edge *edges;
    int *hint; /* [count], malloc'ed: the vertices in an order in which near
                  ones are close together; or NULL */
};

/* Add an edge; from != to. MPI error class. */
int chempi_reorder_add(struct chempi_reorder_graph *g, int from, int to,
                       int weight);

/* Adds the edges of the whole topology. MPI error class. */
typedef int chempi_reorder_edges_fn(struct chempi_reorder_graph *g,
                                    const void *arg);

/*
 * Which process of comm takes which of `count` vertices: (*order)[v] is a rank
 * of comm, malloc'ed, [comm->size]; those beyond `count` are left over. NULL
 * when no order is better than the present one. The edges are asked for at
 * rank 0 only, and if rc is MPI_SUCCESS. Collective; all processes get the same
 * answer. rc is what has failed at this one before: it takes part all the same.
 * An MPI error class, perhaps at some processes only: the next call among them
 * must tell the others.
 */
int chempi_reorder_ranks(struct chempi_comm *comm, int rc, int count,
                         chempi_reorder_edges_fn *edges, const void *arg,
                         int **order);

/* Could any order be better? The same answer at all processes, at once. */
bool chempi_reorder_is_useful(const struct chempi_comm *comm);

/* The new rank of this process, or MPI_UNDEFINED, by what is known without
 * communication: which processes share a node or a class of nodes. MPI error
 * class. */
int chempi_reorder_map(struct chempi_comm *comm, int count,
                       chempi_reorder_edges_fn *edges, const void *arg,
                       int *newrank);

#endif
