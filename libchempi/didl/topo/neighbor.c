/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Neighbourhood collectives (MPI 5.0, sections 8.6 to 8.8): one schedule with
 * all receives, then all sends. Nothing is held back by a window: a neighbour
 * may list its edges in another order, and waiting for some of them before
 * starting others could close a circle.
 *
 * All messages of a call have one tag, so what passes between two processes
 * is matched by order. Along a periodic dimension of a cart with one or two
 * processes, the neighbour on both sides is the same, and what it sends to its
 * minus side comes in from our plus side: receives are posted plus before
 * minus, sends go minus before plus.
 */
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/coll/async.h"
#include "libchempi/didl/coll/call.h"
#include "libchempi/didl/coll/check.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/topo/topology.h"

/* ---- who they are ---- */

/*
 * The neighbours of this process. `count` entries; ranks[i] may be
 * MPI_PROC_NULL, where a cart has a border. What goes to or comes from the
 * same process is matched in the order of nth().
 */
struct neighbors {
    int count;
    bool is_cart_sources;           /* matched in pairs: plus before minus */
    const struct chempi_cart *cart; /* NULL: ranks */
    const int *ranks;
};

static int rank_of(const struct neighbors *n, int i)
{
    return n->cart ? chempi_cart_shifted(n->cart, i / 2, i % 2 ? 1 : -1)
                   : n->ranks[i];
}

/* Position of the i-th entry in the order of matching. */
static int nth(const struct neighbors *n, int i)
{
    return n->is_cart_sources ? i ^ 1 : i;
}

/* Both lists (MPI 5.0, section 8.6). */
static void find_neighbors(const struct chempi_comm *comm,
                           struct neighbors *sources,
                           struct neighbors *destinations)
{
    const struct chempi_topology *t = comm->topology;
    const struct chempi_graph_topology *graph = &t->u.graph;
    int first;

    *sources = (struct neighbors){0};
    *destinations = (struct neighbors){0};
    switch (t->kind) {
    case MPI_CART:
        sources->count = 2 * t->u.cart.ndims;
        sources->cart = &t->u.cart;
        *destinations = *sources;
        sources->is_cart_sources = true;
        break;
    case MPI_GRAPH:
        first = comm->rank > 0 ? graph->index[comm->rank - 1] : 0;
        sources->count = graph->index[comm->rank] - first;
        sources->ranks = graph->edges + first;
        *destinations = *sources;
        break;
    default:
        sources->count = t->u.dist.indegree;
        sources->ranks = t->u.dist.sources;
        destinations->count = t->u.dist.outdegree;
        destinations->ranks = t->u.dist.destinations;
        break;
    }
}

/* To all neighbours the same, or each its own. */
static struct chempi_coll_place sent(const struct chempi_coll_call *c, int i)
{
    return c->kind == CHEMPI_COLL_ALLGATHER || c->kind == CHEMPI_COLL_ALLGATHERV
               ? chempi_coll_whole(&c->send)
               : chempi_coll_sent(c, i);
}

/* ---- checks ---- */

/* Displacements may be null where there is nothing. */
static int check_displs(struct chempi_count_array displs, int n,
                        const char *name)
{
    return n > 0 && !displs.p
               ? chempi_error_set(MPI_ERR_ARG, "%s is null", name)
               : MPI_SUCCESS;
}

static int check_arrays(const struct chempi_coll_call *c, int in, int out)
{
    int rc = MPI_SUCCESS;

    if (c->kind == CHEMPI_COLL_ALLGATHER || c->kind == CHEMPI_COLL_ALLTOALL)
        return rc;
    rc = chempi_coll_check_counts(c->recv.counts, in, "recvcounts");
    if (!rc)
        rc = check_displs(c->recv.displs, in, "rdispls");
    if (rc || c->kind == CHEMPI_COLL_ALLGATHERV)
        return rc;
    rc = chempi_coll_check_counts(c->send.counts, out, "sendcounts");
    if (!rc)
        rc = check_displs(c->send.displs, out, "sdispls");
    if (rc || c->kind == CHEMPI_COLL_ALLTOALLV)
        return rc;
    rc =
        chempi_coll_check_types(c->recv.counts, c->recv.types, in, "recvtypes");
    return rc ? rc
              : chempi_coll_check_types(c->send.counts, c->send.types, out,
                                        "sendtypes");
}

