/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Distributed graphs: every process knows its own edges only (MPI 5.0,
 * sections 8.5.4 and 8.5.5).
 *
 * Vertex v is what rank v of the old communicator described (adjacent form) or
 * what all said of it (general form; edges stand in the order of the rank that
 * named them, then of its arguments). If a new order is better, the process
 * that becomes rank v fetches the edges of vertex v from old rank v.
 */
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/coll/call.h"
#include "libchempi/didl/comm/make/comm_make.h"
#include "libchempi/didl/comm/message.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/topo/reorder.h"
#include "libchempi/didl/topo/topology.h"

static struct chempi_datatype *int_type(void)
{
    return chempi_datatype_lookup(MPI_INT);
}

static int no_memory(void)
{
    return chempi_error_set(MPI_ERR_NO_MEM,
                            "no room for the edges of a distributed graph");
}

/* ---- arguments ---- */

static bool is_array(const int *weights)
{
    return weights && weights != MPI_UNWEIGHTED && weights != MPI_WEIGHTS_EMPTY;
}

static int check_ranks(const struct chempi_comm *comm, const char *name,
                       const int *ranks, int count)
{
    if (count > 0 && !ranks)
        return chempi_error_set(MPI_ERR_ARG, "%s is null", name);
    for (int i = 0; i < count; i++)
        if (ranks[i] < 0 || ranks[i] >= (int)comm->size)
            return chempi_error_set(MPI_ERR_RANK,
                                    "%s[%d] is %d, the communicator has %u "
                                    "processes",
                                    name, i, ranks[i], comm->size);
    return MPI_SUCCESS;
}

static int check_weights(const char *name, const int *weights, int count)
{
    if (count == 0 || weights == MPI_UNWEIGHTED)
        return MPI_SUCCESS;
    if (!is_array(weights))
        return chempi_error_set(MPI_ERR_ARG,
                                "%s is no array, but there are "
                                "%d edges",
                                name, count);
    for (int i = 0; i < count; i++)
        if (weights[i] < 0)
            return chempi_error_set(MPI_ERR_ARG, "%s[%d] is %d", name, i,
                                    weights[i]);
    return MPI_SUCCESS;
}

static int check_degree(const struct chempi_comm *comm, const char *name,
                        int degree)
{
    if (comm->is_inter)
        return chempi_error_set(MPI_ERR_COMM, "a topology cannot be laid over "
                                              "an intercommunicator");
    if (degree < 0)
        return chempi_error_set(MPI_ERR_ARG, "%s is %d", name, degree);
    return MPI_SUCCESS;
}

/* ---- the struct ---- */

static struct chempi_topology *make_dist(int indegree, int outdegree,
                                         bool is_weighted)
{
    size_t in = (size_t)indegree;
    size_t out = (size_t)outdegree;
    struct chempi_topology *t =
        chempi_topology_create(MPI_DIST_GRAPH, 2 * (in + out));
    struct chempi_dist_graph *dist;

    if (!t)
        return NULL;
    dist = &t->u.dist;
    dist->indegree = indegree;
    dist->outdegree = outdegree;
    dist->is_weighted = is_weighted;
    dist->sources = t->ints;
    dist->source_weights = t->ints + in;
    dist->destinations = t->ints + 2 * in;
    dist->dest_weights = t->ints + 2 * in + out;
    return t;
}

static size_t int_count(const struct chempi_topology *t)
{
    return 2 * ((size_t)t->u.dist.indegree + (size_t)t->u.dist.outdegree);
}

static void copy_ints(int *to, const int *from, int count)
{
    if (count > 0)
        memcpy(to, from, (size_t)count * sizeof(int));
}

static void copy_weights(int *to, const int *from, int count)
{
    for (int i = 0; i < count; i++)
        to[i] = is_array(from) ? from[i] : 1;
}

/* ---- a better order ---- */

/* Everybody's edges at rank 0: of each its number, then pairs of destination
 * and weight. */
struct gathered {
    int *counts;
    int *pairs;
    int size;
};

static int add_edges(struct chempi_reorder_graph *g, const void *arg)
{
    const struct gathered *all = arg;
    const int *pair = all->pairs;

    for (int v = 0; v < all->size; v++)
        for (int i = 0; i < all->counts[v] / 2; i++, pair += 2) {
            int rc = pair[0] == v ? MPI_SUCCESS
                                  : chempi_reorder_add(g, v, pair[0], pair[1]);

            if (rc)
                return rc;
        }
    return MPI_SUCCESS;
}

