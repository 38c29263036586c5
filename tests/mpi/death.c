/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ways for a rank to end a job badly; the others block and must be ended.
 * What the launcher says and returns is checked by the list.
 *
 * usage: death abort|signal|segv|exit|return|early|finalized|cut RANK [CODE]
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
    else if (strcmp(how, "cut") == 0) /* as when the supervisor is killed */
        CHECK(shutdown(control, SHUT_RDWR) == 0, "descriptor %d", control);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "abort";
    int who = (int)check_arg(argc, argv, 2, 0);
    int code = (int)check_arg(argc, argv, 3, 1);
    const char *rank_before = handed("DEATH_RANK_ENV");
    const char *control = handed("DEATH_CONTROL_ENV");
    int control_fd = control ? atoi(control) : -1;

    /* Before MPI_Init nobody knows its rank but from the launcher. */
    if (strcmp(how, "early") == 0 && rank_before && atoi(rank_before) == who)
        return code;
    check_start(&argc, &argv);
    MPI_Barrier(MPI_COMM_WORLD);
    if (strcmp(how, "finalized") == 0) {
        int rank = check_rank();
        MPI_Finalize();
        return rank == who ? code : 0;
    }
    if (check_rank() == who) {
        end_by(how, code, control_fd);
        if (strcmp(how, "cut") != 0)
            return 0; /* "return": without MPI_Finalize, as if all were well */
    }
    for (;;)
        MPI_Recv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}
