/* SPDX-License-Identifier: BSD-3-Clause */
/* Topologies: life, kind, the communicators that carry them. */
#include "libchempi/didl/topo/topology.h"

#include <stdlib.h>

#include "common/base/invariant.h"
#include "common/base/sys.h"
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/comm/make/comm_make.h"
#include "libchempi/didl/error/error.h"

struct chempi_topology *chempi_topology_create(int kind, size_t int_count)
{
    struct chempi_topology *t =
        chempi_sys->malloc(sizeof(*t) + int_count * sizeof(t->ints[0]));

    if (!t) {
        (void)chempi_error_set(MPI_ERR_NO_MEM,
                               "no room for a topology of "
                               "%zu numbers",
                               int_count);
        return NULL;
    }
    atomic_init(&t->refs, 1);
    t->kind = kind;
    return t;
}

void chempi_topology_release(struct chempi_topology *topology)
{
    if (topology && atomic_fetch_sub(&topology->refs, 1) == 1)
        free(topology);
}

static void fini(struct chempi_comm *comm)
{
    chempi_topology_release(comm->topology);
    comm->topology = NULL;
}

static int copy(const struct chempi_comm *from, struct chempi_comm *to)
{
    atomic_fetch_add(&from->topology->refs, 1);
    chempi_topology_attach(to, from->topology);
    return MPI_SUCCESS;
}

void chempi_topology_attach(struct chempi_comm *comm,
                            struct chempi_topology *topology)
{
    CHEMPI_CHECK(chempi_topology_check(topology, (int)comm->size));
    comm->topology = topology;
    comm->fini_topology = fini;
    comm->copy_topology = copy;
}

static const char *check_cart(const struct chempi_cart *cart, int size)
{
    int64_t product = 1;

    for (int d = 0; d < cart->ndims; d++) {
        if (cart->dims[d] < 1 || product > size)
            return "topology T2: a dimension that cannot be";
        if (cart->coords[d] < 0 || cart->coords[d] >= cart->dims[d])
            return "topology T2: a process outside of its grid";
        product *= cart->dims[d];
    }
    return product == size ? NULL : "topology T2: a grid of another size";
}

static const char *check_graph(const struct chempi_graph_topology *graph,
                               int size)
{
    int last = 0;

    for (int i = 0; i < graph->node_count; i++) {
        if (graph->index[i] < last)
            return "topology T3: the index does not ascend";
        last = graph->index[i];
    }
    if (last != graph->edge_count)
        return "topology T3: edges behind the last node's";
    for (int i = 0; i < graph->edge_count; i++) {
        if (graph->edges[i] < 0 || graph->edges[i] >= size)
            return "topology T3: an edge to nobody";
    }
    return NULL;
}

const char *chempi_topology_check(const struct chempi_topology *topology,
                                  int size)
{
    if (topology->kind == MPI_CART)
        return check_cart(&topology->u.cart, size);
    if (topology->kind == MPI_GRAPH)
        return check_graph(&topology->u.graph, size);
    return NULL;
}

static const char *kind_name(int kind)
{
    switch (kind) {
    case MPI_CART:
        return "Cartesian";
    case MPI_GRAPH:
        return "graph";
    default:
        return "distributed graph";
    }
}

int chempi_topology_need(const struct chempi_comm *comm, int kind)
{
    const struct chempi_topology *t = comm->topology;

    if (t && t->kind == kind)
        return MPI_SUCCESS;
    return chempi_error_set(MPI_ERR_TOPOLOGY,
                            "the communicator has %s%s topology, and needs a "
                            "%s one",
                            t ? "a " : "no", t ? kind_name(t->kind) : "",
                            kind_name(kind));
}

int chempi_topology_test(struct chempi_comm *comm, int *status)
{
    *status = comm->topology ? comm->topology->kind : MPI_UNDEFINED;
    return MPI_SUCCESS;
}

/* ---- making communicators ---- */

static int no_memory(void)
{
    return chempi_error_set(MPI_ERR_NO_MEM, "no room for a communicator");
}

static struct chempi_group *make_group(struct chempi_comm *comm,
                                       const int *order, int count)
{
    uint32_t *procs = chempi_sys->malloc((size_t)count * sizeof(*procs));

    if (!procs)
        return NULL;
    for (int v = 0; v < count; v++)
        procs[v] =
            chempi_group_proc(comm->local, (uint32_t)(order ? order[v] : v));
    return chempi_group_make((uint32_t)count, procs);
}

int chempi_topology_make_comm(struct chempi_comm *comm, int rc,
                              const int *order, int count,
                              struct chempi_comm **out)
{
    struct chempi_comm_channel channel = chempi_comm_channel(comm);
    struct chempi_group *group;
    struct chempi_comm *made = NULL;
    uint32_t context;

    rc = chempi_comm_agree_context(&channel, rc, &context);
    if (rc)
        return rc;
    group = make_group(comm, order, count);
    if (group && group->rank != MPI_UNDEFINED)
        made = chempi_comm_make(group, NULL, context, context);
    rc = !group || (group->rank != MPI_UNDEFINED && !made) ? no_memory()
                                                           : MPI_SUCCESS;
    if (made)
        chempi_comm_inherit(made, comm);
    else
        chempi_comm_return_context(context, rc);
    chempi_group_release(group);
    if (!rc)
        *out = made;
    return rc;
}