static int *pairs_of(const struct chempi_dist_graph *dist)
{
    int *pairs =
        chempi_sys->malloc(((size_t)dist->outdegree + 1) * 2 * sizeof(*pairs));

    for (int i = 0; pairs && i < dist->outdegree; i++) {
        pairs[2 * i] = dist->destinations[i];
        pairs[2 * i + 1] = dist->dest_weights[i];
    }
    return pairs;
}

/* Displacements that put blocks one behind the other; returns the total. */
static MPI_Count line_up(const int *counts, int n, MPI_Count *displs)
{
    MPI_Count total = 0;

    for (int i = 0; i < n; i++) {
        displs[i] = total;
        total += counts[i];
    }
    return total;
}

/* Rank 0 collects the edges of all; dist does not matter if rc says that
 * something has failed here. */
static int gather(struct chempi_comm *comm, int rc,
                  const struct chempi_dist_graph *dist, struct gathered *all)
{
    int *mine = rc ? NULL : pairs_of(dist);
    int count = rc ? 0 : 2 * dist->outdegree;
    MPI_Count *displs = NULL;

    if (comm->rank == 0) {
        all->counts = chempi_sys->calloc(comm->size, sizeof(*all->counts));
        displs = chempi_sys->calloc(comm->size, sizeof(*displs));
    }
    if (!rc && (!mine || (comm->rank == 0 && (!all->counts || !displs))))
        rc = no_memory();
    rc = chempi_comm_vote(comm, rc);
    if (!rc)
        rc = chempi_coll_perform(
            &(struct chempi_coll_call){.kind = CHEMPI_COLL_GATHER,
                                       .comm = comm,
                                       .send.buf = &count,
                                       .send.count = 1,
                                       .send.type = int_type(),
                                       .recv.buf = all->counts,
                                       .recv.count = 1,
                                       .recv.type = int_type()});
    if (!rc && comm->rank == 0) {
        MPI_Count total = line_up(all->counts, all->size, displs);

        all->pairs =
            chempi_sys->malloc(((size_t)total + 1) * sizeof(*all->pairs));
        rc = all->pairs ? MPI_SUCCESS : no_memory();
    }
    rc = chempi_comm_vote(comm, rc);
    if (!rc)
        rc = chempi_coll_perform(
            &(struct chempi_coll_call){.kind = CHEMPI_COLL_GATHERV,
                                       .comm = comm,
                                       .send.buf = mine,
                                       .send.count = count,
                                       .send.type = int_type(),
                                       .recv.buf = all->pairs,
                                       .recv.counts = {all->counts, false},
                                       .recv.displs = {displs, true},
                                       .recv.type = int_type()});
    free(mine);
    free(displs);
    return rc;
}

/* An error is one of all members. */
static int find_order(struct chempi_comm *comm, int rc,
                      const struct chempi_dist_graph *dist, int **order)
{
    struct gathered all = {.size = (int)comm->size};

    rc = gather(comm, rc, dist, &all);
    rc =
        chempi_reorder_ranks(comm, rc, (int)comm->size, add_edges, &all, order);
    free(all.counts);
    free(all.pairs);
    return chempi_comm_vote(comm, rc);
}

/* Hand the edges of my vertex to the process that takes it, and get those of
 * the vertex that I take. */
static int move_edges(struct chempi_comm *comm, const int *order,
                      struct chempi_topology **t)
{
    struct chempi_comm_channel ch = chempi_comm_channel(comm);
    const struct chempi_topology *old = *t;
    int to = order[comm->rank];
    int from = 0;
    int out[3] = {old->u.dist.indegree, old->u.dist.outdegree,
                  old->u.dist.is_weighted};
    int in[3];
    struct chempi_topology *got = NULL;
    int rc;

