/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Buffers that are not significant at a process may have any value, also that
 * of MPI_IN_PLACE (MPI 5.0, sections 6.5 to 6.9). All rooted operations with
 * two buffers, blocking and not, within a group and between two. And types of
 * such buffers may go while the operation is under way. In place of the
 * sender's counts, displacements and types there may be nothing.
 */
#include "check.h"

/* Buffers of one process; those that are not significant hold MPI_IN_PLACE. */
struct ends {
    MPI_Comm comm;
    int root;   /* as this process names it */
    int peers;  /* blocks at the root */
    void *part; /* one int of each contributing or receiving process */
    void *all;  /* the root's: one int of each peer */
    bool is_blocking;
};

static void finish(const struct ends *e, MPI_Request *request)
{
    if (!e->is_blocking)
        MPI_Wait(request, MPI_STATUS_IGNORE);
}

static void gather(const struct ends *e)
{
    MPI_Request request;

    if (e->is_blocking)
        MPI_Gather(e->part, 1, MPI_INT, e->all, 1, MPI_INT, e->root, e->comm);
    else
        MPI_Igather(e->part, 1, MPI_INT, e->all, 1, MPI_INT, e->root, e->comm,
                    &request);
    finish(e, &request);
}

static void scatter(const struct ends *e)
{
    MPI_Request request;

    if (e->is_blocking)
        MPI_Scatter(e->all, 1, MPI_INT, e->part, 1, MPI_INT, e->root, e->comm);
    else
        MPI_Iscatter(e->all, 1, MPI_INT, e->part, 1, MPI_INT, e->root, e->comm,
                     &request);
    finish(e, &request);
}

static void reduce(const struct ends *e)
{
    MPI_Request request;

    if (e->is_blocking)
        MPI_Reduce(e->part, e->all, 1, MPI_INT, MPI_SUM, e->root, e->comm);
    else
        MPI_Ireduce(e->part, e->all, 1, MPI_INT, MPI_SUM, e->root, e->comm,
                    &request);
    finish(e, &request);
}

/* is_part: this process has a block of its own; is_whole: it is the root. */
static void all_three(MPI_Comm comm, int root, int peers, bool is_part,
                      bool is_whole, bool is_blocking)
{
    int *all = check_alloc((size_t)peers * sizeof(int));
    int part = 7;
    struct ends e = {.comm = comm,
                     .root = root,
                     .peers = peers,
                     .part = is_part ? (void *)&part : MPI_IN_PLACE,
                     .all = is_whole ? (void *)all : MPI_IN_PLACE,
                     .is_blocking = is_blocking};

    gather(&e);
    for (int i = 0; is_whole && i < peers; i++)
        CHECK(all[i] == 7, "gathered %d from %d", all[i], i);
    for (int i = 0; is_whole && i < peers; i++)
        all[i] = 50 + i;
    scatter(&e);
    CHECK(!is_part || (part >= 50 && part < 50 + peers), "scattered %d", part);
    part = 3;
    reduce(&e);
    CHECK(!is_whole || all[0] == 3 * peers, "reduced to %d", all[0]);
    free(all);
}

static void between_two(bool is_blocking)
{
    int side = check_rank() % 2;
    int rank;
    int peers;
    int root;
    MPI_Comm local;
    MPI_Comm inter;

    MPI_Comm_split(MPI_COMM_WORLD, side, 0, &local);
    MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, !side, 1, &inter);
    MPI_Comm_rank(local, &rank);
    MPI_Comm_remote_size(inter, &peers);
    for (int from = 0; from < 2; from++) {
        root = rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
        all_three(inter, side == from ? root : 0, peers, side != from,
                  side == from && rank == 0, is_blocking);
    }
    MPI_Comm_free(&inter);
    MPI_Comm_free(&local);
}

/* The root comes when all others have started, and freed the type. */
static void free_type_meanwhile(void)
{
    int *all = check_alloc((size_t)check_size() * sizeof(int));
    int part = -1;
    MPI_Datatype type;
    MPI_Request request = MPI_REQUEST_NULL;

    for (int i = 0; i < check_size(); i++)
        all[i] = 90 + i;
    MPI_Type_contiguous(1, MPI_INT, &type);
    MPI_Type_commit(&type);
    for (int i = 1; check_rank() == 0 && i < check_size(); i++)
        MPI_Recv(NULL, 0, MPI_INT, i, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Iscatter(all, 1, type, &part, 1, MPI_INT, 0, MPI_COMM_WORLD, &request);
    MPI_Type_free(&type);
    if (check_rank() != 0)
        MPI_Send(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(part == 90 + check_rank(), "scattered %d", part);
    free(all);
}

/* Rank 0 comes when all others have started. */
static void in_place(int n, bool is_persistent)
{
    const int size = check_size();
    int *data = check_alloc(sizeof(int) * (size_t)(n * size));
    int *counts = check_alloc(2 * sizeof(int) * (size_t)size);
    int *displs = counts + size;
    MPI_Datatype *types = check_alloc(sizeof(*types) * (size_t)size);
    MPI_Request request;
    int wrong = 0;

    for (int i = 0; i < size; i++) {
        counts[i] = n;
        displs[i] = (int)sizeof(int) * n * i;
        types[i] = MPI_INT;
    }
    for (int i = 0; i < n * size; i++)
        data[i] = 100 * check_rank() + i / n;
    if (is_persistent)
        MPI_Alltoallw_init(MPI_IN_PLACE, NULL, NULL, NULL, data, counts, displs,
                           types, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    for (int i = 1; check_rank() == 0 && i < size; i++)
        MPI_Recv(NULL, 0, MPI_INT, i, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (is_persistent)
        MPI_Start(&request);
    else
        MPI_Ialltoallw(MPI_IN_PLACE, NULL, NULL, NULL, data, counts, displs,
                       types, MPI_COMM_WORLD, &request);
    if (check_rank() != 0)
        MPI_Send(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (is_persistent)
        MPI_Request_free(&request);
    for (int i = 0; i < n * size; i++)
        wrong += data[i] != 100 * (i / n) + check_rank();
    CHECK(wrong == 0, "%d of %d are wrong", wrong, n * size);
    free(types);
    free(counts);
    free(data);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    check_need(2);
    for (int i = 0; i < 2; i++) {
        for (int root = 0; root < check_size(); root++)
            all_three(MPI_COMM_WORLD, root, check_size(), true,
                      check_rank() == root, i == 0);
        between_two(i == 0);
    }
    free_type_meanwhile();
    for (int i = 0; i < 2; i++) {
        in_place(2, i > 0);
        in_place(5000, i > 0);
        in_place(30000, i > 0);
    }
    return check_finish();
}
