/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls for libchempi-stats to count, whose arguments have no meaning where
 * the standard lets them have none; see the script "counted". Three ranks.
 *
 *   counted world      ends with MPI_Finalize, and a message left over
 *   counted abort      rank 1 calls MPI_Abort
 *   counted mistakes   makes mistakes that it handles
 *   counted fatal      makes one that it does not
 *   counted sessions   never calls MPI_Init
 */
#define _GNU_SOURCE /* mmap */
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "expect.h"

/* What must not be looked at. */
#define NO_TYPE ((MPI_Datatype)(intptr_t)-64)
#define NO_COUNT (-9)
/* What is none, and can be seen to be none. */
#define BAD_TYPE ((MPI_Datatype)(intptr_t)7)

enum { RANKS = 3 };

static int rank;

/* An array of two at the end of a page, with nothing behind it. */
static int *two_counts(int value)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *start = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int *counts;

    if (start == MAP_FAILED || mprotect(start + page, page, PROT_NONE) != 0)
        exit(99);
    counts = (int *)(void *)(start + page) - 2;
    counts[0] = counts[1] = value;
    return counts;
}

/* Ranks 0 and 1 against rank 2. */
static void of_an_intercommunicator(void)
{
    MPI_Comm half;
    MPI_Comm inter;
    int in[8] = {0};
    int out[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    int one = 4;
    int *counts = rank < 2 ? two_counts(2) : &one;
    int root = rank == 2 ? MPI_ROOT : 0;

    MPI_Comm_split(MPI_COMM_WORLD, rank == 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank == 2 ? 0 : 2, 5, &inter);
    /* Ranks 0 and 1 have two counts each: rank 2 has one. */
    MPI_Reduce_scatter(out, in, counts, MPI_INT, MPI_SUM, inter);
    if (rank == 2)
        MPI_Gather(NULL, NO_COUNT, NO_TYPE, in, 2, MPI_INT, root, inter);
    else
        MPI_Gather(out, 2, MPI_INT, NULL, NO_COUNT, NO_TYPE, root, inter);
    if (rank == 2)
        MPI_Scatter(out, 2, MPI_INT, NULL, NO_COUNT, NO_TYPE, root, inter);
    else
        MPI_Scatter(NULL, NO_COUNT, NO_TYPE, in, 2, MPI_INT, root, inter);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

static void in_place(void)
{
    int in[RANKS] = {0};
    int counts[RANKS] = {1, 1, 1};
    int displs[RANKS] = {0, 1, 2};

    in[rank] = rank;
    MPI_Allgatherv(MPI_IN_PLACE, NO_COUNT, NO_TYPE, in, counts, displs, MPI_INT,
                   MPI_COMM_WORLD);
    EXPECT(in[1] == 1 && in[2] == 2);
    if (rank == 0)
        MPI_Scatterv(in, counts, displs, MPI_INT, MPI_IN_PLACE, NO_COUNT,
                     NO_TYPE, 0, MPI_COMM_WORLD);
    else
        MPI_Scatterv(NULL, NULL, NULL, NO_TYPE, in, 1, MPI_INT, 0,
                     MPI_COMM_WORLD);
    if (rank == 0)
        MPI_Gatherv(MPI_IN_PLACE, NO_COUNT, NO_TYPE, in, counts, displs,
                    MPI_INT, 0, MPI_COMM_WORLD);
    else
        MPI_Gatherv(in, 1, MPI_INT, NULL, NULL, NULL, NO_TYPE, 0,
                    MPI_COMM_WORLD);
}

static void of_other_kinds(void)
{
    int next = (rank + 1) % RANKS;
    int last = (rank + RANKS - 1) % RANKS;
    double out[8] = {0};
    double in[8] = {0};
    MPI_Request requests[2];

    MPI_Send_init(out, 3, MPI_DOUBLE, next, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Recv_init(in, 3, MPI_DOUBLE, last, 1, MPI_COMM_WORLD, &requests[1]);
    for (int i = 0; i < 5; i++) {
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    MPI_Psend_init(out, 4, 2, MPI_DOUBLE, next, 2, MPI_COMM_WORLD,
                   MPI_INFO_NULL, &requests[0]);
    MPI_Precv_init(in, 4, 2, MPI_DOUBLE, last, 2, MPI_COMM_WORLD, MPI_INFO_NULL,
                   &requests[1]);
    MPI_Startall(2, requests);
    MPI_Pready_range(0, 3, requests[0]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    MPI_Iallreduce_c(out, in, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD,
                     &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
}

static void *send_many(void *arg)
{
    char data = 0;

    (void)arg;
    for (int i = 0; i < 1000; i++)
        MPI_Send(&data, 1, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
    return NULL;
}

static void by_threads(void)
{
    pthread_t threads[3];

    for (int i = 0; i < 3; i++)
        if (pthread_create(&threads[i], NULL, send_many, NULL) != 0)
            exit(99);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
}

static void world(void)
{
    int provided;
    int word = -1;

    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    of_an_intercommunicator();
    in_place();
    of_other_kinds();
    by_threads();
    /* Nobody receives it. */
    if (rank == 1)
        MPI_Send(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
}

static void aborted(void)
{
    int data[3] = {0};

    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Bcast(data, 3, MPI_INT, 0, MPI_COMM_WORLD);
    if (rank == 1)
        MPI_Abort(MPI_COMM_WORLD, 5);
    MPI_Barrier(MPI_COMM_WORLD); /* never ends */
}

static void mistakes(void)
{
    int data[RANKS] = {0};
    int counts[RANKS] = {1, 1, 1};
    MPI_Comm comm;

    MPI_Init(NULL, NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    EXPECT(MPI_Send(data, 1, BAD_TYPE, 0, 0, comm) == MPI_ERR_TYPE);
    EXPECT(MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_INT, data, counts, counts,
                          BAD_TYPE, comm) == MPI_ERR_TYPE);
    EXPECT(MPI_Bcast(data, 1, MPI_INT, -5, comm) == MPI_ERR_ROOT);
    MPI_Comm_free(&comm);
    MPI_Finalize();
}

static void fatal(void)
{
    int data[RANKS] = {0};
    int counts[RANKS] = {1, 1, 1};

    MPI_Init(NULL, NULL);
    MPI_Alltoallv(data, counts, counts, MPI_INT, data, counts, counts, MPI_INT,
                  MPI_COMM_NULL);
}

static void sessions(void)
{
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    int data[3] = {0};

    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "counted", MPI_INFO_NULL,
                               MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Bcast(data, 3, MPI_INT, 0, comm);
    MPI_Comm_free(&comm);
    MPI_Group_free(&group);
    MPI_Session_finalize(&session);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 99;
    if (strcmp(argv[1], "world") == 0)
        world();
    else if (strcmp(argv[1], "abort") == 0)
        aborted();
    else if (strcmp(argv[1], "mistakes") == 0)
        mistakes();
    else if (strcmp(argv[1], "fatal") == 0)
        fatal();
    else
        sessions();
    return expect_failures != 0;
}
