/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Virtual topologies: what was put in comes out again, also of duplicates;
 * sub-grids; weights; and what must fail.
 */
#include <limits.h>

#include "check.h"

static int kind_of(MPI_Comm comm)
{
    int kind = 0;

    MPI_Topo_test(comm, &kind);
    return kind;
}

/* ---- grids ---- */

static void shifts(MPI_Comm grid, const int *dims, const int *coords)
{
    static const int disps[] = {0, 1, -1, 2, -3, 1000, INT_MAX, -INT_MAX};

    for (int d = 0; d < 2; d++)
        for (size_t i = 0; i < sizeof(disps) / sizeof(disps[0]); i++) {
            int disp = disps[i];
            int source;
            int dest;

            MPI_Cart_shift(grid, d, disp, &source, &dest);
            for (int sign = -1; sign <= 1; sign += 2) {
                int at[2] = {coords[0], coords[1]};
                long to = (long)coords[d] + (long)sign * disp;
                int rank = MPI_PROC_NULL;

                at[d] = (int)((to % dims[d] + dims[d]) % dims[d]);
                if (d == 1 || (to >= 0 && to < dims[0]))
                    MPI_Cart_rank(grid, at, &rank);
                CHECK((sign > 0 ? dest : source) == rank,
                      "shift by %d along %d: %d and %d, expected %d", disp, d,
                      source, dest, rank);
            }
        }
}

/* dims[0] has borders, dims[1] is periodic. */
static void grid(int rows, int columns)
{
    int dims[2] = {rows, columns};
    int periods[2] = {0, 5}; /* any but 0 is true */
    int got[3][2];
    int coords[2];
    MPI_Comm comm;
    MPI_Comm copy;
    int rank;
    int ndims;

    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &comm);
    CHECK((comm == MPI_COMM_NULL) == (check_rank() >= rows * columns),
          "who is in a grid of %d", rows * columns);
    if (comm == MPI_COMM_NULL)
        return;
    MPI_Comm_rank(comm, &rank);
    CHECK(rank == check_rank() && kind_of(comm) == MPI_CART, "rank %d", rank);
    MPI_Comm_dup(comm, &copy);
    MPI_Comm_free(&comm);
    CHECK(kind_of(copy) == MPI_CART, "a duplicate is no grid");
    MPI_Cartdim_get(copy, &ndims);
    MPI_Cart_get(copy, 2, got[0], got[1], got[2]);
    MPI_Cart_coords(copy, rank, 2, coords);
    CHECK(ndims == 2 && got[0][0] == rows && got[0][1] == columns &&
              !got[1][0] && got[1][1] == 1 && got[2][0] == rank / columns &&
              got[2][1] == rank % columns &&
              memcmp(coords, got[2], sizeof(coords)) == 0,
          "what a grid says of itself");
    shifts(copy, dims, coords);
    coords[1] += 7 * columns;
    MPI_Cart_rank(copy, coords, &rank);
    CHECK(rank == check_rank(), "a coordinate is not wrapped");
    MPI_Comm_free(&copy);
}

static void sub_grids(int rows, int columns)
{
    int dims[2] = {rows, columns};
    MPI_Comm comm;
    MPI_Comm sub;
    int size;
    int rank;
    int got[3][2];

    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, (int[]){0, 1}, 0, &comm);
    if (comm == MPI_COMM_NULL)
        return;
    MPI_Cart_sub(comm, (int[]){0, 1}, &sub);
    MPI_Comm_size(sub, &size);
    MPI_Comm_rank(sub, &rank);
    MPI_Cart_get(sub, 1, got[0], got[1], got[2]);
    CHECK(size == columns && rank == check_rank() % columns &&
              got[0][0] == columns && got[1][0] == 1 && got[2][0] == rank,
          "a row of a grid");
    MPI_Comm_free(&sub);
    MPI_Cart_sub(comm, (int[]){1, 0}, &sub);
    MPI_Comm_size(sub, &size);
    MPI_Cart_get(sub, 1, got[0], got[1], got[2]);
    CHECK(size == rows && got[0][0] == rows && !got[1][0], "a column");
    MPI_Comm_free(&sub);
    MPI_Cart_sub(comm, (int[]){0, 0}, &sub);
    MPI_Comm_size(sub, &size);
    MPI_Cartdim_get(sub, &rank);
    CHECK(size == 1 && rank == 0, "a point of a grid");
    MPI_Comm_free(&sub);
    MPI_Comm_free(&comm);
}

/* ---- graphs ---- */

