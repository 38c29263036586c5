/* SPDX-License-Identifier: BSD-3-Clause */
/* Graph topologies, known as a whole to every process (MPI 5.0, sections
 * 8.5.3 and 8.5.5). Loops, repeated and one-way edges are allowed. */
#include <stdlib.h>
#include <string.h>

#include "libchempi/api/api_impl.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/topo/reorder.h"
#include "libchempi/didl/topo/topology.h"

static int check(const struct chempi_comm *comm, int nnodes, const int *indx,
                 const int *edges)
{
    int last = 0;

    if (comm->is_inter)
        return chempi_error_set(MPI_ERR_COMM, "a topology cannot be laid over "
                                              "an intercommunicator");
    if (nnodes < 0 || nnodes > (int)comm->size)
        return chempi_error_set(MPI_ERR_ARG,
                                "the graph has %d nodes, the communicator %u "
                                "processes",
                                nnodes, comm->size);
    if (nnodes > 0 && !indx)
        return chempi_error_set(MPI_ERR_ARG, "index is null");
    for (int i = 0; i < nnodes; i++) {
        if (indx[i] < last)
            return chempi_error_set(MPI_ERR_ARG,
                                    "index[%d] is %d, less than "
                                    "what precedes it",
                                    i, indx[i]);
        last = indx[i];
    }
    if (last > 0 && !edges)
        return chempi_error_set(MPI_ERR_ARG, "edges is null");
    for (int i = 0; i < last; i++)
        if (edges[i] < 0 || edges[i] >= nnodes)
            return chempi_error_set(MPI_ERR_ARG,
                                    "edges[%d] is %d, the graph has %d nodes",
                                    i, edges[i], nnodes);
    return MPI_SUCCESS;
}

static struct chempi_topology *make_graph(int nnodes, const int *indx,
                                          const int *edges)
{
    int edge_count = nnodes > 0 ? indx[nnodes - 1] : 0;
    struct chempi_topology *t =
        chempi_topology_create(MPI_GRAPH, (size_t)nnodes + (size_t)edge_count);
    struct chempi_graph_topology *graph;

    if (!t)
        return NULL;
    graph = &t->u.graph;
    graph->node_count = nnodes;
    graph->edge_count = edge_count;
    graph->index = t->ints;
    graph->edges = t->ints + nnodes;
    if (nnodes > 0)
        memcpy(graph->index, indx, (size_t)nnodes * sizeof(int));
    if (edge_count > 0)
        memcpy(graph->edges, edges, (size_t)edge_count * sizeof(int));
    return t;
}

static int add_edges(struct chempi_reorder_graph *g, const void *arg)
{
    const struct chempi_graph_topology *graph = arg;
    int e = 0;

    for (int v = 0; v < graph->node_count; v++)
        for (; e < graph->index[v]; e++) {
            int rc = graph->edges[e] == v
                         ? MPI_SUCCESS
                         : chempi_reorder_add(g, v, graph->edges[e], 1);

            if (rc)
                return rc;
        }
    return MPI_SUCCESS;
}

int chempi_topology_graph_create(struct chempi_comm *comm_old, int nnodes,
                                 const int indx[], const int edges[],
                                 int reorder, MPI_Comm *comm_graph)
{
    struct chempi_comm *made = NULL;
    struct chempi_topology *t;
    int *order = NULL;
    int rc = check(comm_old, nnodes, indx, edges);

    *comm_graph = MPI_COMM_NULL;
    if (rc || nnodes == 0)
        return rc;
    t = make_graph(nnodes, indx, edges);
    rc = t ? MPI_SUCCESS : MPI_ERR_NO_MEM; /* which the others have to learn */
    if (reorder)
        rc = chempi_reorder_ranks(comm_old, rc, nnodes, add_edges,
                                  t ? &t->u.graph : NULL, &order);
    rc = chempi_topology_make_comm(comm_old, rc, order, nnodes, &made);
    free(order);
    if (rc || !made) {
        chempi_topology_release(t);
        return rc;
    }
    chempi_topology_attach(made, t);
    *comm_graph = made->handle;
    return MPI_SUCCESS;
}

int chempi_topology_graph_map(struct chempi_comm *comm, int nnodes,
                              const int indx[], const int edges[], int *newrank)
{
    struct chempi_topology *t;
    int rc = check(comm, nnodes, indx, edges);

    if (rc)
        return rc;
    t = make_graph(nnodes, indx, edges);
    if (!t)
        return MPI_ERR_NO_MEM;
    rc = chempi_reorder_map(comm, nnodes, add_edges, &t->u.graph, newrank);
    chempi_topology_release(t);
    return rc;
}

/* ---- questions ---- */

int chempi_topology_graphdims_get(struct chempi_comm *comm, int *nnodes,
                                  int *nedges)
{
    int rc = chempi_topology_need(comm, MPI_GRAPH);

    if (rc)
        return rc;
    *nnodes = comm->topology->u.graph.node_count;
    *nedges = comm->topology->u.graph.edge_count;
    return MPI_SUCCESS;
}

static int take(const char *name, const int *from, int count, int max, int *to)
{
    if (max < 0)
        return chempi_error_set(MPI_ERR_ARG, "room for %d %s", max, name);
    if (count > max)
        count = max;
    if (count > 0 && !to)
        return chempi_error_set(MPI_ERR_ARG, "the array for %s is null", name);
    if (count > 0)
        memcpy(to, from, (size_t)count * sizeof(int));
    return MPI_SUCCESS;
}

int chempi_topology_graph_get(struct chempi_comm *comm, int maxindex,
                              int maxedges, int indx[], int edges[])
{
    int rc = chempi_topology_need(comm, MPI_GRAPH);
    const struct chempi_graph_topology *graph;

    if (rc)
        return rc;
    graph = &comm->topology->u.graph;
    rc = take("indices", graph->index, graph->node_count, maxindex, indx);
    if (!rc)
        rc = take("edges", graph->edges, graph->edge_count, maxedges, edges);
    return rc;
}

static int find_node(struct chempi_comm *comm, int rank, const int **edges,
                     int *count)
{
    int rc = chempi_topology_need(comm, MPI_GRAPH);
    const struct chempi_graph_topology *graph;
    int first;

    if (rc)
        return rc;
    graph = &comm->topology->u.graph;
    first = rank > 0 ? graph->index[rank - 1] : 0;
    *edges = graph->edges + first;
    *count = graph->index[rank] - first;
    return MPI_SUCCESS;
}

int chempi_topology_graph_neighbors_count(struct chempi_comm *comm, int rank,
                                          int *nneighbors)
{
    const int *edges;

    return find_node(comm, rank, &edges, nneighbors);
}

int chempi_topology_graph_neighbors(struct chempi_comm *comm, int rank,
                                    int maxneighbors, int neighbors[])
{
    const int *edges;
    int count;
    int rc = find_node(comm, rank, &edges, &count);

    return rc ? rc : take("neighbors", edges, count, maxneighbors, neighbors);
}
