/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A message is at its sender, who waits until somebody takes it, and nobody
 * will, for a member of its communicator is dead (chempirun --survive): the
 * sender waits no longer, though nothing else comes to the receiver.
 *
 * freed: the receiver frees the communicator when the message has been
 * announced to it
 * made: it makes it then, and receives nothing of collective operations there
 *
 * usage: vain_messages freed | made
 */
#include <signal.h>

#include "libchempi/didl/comm/comm.h"
#include "libchempi/didl/comm/make/comm_make.h"
#include "libchempi/didl/comm/message.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/request.h"
#include "tests/mpi/check.h"

enum { LARGE = 8 << 20, TAG = 5, SENT, CONTEXT = 5000 * CHEMPI_CONTEXT_STEP };

static const int victim = 2;
static char large[LARGE];

static struct chempi_comm *make(void)
{
    struct chempi_group *group = chempi_comm_lookup(MPI_COMM_WORLD)->local;
    struct chempi_comm *comm = chempi_comm_make(group, NULL, CONTEXT, CONTEXT);

    CHECK_OR_DIE(comm, "no communicator");
    return comm;
}

static void learn(MPI_Comm comm)
{
    const int rc =
        MPI_Recv(NULL, 0, MPI_BYTE, victim, TAG, comm, MPI_STATUS_IGNORE);

    CHECK_OR_DIE(check_class(rc) == MPI_ERR_PROC_ABORTED, "class %d",
                 check_class(rc));
}

/* Rank 0; the announcement of the large message is before what is sent next. */
static void send(MPI_Comm comm, bool is_made)
{
    struct chempi_request *req;

    if (is_made)
        CHECK_OR_DIE(chempi_message_isend_on(
                         large, LARGE, chempi_datatype_lookup(MPI_BYTE), 1, TAG,
                         make(), CHEMPI_CONTEXT_COLL, &req) == MPI_SUCCESS,
                     "no message");
    else
        MPI_Isend(large, LARGE, MPI_BYTE, 1, TAG, comm, (MPI_Request *)&req);
    MPI_Send(NULL, 0, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
    if (is_made)
        (void)chempi_message_wait_all(&req, 1);
    else
        MPI_Wait((MPI_Request *)&req, MPI_STATUS_IGNORE);
    MPI_Send(NULL, 0, MPI_BYTE, 1, SENT, MPI_COMM_WORLD);
}

static void leave(MPI_Comm *comm, bool is_made)
{
    MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (is_made)
        (void)make();
    else
        MPI_Comm_free(comm);
    MPI_Recv(NULL, 0, MPI_BYTE, 0, SENT, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    puts("nobody waits");
}

int main(int argc, char **argv)
{
    const bool is_made = strcmp(argv[argc - 1], "made") == 0;
    MPI_Comm comm;

    check_start(&argc, &argv);
    check_need(victim + 1);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Barrier(comm);
    if (check_rank() == victim)
        (void)raise(SIGKILL);
    learn(comm);
    if (check_rank() == 0)
        send(comm, is_made);
    else if (check_rank() == 1)
        leave(&comm, is_made);
    MPI_Finalize();
    return 0;
}
