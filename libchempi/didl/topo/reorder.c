/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a message between two nodes costs, agreed by all processes of a
 * communicator, and the search at rank 0 that uses it.
 *
 * A process knows the ways out of its own node only. So nodes are taken by
 * class (those of a class have equal attachments), the first process of each
 * class fills in its row, and rank 0 puts the rows together and decides.
 */
#include "libchempi/didl/topo/reorder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "common/containers/array.h"
#include "common/table/table.h"
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/coll/call.h"
#include "libchempi/didl/comm/make/comm_make.h"
#include "libchempi/didl/datatype/datatype.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/locality/locality.h"
#include "libchempi/didl/op/op.h"
#include "libchempi/didl/topo/reorder_search.h"
#include "libchempi/didl/topo/topology.h"

enum {
    MESSAGE_BYTES = 8192, /* the cost is that of messages of this size */
    CLASSES_MAX = 1024,   /* more are taken for one */
    NEAR_NS = 1000,       /* where the table says nothing: within a node, */
    FAR_NS = 10000        /* between nodes */
};

static int no_memory(void)
{
    return chempi_error_set(MPI_ERR_NO_MEM, "no room to reorder processes");
}

/* ---- the graph ---- */

int chempi_reorder_add(struct chempi_reorder_graph *g, int from, int to,
                       int weight)
{
    if (!CHEMPI_ARRAY_FIT(g->edges, g->edge_room, g->edge_count + 1))
        return no_memory();
    g->edges[g->edge_count++] = (struct chempi_reorder_edge){from, to, weight};
    return MPI_SUCCESS;
}

static void graph_fini(struct chempi_reorder_graph *g)
{
    free(g->edges);
    free(g->hint);
}

/* ---- nodes and classes of a communicator ---- */

struct places {
    struct chempi_reorder_nodes nodes;
    int *numbers;     /* node_of, class_of, then: */
    int *job_node;    /* [node_count]: index among the nodes of the job */
    int *class_first; /* [class_count]: the first node of a class */
    int *first_rank;  /* [class_count]: its first rank */
    uint64_t *costs;
};

static void places_fini(struct places *p)
{
    free(p->numbers);
    free(p->costs);
    p->numbers = NULL;
    p->costs = NULL;
}

static uint32_t table_node(uint32_t job_node)
{
    const struct chempi_services *s = &chempi_ctx.services;

    return s->table ? chempi_table_find_node(s->table, s->node_names[job_node])
                    : CHEMPI_TABLE_NONE;
}

/* The class of a node by the table's count, 0 for unknown ones. */
static uint32_t table_class(uint32_t job_node)
{
    uint32_t node = table_node(job_node);

    return node == CHEMPI_TABLE_NONE
               ? 0
               : chempi_table_node_class(chempi_ctx.services.table, node);
}

/* Number what is in use; `number` has room for all and holds -1 for new. */
static int number_of(int *numbers, uint32_t index, int *count)
{
    if (numbers[index] < 0)
        numbers[index] = (*count)++;
    return numbers[index];
}

/* Nodes in the order of their first rank, classes likewise. */
static void number_all(struct places *p, const struct chempi_comm *comm,
                       int *node_of, int *class_of, int *by_node, int *by_class)
{
    const struct chempi_services *s = &chempi_ctx.services;
    uint32_t classes = s->table ? chempi_table_class_count(s->table) : 1;

    for (uint32_t r = 0; r < comm->size; r++) {
        uint32_t job_node = s->node_of_proc[chempi_group_proc(comm->local, r)];
        int known = p->nodes.node_count;
        int node = number_of(by_node, job_node, &p->nodes.node_count);
        uint32_t table = classes > CLASSES_MAX ? 0 : table_class(job_node);
        int known_classes = p->nodes.class_count;

        node_of[r] = node;
        if (node < known)
            continue;
        p->job_node[node] = (int)job_node;
        class_of[node] = number_of(by_class, table, &p->nodes.class_count);
        if (class_of[node] < known_classes)
            continue;
        p->class_first[class_of[node]] = node;
        p->first_rank[class_of[node]] = (int)r;
    }
}

static int places_init(struct places *p, const struct chempi_comm *comm)
{
    const struct chempi_services *s = &chempi_ctx.services;
    size_t n = comm->size;
    size_t classes = s->table ? chempi_table_class_count(s->table) : 1;
    size_t scratch = s->node_count + classes + 1;
    int *by;

    memset(p, 0, sizeof(*p));
    p->numbers = chempi_sys->malloc((5 * n + scratch) * sizeof(int));
    if (!p->numbers)
        return no_memory();
    p->nodes.place_count = (int)n;
    p->nodes.node_of = p->numbers;
    p->nodes.class_of = p->numbers + n;
    p->job_node = p->numbers + 2 * n;
    p->class_first = p->numbers + 3 * n;
    p->first_rank = p->numbers + 4 * n;
    by = p->numbers + 5 * n;
    for (size_t i = 0; i < scratch; i++)
        by[i] = -1;
    number_all(p, comm, p->numbers, p->numbers + n, by, by + s->node_count);
    n = (size_t)p->nodes.class_count;
    p->costs = chempi_sys->calloc(n * (n + 1), sizeof(*p->costs));
    p->nodes.costs = p->costs;
    if (p->costs)
        return MPI_SUCCESS;
    places_fini(p);
    return no_memory();
}

/* ---- costs ---- */

static uint64_t cost_ns(uint32_t job_node, uint64_t otherwise)
{
    int64_t cost = chempi_locality_cost_ns(job_node, MESSAGE_BYTES);

    return cost == CHEMPI_LOCALITY_COST_UNKNOWN ? otherwise : (uint64_t)cost;
}

