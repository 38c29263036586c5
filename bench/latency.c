/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ping-pong between ranks 0 and 1: half the round trip, in microseconds.
 *
 * usage: latency SIZE ...
 */
#include "bench.h"

#include <stdlib.h>

#define TAG 1
#define FIRST 10

static double round_trips(const struct bench *bench, char *data, int len,
                          int repeats)
{
    double start = MPI_Wtime();

    for (int i = 0; i < repeats; i++) {
        if (bench->rank == 0) {
            MPI_Send(data, len, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
            MPI_Recv(data, len, MPI_BYTE, 1, TAG, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        } else if (bench->rank == 1) {
            MPI_Recv(data, len, MPI_BYTE, 0, TAG, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
            MPI_Send(data, len, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
        }
    }
    return MPI_Wtime() - start;
}

int main(int argc, char **argv)
{
    struct bench bench;

    bench_start(&bench, &argc, &argv);
    for (int i = 1; i < argc; i++) {
        size_t len = bench_size(argv[i]);
        char *data = bench_alloc(len);
        /* Twice: the first look may hold a connection being made. */
        double once = round_trips(&bench, data, (int)len, FIRST) / FIRST;
        int warm = bench_repeats(&bench, once * 4, FIRST);
        once = round_trips(&bench, data, (int)len, warm) / warm;
        int repeats = bench_repeats(&bench, once, FIRST);
        double all = round_trips(&bench, data, (int)len, repeats);
        bench_point(&bench, "latency", len, all / repeats / 2 * 1e6, "us");
        free(data);
    }
    MPI_Finalize();
    return 0;
}