static void graph(void)
{
    int n = check_size();
    int index[2] = {1, 3};
    int edges[3] = {1, 0, 1};
    int got_index[2];
    int got_edges[3];
    int counts[2];
    MPI_Comm comm;

    MPI_Graph_create(MPI_COMM_WORLD, 0, index, edges, 0, &comm);
    CHECK(comm == MPI_COMM_NULL, "a graph of nothing");
    if (n < 2)
        return;
    MPI_Graph_create(MPI_COMM_WORLD, 2, index, edges, 0, &comm);
    CHECK((comm == MPI_COMM_NULL) == (check_rank() >= 2), "who is in a graph");
    if (comm == MPI_COMM_NULL)
        return;
    MPI_Graphdims_get(comm, &counts[0], &counts[1]);
    MPI_Graph_get(comm, 2, 3, got_index, got_edges);
    CHECK(kind_of(comm) == MPI_GRAPH && counts[0] == 2 && counts[1] == 3 &&
              memcmp(index, got_index, sizeof(index)) == 0 &&
              memcmp(edges, got_edges, sizeof(edges)) == 0,
          "what a graph says of itself");
    MPI_Graph_neighbors_count(comm, 1, counts);
    MPI_Graph_neighbors(comm, 1, 2, got_edges);
    CHECK(counts[0] == 2 && got_edges[0] == 0 && got_edges[1] == 1,
          "neighbours of node 1");
    MPI_Comm_free(&comm);
}

/* Rank 0 tells the whole of a weighted ring. */
static void told_by_one(void)
{
    int n = check_size();
    int me = check_rank();
    int *sources = check_alloc(sizeof(int) * 4 * (size_t)n);
    int *degrees = sources + n;
    int *destinations = sources + 2 * n;
    int *weights = sources + 3 * n;
    int got[4] = {-1, -1, -1, -1};
    int counts[3];
    MPI_Comm comm;
    MPI_Comm copy;

    for (int v = 0; v < n; v++) {
        sources[v] = v;
        degrees[v] = 1;
        destinations[v] = (v + 1) % n;
        weights[v] = 10 + v;
    }
    MPI_Dist_graph_create(MPI_COMM_WORLD, me == 0 ? n : 0, sources, degrees,
                          destinations, me == 0 ? weights : MPI_WEIGHTS_EMPTY,
                          MPI_INFO_NULL, 0, &comm);
    MPI_Comm_dup(comm, &copy);
    MPI_Dist_graph_neighbors_count(copy, &counts[0], &counts[1], &counts[2]);
    MPI_Dist_graph_neighbors(copy, 1, &got[0], &got[1], 1, &got[2], &got[3]);
    CHECK(kind_of(copy) == MPI_DIST_GRAPH && counts[0] == 1 && counts[1] == 1 &&
              counts[2] == 1 && got[0] == (me + n - 1) % n &&
              got[1] == 10 + got[0] && got[2] == (me + 1) % n &&
              got[3] == 10 + me,
          "a ring told by rank 0: %d (%d) to %d (%d)", got[0], got[1], got[2],
          got[3]);
    MPI_Comm_free(&comm);
    MPI_Comm_free(&copy);
    MPI_Dist_graph_create(MPI_COMM_WORLD, 0, NULL, NULL, NULL, MPI_UNWEIGHTED,
                          MPI_INFO_NULL, 1, &comm);
    MPI_Dist_graph_neighbors_count(comm, &counts[0], &counts[1], &counts[2]);
    CHECK(counts[0] == 0 && counts[1] == 0 && counts[2] == 0, "no edges");
    MPI_Comm_free(&comm);
    free(sources);
}

/* ---- balanced dimensions ---- */

static void dims(int nodes, int ndims, const int *given, const int *expected)
{
    int got[16];

    memcpy(got, given, sizeof(int) * (size_t)ndims);
    MPI_Dims_create(nodes, ndims, got);
    for (int d = 0; d < ndims; d++)
        CHECK(got[d] == expected[d], "%d nodes: dimension %d of %d is %d",
              nodes, d, ndims, got[d]);
}

