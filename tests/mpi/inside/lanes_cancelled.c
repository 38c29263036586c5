/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The thread that polls for all is in a user's function. Another one waits for
 * a receive in a lane of its own, and has joined the waits of the first lane; a
 * third one cancels that receive: the wait is over at once. The function
 * returns no sooner.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "libchempi/didl/comm/comm.h"
#include "libchempi/didl/transport/lane.h"
#include "tests/mpi/check.h"

enum { NEVER = 1, BEGUN, ROUNDS = 5 };

static struct {
    MPI_Comm own;
    struct chempi_lane *lane;
    MPI_Request request;
    pthread_t owner;
    atomic_bool is_inside; /* it is in the function */
    atomic_bool is_over;   /* the wait for the receive */
} my;

static void add(void *in, void *inout, int *len, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *len; i++)
        ((int *)inout)[i] += ((int *)in)[i];
    if (check_rank() != 0)
        return;
    CHECK_OR_DIE(pthread_equal(pthread_self(), my.owner), "another thread");
    my.is_inside = true;
    while (!my.is_over)
        (void)sched_yield();
}

static void *await(void *arg)
{
    MPI_Status status;
    int is_cancelled = 0;

    while (!my.is_inside)
        (void)sched_yield();
    MPI_Wait(&my.request, &status);
    my.is_over = true;
    MPI_Test_cancelled(&status, &is_cancelled);
    CHECK(is_cancelled, "it was received");
    return arg;
}

static void *cancel(void *arg)
{
    MPI_Request same = my.request;

    while (atomic_load(&my.lane->joined) == 0)
        (void)sched_yield();
    MPI_Cancel(&same);
    return arg;
}

/* Rank 1 takes part when rank 0 has begun. */
static void reduce(MPI_Op op)
{
    pthread_t waiter = my.owner;
    pthread_t canceller = my.owner;
    MPI_Request request;
    int one = 1;
    int sum = 0;

    MPI_Ireduce(&one, &sum, 1, MPI_INT, op, 0, MPI_COMM_WORLD, &request);
    if (check_rank() == 0) {
        MPI_Irecv(NULL, 0, MPI_BYTE, 1, NEVER, my.own, &my.request);
        CHECK_OR_DIE(!pthread_create(&waiter, NULL, await, NULL) &&
                         !pthread_create(&canceller, NULL, cancel, NULL),
                     "no thread");
        MPI_Send(NULL, 0, MPI_BYTE, 1, BEGUN, MPI_COMM_WORLD);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (check_rank() != 0)
        return;
    pthread_join(waiter, NULL);
    pthread_join(canceller, NULL);
    CHECK(sum == 2, "the sum is %d", sum);
}

int main(int argc, char **argv)
{
    MPI_Op op;

    check_start_thread(&argc, &argv, MPI_THREAD_MULTIPLE);
    CHECK_OR_DIE(check_size() == 2, "two ranks");
    my.owner = pthread_self();
    MPI_Comm_dup(MPI_COMM_WORLD, &my.own);
    my.lane = chempi_comm_lookup(my.own)->lane;
    CHECK_OR_DIE(my.lane->number > 0, "it is in the first lane");
    MPI_Op_create(add, 0, &op);
    for (int i = 0; i < ROUNDS; i++) {
        my.is_inside = my.is_over = false;
        if (check_rank() == 1)
            MPI_Recv(NULL, 0, MPI_BYTE, 0, BEGUN, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        reduce(op);
    }
    MPI_Op_free(&op);
    MPI_Comm_free(&my.own);
    return check_finish();
}
