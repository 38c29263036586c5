/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A meeting that cannot be: two threads of each process have the same group
 * accept and call a port. Both hear that a process cannot meet itself, the
 * port is left as it was, and nothing is left of the meeting.
 */
#include <pthread.h>

#include "check.h"

enum { MEETINGS = 3 };

static char name[MPI_MAX_PORT_NAME];

struct side {
    MPI_Comm comm;
    MPI_Comm inter;
    int class;
};

static void *call(void *arg)
{
    struct side *side = arg;

    side->class = check_class(
        MPI_Comm_connect(name, MPI_INFO_NULL, 0, side->comm, &side->inter));
    return NULL;
}

static void meet(MPI_Comm comm)
{
    struct side side = {.inter = MPI_COMM_WORLD};
    MPI_Comm inter = MPI_COMM_WORLD;
    pthread_t thread;
    int class;

    MPI_Comm_dup(comm, &side.comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(side.comm, MPI_ERRORS_RETURN);
    CHECK_OR_DIE(pthread_create(&thread, NULL, call, &side) == 0, "a thread");
    class = check_class(MPI_Comm_accept(name, MPI_INFO_NULL, 0, comm, &inter));
    (void)pthread_join(thread, NULL);
    CHECK(class == MPI_ERR_COMM, "who accepts: class %d", class);
    CHECK(side.class == MPI_ERR_COMM, "who calls: class %d", side.class);
    CHECK(inter == MPI_COMM_NULL && side.inter == MPI_COMM_NULL,
          "a communicator");
    MPI_Comm_free(&side.comm);
}

int main(int argc, char **argv)
{
    MPI_Comm comm;

    check_start_thread(&argc, &argv, MPI_THREAD_MULTIPLE);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (check_rank() == 0)
        MPI_Open_port(MPI_INFO_NULL, name);
    for (int i = 0; i < MEETINGS; i++)
        meet(comm);
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank() == 0)
        MPI_Close_port(name);
    MPI_Comm_free(&comm);
    return check_finish();
}