static void all_dims(void)
{
    static const int open[8] = {0};

    dims(6, 2, open, (int[]){3, 2});
    dims(7, 3, open, (int[]){7, 1, 1});
    dims(6, 3, (int[]){0, 3, 0}, (int[]){2, 3, 1});
    dims(12, 2, (int[]){3, 4}, (int[]){3, 4});
    dims(16, 3, open, (int[]){4, 2, 2});
    dims(432, 3, open, (int[]){9, 8, 6});
    dims(2160, 3, open, (int[]){15, 12, 12});
    dims(1000000000, 3, open, (int[]){1000, 1000, 1000});
    dims(2147483647, 2, open, (int[]){2147483647, 1});
    dims(1 << 30, 5, open, (int[]){64, 64, 64, 64, 64});
    dims(735134400, 8, open, (int[]){17, 15, 14, 13, 12, 12, 11, 10});
}

/* ---- mistakes ---- */

#define FAILS(call, class)                                                     \
    CHECK(check_class(call) == (class), "%s should raise %s", #call, #class)

static void errors(void)
{
    int n = check_size();
    int a[4] = {0};
    MPI_Comm comm;
    MPI_Comm ring;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &n, a, 0, &ring);
    FAILS(MPI_Cart_create(MPI_COMM_WORLD, 1, (int[]){n + 1}, a, 0, &comm),
          MPI_ERR_DIMS);
    FAILS(MPI_Cart_create(MPI_COMM_WORLD, 1, (int[]){0}, a, 0, &comm),
          MPI_ERR_DIMS);
    FAILS(MPI_Cart_create(MPI_COMM_WORLD, -1, &n, a, 0, &comm), MPI_ERR_DIMS);
    FAILS(MPI_Cart_rank(MPI_COMM_WORLD, a, a), MPI_ERR_TOPOLOGY);
    FAILS(MPI_Cart_rank(ring, (int[]){-1}, a), MPI_ERR_ARG);
    FAILS(MPI_Cart_coords(ring, n, 1, a), MPI_ERR_RANK);
    FAILS(MPI_Cart_coords(ring, 0, 0, a), MPI_ERR_ARG);
    FAILS(MPI_Cart_shift(ring, 1, 1, a, a + 1), MPI_ERR_ARG);
    FAILS(MPI_Cart_shift(ring, -1, 1, a, a + 1), MPI_ERR_ARG);
    FAILS(MPI_Cart_get(ring, 0, a, a, a), MPI_ERR_ARG);
    FAILS(MPI_Graphdims_get(ring, a, a + 1), MPI_ERR_TOPOLOGY);
    FAILS(MPI_Dist_graph_neighbors_count(ring, a, a + 1, a + 2),
          MPI_ERR_TOPOLOGY);
    FAILS(MPI_Graph_create(MPI_COMM_WORLD, n + 1, a, a, 0, &comm), MPI_ERR_ARG);
    FAILS(MPI_Graph_create(MPI_COMM_WORLD, 1, (int[]){1}, (int[]){1}, 0, &comm),
          MPI_ERR_ARG);
    FAILS(MPI_Dist_graph_create_adjacent(
              MPI_COMM_WORLD, 1, (int[]){n}, MPI_UNWEIGHTED, 0, NULL,
              MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm),
          MPI_ERR_RANK);
    FAILS(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, (int[]){0}, (int[]){1},
                                (int[]){0}, (int[]){-1}, MPI_INFO_NULL, 0,
                                &comm),
          MPI_ERR_ARG);
    FAILS(MPI_Dims_create(7, 1, (int[]){2}), MPI_ERR_DIMS);
    FAILS(MPI_Dims_create(7, 2, (int[]){2, 0}), MPI_ERR_DIMS);
    FAILS(MPI_Dims_create(7, 2, (int[]){-1, 0}), MPI_ERR_DIMS);
    FAILS(MPI_Dims_create(0, 2, a), MPI_ERR_ARG);
    MPI_Comm_free(&ring);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
    MPI_Comm split;
    MPI_Comm ring;

    check_start(&argc, &argv);
    grid(1, check_size());
    grid(check_size(), 1);
    if (check_size() >= 2)
        grid(check_size() / 2, 2);
    if (check_size() >= 6)
        grid(2, 3);
    sub_grids(1, check_size());
    if (check_size() >= 4)
        sub_grids(2, check_size() / 2);
    graph();
    told_by_one();
    all_dims();
    errors();
    CHECK(kind_of(MPI_COMM_WORLD) == MPI_UNDEFINED, "the world");
    MPI_Cart_create(MPI_COMM_WORLD, 1, (int[]){check_size()}, (int[]){1}, 1,
                    &ring);
    MPI_Comm_split(ring, 0, 0, &split);
    CHECK(kind_of(split) == MPI_UNDEFINED, "a split keeps the topology");
    MPI_Comm_free(&split);
    MPI_Comm_free(&ring);
    return check_finish();
}
