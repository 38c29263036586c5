/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process that nobody has launched starts a launcher itself, of which the
 * program sees nothing: no child, no signal, no descriptor that programs which
 * it starts would inherit.
 *
 * usage: own_launcher [unseen|threads|asleep|missing|sessions|closed]
 *
 * unseen: nobody's child
 * threads: two threads spawn at a time
 * asleep: a thread waits already when another one is the first to ask
 * missing: there is no launcher: what the environment names is none
 * sessions: the world of a session spawns, in turns of the library's use
 * closed: standard input and output are closed meanwhile
 */
#define _GNU_SOURCE /* sched_getaffinity, gettid */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define THREADS 2
#define TURNS 3

static char *program;
static volatile sig_atomic_t children;

static void child_ended(int number)
{
    (void)number;
    children++;
}

/* Together with as many children. */
static void spawn_over(MPI_Comm comm, int count)
{
    char *args[] = {(char[]){"child"}, NULL};
    MPI_Comm inter;
    int size = 0;

    MPI_Comm_spawn(program, args, count, MPI_INFO_NULL, 0, comm, &inter,
                   MPI_ERRCODES_IGNORE);
    MPI_Comm_remote_size(inter, &size);
    CHECK(size == count, "%d children", size);
    MPI_Barrier(inter);
    MPI_Comm_disconnect(&inter);
}

static int be_child(void)
{
    MPI_Comm parent;
    char byte;

    MPI_Init(NULL, NULL);
    MPI_Comm_get_parent(&parent);
    if (parent == MPI_COMM_NULL || read(0, &byte, 1) != 0)
        MPI_Abort(MPI_COMM_WORLD, 3);
    MPI_Barrier(parent);
    MPI_Comm_disconnect(&parent);
    MPI_Finalize();
    return 0;
}

static int count_descriptors(bool is_inherited)
{
    int count = 0;

    for (int fd = 0; fd < 1024; fd++) {
        const int flags = fcntl(fd, F_GETFD);

        count += flags >= 0 && !(is_inherited && (flags & FD_CLOEXEC));
    }
    return count;
}

static void unseen(void)
{
    const int before = count_descriptors(true);
    struct sigaction action = {.sa_handler = child_ended};
    cpu_set_t cpus;
    int *universe = NULL;
    int flag = 0;
    int open;

    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, (void *)&universe,
                      &flag);
    if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0)
        CHECK(flag && *universe == CPU_COUNT(&cpus), "a universe of %d",
              flag ? *universe : -1);
    (void)sigaction(SIGCHLD, &action, NULL);
    spawn_over(MPI_COMM_SELF, 1);
    open = count_descriptors(false);
    spawn_over(MPI_COMM_WORLD, 2);
    CHECK(count_descriptors(false) <= open + 2,
          "%d descriptors before, %d after", open, count_descriptors(false));
    CHECK(count_descriptors(true) == before, "%d descriptors for others",
          count_descriptors(true));
    CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD, "a child");
    CHECK(children == 0, "%d signals of children", (int)children);
}

static void *spawn_own(void *arg)
{
    for (int i = 0; i < TURNS; i++)
        spawn_over(*(MPI_Comm *)arg, 1);
    return NULL;
}

static void threads(void)
{
    MPI_Comm comms[THREADS];

    for (int i = 0; i < THREADS; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    check_run_threads(THREADS, spawn_own, comms, sizeof(comms[0]));
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_free(&comms[i]);
}

static void *receive(void *arg)
{
    char byte = 0;

    atomic_store((_Atomic int *)arg, (int)gettid());
    MPI_Recv(&byte, 1, MPI_BYTE, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    return NULL;
}

static void asleep(void)
{
    _Atomic int receiver = 0;
    char port[MPI_MAX_PORT_NAME];
    pthread_t thread;
    int rc;

    CHECK_OR_DIE(pthread_create(&thread, NULL, receive, &receiver) == 0,
                 "no thread");
    while (atomic_load(&receiver) == 0)
        (void)sched_yield();
    check_await_sleep(atomic_load(&receiver));
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    rc = MPI_Lookup_name("nobody's", MPI_INFO_NULL, port);
    CHECK(check_class(rc) == MPI_ERR_NAME, "class %d", check_class(rc));
    MPI_Send(port, 1, MPI_BYTE, 0, 1, MPI_COMM_SELF);
    (void)pthread_join(thread, NULL);
}

static void missing(void)
{
    char port[MPI_MAX_PORT_NAME];
    char text[MPI_MAX_ERROR_STRING];
    MPI_Comm inter;
    int len;
    int rc;

    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    rc = MPI_Comm_spawn(program, MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0,
                        MPI_COMM_SELF, &inter, MPI_ERRCODES_IGNORE);
    CHECK(check_class(rc) == MPI_ERR_UNSUPPORTED_OPERATION, "class %d",
          check_class(rc));
    CHECK(inter == MPI_COMM_NULL, "a communicator");
    MPI_Error_string(rc, text, &len);
    puts(text);
    rc = MPI_Lookup_name("service", MPI_INFO_NULL, port);
    CHECK(check_class(rc) == MPI_ERR_UNSUPPORTED_OPERATION, "class %d",
          check_class(rc));
}

static void closed(void)
{
    const int output = dup(1);

    (void)close(0);
    (void)close(1);
    spawn_over(MPI_COMM_SELF, 2);
    (void)dup2(output, 1);
}

static void spawn_in_session(void)
{
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;

    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "own", MPI_INFO_NULL,
                               MPI_ERRORS_ARE_FATAL, &comm);
    spawn_over(comm, 1);
    MPI_Comm_free(&comm);
    MPI_Group_free(&group);
    MPI_Session_finalize(&session);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "unseen";
    char path[4096] = "";

    program = realpath(argv[0], path) ? path : argv[0];
    if (strcmp(what, "child") == 0)
        return be_child();
    if (strcmp(what, "sessions") == 0)
        for (int i = 0; i < TURNS; i++)
            spawn_in_session();
    if (strcmp(what, "threads") == 0 || strcmp(what, "asleep") == 0)
        check_start_thread(&argc, &argv, MPI_THREAD_MULTIPLE);
    else
        check_start(&argc, &argv);
    if (strcmp(what, "threads") == 0)
        threads();
    else if (strcmp(what, "asleep") == 0)
        asleep();
    else if (strcmp(what, "missing") == 0)
        missing();
    else if (strcmp(what, "closed") == 0)
        closed();
    else if (strcmp(what, "sessions") == 0)
        spawn_over(MPI_COMM_WORLD, 1);
    else
        unseen();
    return check_finish();
}
