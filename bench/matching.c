/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cost of a match against the number of posted receives, nanoseconds: N
 * receives from named sources with different tags are posted, then the
 * messages arrive in another order. The time of the same messages with their
 * receives posted one at a time is taken off by whoever reads the numbers.
 *
 * usage: matching COUNT ...
 */
#include "bench.h"

#include <stdint.h>
#include <stdlib.h>

#define DONE 1000000
#define WARM 10000 /* messages before a point: the first ones touch memory */

static int permuted(int i, int count)
{
    return (int)(((int64_t)i * 7919 + count / 2) % count);
}

static double receiver(int count)
{
    MPI_Request *requests = malloc(sizeof(*requests) * (size_t)count);
    char *data = bench_alloc((size_t)count);

    for (int i = 0; i < count; i++)
        MPI_Irecv(data + i, 1, MPI_BYTE, 1, i, MPI_COMM_WORLD, &requests[i]);
    double start = MPI_Wtime();
    MPI_Send(NULL, 0, MPI_BYTE, 1, DONE, MPI_COMM_WORLD);
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    double seconds = MPI_Wtime() - start;
    free(data);
    free(requests);
    return seconds;
}

static void sender(int count)
{
    char byte = 1;

    MPI_Recv(NULL, 0, MPI_BYTE, 0, DONE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < count; i++)
        MPI_Send(&byte, 1, MPI_BYTE, 0, permuted(i, count), MPI_COMM_WORLD);
}

/* Seconds that so many lists of posted receives took to match. */
static double lists(const struct bench *bench, int count, int repeats)
{
    double seconds = 0;

    for (int k = 0; k < repeats && count % 7919 != 0; k++) {
        if (bench->rank == 0)
            seconds += receiver(count);
        else if (bench->rank == 1)
            sender(count);
    }
    return seconds;
}

int main(int argc, char **argv)
{
    struct bench bench;

    bench_start(&bench, &argc, &argv);
    for (int i = 1; i < argc; i++) {
        int count = atoi(argv[i]);
        int warm = count < WARM ? WARM / count : 1;
        double once = lists(&bench, count, warm) / warm;
        int repeats = bench_repeats(&bench, once, 2);
        double seconds = lists(&bench, count, repeats);
        bench_point(&bench, "matching", (size_t)count,
                    seconds / repeats / count * 1e9, "ns");
    }
    MPI_Finalize();
    return 0;
}