    while (order[from] != comm->rank)
        from++;
    rc = chempi_message_sendrecv_on(out, 3, int_type(), to, ch.tag, in, 3,
                                    int_type(), from, ch.tag, comm,
                                    CHEMPI_CONTEXT_INTERNAL, MPI_STATUS_IGNORE);
    if (!rc) {
        got = make_dist(in[0], in[1], in[2] != 0);
        rc = got ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    }
    rc = chempi_comm_vote(comm, rc);
    if (rc) {
        chempi_topology_release(got);
        return rc;
    }
    rc = chempi_message_sendrecv_on(
        old->ints, (MPI_Count)int_count(old), int_type(), to, ch.tag, got->ints,
        (MPI_Count)int_count(got), int_type(), from, ch.tag, comm,
        CHEMPI_CONTEXT_INTERNAL, MPI_STATUS_IGNORE);
    chempi_topology_release(*t);
    *t = got;
    return rc;
}

/* The communicator for t, whose reference is taken over; or, if rc says that
 * something has failed here, for no member. */
static int finish(struct chempi_comm *comm, int rc, struct chempi_topology *t,
                  int reorder, MPI_Comm *newcomm)
{
    struct chempi_comm *made = NULL;
    int *order = NULL;

    if (reorder && chempi_reorder_is_useful(comm)) {
        rc = find_order(comm, rc, t ? &t->u.dist : NULL, &order);
        if (!rc && order)
            rc = move_edges(comm, order, &t);
    }
    rc = chempi_topology_make_comm(comm, rc, order, (int)comm->size, &made);
    free(order);
    if (rc) {
        chempi_topology_release(t);
        return rc;
    }
    chempi_topology_attach(made, t);
    *newcomm = made->handle;
    return MPI_SUCCESS;
}

int chempi_topology_dist_graph_create_adjacent(
    struct chempi_comm *comm_old, int indegree, const int sources[],
    const int sourceweights[], int outdegree, const int destinations[],
    const int destweights[], struct chempi_info *info, int reorder,
    MPI_Comm *comm_dist_graph)
{
    bool is_weighted =
        sourceweights != MPI_UNWEIGHTED && destweights != MPI_UNWEIGHTED;
    struct chempi_topology *t;
    int rc = check_degree(comm_old, "indegree", indegree);

    (void)info; /* no hint is known */
    *comm_dist_graph = MPI_COMM_NULL;
    if (!rc)
        rc = check_degree(comm_old, "outdegree", outdegree);
    if (!rc)
        rc = check_ranks(comm_old, "sources", sources, indegree);
    if (!rc)
        rc = check_ranks(comm_old, "destinations", destinations, outdegree);
    if (!rc)
        rc = check_weights("sourceweights", sourceweights, indegree);
    if (!rc)
        rc = check_weights("destweights", destweights, outdegree);
    if (rc)
        return rc;
    t = make_dist(indegree, outdegree, is_weighted);
    if (!t) /* which the others have to learn */
        return finish(comm_old, MPI_ERR_NO_MEM, NULL, reorder, comm_dist_graph);
    copy_ints(t->u.dist.sources, sources, indegree);
    copy_ints(t->u.dist.destinations, destinations, outdegree);
    copy_weights(t->u.dist.source_weights, sourceweights, indegree);
    copy_weights(t->u.dist.dest_weights, destweights, outdegree);
    return finish(comm_old, MPI_SUCCESS, t, reorder, comm_dist_graph);
}

/* ---- the general form: tell both ends of every edge ---- */

enum { RECORD_INTS = 3 }; /* is it an in-edge?, the other end, weight */

struct parcel {
    int *counts;       /* [size] ints for or from each process */
    MPI_Count *displs; /* [size] */
    int *records;
    MPI_Count total; /* ints */
};

static int parcel_init(struct parcel *p, uint32_t size)
{
    *p = (struct parcel){
        .counts = chempi_sys->calloc(size, sizeof(*p->counts)),
        .displs = chempi_sys->calloc(size, sizeof(*p->displs)),
    };
    return p->counts && p->displs ? MPI_SUCCESS : no_memory();
}

static void parcel_fini(struct parcel *p)
{
    free(p->counts);
    free(p->displs);
    free(p->records);
}

static int parcel_fill(struct parcel *p, int size)
{
    p->total = line_up(p->counts, size, p->displs);
    p->records =
        chempi_sys->malloc(((size_t)p->total + 1) * sizeof(*p->records));
    return p->records ? MPI_SUCCESS : no_memory();
}

