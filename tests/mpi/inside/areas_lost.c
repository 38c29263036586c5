/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks die, one after the other, as members of as many communicators as the
 * node has areas of shared memory for (chempirun --survive). When the others
 * have freed these, their next communicators have areas again.
 */
#include <signal.h>
#include <unistd.h>

#include "libchempi/didl/coll/node/node.h"
#include "libchempi/didl/comm/comm.h"
#include "tests/mpi/check.h"

enum { HELD_MAX = 64 };

static bool has_area(MPI_Comm comm)
{
    const struct chempi_comm *c = chempi_comm_lookup(comm);

    return c && c->coll && c->coll->is_on;
}

/* Communicators like this one, until there are no more areas. */
static int hold(MPI_Comm like, MPI_Comm held[HELD_MAX])
{
    int count = 0;

    do {
        MPI_Comm_dup(like, &held[count]);
        MPI_Barrier(held[count]);
    } while (has_area(held[count++]) && count < HELD_MAX);
    CHECK_OR_DIE(count > 1 && count < HELD_MAX, "%d communicators", count);
    return count;
}

_Noreturn static void die(void)
{
    (void)kill(getpid(), SIGKILL);
    for (;;)
        (void)pause();
}

static MPI_Comm survivors_of(MPI_Comm comm, int victim)
{
    MPI_Group all;
    MPI_Group rest;
    MPI_Comm made;

    MPI_Comm_group(comm, &all);
    MPI_Group_excl(all, 1, &victim, &rest);
    CHECK_OR_DIE(!MPI_Comm_create_group(comm, rest, 7, &made),
                 "MPI_Comm_create_group");
    MPI_Group_free(&rest);
    MPI_Group_free(&all);
    return made;
}

/* The last member dies; the communicator of the others. */
static MPI_Comm lose(MPI_Comm comm)
{
    MPI_Comm held[HELD_MAX];
    MPI_Comm rest;
    int rank;
    int size;
    int count;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    count = hold(comm, held);
    if (rank == size - 1)
        die();
    CHECK_OR_DIE(check_class(MPI_Recv(NULL, 0, MPI_BYTE, size - 1, 2, comm,
                                      MPI_STATUS_IGNORE)) ==
                     MPI_ERR_PROC_ABORTED,
                 "it died");
    for (int i = 0; i < count; i++)
        MPI_Comm_free(&held[i]);
    rest = survivors_of(comm, size - 1);
    CHECK_OR_DIE(!MPI_Barrier(rest), "MPI_Barrier");
    CHECK_OR_DIE(has_area(rest), "the survivors have an area");
    return rest;
}

int main(int argc, char **argv)
{
    MPI_Comm comm;

    check_start(&argc, &argv);
    check_need(4);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    comm = lose(lose(MPI_COMM_WORLD));
    if (check_rank() == 0)
        printf("the survivors are well\n");
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return 0;
}
