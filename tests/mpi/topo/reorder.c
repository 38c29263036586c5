/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks dealt out to the nodes in turn put neighbours of a grid on different
 * nodes. With reorder, less crosses between nodes: every kind of topology is
 * made with and without it, its edges exchange a message each, and the bytes
 * that cross are counted.
 *
 *   reorder [MOST]   more than MOST bytes in a hundred of those without
 *                    reorder are a failure; default 60
 */
#include "check.h"

static long allowed;

/* The neighbours that this process receives from. */
static int sources_of(MPI_Comm comm, int *sources)
{
    int kind;
    int count = 0;
    int rank;

    MPI_Topo_test(comm, &kind);
    MPI_Comm_rank(comm, &rank);
    if (kind == MPI_CART) {
        MPI_Cartdim_get(comm, &count);
        for (int d = 0; d < count; d++)
            MPI_Cart_shift(comm, d, 1, &sources[2 * d], &sources[2 * d + 1]);
        return 2 * count;
    }
    if (kind == MPI_GRAPH) {
        MPI_Graph_neighbors_count(comm, rank, &count);
        MPI_Graph_neighbors(comm, rank, 16, sources);
        return count;
    }
    MPI_Dist_graph_neighbors_count(comm, &count, &kind, &rank);
    MPI_Dist_graph_neighbors(comm, 16, sources, MPI_UNWEIGHTED, 0, NULL,
                             MPI_UNWEIGHTED);
    return count;
}

/* Exchange along all edges; the sum over all of what has crossed. Everyone
 * checks that it has got what its neighbours are. */
static long crossing(MPI_Comm comm, const int *nodes)
{
    int sources[16];
    int got[16];
    int count = comm == MPI_COMM_NULL ? 0 : sources_of(comm, sources);
    int world = check_rank();
    long sum = 0;

    for (int k = 0; k < 16; k++)
        got[k] = -1;
    if (comm != MPI_COMM_NULL)
        MPI_Neighbor_allgather(&world, 1, MPI_INT, got, 1, MPI_INT, comm);
    for (int k = 0; k < count; k++) {
        CHECK((got[k] >= 0) == (sources[k] != MPI_PROC_NULL),
              "nothing from neighbour %d", sources[k]);
        if (got[k] >= 0 && nodes[got[k]] != nodes[world])
            sum += (long)sizeof(int);
    }
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    return sum;
}

static void compare(const char *name, MPI_Comm comms[2], const int *nodes)
{
    long before = crossing(comms[0], nodes);
    long after = crossing(comms[1], nodes);

    if (check_rank() == 0)
        printf("%s: %ld bytes cross nodes, reordered %ld\n", name, before,
               after);
    CHECK(after * 100 <= before * allowed, "%s: %ld bytes, before %ld", name,
          after, before);
    for (int i = 0; i < 2; i++)
        if (comms[i] != MPI_COMM_NULL)
            MPI_Comm_free(&comms[i]);
}

static void grids(const int *nodes)
{
    int n = check_size();
    int dims[2] = {0, 0};
    int periods[2] = {0, 0};
    MPI_Comm comms[2];

    MPI_Dims_create(n, 2, dims);
    for (int periodic = 0; periodic < 2; periodic++) {
        for (int reorder = 0; reorder < 2; reorder++)
            MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, reorder,
                            &comms[reorder]);
        compare(periodic ? "torus" : "grid", comms, nodes);
        periods[0] = periods[1] = 1;
    }
    for (int reorder = 0; reorder < 2; reorder++)
        MPI_Cart_create(MPI_COMM_WORLD, 1, (int[]){n - 1}, periods, reorder,
                        &comms[reorder]);
    compare("ring without one", comms, nodes);
}

/* A ring as a graph. */
static void graphs(const int *nodes)
{
    int n = check_size();
    int *index = check_alloc(sizeof(int) * 3 * (size_t)n);
    int *edges = index + n;
    MPI_Comm comms[2];

    for (int v = 0; v < n; v++) {
        index[v] = 2 * v + 2;
        edges[2 * v] = (v + n - 1) % n;
        edges[2 * v + 1] = (v + 1) % n;
    }
    for (int reorder = 0; reorder < 2; reorder++)
        MPI_Graph_create(MPI_COMM_WORLD, n, index, edges, reorder,
                         &comms[reorder]);
    compare("graph", comms, nodes);
    free(index);
}

/* Rank v described vertex v; whoever is vertex v now must know it so. */
static void expect_vertex(MPI_Comm comm)
{
    int n = check_size();
    int rank;
    int in[2];
    int out[2];
    int weights[4];

    MPI_Comm_rank(comm, &rank);
    MPI_Dist_graph_neighbors(comm, 2, in, weights, 2, out, weights + 2);
    CHECK(in[0] == (rank + n - 1) % n && in[1] == (rank + 1) % n &&
              out[0] == in[1] && out[1] == in[0],
          "vertex %d has other neighbours", rank);
    CHECK(weights[0] == 5 + in[0] && weights[1] == 5 + rank &&
              weights[2] == 5 + rank && weights[3] == 5 + out[1],
          "vertex %d has other weights", rank);
}

static void dist_graphs(const int *nodes)
{
    int n = check_size();
    int me = check_rank();
    int left = (me + n - 1) % n;
    int right = (me + 1) % n;
    int ins[2] = {left, right};
    int outs[2] = {right, left};
    int in_weights[2] = {5 + left, 5 + me};
    int out_weights[2] = {5 + me, 5 + left};
    MPI_Comm comms[2];

    for (int reorder = 0; reorder < 2; reorder++) {
        MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, ins, in_weights, 2,
                                       outs, out_weights, MPI_INFO_NULL,
                                       reorder, &comms[reorder]);
        expect_vertex(comms[reorder]);
    }
    compare("adjacent", comms, nodes);
    for (int reorder = 0; reorder < 2; reorder++)
        MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &me, (int[]){2}, outs,
                              MPI_UNWEIGHTED, MPI_INFO_NULL, reorder,
                              &comms[reorder]);
    compare("distributed", comms, nodes);
}

/* MPI_Cart_map asks nobody, and yet all answers make one permutation. */
static void map(const int *nodes)
{
    int n = check_size();
    int dims[2] = {0, 0};
    int rank;
    MPI_Comm split;
    MPI_Comm comms[2];

    MPI_Dims_create(n, 2, dims);
    MPI_Cart_map(MPI_COMM_WORLD, 2, dims, (int[]){0, 0}, &rank);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, (int[]){0, 0}, 0, &comms[0]);
    MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &split);
    MPI_Comm_rank(split, &n);
    CHECK(n == rank, "no permutation: %d is %d", rank, n);
    MPI_Cart_create(split, 2, dims, (int[]){0, 0}, 0, &comms[1]);
    MPI_Comm_free(&split);
    compare("mapped", comms, nodes);
}

int main(int argc, char **argv)
{
    int *nodes;

    check_start(&argc, &argv);
    allowed = check_arg(argc, argv, 1, 60);
    nodes = check_nodes();
    grids(nodes);
    graphs(nodes);
    dist_graphs(nodes);
    map(nodes);
    free(nodes);
    return check_finish();
}
