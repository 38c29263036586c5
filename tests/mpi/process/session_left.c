/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The last ranks leave their last session, and then end without a word
 * on their connections: that is no loss, whatever the others still do.
 *
 * usage: session_left exit|again|status|exec
 *
 * exit: by _exit(); again: by that, after one more session; status: with exit
 * code 3; exec: they become another program, which ends when the first rank
 * has.
 */
#include "check.h"

#include <signal.h>
#include <unistd.h>

#define LEAVERS 2
#define TURN_S 2.5 /* more than CHEMPI_DAEMON_SUSPECT_MS */

static MPI_Session session;

static void open_session(void)
{
    CHECK_OR_DIE(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL,
                                  &session) == MPI_SUCCESS,
                 "MPI_Session_init");
}

/* The first `count` processes. */
static MPI_Comm comm_of(int count, const char *tag)
{
    int range[1][3] = {{0, count - 1, 1}};
    MPI_Group all;
    MPI_Group group;
    MPI_Comm comm;

    MPI_Group_from_session_pset(session, "mpi://WORLD", &all);
    MPI_Group_range_incl(all, 1, range, &group);
    MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL,
                               &comm);
    MPI_Group_free(&all);
    MPI_Group_free(&group);
    return comm;
}

/* Each pair has a connection then. */
static void talk(MPI_Comm comm)
{
    int size;
    int *in;
    int *out;

    MPI_Comm_size(comm, &size);
    in = check_alloc((size_t)size * sizeof(*in));
    out = check_alloc((size_t)size * sizeof(*out));
    MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, comm);
    free(in);
    free(out);
}

/* One more use of MPI by all; the processes' numbers. */
static void use_all(int size, const char *tag, int *pids)
{
    MPI_Comm comm = comm_of(size, tag);
    const int pid = getpid();

    talk(comm);
    MPI_Allgather(&pid, 1, MPI_INT, pids, 1, MPI_INT, comm);
    MPI_Comm_free(&comm);
}

static void become_another(int pid)
{
    char option[32];

    (void)snprintf(option, sizeof(option), "--pid=%d", pid);
    (void)execlp("tail", "tail", option, "-s", "0.1", "-f", "/dev/null",
                 (char *)NULL);
    _exit(127); /* there is no such program */
}

static void leave(const char *how, int *pids, int size)
{
    MPI_Session_finalize(&session);
    if (strcmp(how, "again") == 0) {
        open_session();
        use_all(size, "again", pids);
        MPI_Session_finalize(&session);
    }
    if (strcmp(how, "exec") == 0)
        become_another(pids[0]);
    _exit(strcmp(how, "status") == 0 ? 3 : 0);
}

/* The supervisor has not waited for a process that is not there any more. */
static void await_end(const char *how, int pid)
{
    while (strcmp(how, "exec") != 0 && kill(pid, 0) == 0)
        (void)getppid();
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "exit";
    int pids[16];
    int rank;
    int size;
    int others;
    double begin;
    MPI_Comm comm;
    MPI_Group all;

    open_session();
    MPI_Group_from_session_pset(session, "mpi://WORLD", &all);
    MPI_Group_rank(all, &rank);
    MPI_Group_size(all, &size);
    MPI_Group_free(&all);
    others = size - LEAVERS;
    use_all(size, "first", pids);
    if (rank >= others)
        leave(how, pids, size);
    if (strcmp(how, "again") == 0)
        use_all(size, "again", pids);
    for (int i = others; i < size; i++)
        await_end(how, pids[i]);
    comm = comm_of(others, "others");
    begin = MPI_Wtime();
    for (int is_over = 0; !is_over;) {
        is_over = MPI_Wtime() - begin > TURN_S;
        MPI_Allreduce(MPI_IN_PLACE, &is_over, 1, MPI_INT, MPI_MAX, comm);
    }
    if (rank == 0)
        printf("the others are well\n");
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
    return 0;
}
