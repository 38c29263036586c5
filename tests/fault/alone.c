/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process that nobody has launched, and two children of its own launcher. All
 * of them say "parent PID" or "child PID" when they have met, and then do:
 *
 *   alone stay         wait for each other, for ever
 *   alone deaf         the same, with SIGINT ignored by the parent
 *   alone fork         the same, with a process that the parent has forked
 *   alone exit         the parent ends without MPI_Finalize
 *   alone part FIFO    they part; the parent finalizes; children read a byte of
 *                      the FIFO each
 *   alone linger FIFO  the same, but that the parent says "final PID" then, and
 *                      waits for ever
 *   alone again        the parent waits for the end of its launcher, which is
 *                      an end of the children, and spawns others
 */
#define _GNU_SOURCE /* realpath */
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char program[4096];

static void say(const char *who)
{
    printf("%s %d\n", who, (int)getpid());
    (void)fflush(stdout);
}

/* Returns when the other world is lost, if its errors do. */
static int hear_never(MPI_Comm inter)
{
    return MPI_Recv(NULL, 0, MPI_INT, 0, 0, inter, MPI_STATUS_IGNORE);
}

static int be_child(const char *what, const char *path)
{
    MPI_Comm parent;
    char byte;
    int fd;

    MPI_Comm_get_parent(&parent);
    MPI_Barrier(parent);
    say("child");
    if (strcmp(what, "part") != 0 && strcmp(what, "linger") != 0)
        hear_never(parent);
    MPI_Comm_disconnect(&parent);
    fd = open(path, O_RDONLY);
    if (fd >= 0)
        (void)!read(fd, &byte, 1);
    MPI_Finalize();
    return 0;
}

static MPI_Comm spawn(char *what, char *path)
{
    char *args[] = {(char[]){"child"}, what, path, NULL};
    MPI_Comm inter;

    MPI_Comm_spawn(program, args, 2, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter,
                   MPI_ERRCODES_IGNORE);
    MPI_Barrier(inter);
    return inter;
}

int main(int argc, char **argv)
{
    char *what = argc > 1 ? argv[1] : (char[]){"stay"};
    char *path = argc > 2 ? argv[2] : NULL;
    MPI_Comm inter;

    if (strcmp(what, "deaf") == 0)
        (void)signal(SIGINT, SIG_IGN);
    MPI_Init(&argc, &argv);
    if (strcmp(what, "child") == 0)
        return be_child(path, argc > 3 ? argv[3] : "/dev/null");
    if (!realpath(argv[0], program))
        return 2;
    inter = spawn(what, path);
    if (strcmp(what, "fork") == 0 && fork() == 0)
        for (;;)
            (void)pause();
    say("parent");
    if (strcmp(what, "exit") == 0)
        exit(0);
    if (strcmp(what, "part") == 0 || strcmp(what, "linger") == 0) {
        MPI_Comm_disconnect(&inter);
        MPI_Finalize();
        if (strcmp(what, "part") == 0)
            return 0;
        say("final");
        for (;;)
            (void)pause();
    }
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    if (hear_never(inter) == MPI_SUCCESS || strcmp(what, "again") != 0)
        return 1;
    inter = spawn((char[]){"part"}, NULL);
    MPI_Comm_disconnect(&inter);
    MPI_Finalize();
    return 0;
}
