/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Neighbourhood collectives in all three forms and both widths, on grids of
 * many shapes (borders, periodic dimensions of one and two processes), on
 * graphs, and on distributed graphs with repeated edges and loops. Every block
 * says which edge it stands for.
 */
#include "check.h"

enum { MOST = 64, GAP = -7 };

enum form { BLOCKING, NON_BLOCKING, PERSISTENT, FORMS };

/* The edges of this process, as the standard names them. */
struct hood {
    const char *name;
    MPI_Comm comm;
    int rank;
    int in;
    int out;
    int sources[MOST];
    int destinations[MOST];
    int from[MOST]; /* at which place of its list the source sends to us */
};

/* Element i of what rank sends at a place of its list. */
static int value_of(int rank, int place, int i)
{
    return (int)(check_mix((uint64_t)(rank * MOST + place), (uint64_t)i) &
                 0xFFFFFF);
}

static void expect(const struct hood *h, const char *call, const int *data,
                   int k, int place, int count)
{
    for (int i = 0; i < count; i++)
        if (data[i] != value_of(h->sources[k], place, i)) {
            CHECK(false, "%s, %s of %d: block %d from %d, place %d", h->name,
                  call, count, k, h->sources[k], i);
            return;
        }
}

static void finish(enum form form, MPI_Request *request)
{
    if (form == BLOCKING)
        return;
    for (int round = 0; round < (form == PERSISTENT ? 2 : 1); round++) {
        if (form == PERSISTENT)
            MPI_Start(request);
        MPI_Wait(request, MPI_STATUS_IGNORE);
    }
    if (form == PERSISTENT)
        MPI_Request_free(request);
}

static int *room(int count)
{
    int *data = check_alloc(sizeof(int) * (size_t)count);

    for (int i = 0; i < count; i++)
        data[i] = GAP;
    return data;
}

static void untouched(const struct hood *h, const char *call, const int *data,
                      int from, int to)
{
    for (int i = from; i < to; i++)
        if (data[i] != GAP) {
            CHECK(false, "%s, %s has written to a gap", h->name, call);
            return;
        }
}

static void allgather(const struct hood *h, enum form form, int count)
{
    int *out = room(count);
    int *in = room(count * (h->in + 1));
    MPI_Request request;

    for (int i = 0; i < count; i++)
        out[i] = value_of(h->rank, 0, i);
    if (form == BLOCKING)
        MPI_Neighbor_allgather(out, count, MPI_INT, in, count, MPI_INT,
                               h->comm);
    else if (form == NON_BLOCKING)
        MPI_Ineighbor_allgather_c(out, count, MPI_INT, in, count, MPI_INT,
                                  h->comm, &request);
    else
        MPI_Neighbor_allgather_init(out, count, MPI_INT, in, count, MPI_INT,
                                    h->comm, MPI_INFO_NULL, &request);
    finish(form, &request);
    for (int k = 0; k < h->in; k++)
        if (h->sources[k] != MPI_PROC_NULL)
            expect(h, "allgather", in + k * count, k, 0, count);
        else
            untouched(h, "allgather", in, k * count, (k + 1) * count);
    untouched(h, "allgather", in, h->in * count, (h->in + 1) * count);
    free(out);
    free(in);
}

static void allgatherv(const struct hood *h, enum form form, int count)
{
    int *out = room(count);
    int *in = room((count + 1) * (h->in + 1));
    int counts[MOST];
    int displs[MOST];
    MPI_Request request;

    for (int i = 0; i < count; i++)
        out[i] = value_of(h->rank, 0, i);
    for (int k = 0; k < h->in; k++) {
        counts[k] = count;
        displs[k] = (h->in - 1 - k) * (count + 1);
    }
    if (form == BLOCKING)
        MPI_Neighbor_allgatherv(out, count, MPI_INT, in, counts, displs,
                                MPI_INT, h->comm);
    else if (form == NON_BLOCKING)
        MPI_Ineighbor_allgatherv(out, count, MPI_INT, in, counts, displs,
                                 MPI_INT, h->comm, &request);
    else
        MPI_Neighbor_allgatherv_init(out, count, MPI_INT, in, counts, displs,
                                     MPI_INT, h->comm, MPI_INFO_NULL, &request);
    finish(form, &request);
    for (int k = 0; k < h->in; k++) {
        int end = displs[k] + count;

        if (h->sources[k] != MPI_PROC_NULL)
            expect(h, "allgatherv", in + displs[k], k, 0, count);
        untouched(h, "allgatherv", in, end, end + 1);
    }
    free(out);
    free(in);
}

