/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many posted receives, named and with wildcards, matched out of the order
 * in which they were posted; and many unexpected messages received out of
 * the order in which they came.
 *
 * usage: posted [receives]
 */
#include "check.h"

static int permuted(int i, int count)
{
    return (int)(((int64_t)i * 7919 + 13) % count); /* 7919 is prime */
}

static void post_early(int count)
{
    MPI_Request *requests = check_alloc(sizeof(*requests) * (size_t)count);
    int *values = check_alloc(sizeof(int) * (size_t)count);

    for (int i = 0; i < count; i++)
        MPI_Irecv(&values[i], 1, MPI_INT, i % 3 ? 0 : MPI_ANY_SOURCE, i,
                  MPI_COMM_WORLD, &requests[i]);
    MPI_Send(NULL, 0, MPI_BYTE, 0, count, MPI_COMM_WORLD);
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < count; i++)
        CHECK(values[i] == i, "receive %d got message %d", i, values[i]);
    free(values);
    free(requests);
}

static void receive_late(int count)
{
    /* The last message in: all are there, unexpected. */
    MPI_Recv(NULL, 0, MPI_BYTE, 0, count, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = count - 1; i >= 0; i--) {
        int value = -1;
        MPI_Recv(&value, 1, MPI_INT, i % 3 ? 0 : MPI_ANY_SOURCE, i,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(value == i, "tag %d brought message %d", i, value);
    }
}

static void send_all(int count)
{
    for (int k = 0; k < count; k++) {
        int i = permuted(k, count);
        MPI_Send(&i, 1, MPI_INT, 1, i, MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    check_need(2);
    int count = (int)check_arg(argc, argv, 1, 10000);
    CHECK_OR_DIE(count % 7919 != 0, "unlucky number of receives");
    if (check_rank() == 0) {
        MPI_Recv(NULL, 0, MPI_BYTE, 1, count, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        send_all(count);
        send_all(count);
        MPI_Send(NULL, 0, MPI_BYTE, 1, count, MPI_COMM_WORLD);
    } else if (check_rank() == 1) {
        post_early(count);
        receive_late(count);
    }
    return check_finish();
}
