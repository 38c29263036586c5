/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the members of a communicator come to the same hierarchy.
 *
 * Who is on which node, all know alike. Which networks join the nodes stands
 * in each node's table, and what a network costs only in the tables of the
 * nodes that use it. So all members agree on three things, by maxima over
 * all: a digest of what the directory says of their nodes (tables may be of
 * different age: then there is one team of all nodes), the least cost of each
 * network, and that everyone has the memory for it.
 */
#include <stdlib.h>

#include "common/base/sys.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/base/setting.h"
#include "libchempi/didl/coll/hier/hier_ops.h"
#include "libchempi/didl/coll/node/node.h"
#include "libchempi/didl/comm/make/comm_make.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/locality/locality.h"

/* Values of the setting. */
enum { HIERARCHY_NONE, HIERARCHY_NODES, HIERARCHY_NETWORKS };

/* Networks are compared by what a message of so many bytes costs: neither its
 * latency nor its bandwidth alone. One that costs at most so much more than
 * another is as fast. */
enum { COSTS_OF_BYTES = 8 << 10, SIMILAR_PERCENT = 50 };

static uint32_t node_of(const void *arg, int rank)
{
    return chempi_ctx.services
        .node_of_proc[chempi_comm_proc(arg, (uint32_t)rank)];
}

static bool attachment(const void *arg, uint32_t node, uint32_t i, int *network)
{
    uint32_t found;

    (void)arg;
    if (!chempi_locality_attachment(node, i, &found))
        return false;
    *network = found == CHEMPI_LOCALITY_NONE ? -1 : (int)found;
    return true;
}

/* ---- what the table says, in a number ---- */

static uint64_t mix(uint64_t digest, uint64_t value)
{
    return (digest ^ value) * UINT64_C(0x100000001b3); /* FNV-1a's prime */
}

static uint64_t digest_of(const struct chempi_hier_plan *plan)
{
    uint64_t digest = UINT64_C(0xcbf29ce484222325);
    uint32_t last = 0;

    digest = mix(digest, (uint64_t)plan->network_count);
    for (int i = 0; i < plan->network_count; i++) {
        const char *name = chempi_locality_network_name((uint32_t)i);

        for (size_t k = 0; name[k]; k++)
            digest = mix(digest, (unsigned char)name[k]);
        digest = mix(digest, chempi_locality_joins_nodes((uint32_t)i));
    }
    for (int r = 0; r < plan->size; r++) {
        const uint32_t node = node_of(plan->arg, r);
        int network;

        if (r > 0 && node == last)
            continue;
        last = node;
        for (uint32_t i = 0; attachment(NULL, node, i, &network); i++)
            digest = mix(digest, (uint64_t)(network + 1));
        digest = mix(digest, UINT64_MAX); /* the next node's */
    }
    return digest >> 2; /* fits a signed number, and so does its negative */
}

/* ---- agreement ---- */

static int no_memory(void)
{
    return chempi_error_set(MPI_ERR_NO_MEM,
                            "no memory for collective operations");
}

/* Does everyone have room, and do all know the same of their nodes? Without
 * the same directory everywhere no network counts. */
static int agree_directory(const struct chempi_comm_channel *ch,
                           struct chempi_hier_plan *plan, bool has_room)
{
    int64_t vals[3] = {0, 0, !has_room};
    int rc;

    if (has_room)
        vals[0] = (int64_t)digest_of(plan);
    vals[1] = -vals[0];
    rc = chempi_comm_max(ch, MPI_SUCCESS, vals, 3);
    if (!rc && vals[2])
        rc = no_memory();
    if (vals[0] != -vals[1])
        plan->network_count = 0;
    return rc;
}

/* The least costs over all members. */
static int agree_costs(const struct chempi_comm_channel *ch, int count,
                       uint64_t *costs)
{
    int64_t vals[CHEMPI_COMM_VALS_MAX];

    chempi_locality_network_costs_ns(COSTS_OF_BYTES, (uint32_t)count, costs);
    for (int at = 0; at < count; at += CHEMPI_COMM_VALS_MAX) {
        int n = count - at < CHEMPI_COMM_VALS_MAX ? count - at
                                                  : CHEMPI_COMM_VALS_MAX;
        int rc;

        for (int i = 0; i < n; i++)
            vals[i] = -(int64_t)costs[at + i];
        rc = chempi_comm_max(ch, MPI_SUCCESS, vals, n);
        if (rc)
            return rc;
        for (int i = 0; i < n; i++)
            costs[at + i] = vals[i] == -CHEMPI_LOCALITY_COST_UNKNOWN
                                ? UINT64_MAX
                                : (uint64_t)-vals[i];
    }
    return MPI_SUCCESS;
}

