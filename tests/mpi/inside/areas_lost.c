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
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/sys.h"
#include "libchempi/didl/coll/node/copy/cma_copy.h"
#include "libchempi/didl/coll/node/node.h"
#include "libchempi/didl/comm/comm.h"
#include "tests/mpi/check.h"

enum { HELD_MAX = 64, PAGE = 4096, OWN_AREAS = 32, BEREFT = 3 };

static bool has_area(MPI_Comm comm)
{
    const struct chempi_comm *c = chempi_comm_lookup(comm);

    return c && c->coll &&
           chempi_coll_node_stage(c->coll) == CHEMPI_NODE_MEMORY;
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

/* ---- "leaving" ---- */

static struct chempi_sys sys;
static void *control; /* the page that says whose areas are */

/* That page, those that members copy with, and one that says who uses what. */
static void *note_map(void *addr, size_t len, int prot, int flags, int fd,
                      off_t at)
{
    void *start = chempi_sys_libc.mmap(addr, len, prot, flags, fd, at);
    size_t front =
        2 * PAGE + (chempi_coll_cma_copy_len(4) + PAGE - 1) / PAGE * PAGE;

    if (start != MAP_FAILED && fd >= 0 && len == front && !control)
        control = start;
    return start;
}

static void die_there(int signal)
{
    (void)signal;
    (void)kill(getpid(), SIGKILL);
}

/* As the last one that uses it. */
_Noreturn static void die_leaving(MPI_Comm *held)
{
    struct sigaction action = {.sa_handler = die_there};

    CHECK_OR_DIE(control && !mprotect(control, PAGE, PROT_READ), "mprotect");
    (void)sigaction(SIGSEGV, &action, NULL);
    MPI_Comm_free(held);
    CHECK_OR_DIE(false, "it has said nothing else");
    for (;;)
        ;
}

static MPI_Comm lose_leaving(void)
{
    const int victim = check_size() - 1;
    const bool is_victim = check_rank() == victim;
    MPI_Comm held[HELD_MAX];
    MPI_Comm rest;
    int count = hold(MPI_COMM_WORLD, held);
    int again;

    for (int i = is_victim; i < count; i++)
        MPI_Comm_free(&held[i]);
    MPI_Barrier(MPI_COMM_WORLD);
    if (is_victim)
        die_leaving(&held[0]);
    CHECK_OR_DIE(check_class(MPI_Recv(NULL, 0, MPI_BYTE, victim, 2,
                                      MPI_COMM_WORLD, MPI_STATUS_IGNORE)) ==
                     MPI_ERR_PROC_ABORTED,
                 "it died");
    rest = survivors_of(MPI_COMM_WORLD, victim);
    CHECK_OR_DIE(!MPI_Barrier(rest), "MPI_Barrier");
    again = hold(rest, held); /* and `rest` itself */
    CHECK_OR_DIE(again + 1 == count, "%d areas, and %d before", again,
                 count - 1);
    for (int i = 0; i < again; i++)
        MPI_Comm_free(&held[i]);
    return rest;
}

/* ---- "unknown" ---- */

/* As many persistent operations as the node has areas for. */
static void hold_own(MPI_Comm comm)
{
    struct chempi_comm *c = chempi_comm_lookup(comm);
    struct chempi_coll_state *own[OWN_AREAS];

    for (int i = 0; i < OWN_AREAS; i++) {
        int32_t area;

        own[i] = chempi_coll_node_make_own(c);
        CHECK_OR_DIE(own[i], "memory");
        area = own[i]->area;
        MPI_Bcast(&area, 1, MPI_INT32_T, 0, comm);
        CHECK_OR_DIE(chempi_coll_node_enter_own(c, own[i], area),
                     "the area of operation %d", i);
    }
    MPI_Barrier(comm);
    for (int i = 0; i < OWN_AREAS; i++)
        chempi_coll_node_release(own[i]);
}

/* Rank 0, which comes last, takes an area for the operation all the same. */
static void prepare_bereft(MPI_Comm comm)
{
    MPI_Request request = MPI_REQUEST_NULL;

    for (int i = 1; check_rank() == 0 && i < check_size() - 1; i++)
        MPI_Recv(NULL, 0, MPI_BYTE, i, 3, comm, MPI_STATUS_IGNORE);
    CHECK_OR_DIE(check_class(MPI_Barrier_init(comm, MPI_INFO_NULL, &request)) ==
                     MPI_ERR_PROC_ABORTED,
                 "MPI_Barrier_init");
    if (check_rank() != 0)
        MPI_Send(NULL, 0, MPI_BYTE, 0, 3, comm);
}

static MPI_Comm lose_unknown(void)
{
    const int victim = check_size() - 1;
    MPI_Comm comm;
    MPI_Comm rest;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Barrier(comm);
    CHECK_OR_DIE(has_area(comm), "an area");
    if (check_rank() == victim)
        die(getpid());
    CHECK_OR_DIE(check_class(MPI_Recv(NULL, 0, MPI_BYTE, victim, 2, comm,
                                      MPI_STATUS_IGNORE)) ==
                     MPI_ERR_PROC_ABORTED,
                 "it died");
    for (int i = 0; i < BEREFT; i++)
        prepare_bereft(comm);
    rest = survivors_of(MPI_COMM_WORLD, victim);
    MPI_Barrier(rest);
    MPI_Comm_free(&comm);
    MPI_Barrier(rest);
    hold_own(rest);
    return rest;
}

/* ---- "unused" ---- */

/* Rank 1 does not use the communicator, and frees it after rank 0 has taken an
 * area for it, or before. */
static void drop_unused(int victim, int times)
{
    MPI_Comm comms[HELD_MAX];

    for (int i = 0; i < times; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
        MPI_Comm_set_errhandler(comms[i], MPI_ERRORS_RETURN);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank() == victim)
        die(getpid());
    CHECK_OR_DIE(check_class(MPI_Recv(NULL, 0, MPI_BYTE, victim, 2,
                                      MPI_COMM_WORLD, MPI_STATUS_IGNORE)) ==
                     MPI_ERR_PROC_ABORTED,
                 "it died");
    for (int i = 0; i < times; i++) {
        if (check_rank() == 1 && i % 2 == 0)
            MPI_Recv(NULL, 0, MPI_BYTE, 0, 3, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        if (check_rank() == 0 && i % 2 == 1)
            MPI_Recv(NULL, 0, MPI_BYTE, 1, 3, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        if (check_rank() != 1)
            CHECK_OR_DIE(check_class(MPI_Barrier(comms[i])) ==
                             MPI_ERR_PROC_ABORTED,
                         "MPI_Barrier");
        if (check_rank() == 0 && i % 2 == 0)
            MPI_Send(NULL, 0, MPI_BYTE, 1, 3, MPI_COMM_WORLD);
        MPI_Comm_free(&comms[i]);
        if (check_rank() == 1 && i % 2 == 1)
            MPI_Send(NULL, 0, MPI_BYTE, 0, 3, MPI_COMM_WORLD);
    }
}

static MPI_Comm lose_unused(void)
{
    const int victim = check_size() - 1;
    MPI_Comm held[HELD_MAX];
    MPI_Comm rest;
    int count = hold(MPI_COMM_WORLD, held);
    int again;

    for (int i = 0; i < count; i++)
        MPI_Comm_free(&held[i]);
    MPI_Barrier(MPI_COMM_WORLD);
    drop_unused(victim, 2 * (count - 1));
    rest = survivors_of(MPI_COMM_WORLD, victim);
    CHECK_OR_DIE(!MPI_Barrier(rest), "MPI_Barrier");
    again = hold(rest, held) - 1 + has_area(rest);
    CHECK_OR_DIE(again == count - 1, "%d areas, and %d before", again,
                 count - 1);
    for (int i = 0; i < count - has_area(rest); i++)
        MPI_Comm_free(&held[i]);
    return rest;
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
    const char *how = argc == 2 ? argv[1] : "";
    MPI_Comm comm;

    if (strcmp(how, "parent") == 0)
        go_down();
    sys = chempi_sys_libc;
    sys.mmap = note_map;
    chempi_sys = &sys;
    check_start(&argc, &argv);
    check_need(4);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (strcmp(how, "parent") == 0)
        comm = lose_parent();
    else if (strcmp(how, "leaving") == 0)
        comm = lose_leaving();
    else if (strcmp(how, "unknown") == 0)
        comm = lose_unknown();
    else if (strcmp(how, "unused") == 0)
        comm = lose_unused();
    else
        comm = lose(lose(MPI_COMM_WORLD, false), false);
    if (check_rank() == 0)
        printf("the survivors are well\n");
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return 0;
}
