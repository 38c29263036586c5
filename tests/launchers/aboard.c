/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a program wants of whoever started it, however that was:
 *     aboard talk SIZE NODES   messages of all sorts between all ranks
 *     aboard sessions SIZE     the same without the world model
 *     aboard abort CODE        the last rank ends the job
 *     aboard crash             the last rank ends without MPI_Finalize
 *     aboard hang FIFO         say "up" there, and wait for what never comes
 *     aboard after CODE        exit code after MPI_Finalize
 *     aboard child PROGRAM     rank 0 starts a program, a world of its own
 *     aboard spawn SIZE HOST   so many are spawned on that host ("" for any),
 *                              and all talk; also another PROGRAM, behind
 * Rank 0 prints "ok" when all is well.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LARGE 300000 /* ints: beyond all eager limits */

static void need(int condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "not so: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 9);
}

static void ring(MPI_Comm comm, int count)
{
    int *out = calloc((size_t)count + 1, sizeof(int));
    int *in = calloc((size_t)count + 1, sizeof(int));
    int rank;
    int size;

    need(out && in, "there is memory");
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int i = 0; i < count; i++)
        out[i] = rank * 7 + i;
    MPI_Sendrecv(out, count, MPI_INT, (rank + 1) % size, 5, in, count, MPI_INT,
                 (rank + size - 1) % size, 5, comm, MPI_STATUS_IGNORE);
    for (int i = 0; i < count; i++)
        need(in[i] == (rank + size - 1) % size * 7 + i, "what was sent comes");
    free(out);
    free(in);
}

/* Everybody has a first word with everybody. */
static void all_to_all(MPI_Comm comm)
{
    int rank;
    int size;
    int got;
    int sum = 0;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int i = 0; i < size; i++)
        if (i != rank) {
            MPI_Request request;

            MPI_Isend(&rank, 1, MPI_INT, i, 6, comm, &request);
            MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 6, comm,
                     MPI_STATUS_IGNORE);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            sum += got;
        }
    need(sum == size * (size - 1) / 2 - rank, "all have spoken");
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, comm);
    need(sum == size * (size - 1) / 2 * (size - 1), "the sum of all");
}

/* A send that is cancelled while its receiver is in MPI_Finalize already: that
 * one must answer. */
static void late_cancel(int rank, int size)
{
    MPI_Request request;
    MPI_Status status;
    char byte = 0;
    int flag;

    if (rank != 0 || size < 2)
        return;
    MPI_Issend(&byte, 1, MPI_CHAR, size - 1, 99, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &flag);
    need(flag, "nobody had received it");
}

static void talk(int want_size, int want_nodes)
{
    MPI_Comm node;
    int rank;
    int size;
    int first;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    need(size == want_size, "the size that was asked for");
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL,
                        &node);
    MPI_Comm_rank(node, &first);
    first = first == 0;
    MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    need(first == want_nodes, "the nodes that were asked for");
    MPI_Comm_free(&node);
    ring(MPI_COMM_WORLD, 1);
    ring(MPI_COMM_WORLD, LARGE);
    all_to_all(MPI_COMM_WORLD);
    late_cancel(rank, size);
    if (rank == 0)
        puts("ok");
}

static void with_sessions(int want_size)
{
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    int rank;
    int size;

    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "aboard", MPI_INFO_NULL,
                               MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Group_free(&group);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    ring(comm, 10);
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
    if (size == want_size && rank == 0)
        puts("ok");
}

/* A call of its own, which others look for. */
static __attribute__((noinline)) void hang(const char *path, int rank)
{
    FILE *fifo = rank == 0 ? fopen(path, "w") : NULL;
    int never;

    if (fifo) {
        fputs("up\n", fifo);
        fclose(fifo);
    }
    MPI_Recv(&never, 1, MPI_INT, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
}

static int start_child(const char *program)
{
    const pid_t pid = fork();
    int status = 1;

    if (pid == 0) {
        execl(program, program, "talk", "1", "1", (char *)NULL);
        _exit(127);
    }
    (void)waitpid(pid, &status, 0);
    return status;
}

/* Parents and children, who are one world then. */
static void talk_to(MPI_Comm others, int is_high, int want_size)
{
    MPI_Comm all;
    int rank;
    int size;

    MPI_Intercomm_merge(others, is_high, &all);
    MPI_Comm_rank(all, &rank);
    MPI_Comm_size(all, &size);
    need(!want_size || size == want_size, "parents and children");
    ring(all, LARGE);
    all_to_all(all);
    MPI_Comm_free(&all);
    MPI_Comm_disconnect(&others);
    if (rank == 0)
        puts("ok");
}

static void spawn(char *program, int count, const char *host)
{
    char *args[] = {(char[]){"spawned"}, (char *)host, NULL};
    MPI_Comm children;
    MPI_Info info;
    int size;

    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Info_create(&info);
    if (*host)
        MPI_Info_set(info, "host", host);
    MPI_Comm_spawn(program, args, count, info, 0, MPI_COMM_WORLD, &children,
                   MPI_ERRCODES_IGNORE);
    MPI_Info_free(&info);
    talk_to(children, 0, size + count);
}

static void be_spawned(const char *host)
{
    const char *node = getenv("CHEMPI_NODE");
    MPI_Comm parents;

    need(!*host || (node && strcmp(node, host) == 0), "the host");
    MPI_Comm_get_parent(&parents);
    need(parents != MPI_COMM_NULL, "parents");
    talk_to(parents, 1, 0);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    const int number = argc > 2 ? atoi(argv[2]) : 0;
    int rank;
    int size;

    if (strcmp(what, "sessions") == 0) {
        with_sessions(number);
        return 0;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (strcmp(what, "talk") == 0)
        talk(number, argc > 3 ? atoi(argv[3]) : 1);
    if (strcmp(what, "child") == 0 && rank == 0)
        need(start_child(argv[2]) == 0, "a child is a world of its own");
    if (strcmp(what, "spawn") == 0)
        spawn(argv[argc > 4 ? 4 : 0], number, argc > 3 ? argv[3] : "");
    if (strcmp(what, "spawned") == 0)
        be_spawned(argc > 2 ? argv[2] : "");
    if (strcmp(what, "hang") == 0)
        hang(argv[2], rank);
    if (strcmp(what, "abort") == 0 && rank == size - 1)
        MPI_Abort(MPI_COMM_WORLD, number);
    if (strcmp(what, "crash") == 0 && rank == size - 1)
        (void)raise(SIGKILL);
    if (strcmp(what, "abort") == 0 || strcmp(what, "crash") == 0)
        MPI_Recv(&rank, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Finalize();
    return strcmp(what, "after") == 0 ? number : 0;
}
