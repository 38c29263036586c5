/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nothing to send, to receive or to reduce, and no buffer: every collective
 * operation ends, with contiguous types and with gaps, blocking and as a
 * request. What it must not do is seen by builds with sanitizers.
 */
#include "check.h"

#define MEMBERS_MAX 32

static const int counts[MEMBERS_MAX];
static const int places[MEMBERS_MAX];
static MPI_Datatype types[MEMBERS_MAX];
static MPI_Request request;

static void expect(int rc, const char *what)
{
    CHECK(rc == MPI_SUCCESS, "%s: code %d", what, rc);
}

static void finish(int rc, const char *what)
{
    expect(rc, what);
    expect(MPI_Wait(&request, MPI_STATUS_IGNORE), what);
}

/* The operation, and the same one as a request. */
#define TRY(Name, name, ...)                                                   \
    do {                                                                       \
        expect(MPI_##Name(__VA_ARGS__, comm), #Name);                          \
        finish(MPI_I##name(__VA_ARGS__, comm, &request), "I" #name);           \
    } while (0)

static void move(MPI_Comm comm, MPI_Datatype type, int root)
{
    for (int i = 0; i < MEMBERS_MAX; i++)
        types[i] = type;
    TRY(Bcast, bcast, NULL, 0, type, root);
    TRY(Gather, gather, NULL, 0, type, NULL, 0, type, root);
    TRY(Gatherv, gatherv, NULL, 0, type, NULL, counts, places, type, root);
    TRY(Scatter, scatter, NULL, 0, type, NULL, 0, type, root);
    TRY(Scatterv, scatterv, NULL, counts, places, type, NULL, 0, type, root);
    TRY(Allgather, allgather, NULL, 0, type, NULL, 0, type);
    TRY(Allgatherv, allgatherv, NULL, 0, type, NULL, counts, places, type);
    TRY(Alltoall, alltoall, NULL, 0, type, NULL, 0, type);
    TRY(Alltoallv, alltoallv, NULL, counts, places, type, NULL, counts, places,
        type);
    TRY(Alltoallw, alltoallw, NULL, counts, places, types, NULL, counts, places,
        types);
}

static void reduce(MPI_Comm comm, MPI_Datatype type, MPI_Op op, int root)
{
    TRY(Reduce, reduce, NULL, NULL, 0, type, op, root);
    TRY(Allreduce, allreduce, NULL, NULL, 0, type, op);
    TRY(Reduce_scatter, reduce_scatter, NULL, NULL, counts, type, op);
    TRY(Reduce_scatter_block, reduce_scatter_block, NULL, NULL, 0, type, op);
    TRY(Scan, scan, NULL, NULL, 0, type, op);
    TRY(Exscan, exscan, NULL, NULL, 0, type, op);
    expect(MPI_Reduce_local(NULL, NULL, 0, type, op), "Reduce_local");
}

static void neighbours(MPI_Comm world, MPI_Datatype type)
{
    const int dims[1] = {check_size()};
    const int periods[1] = {1};
    const MPI_Aint far[2] = {0, 0};
    MPI_Comm comm;

    MPI_Cart_create(world, 1, dims, periods, 0, &comm);
    TRY(Neighbor_allgather, neighbor_allgather, NULL, 0, type, NULL, 0, type);
    TRY(Neighbor_allgatherv, neighbor_allgatherv, NULL, 0, type, NULL, counts,
        places, type);
    TRY(Neighbor_alltoall, neighbor_alltoall, NULL, 0, type, NULL, 0, type);
    TRY(Neighbor_alltoallv, neighbor_alltoallv, NULL, counts, places, type,
        NULL, counts, places, type);
    TRY(Neighbor_alltoallw, neighbor_alltoallw, NULL, counts, far, types, NULL,
        counts, far, types);
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    MPI_Datatype gaps;
    MPI_Op compose;

    check_start(&argc, &argv);
    CHECK_OR_DIE(check_size() <= MEMBERS_MAX, "too many ranks");
    MPI_Type_vector(2, 1, 3, MPI_INT, &gaps);
    MPI_Type_commit(&gaps);
    MPI_Op_create(check_compose, 0, &compose);
    for (int root = 0; root < check_size(); root++) {
        move(MPI_COMM_WORLD, MPI_INT, root);
        move(MPI_COMM_WORLD, gaps, root);
        reduce(MPI_COMM_WORLD, MPI_INT, MPI_SUM, root);
        reduce(MPI_COMM_WORLD, gaps, compose, root);
    }
    neighbours(MPI_COMM_WORLD, MPI_INT);
    neighbours(MPI_COMM_WORLD, gaps);
    MPI_Op_free(&compose);
    MPI_Type_free(&gaps);
    return check_finish();
}