/* Another node of a class in the communicator than `node`, or -1. */
static int other_node(const struct places *p, int class, int node)
{
    for (int i = p->class_first[class]; i < p->nodes.node_count; i++)
        if (i != node && p->nodes.class_of[i] == class)
            return i;
    return -1;
}

/* The row of my node's class, if I speak for it. */
static void fill_row(struct places *p, const struct chempi_comm *comm)
{
    int node = p->nodes.node_of[comm->rank];
    int class = p->nodes.class_of[node];
    size_t row = (size_t)p->nodes.class_count + 1;
    uint64_t *costs = p->costs + (size_t) class * row;

    if (p->first_rank[class] != comm->rank)
        return;
    for (int c = 0; c < p->nodes.class_count; c++) {
        int other = other_node(p, c, node);

        if (other >= 0)
            costs[c] = cost_ns((uint32_t)p->job_node[other], FAR_NS);
    }
    costs[row - 1] = cost_ns((uint32_t)p->job_node[node], NEAR_NS);
}

static int share_costs(struct places *p, struct chempi_comm *comm)
{
    MPI_Count n = (MPI_Count)p->nodes.class_count * (p->nodes.class_count + 1);

    fill_row(p, comm);
    return chempi_coll_perform(&(struct chempi_coll_call){
        .kind = CHEMPI_COLL_REDUCE,
        .comm = comm,
        .send.buf = comm->rank == 0 ? MPI_IN_PLACE : (void *)p->costs,
        .recv.buf = p->costs,
        .recv.count = n,
        .recv.type = chempi_datatype_lookup(MPI_UINT64_T),
        .op = chempi_op_lookup(MPI_MAX)});
}

/* ---- the search ---- */

bool chempi_reorder_is_useful(const struct chempi_comm *comm)
{
    const uint32_t *node_of = chempi_ctx.services.node_of_proc;
    uint32_t first;

    if (comm->size <= 2 || comm->has_foreign)
        return false; /* what it costs to reach other worlds nobody knows */
    first = node_of[chempi_group_proc(comm->local, 0)];
    for (uint32_t r = 1; r < comm->size; r++)
        if (node_of[chempi_group_proc(comm->local, r)] != first)
            return true;
    return false;
}

/* 1: order is better than the present one; 0; or -1 with an MPI error class
 * in *rc. */
static int look(const struct places *p, int count,
                chempi_reorder_edges_fn *edges, const void *arg, int *order,
                int *rc)
{
    struct chempi_reorder_graph g = {.count = count};
    int found = 0;

    *rc = edges(&g, arg);
    if (!*rc) {
        found = chempi_reorder_search(&g, &p->nodes, order);
        if (found < 0)
            *rc = no_memory();
    }
    graph_fini(&g);
    return *rc ? -1 : found;
}

/* Rank 0 looks, all learn what it has found, or that something has failed. */
static int decide(struct chempi_comm *comm, int rc, const struct places *p,
                  int count, chempi_reorder_edges_fn *edges, const void *arg,
                  int *order, bool *is_better)
{
    struct chempi_comm_channel channel = chempi_comm_channel(comm);
    int64_t found = 0;

    if (!rc && comm->rank == 0)
        found = look(p, count, edges, arg, order, &rc) > 0;
    rc = chempi_comm_max(&channel, rc, &found, 1);
    *is_better = found > 0;
    if (rc || !*is_better)
        return rc;
    channel = chempi_comm_channel(comm);
    return chempi_comm_bcast(&channel, MPI_SUCCESS, order,
                             comm->size * sizeof(*order));
}

int chempi_reorder_ranks(struct chempi_comm *comm, int rc, int count,
                         chempi_reorder_edges_fn *edges, const void *arg,
                         int **order)
{
    struct places p = {0};
    int *found_order = NULL;
    bool is_better = false;

    *order = NULL;
    if (!chempi_reorder_is_useful(comm))
        return rc;
    if (!rc)
        rc = places_init(&p, comm);
    if (!rc) {
        found_order = chempi_sys->malloc(comm->size * sizeof(*found_order));
        rc = found_order ? MPI_SUCCESS : no_memory();
    }
    rc = chempi_comm_vote(comm, rc);
    if (!rc) {
        rc = share_costs(&p, comm);
        rc = decide(comm, rc, &p, count, edges, arg, found_order, &is_better);
    }
    places_fini(&p);
    if (!rc && is_better)
        *order = found_order;
    else
        free(found_order);
    return rc;
}

/* ---- without communication ---- */

/* Costs that every process can name: near, in a class, elsewhere. */
static void guess_costs(struct places *p)
{
    int n = p->nodes.class_count;

    for (int a = 0; a < n; a++) {
        uint64_t *costs = p->costs + (size_t)a * ((size_t)n + 1);

        for (int b = 0; b < n; b++)
            costs[b] = a == b ? FAR_NS : 2 * FAR_NS;
        costs[n] = NEAR_NS;
    }
}

int chempi_reorder_map(struct chempi_comm *comm, int count,
                       chempi_reorder_edges_fn *edges, const void *arg,
                       int *newrank)
{
    struct places p;
    int *order;
    int found = 0;
    int rc = MPI_SUCCESS;

    *newrank = comm->rank < count ? comm->rank : MPI_UNDEFINED;
    if (!chempi_reorder_is_useful(comm))
        return rc;
    rc = places_init(&p, comm);
    if (rc)
        return rc;
    order = chempi_sys->malloc(comm->size * sizeof(*order));
    guess_costs(&p);
    if (order)
        found = look(&p, count, edges, arg, order, &rc);
    else
        rc = no_memory();
    places_fini(&p);
    for (int v = 0; v < (int)comm->size && found > 0; v++)
        if (order[v] == comm->rank)
            *newrank = v < count ? v : MPI_UNDEFINED;
    free(order);
    return rc;
}
