/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A member of a window is lost between MPI_Win_start's, or MPI_Win_post's, look
 * at it and the receive of a token from another one, which is there and sends
 * none: nobody waits for it.
 *
 * Linked with a chempi_message_irecv_on() before which that happens.
 *
 * usage: tokens_lost start|post
 */
#include <signal.h>

#include "libchempi/didl/comm/message.h"
#include "libchempi/didl/rma/internal.h"
#include "libchempi/didl/transport/progress/progress.h"
#include "tests/mpi/check.h"

enum { WAITS, STAYS, DIES, TAG = 3 };

typedef int irecv_fn(void *buf, MPI_Count count, struct chempi_datatype *type,
                     int source, int tag, struct chempi_comm *comm,
                     enum chempi_context_kind kind,
                     struct chempi_request **out);
irecv_fn __real_chempi_message_irecv_on;
irecv_fn __wrap_chempi_message_irecv_on;

static MPI_Win win;
static bool is_due;

int __wrap_chempi_message_irecv_on(void *buf, MPI_Count count,
                                   struct chempi_datatype *type, int source,
                                   int tag, struct chempi_comm *comm,
                                   enum chempi_context_kind kind,
                                   struct chempi_request **out)
{
    if (is_due && kind == (enum chempi_context_kind)CHEMPI_RMA_TOKENS) {
        is_due = false;
        MPI_Send(NULL, 0, MPI_BYTE, DIES, TAG, MPI_COMM_WORLD);
        while (!chempi_rma_lost(chempi_win_lookup(win)))
            (void)chempi_progress_poll();
    }
    return __real_chempi_message_irecv_on(buf, count, type, source, tag, comm,
                                          kind, out);
}

static void await_token(bool starts)
{
    MPI_Group group = check_group_of(STAYS);
    int rc;

    is_due = true;
    rc = starts ? MPI_Win_start(group, 0, win) : MPI_Win_post(group, 0, win);
    if (rc == MPI_SUCCESS && !starts)
        rc = MPI_Win_wait(win);
    MPI_Group_free(&group);
    CHECK(check_class(rc) == MPI_ERR_PROC_ABORTED, "class %d", check_class(rc));
    CHECK(!is_due, "no token was awaited");
    MPI_Send(NULL, 0, MPI_BYTE, STAYS, TAG, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    int memory = 0;

    check_start(&argc, &argv);
    check_need(3);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Win_create(&memory, sizeof(memory), 1, MPI_INFO_NULL, MPI_COMM_WORLD,
                   &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank() == WAITS)
        await_token(argc > 1 && strcmp(argv[1], "start") == 0);
    else
        MPI_Recv(NULL, 0, MPI_BYTE, WAITS, TAG, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    if (check_rank() == DIES)
        (void)raise(SIGKILL);
    MPI_Win_free(&win);
    if (check_rank() == WAITS)
        puts("nobody waits");
    return check_finish();
}