static void fill_out(const struct hood *h, int *out, int count)
{
    for (int k = 0; k < h->out; k++)
        for (int i = 0; i < count; i++)
            out[k * count + i] = value_of(h->rank, k, i);
}

static void alltoall(const struct hood *h, enum form form, int count)
{
    int *out = room(count * (h->out + 1));
    int *in = room(count * (h->in + 1));
    MPI_Request request;

    fill_out(h, out, count);
    if (form == BLOCKING)
        MPI_Neighbor_alltoall_c(out, count, MPI_INT, in, count, MPI_INT,
                                h->comm);
    else if (form == NON_BLOCKING)
        MPI_Ineighbor_alltoall(out, count, MPI_INT, in, count, MPI_INT, h->comm,
                               &request);
    else
        MPI_Neighbor_alltoall_init_c(out, count, MPI_INT, in, count, MPI_INT,
                                     h->comm, MPI_INFO_NULL, &request);
    finish(form, &request);
    for (int k = 0; k < h->in; k++)
        if (h->sources[k] != MPI_PROC_NULL)
            expect(h, "alltoall", in + k * count, k, h->from[k], count);
        else
            untouched(h, "alltoall", in, k * count, (k + 1) * count);
    free(out);
    free(in);
}

/* Block k of the sender has as many elements as its place tells. */
static int share(int count, int place)
{
    return place % 3 == 2 ? 0 : count / (1 + place % 3);
}

struct lists {
    int scounts[MOST];
    int sdispls[MOST];
    int rcounts[MOST];
    int rdispls[MOST];
    MPI_Count scounts_c[MOST];
    MPI_Count rcounts_c[MOST];
    MPI_Aint sbytes[MOST];
    MPI_Aint rbytes[MOST];
    MPI_Datatype types[MOST];
};

static void make_lists(const struct hood *h, int count, struct lists *l)
{
    for (int k = 0; k < h->out; k++) {
        l->scounts_c[k] = l->scounts[k] = share(count, k);
        l->sdispls[k] = k * count;
        l->sbytes[k] = (MPI_Aint)(k * count) * (MPI_Aint)sizeof(int);
    }
    for (int k = 0; k < h->in; k++) {
        l->rcounts_c[k] = l->rcounts[k] =
            h->sources[k] == MPI_PROC_NULL ? count : share(count, h->from[k]);
        l->rdispls[k] = (h->in - 1 - k) * count;
        l->rbytes[k] = (MPI_Aint)l->rdispls[k] * (MPI_Aint)sizeof(int);
    }
    for (int k = 0; k < MOST; k++)
        l->types[k] = MPI_INT;
}

static void expect_lists(const struct hood *h, const char *call,
                         const struct lists *l, const int *in, int count)
{
    for (int k = 0; k < h->in; k++) {
        int n = h->sources[k] == MPI_PROC_NULL ? 0 : l->rcounts[k];

        expect(h, call, in + l->rdispls[k], k, h->from[k], n);
        untouched(h, call, in, l->rdispls[k] + n, l->rdispls[k] + count);
    }
}

static void alltoallv(const struct hood *h, enum form form, int count)
{
    int *out = room(count * (h->out + 1));
    int *in = room(count * (h->in + 1));
    struct lists l;
    MPI_Request request;

    fill_out(h, out, count);
    make_lists(h, count, &l);
    if (form == BLOCKING)
        MPI_Neighbor_alltoallv(out, l.scounts, l.sdispls, MPI_INT, in,
                               l.rcounts, l.rdispls, MPI_INT, h->comm);
    else if (form == NON_BLOCKING)
        MPI_Ineighbor_alltoallv(out, l.scounts, l.sdispls, MPI_INT, in,
                                l.rcounts, l.rdispls, MPI_INT, h->comm,
                                &request);
    else
        MPI_Neighbor_alltoallv_init(out, l.scounts, l.sdispls, MPI_INT, in,
                                    l.rcounts, l.rdispls, MPI_INT, h->comm,
                                    MPI_INFO_NULL, &request);
    finish(form, &request);
    expect_lists(h, "alltoallv", &l, in, count);
    free(out);
    free(in);
}

