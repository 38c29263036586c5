/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank of a job that survives ends, and another one, which has heard of that,
 * has gone on to another operation than the third, whose message then is not
 * what that one expects where all agree: it hears of the loss, and of no
 * mistake.
 *
 * usage: inside-misfit meet|window
 */
#include <signal.h>

#include "libchempi/didl/comm/message.h"
#include "tests/mpi/check.h"

enum { ALIVE, MEETS, ENDS, TAG = 3 };

static void send_misfit(void)
{
    const int64_t words[2] = {0};
    const int tag = (int)(chempi_comm_world.internal_tag & INT32_MAX);

    CHECK(chempi_message_send_on(
              words, sizeof(words), chempi_datatype_lookup(MPI_BYTE), MEETS,
              tag, &chempi_comm_world, CHEMPI_CONTEXT_INTERNAL) == MPI_SUCCESS,
          "a message of another operation");
}

static int meet(void)
{
    char name[MPI_MAX_PORT_NAME];
    MPI_Comm inter;
    int rc;

    MPI_Open_port(MPI_INFO_NULL, name);
    rc = MPI_Comm_accept(name, MPI_INFO_NULL, MEETS, MPI_COMM_WORLD, &inter);
    MPI_Close_port(name);
    return rc;
}

static int make_window(void)
{
    MPI_Win win;
    void *memory;

    return MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    CHECK_OR_DIE(argc > 1, "usage: misfit meet|window");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank() == ENDS)
        (void)raise(SIGKILL);
    if (check_rank() == ALIVE) {
        send_misfit();
        MPI_Send(NULL, 0, MPI_BYTE, MEETS, TAG, MPI_COMM_WORLD);
    } else {
        int rc;

        MPI_Recv(NULL, 0, MPI_BYTE, ALIVE, TAG, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        rc = strcmp(argv[1], "meet") == 0 ? meet() : make_window();
        CHECK(check_class(rc) == MPI_ERR_PROC_ABORTED, "%s: class %d", argv[1],
              check_class(rc));
        printf("it has met nobody\n");
    }
    MPI_Finalize();
    return 0;
}
