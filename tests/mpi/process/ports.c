/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ports within one job: its halves meet by one, though they are of one world,
 * with any member as the root; and what is wrong with a port, or does not
 * happen in time, is MPI_ERR_PORT.
 */
#include "check.h"

enum { TAG = 2 };

/* Where `name` cannot be called or accepted at; all say so at once. */
static void expect_none(const char *name, MPI_Comm comm, const char *what)
{
    MPI_Comm inter = MPI_COMM_WORLD;
    int rc = MPI_Comm_connect(name, MPI_INFO_NULL, 0, comm, &inter);

    CHECK(check_class(rc) == MPI_ERR_PORT, "connect to %s: %d", what, rc);
    CHECK(inter == MPI_COMM_NULL, "connect to %s gives something", what);
    rc = MPI_Comm_accept(name, MPI_INFO_NULL, 0, comm, &inter);
    CHECK(check_class(rc) == MPI_ERR_PORT, "accept at %s: %d", what, rc);
}

/* Nobody is at the other side in time. */
static void expect_late(const char *name, MPI_Comm comm)
{
    MPI_Info info;
    MPI_Comm inter;
    int rc;

    MPI_Info_create(&info);
    MPI_Info_set(info, "timeout", "0.1");
    rc = MPI_Comm_accept(name, info, 0, comm, &inter);
    CHECK(check_class(rc) == MPI_ERR_PORT, "accept without a caller: %d", rc);
    rc = MPI_Comm_connect(name, info, 0, comm, &inter);
    CHECK(check_class(rc) == MPI_ERR_PORT, "connect without an accept: %d", rc);
    MPI_Info_free(&info);
}

static void fail(MPI_Comm half)
{
    char name[MPI_MAX_PORT_NAME] = "";
    int rank, rc;

    MPI_Comm_rank(half, &rank);
    MPI_Comm_set_errhandler(half, MPI_ERRORS_RETURN);
    expect_none("", half, "no name");
    expect_none("chempi1:tcp", half, "half a name");
    if (rank == 0)
        MPI_Open_port(MPI_INFO_NULL, name);
    MPI_Bcast(name, sizeof(name), MPI_CHAR, 0, half);
    expect_late(name, half);
    if (rank == 0) {
        MPI_Close_port(name);
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
        rc = MPI_Close_port(name);
        CHECK(check_class(rc) == MPI_ERR_PORT, "closed twice: %d", rc);
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    }
    MPI_Barrier(half);
    expect_none(name, half, "a closed port");
}

/* A caller waits until somebody accepts. */
static void meet(MPI_Comm half, bool accepts, const char *name, int root)
{
    MPI_Comm inter, both;
    int rank, size, remote, all, got = -1;

    MPI_Comm_rank(half, &rank);
    MPI_Comm_size(half, &size);
    if (accepts)
        MPI_Comm_accept(name, MPI_INFO_NULL, 0, half, &inter);
    else
        MPI_Comm_connect(name, MPI_INFO_NULL, root, half, &inter);
    MPI_Comm_remote_size(inter, &remote);
    CHECK(size + remote == check_size(), "%d and %d ranks", size, remote);
    MPI_Sendrecv(&rank, 1, MPI_INT, rank < remote ? rank : MPI_PROC_NULL, TAG,
                 &got, 1, MPI_INT, rank < remote ? rank : MPI_PROC_NULL, TAG,
                 inter, MPI_STATUS_IGNORE);
    CHECK(rank >= remote || got == rank, "rank %d hears of %d", rank, got);
    MPI_Intercomm_merge(inter, accepts, &both);
    MPI_Comm_size(both, &all);
    CHECK(all == check_size(), "both have %d", all);
    MPI_Barrier(both);
    MPI_Comm_free(&both);
    MPI_Comm_disconnect(&inter);
}

int main(int argc, char **argv)
{
    char name[MPI_MAX_PORT_NAME] = "";
    MPI_Comm half;
    bool accepts;

    check_start(&argc, &argv);
    check_need(2);
    accepts = check_rank() < check_size() / 2;
    MPI_Comm_split(MPI_COMM_WORLD, accepts, 0, &half);
    fail(half);
    if (check_rank() == 0)
        MPI_Open_port(MPI_INFO_NULL, name);
    MPI_Bcast(name, sizeof(name), MPI_CHAR, 0, MPI_COMM_WORLD);
    for (int root = 0; root < check_size() - check_size() / 2; root++)
        meet(half, accepts, name, root);
    if (check_rank() == 0)
        MPI_Close_port(name);
    MPI_Comm_free(&half);
    return check_finish();
}