static void alltoallw(const struct hood *h, enum form form, int count)
{
    int *out = room(count * (h->out + 1));
    int *in = room(count * (h->in + 1));
    struct lists l;
    MPI_Request request;

    fill_out(h, out, count);
    make_lists(h, count, &l);
    if (form == BLOCKING)
        MPI_Neighbor_alltoallw_c(out, l.scounts_c, l.sbytes, l.types, in,
                                 l.rcounts_c, l.rbytes, l.types, h->comm);
    else if (form == NON_BLOCKING)
        MPI_Ineighbor_alltoallw(out, l.scounts, l.sbytes, l.types, in,
                                l.rcounts, l.rbytes, l.types, h->comm,
                                &request);
    else
        MPI_Neighbor_alltoallw_init(out, l.scounts, l.sbytes, l.types, in,
                                    l.rcounts, l.rbytes, l.types, h->comm,
                                    MPI_INFO_NULL, &request);
    finish(form, &request);
    expect_lists(h, "alltoallw", &l, in, count);
    free(out);
    free(in);
}

static void all_calls(const struct hood *h)
{
    static const int counts[] = {0, 1, 10, 30000};

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        for (int form = 0; form < FORMS; form++) {
            allgather(h, (enum form)form, counts[i]);
            allgatherv(h, (enum form)form, counts[i]);
            alltoall(h, (enum form)form, counts[i]);
            alltoallv(h, (enum form)form, counts[i]);
            alltoallw(h, (enum form)form, counts[i]);
        }
}

/* ---- grids ---- */

static void grid(int ndims, const int *dims, const int *periods)
{
    struct hood h = {.name = "grid", .in = 2 * ndims, .out = 2 * ndims};

    MPI_Cart_create(MPI_COMM_WORLD, ndims, dims, periods, 0, &h.comm);
    if (h.comm == MPI_COMM_NULL)
        return;
    MPI_Comm_rank(h.comm, &h.rank);
    for (int d = 0; d < ndims; d++) {
        MPI_Cart_shift(h.comm, d, 1, &h.sources[2 * d], &h.sources[2 * d + 1]);
        /* What comes from the minus side was sent to the plus side. */
        h.from[2 * d] = 2 * d + 1;
        h.from[2 * d + 1] = 2 * d;
    }
    all_calls(&h);
    MPI_Comm_free(&h.comm);
}

static void grids(void)
{
    static const int flat[2][3] = {{0, 0, 0}, {1, 1, 1}};
    int n = check_size();

    for (int periodic = 0; periodic < 2; periodic++) {
        const int *periods = flat[periodic];

        grid(0, NULL, NULL);
        grid(1, (int[]){n}, periods);
        grid(1, (int[]){1}, periods);
        grid(2, (int[]){1, 1}, periods);
        grid(3, (int[]){1, n, 1}, periods);
        if (n < 2)
            continue;
        grid(1, (int[]){2}, periods);
        grid(2, (int[]){2, n / 2}, periods);
        grid(2, (int[]){n / 2, 2}, (int[]){periodic, !periodic});
        if (n >= 8)
            grid(3, (int[]){2, 2, 2}, periods);
    }
}

/* ---- graphs ---- */

/* A ring in which the first two processes are joined twice and the last one
 * has a loop. */
static void graph(void)
{
    struct hood h = {.name = "graph"};
    int n = check_size();
    int *index = check_alloc(sizeof(int) * (size_t)n);
    int *edges = check_alloc(sizeof(int) * (size_t)(2 * n + 4));
    int count = 0;

    for (int v = 0; v < n; v++) {
        edges[count++] = (v + n - 1) % n;
        edges[count++] = (v + 1) % n;
        if (n > 2 && v < 2)
            edges[count++] = 1 - v;
        if (v == n - 1)
            edges[count++] = v;
        index[v] = count;
    }
    MPI_Graph_create(MPI_COMM_WORLD, n, index, edges, 0, &h.comm);
    MPI_Comm_rank(h.comm, &h.rank);
    MPI_Graph_neighbors_count(h.comm, h.rank, &h.in);
    MPI_Graph_neighbors(h.comm, h.rank, MOST, h.sources);
    h.out = h.in;
    /* The k-th edge from a neighbour is its k-th edge to us. */
    for (int k = 0; k < h.in; k++) {
        int q = h.sources[k];
        int nth = 0;
        int at = q > 0 ? index[q - 1] : 0;
        int first = at;

        for (int i = 0; i < k; i++)
            nth += h.sources[i] == q;
        for (;; at++)
            if (edges[at] == h.rank && nth-- == 0)
                break;
        h.from[k] = at - first;
    }
    all_calls(&h);
    MPI_Comm_free(&h.comm);
    free(index);
    free(edges);
}