struct edges {
    int n;
    const int *sources;
    const int *degrees;
    const int *destinations;
    const int *weights;
};

static void put(struct parcel *p, MPI_Count *next, int rank, bool is_in,
                int other, int weight)
{
    int *record = p->records + next[rank];

    record[0] = is_in;
    record[1] = other;
    record[2] = weight;
    next[rank] += RECORD_INTS;
}

/* What every process must learn of the edges named here. */
static int write_records(struct parcel *p, const struct edges *e, int size)
{
    MPI_Count *next;
    size_t k = 0;
    int rc;

    for (int i = 0; i < e->n; i++)
        for (int j = 0; j < e->degrees[i]; j++) {
            p->counts[e->sources[i]] += RECORD_INTS;
            p->counts[e->destinations[k++]] += RECORD_INTS;
        }
    rc = parcel_fill(p, size);
    next = chempi_sys->malloc((size_t)size * sizeof(*next));
    if (rc || !next) {
        free(next);
        return no_memory();
    }
    memcpy(next, p->displs, (size_t)size * sizeof(*next));
    k = 0;
    for (int i = 0; i < e->n; i++)
        for (int j = 0; j < e->degrees[i]; j++, k++) {
            int weight = is_array(e->weights) ? e->weights[k] : 1;
            int from = e->sources[i];
            int to = e->destinations[k];

            put(p, next, from, false, to, weight);
            put(p, next, to, true, from, weight);
        }
    free(next);
    return MPI_SUCCESS;
}

static int bad_records(void)
{
    return chempi_error_set(MPI_ERR_INTERN,
                            "another member names edges that cannot be");
}

/* Before anything comes: what members of other worlds say that they send. */
static int check_counts(const struct parcel *p, int size)
{
    int64_t total = 0;

    for (int i = 0; i < size; i++) {
        if (p->counts[i] < 0 || p->counts[i] % RECORD_INTS != 0)
            return bad_records();
        total += p->counts[i];
    }
    return total / RECORD_INTS <= INT32_MAX ? MPI_SUCCESS : bad_records();
}

static int check_records(const struct parcel *p, int size)
{
    for (MPI_Count i = 0; i < p->total; i += RECORD_INTS)
        if (p->records[i + 1] < 0 || p->records[i + 1] >= size ||
            p->records[i + 2] < 0)
            return bad_records();
    return MPI_SUCCESS;
}

static struct chempi_topology *read_records(const struct parcel *p,
                                            bool is_weighted)
{
    struct chempi_topology *t;
    struct chempi_dist_graph *dist;
    int degree[2] = {0, 0};

    for (MPI_Count i = 0; i < p->total; i += RECORD_INTS)
        degree[p->records[i] != 0]++;
    t = make_dist(degree[1], degree[0], is_weighted);
    if (!t)
        return NULL;
    dist = &t->u.dist;
    degree[0] = degree[1] = 0;
    for (MPI_Count i = 0; i < p->total; i += RECORD_INTS) {
        bool is_in = p->records[i] != 0;
        int at = degree[is_in]++;

        (is_in ? dist->sources : dist->destinations)[at] = p->records[i + 1];
        (is_in ? dist->source_weights : dist->dest_weights)[at] =
            p->records[i + 2];
    }
    return t;
}

/* rc: what has failed here before. */
static int spread(struct chempi_comm *comm, int rc, const struct edges *e,
                  struct parcel *out, struct parcel *in)
{
    int size = (int)comm->size;

    if (!rc)
        rc = write_records(out, e, size);
    rc = chempi_comm_vote(comm, rc);
    if (!rc)
        rc = chempi_coll_perform(
            &(struct chempi_coll_call){.kind = CHEMPI_COLL_ALLTOALL,
                                       .comm = comm,
                                       .send.buf = out->counts,
                                       .send.count = 1,
                                       .send.type = int_type(),
                                       .recv.buf = in->counts,
                                       .recv.count = 1,
                                       .recv.type = int_type()});
    if (!rc)
        rc = check_counts(in, size);
    if (!rc)
        rc = parcel_fill(in, size);
    rc = chempi_comm_vote(comm, rc);
    if (!rc)
        rc = chempi_coll_perform(
            &(struct chempi_coll_call){.kind = CHEMPI_COLL_ALLTOALLV,
                                       .comm = comm,
                                       .send.buf = out->records,
                                       .send.counts = {out->counts, false},
                                       .send.displs = {out->displs, true},
                                       .send.type = int_type(),
                                       .recv.buf = in->records,
                                       .recv.counts = {in->counts, false},
                                       .recv.displs = {in->displs, true},
                                       .recv.type = int_type()});
    return rc ? rc : check_records(in, size);
}

