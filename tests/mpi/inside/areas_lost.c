/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks die, one after the other, as members of as many communicators as the
 * node has areas of shared memory for (chempirun --survive). When the others
 * have freed these, their next communicators have areas again. With "parent"
 * only the process that the launcher has started dies, whose child is the rank:
 * nobody else gets the areas before that child has ended, too.
 */
#define _GNU_SOURCE /* syscall */
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
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

_Noreturn static void die(pid_t first)
{
    (void)kill(first, SIGKILL);
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

/* The last member dies, or its parent does; the communicator of the others. */
static MPI_Comm lose(MPI_Comm comm, bool is_parent)
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
        die(is_parent ? getppid() : getpid());
    CHECK_OR_DIE(check_class(MPI_Recv(NULL, 0, MPI_BYTE, size - 1, 2, comm,
                                      MPI_STATUS_IGNORE)) ==
                     MPI_ERR_PROC_ABORTED,
                 "it died");
    for (int i = 0; i < count; i++)
        MPI_Comm_free(&held[i]);
    rest = survivors_of(comm, size - 1);
    CHECK_OR_DIE(!MPI_Barrier(rest), "MPI_Barrier");
    CHECK_OR_DIE(has_area(rest) != is_parent, "the area of the survivors: %d",
                 has_area(rest));
    return rest;
}

static void end(pid_t pid)
{
    struct pollfd p = {.events = POLLIN,
                       .fd = (int)syscall(SYS_pidfd_open, pid, 0)};

    CHECK_OR_DIE(p.fd >= 0, "pidfd_open");
    (void)kill(pid, SIGKILL);
    CHECK_OR_DIE(poll(&p, 1, -1) == 1, "poll");
    (void)close(p.fd);
}

static MPI_Comm lose_parent(void)
{
    int pid = getpid();
    MPI_Comm rest;
    MPI_Comm later;

    MPI_Bcast(&pid, 1, MPI_INT, check_size() - 1, MPI_COMM_WORLD);
    rest = lose(MPI_COMM_WORLD, true);
    if (check_rank() == 0)
        end(pid);
    MPI_Barrier(rest);
    MPI_Comm_dup(rest, &later);
    CHECK_OR_DIE(!MPI_Barrier(later), "MPI_Barrier");
    CHECK_OR_DIE(has_area(later), "an area of one that has ended");
    MPI_Comm_free(&rest);
    return later;
}

/* Go on in a child, out of the launcher's reach. */
static void go_down(void)
{
    const pid_t child = fork();
    int status;

    CHECK_OR_DIE(child >= 0, "fork");
    if (child == 0) {
        (void)setpgid(0, 0);
        return;
    }
    (void)waitpid(child, &status, 0);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

int main(int argc, char **argv)
{
    const bool is_parent = argc == 2 && strcmp(argv[1], "parent") == 0;
    MPI_Comm comm;

    if (is_parent)
        go_down();
    check_start(&argc, &argv);
    check_need(4);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    comm = is_parent ? lose_parent() : lose(lose(MPI_COMM_WORLD, false), false);
    if (check_rank() == 0)
        printf("the survivors are well\n");
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return 0;
}