/* Everybody has two edges to its right, one to itself, one from its left
 * over two; listed in different orders at both ends. */
static void dist_graph(bool is_adjacent)
{
    struct hood h = {.name = is_adjacent ? "adjacent" : "distributed"};
    int n = check_size();
    int me = check_rank();
    int left = (me + n - 1) % n;
    int right = (me + 1) % n;
    int outs[4] = {right, me, (me + 2) % n, right};
    int ins[4] = {(me + n - 2) % n, left, left, me};
    int degree = 4;

    if (is_adjacent)
        MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 4, ins, MPI_UNWEIGHTED,
                                       4, outs, MPI_UNWEIGHTED, MPI_INFO_NULL,
                                       0, &h.comm);
    else
        MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &me, &degree, outs,
                              MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &h.comm);
    MPI_Comm_rank(h.comm, &h.rank);
    h.in = h.out = 4;
    MPI_Dist_graph_neighbors(h.comm, 4, h.sources, MPI_UNWEIGHTED, 4,
                             h.destinations, MPI_UNWEIGHTED);
    for (int k = 0; k < 4; k++) {
        int nth = 0;
        int q = h.sources[k];
        int theirs[4] = {(q + 1) % n, q, (q + 2) % n, (q + 1) % n};

        if (is_adjacent)
            CHECK(h.sources[k] == ins[k] && h.destinations[k] == outs[k],
                  "the order of neighbours has changed at %d", k);
        for (int i = 0; i < k; i++)
            nth += h.sources[i] == q;
        for (int at = 0; at < 4; at++)
            if (theirs[at] == me && nth-- == 0)
                h.from[k] = at;
    }
    all_calls(&h);
    MPI_Comm_free(&h.comm);
}

/* A star whose centre only sends, and processes without any edge. */
static void star(void)
{
    struct hood h = {.name = "star"};
    int n = check_size();
    int me = check_rank();
    bool is_leaf = me > 0 && me < n - 1;

    if (n < 3 || n > MOST)
        return;
    h.in = is_leaf ? 1 : 0;
    h.out = me == 0 ? n - 2 : 0;
    for (int i = 0; i < h.out; i++)
        h.destinations[i] = n - 2 - i;
    h.from[0] = n - 2 - me;
    MPI_Dist_graph_create_adjacent(
        MPI_COMM_WORLD, h.in, h.sources, h.in ? h.sources : MPI_WEIGHTS_EMPTY,
        h.out, h.destinations, h.out ? h.destinations : MPI_WEIGHTS_EMPTY,
        MPI_INFO_NULL, 0, &h.comm);
    MPI_Comm_rank(h.comm, &h.rank);
    all_calls(&h);
    MPI_Comm_free(&h.comm);
}

/* ---- mistakes ---- */

static void errors(void)
{
    int data[4] = {0};
    MPI_Comm ring;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Cart_create(MPI_COMM_WORLD, 1, (int[]){check_size()}, (int[]){1}, 0,
                    &ring);
    CHECK(check_class(MPI_Neighbor_allgather(data, 1, MPI_INT, data + 1, 1,
                                             MPI_INT, MPI_COMM_WORLD)) ==
              MPI_ERR_TOPOLOGY,
          "without a topology");
    CHECK(check_class(MPI_Neighbor_alltoall(MPI_IN_PLACE, 1, MPI_INT, data, 1,
                                            MPI_INT, ring)) == MPI_ERR_BUFFER,
          "in place");
    CHECK(check_class(MPI_Neighbor_alltoallv(
              data, (int[]){1, -1}, (int[]){0, 1}, MPI_INT, data + 2,
              (int[]){1, 1}, (int[]){0, 1}, MPI_INT, ring)) == MPI_ERR_COUNT,
          "a negative count");
    MPI_Comm_free(&ring);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    grids();
    graph();
    dist_graph(true);
    dist_graph(false);
    star();
    errors();
    return check_finish();
}