static int check_edges(const struct chempi_comm *comm, const struct edges *e)
{
    int64_t total = 0;
    int rc = check_degree(comm, "n", e->n);

    if (!rc)
        rc = check_ranks(comm, "sources", e->sources, e->n);
    if (!rc && e->n > 0 && !e->degrees)
        rc = chempi_error_set(MPI_ERR_ARG, "degrees is null");
    for (int i = 0; i < e->n && !rc; i++) {
        rc = check_degree(comm, "a degree", e->degrees[i]);
        total += e->degrees[i];
    }
    if (!rc && total > INT32_MAX / (2 * RECORD_INTS))
        rc = chempi_error_set(MPI_ERR_ARG, "%lld edges are too many",
                              (long long)total);
    if (!rc)
        rc = check_ranks(comm, "destinations", e->destinations, (int)total);
    if (!rc)
        rc = check_weights("weights", e->weights, (int)total);
    return rc;
}

int chempi_topology_dist_graph_create(struct chempi_comm *comm_old, int n,
                                      const int sources[], const int degrees[],
                                      const int destinations[],
                                      const int weights[],
                                      struct chempi_info *info, int reorder,
                                      MPI_Comm *comm_dist_graph)
{
    const struct edges e = {n, sources, degrees, destinations, weights};
    struct chempi_topology *t = NULL;
    struct parcel out = {0};
    struct parcel in = {0};
    int rc = check_edges(comm_old, &e);

    (void)info;
    *comm_dist_graph = MPI_COMM_NULL;
    if (rc)
        return rc;
    rc = parcel_init(&out, comm_old->size);
    if (!rc)
        rc = parcel_init(&in, comm_old->size);
    rc = spread(comm_old, rc, &e, &out, &in);
    if (!rc) {
        t = read_records(&in, weights != MPI_UNWEIGHTED);
        rc = t ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    }
    parcel_fini(&out);
    parcel_fini(&in);
    return finish(comm_old, rc, t, reorder, comm_dist_graph);
}

/* ---- questions ---- */

int chempi_topology_dist_graph_neighbors_count(struct chempi_comm *comm,
                                               int *indegree, int *outdegree,
                                               int *weighted)
{
    int rc = chempi_topology_need(comm, MPI_DIST_GRAPH);
    const struct chempi_dist_graph *dist;

    if (rc)
        return rc;
    dist = &comm->topology->u.dist;
    *indegree = dist->indegree;
    *outdegree = dist->outdegree;
    *weighted = dist->is_weighted;
    return MPI_SUCCESS;
}

static int take(const char *name, int count, int max, const int *ranks,
                const int *weights, int *to, int *to_weights)
{
    if (max < 0)
        return chempi_error_set(MPI_ERR_ARG, "room for %d %s", max, name);
    if (count > max)
        count = max;
    if (count > 0 && !to)
        return chempi_error_set(MPI_ERR_ARG, "the array for %s is null", name);
    copy_ints(to, ranks, count);
    if (weights && is_array(to_weights))
        copy_ints(to_weights, weights, count);
    return MPI_SUCCESS;
}

int chempi_topology_dist_graph_neighbors(struct chempi_comm *comm,
                                         int maxindegree, int sources[],
                                         int sourceweights[], int maxoutdegree,
                                         int destinations[], int destweights[])
{
    int rc = chempi_topology_need(comm, MPI_DIST_GRAPH);
    const struct chempi_dist_graph *dist;

    if (rc)
        return rc;
    dist = &comm->topology->u.dist;
    rc = take("sources", dist->indegree, maxindegree, dist->sources,
              dist->is_weighted ? dist->source_weights : NULL, sources,
              sourceweights);
    if (!rc)
        rc = take("destinations", dist->outdegree, maxoutdegree,
                  dist->destinations,
                  dist->is_weighted ? dist->dest_weights : NULL, destinations,
                  destweights);
    return rc;
}
