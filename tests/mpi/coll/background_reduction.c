/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One thread tests for the end of reductions whose function takes its time,
 * while another one duplicates communicators: what is waited for in the
 * background comes and goes in the middle of the other's poll.
 *
 * usage: overlap [rounds]
 */
#include "check.h"

#include <poll.h>
#include <pthread.h>

static long rounds;
static MPI_Comm other;

static void add_slowly(void *in, void *inout, int *len, MPI_Datatype *type)
{
    const int *from = in;
    int *to = inout;

    (void)type;
    poll(NULL, 0, 3); /* as if there were much to do */
    for (int i = 0; i < *len; i++)
        to[i] += from[i];
}

static void *duplicate(void *arg)
{
    for (long i = 0; i < rounds; i++) {
        MPI_Request request;
        MPI_Comm copy;

        MPI_Comm_idup(other, &copy, &request);
        poll(NULL, 0, 2);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Comm_free(&copy);
    }
    return arg;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    MPI_Op op;

    check_start_thread(&argc, &argv, MPI_THREAD_MULTIPLE);
    rounds = (long)check_arg(argc, argv, 1, 150);
    MPI_Op_create(add_slowly, 1, &op);
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    CHECK_OR_DIE(pthread_create(&thread, NULL, duplicate, NULL) == 0,
                 "no thread");
    for (long i = 0; i < rounds; i++) {
        MPI_Request request;
        int sum = 0;
        int one = 1;
        int flag = 0;

        MPI_Iallreduce(&one, &sum, 1, MPI_INT, op, MPI_COMM_WORLD, &request);
        while (!flag)
            MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        CHECK(sum == check_size(), "the sum is %d", sum);
    }
    pthread_join(thread, NULL);
    MPI_Comm_free(&other);
    MPI_Op_free(&op);
    return check_finish();
}
