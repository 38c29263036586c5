/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ways for a rank to end a job badly; the others block and must be ended.
 * What the launcher says and returns is checked by the list.
 *
 * usage: death HOW RANK [CODE]
 *
 * HOW is abort, signal, segv, exit, return or cut (from its supervisor); early,
 * before or deaf (ends, calls MPI, is cut off before MPI_Init); finalized, late
 * or again (ends with the code, is cut off and calls MPI, is cut off and opens
 * a session after MPI_Finalize)
 */
#include "check.h"

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

/* What the launcher handed down, by the name of a variable in another one. */
static const char *handed(const char *name)
{
    const char *variable = getenv(name);

    return variable ? getenv(variable) : NULL;
}

/* Sanitizers catch the signal and exit with a code of theirs. */
static void die_of_segv(void)
{
    (void)signal(SIGSEGV, SIG_DFL);
    (void)raise(SIGSEGV);
}

/* As when the supervisor is killed. */
static void cut(int control)
{
    CHECK(shutdown(control, SHUT_RDWR) == 0, "descriptor %d", control);
}

static void end_by(const char *how, int code, int control)
{
    if (strcmp(how, "abort") == 0)
        MPI_Abort(MPI_COMM_WORLD, code);
    else if (strcmp(how, "signal") == 0)
        kill(getpid(), code);
    else if (strcmp(how, "segv") == 0)
        die_of_segv();
    else if (strcmp(how, "exit") == 0)
        _exit(code);
    else if (strcmp(how, "cut") == 0)
        cut(control);
}

/* Nobody knows its rank yet but from the launcher. */
static void end_before(const char *how, int code, int control)
{
    if (strcmp(how, "early") == 0)
        exit(code);
    if (strcmp(how, "before") == 0)
        MPI_Barrier(MPI_COMM_WORLD);
    if (strcmp(how, "deaf") == 0)
        cut(control);
}

static int end_after(const char *how, int code, int control)
{
    if (strcmp(how, "finalized") == 0)
        return code;
    cut(control);
    return strcmp(how, "late") == 0 ? MPI_Barrier(MPI_COMM_WORLD) : 0;
}

_Noreturn static void wait_forever(MPI_Comm comm)
{
    for (;;)
        MPI_Recv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, comm,
                 MPI_STATUS_IGNORE);
}

/* All of the world, as far as it can. */
_Noreturn static void start_again(void)
{
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;

    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "again", MPI_INFO_NULL,
                               MPI_ERRORS_ARE_FATAL, &comm);
    wait_forever(comm);
}

static bool is_after(const char *how)
{
    return strcmp(how, "finalized") == 0 || strcmp(how, "late") == 0 ||
           strcmp(how, "again") == 0;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "abort";
    int who = (int)check_arg(argc, argv, 2, 0);
    int code = (int)check_arg(argc, argv, 3, 1);
    const char *rank_before = handed("DEATH_RANK_ENV");
    const char *control = handed("DEATH_CONTROL_ENV");
    int control_fd = control ? atoi(control) : -1;

    if (rank_before && atoi(rank_before) == who)
        end_before(how, code, control_fd);
    check_start(&argc, &argv);
    MPI_Barrier(MPI_COMM_WORLD);
    if (is_after(how)) {
        int rank = check_rank();
        MPI_Finalize();
        code = rank == who ? end_after(how, code, control_fd) : 0;
        if (strcmp(how, "again") == 0)
            start_again();
        return code;
    }
    if (check_rank() == who) {
        end_by(how, code, control_fd);
        if (strcmp(how, "cut") != 0)
            return 0; /* "return": without MPI_Finalize, as if all were well */
    }
    wait_forever(MPI_COMM_WORLD);
}