/* ---- the schedule ---- */

struct hood {
    const struct chempi_coll_call *call;
    struct neighbors in;
    struct neighbors out;
};

static int hood_init(struct hood *hood, const struct chempi_coll_call *c)
{
    hood->call = c;
    if (!c->comm->topology)
        return chempi_error_set(MPI_ERR_TOPOLOGY,
                                "the communicator has no topology");
    if (c->send.buf == MPI_IN_PLACE || c->recv.buf == MPI_IN_PLACE)
        return chempi_error_set(MPI_ERR_BUFFER, "MPI_IN_PLACE is not for "
                                                "neighbourhood collectives");
    find_neighbors(c->comm, &hood->in, &hood->out);
    return check_arrays(c, hood->in.count, hood->out.count);
}

/* Edges from this process to itself are copies: the next send to itself that
 * belongs to a receive from itself; *at walks along. */
static void copy_own(struct chempi_coll_sched *s, const struct hood *hood,
                     const struct chempi_coll_place *to, int *at)
{
    int me = hood->call->comm->rank;

    while (*at < hood->out.count) {
        int i = (*at)++;
        struct chempi_coll_place from;

        if (rank_of(&hood->out, i) != me)
            continue;
        from = sent(hood->call, i);
        if (chempi_coll_place_bytes(&from) > 0)
            chempi_coll_copy(s, from.buf, from.count, from.type, to->buf,
                             to->count, to->type);
        return;
    }
}

static void build(struct chempi_coll_sched *s, const void *arg)
{
    const struct hood *hood = arg;
    int me = hood->call->comm->rank;
    int own = 0;

    for (int i = 0; i < hood->in.count; i++) {
        int at = nth(&hood->in, i);
        int rank = rank_of(&hood->in, at);
        struct chempi_coll_place b;

        if (rank == MPI_PROC_NULL)
            continue;
        b = chempi_coll_received(hood->call, at);
        if (rank == me)
            copy_own(s, hood, &b, &own);
        else if (chempi_coll_place_bytes(&b) > 0)
            chempi_coll_recv(s, b.buf, b.count, b.type, rank);
    }
    for (int i = 0; i < hood->out.count; i++) {
        int rank = rank_of(&hood->out, i);
        struct chempi_coll_place b;

        if (rank == MPI_PROC_NULL || rank == me)
            continue;
        b = sent(hood->call, i);
        if (chempi_coll_place_bytes(&b) > 0)
            chempi_coll_send(s, b.buf, b.count, b.type, rank);
    }
}

/* ---- the three forms ---- */

int chempi_neighbor_perform(struct chempi_coll_call *c)
{
    struct chempi_coll_sched s;
    struct hood hood;
    int rc = hood_init(&hood, c);

    if (rc)
        return rc; /* it has not taken part, and may be made again */
    chempi_coll_sched_init(&s, c->comm, chempi_coll_next_tag(c->comm));
    build(&s, &hood);
    rc = chempi_coll_run(&s);
    chempi_coll_sched_fini(&s);
    return rc;
}

static int make(const struct chempi_coll_call *c, bool is_persistent,
                MPI_Request *request)
{
    struct hood hood;
    int rc = hood_init(&hood, c);

    if (rc)
        return rc;
    return chempi_coll_of_neighbors(c, build, &hood, is_persistent, request);
}

int chempi_neighbor_start(struct chempi_coll_call *c, MPI_Request *request)
{
    return make(c, false, request);
}

int chempi_neighbor_prepare(struct chempi_coll_call *c, MPI_Request *request)
{
    return make(c, true, request);
}
