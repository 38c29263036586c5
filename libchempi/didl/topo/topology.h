/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The virtual topology of a communicator (MPI 5.0, chapter 8): the struct
 * and its life.
 *
 *   -   immutable once it is attached; duplicates of a communicator share it
 *   T2  cart: size == product of dims, dims[i] >= 1; no dimensions: size 1
 *   T3  graph: index[] ascends to edge_count; edges[] are ranks
 *   -   dist_graph: the k-th time that q stands among the destinations of p
 *       and the k-th time that p stands among the sources of q are the same
 *       edge
 *
 * chempi_topology_check() looks at T2 and T3, which one process can see.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_TOPO_TOPOLOGY_H
#define CHEMPI_LIBCHEMPI_DIDL_TOPO_TOPOLOGY_H

#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "libchempi/didl/comm/comm.h"

struct chempi_cart {
    int ndims;
    int *dims;    /* [ndims] */
    int *periods; /* [ndims], 0 or 1 */
    int *coords;  /* [ndims], of this process */
};

struct chempi_graph_topology {
    int node_count;
    int edge_count;
    int *index; /* [node_count]: edges of nodes 0..i in all */
    int *edges; /* [edge_count] */
};

struct chempi_dist_graph {
    int indegree;
    int outdegree;
    bool is_weighted;
    int *sources;      /* [indegree], in the order of creation */
    int *destinations; /* [outdegree], likewise */
    int *source_weights;
    int *dest_weights;
};

struct chempi_topology {
    _Atomic int refs;
    int kind; /* MPI_CART, MPI_GRAPH or MPI_DIST_GRAPH */
    union {
        struct chempi_cart cart;
        struct chempi_graph_topology graph;
        struct chempi_dist_graph dist;
    } u;
    int ints[]; /* what the pointers above point to */
};

/* A topology with room for int_count integers, one reference. NULL, with
 * words, when out of memory. */
struct chempi_topology *chempi_topology_create(int kind, size_t int_count);
void chempi_topology_release(struct chempi_topology *topology);

/* Give comm the topology, and the reference to it. */
void chempi_topology_attach(struct chempi_comm *comm,
                            struct chempi_topology *topology);

/* NULL, or what does not hold for a topology over `size` processes
 * (invariant.h). */
const char *chempi_topology_check(const struct chempi_topology *topology,
                                  int size);

/* MPI_ERR_TOPOLOGY with words unless comm's topology is of this kind. */
int chempi_topology_need(const struct chempi_comm *comm, int kind);

/* The rank `disp` steps from this process, or MPI_PROC_NULL. */
int chempi_cart_shifted(const struct chempi_cart *cart, int direction,
                        int disp);

/* ---- making communicators ---- */

/*
 * The communicator of the first `count` vertices of a topology over comm:
 * vertex v becomes rank v, and is the process order[v] of comm (NULL: v).
 * *out is NULL at a process that is not among them. Collective: rc is what has
 * failed at this member before, which all hear of.
 */
int chempi_topology_make_comm(struct chempi_comm *comm, int rc,
                              const int *order, int count,
                              struct chempi_comm **out);

#endif
