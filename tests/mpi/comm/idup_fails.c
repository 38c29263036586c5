/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Comm_idup whose local part fails at one member, since a callback does not
 * copy an attribute: it returns the error at once, before the others have
 * called, who get one from MPI_Wait. What they have agreed on then serves the
 * next call.
 */
#include "check.h"

enum { TAG = 5, TIMES = 3 };

static int refuse(MPI_Comm comm, int keyval, void *extra, void *in, void *out,
                  int *flag)
{
    (void)comm;
    (void)keyval;
    (void)extra;
    (void)in;
    (void)out;
    *flag = 0;
    return MPI_ERR_OTHER;
}

/* The others call when they hear that the first one is back. */
static void fail_at_first(MPI_Comm comm, MPI_Comm world)
{
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Request request = MPI_REQUEST_NULL;
    int code;

    if (check_rank() == 0) {
        code = MPI_Comm_idup(comm, &made, &request);
        CHECK(code != MPI_SUCCESS, "nothing was refused");
        CHECK(made == MPI_COMM_NULL, "there is a communicator");
        for (int peer = 1; peer < check_size(); peer++)
            MPI_Send(NULL, 0, MPI_CHAR, peer, TAG, world);
        return;
    }
    MPI_Recv(NULL, 0, MPI_CHAR, 0, TAG, world, MPI_STATUS_IGNORE);
    CHECK_OR_DIE(!MPI_Comm_idup(comm, &made, &request), "MPI_Comm_idup");
    code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(check_class(code) == MPI_ERR_OTHER, "class %d", check_class(code));
    MPI_Comm_free(&made);
}

static void succeed(MPI_Comm comm)
{
    MPI_Comm made;
    MPI_Request request;

    CHECK_OR_DIE(!MPI_Comm_idup(comm, &made, &request), "MPI_Comm_idup");
    CHECK_OR_DIE(!MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
    MPI_Barrier(made);
    MPI_Comm_free(&made);
}

static void try_all(MPI_Comm comm, MPI_Comm world)
{
    int keyval;

    MPI_Comm_create_keyval(refuse, MPI_COMM_NULL_DELETE_FN, &keyval, NULL);
    for (int i = 0; i < TIMES; i++) {
        if (check_rank() == 0)
            MPI_Comm_set_attr(comm, keyval, NULL);
        fail_at_first(comm, world);
        if (check_rank() == 0)
            MPI_Comm_delete_attr(comm, keyval);
        succeed(comm);
    }
    if (check_rank() == 0)
        MPI_Comm_set_attr(comm, keyval, NULL);
    fail_at_first(comm, world); /* what comes next is its end */
    MPI_Comm_free_keyval(&keyval);
}

int main(int argc, char **argv)
{
    MPI_Comm world;
    MPI_Comm half;
    MPI_Comm inter;
    int is_high;

    check_start(&argc, &argv);
    check_need(2);
    is_high = check_rank() >= check_size() / 2;
    MPI_Comm_dup(MPI_COMM_WORLD, &world);
    MPI_Comm_split(world, is_high, 0, &half);
    MPI_Intercomm_create(half, 0, world, is_high ? 0 : check_size() / 2, TAG,
                         &inter);
    MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    try_all(world, MPI_COMM_WORLD);
    try_all(inter, MPI_COMM_WORLD);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
    MPI_Comm_free(&world);
    return check_finish();
}