static int agree_success(const struct chempi_comm_channel *ch, bool is_good)
{
    int64_t failed = !is_good;
    int rc = chempi_comm_max(ch, MPI_SUCCESS, &failed, 1);

    return !rc && failed ? no_memory() : rc;
}

/* ---- the node's communicator ---- */

static struct chempi_comm *make_node_comm(struct chempi_comm *comm,
                                          const struct chempi_hier *h,
                                          uint32_t context)
{
    const int count = chempi_hier_node_size(h, h->node);
    uint32_t *procs = chempi_sys->malloc((size_t)count * sizeof(*procs));
    struct chempi_group *group;
    struct chempi_comm *made;

    if (!procs)
        return NULL;
    for (int i = 0; i < count; i++)
        procs[i] =
            chempi_comm_proc(comm, (uint32_t)chempi_hier_local_rank(h, i));
    group = chempi_group_make((uint32_t)count, procs);
    if (!group)
        return NULL;
    made = chempi_comm_make(group, NULL, context, context);
    chempi_group_release(group);
    if (made)
        made->serves = comm;
    return made;
}

/* ---- a communicator's part ---- */

/* Phases in the node find no more memory missing for their beginning. */
static bool is_complete(const struct chempi_coll_state *st,
                        chempi_hier_prepare_fn *prepare)
{
    if (!st->hier)
        return false;
    return !chempi_hier_is_deep(st->hier) ||
           (st->node_comm && prepare(st->node_comm));
}

static int make(struct chempi_comm *comm, struct chempi_coll_state *st,
                struct chempi_hier_plan *plan, uint64_t *costs,
                chempi_hier_prepare_fn *prepare)
{
    struct chempi_comm_channel ch = chempi_comm_channel(comm);
    uint32_t context;
    int rc = agree_directory(&ch, plan, costs);

    if (!rc)
        rc = agree_costs(&ch, plan->network_count, costs);
    if (!rc)
        rc = chempi_comm_agree_context(&ch, MPI_SUCCESS, &context);
    if (rc)
        return rc;
    plan->costs = costs;
    st->hier = chempi_hier_create(plan);
    if (st->hier && chempi_hier_is_deep(st->hier))
        st->node_comm = make_node_comm(comm, st->hier, context);
    if (!st->node_comm)
        chempi_comm_give_context(context);
    return agree_success(&ch, is_complete(st, prepare));
}

int chempi_hier_attach(struct chempi_comm *comm, struct chempi_coll_state *st,
                       chempi_hier_prepare_fn *prepare)
{
    uint32_t networks = chempi_locality_network_total();
    uint64_t *costs = chempi_sys->calloc((size_t)networks + 1, sizeof(*costs));
    struct chempi_hier_plan plan = {
        .size = (int)comm->size,
        .rank = comm->rank,
        .node_of = node_of,
        .node_limit = chempi_ctx.services.node_count,
        .network_count = (int)networks,
        .attachment = attachment,
        .arg = comm,
        .similar_percent = SIMILAR_PERCENT,
    };
    int rc = MPI_SUCCESS;

    if (chempi_setting(CHEMPI_SET_COLL_HIERARCHY) < HIERARCHY_NETWORKS)
        plan.network_count = 0;
    if (chempi_setting(CHEMPI_SET_COLL_HIERARCHY) != HIERARCHY_NONE &&
        !comm->has_foreign)
        rc = make(comm, st, &plan, costs, prepare);
    free(costs);
    if (rc && st->node_comm)
        st->node_comm->is_partial = true;
    if (rc || (st->hier && !chempi_hier_is_deep(st->hier)))
        chempi_hier_detach(st);
    return rc;
}

void chempi_hier_detach(struct chempi_coll_state *st)
{
    chempi_comm_release_servant(st->node_comm);
    chempi_hier_destroy(st->hier);
    st->node_comm = NULL;
    st->hier = NULL;
}
