/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ping-pong between ranks 0 and 1: half the round trip, in microseconds; with
 * p99 what 99 of 100 round trips stay below, of which each is timed.
 *
 * usage: latency [p99] SIZE ...
 */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#include "bench.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TAG 1
#define FIRST 10
#define TIMED_MIN 300
#define TIMED_MAX 100000

static void round_trip(const struct bench *bench, char *data, int len)
{
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

static double round_trips(const struct bench *bench, char *data, int len,
                          int repeats)
{
    double start = MPI_Wtime();

    for (int i = 0; i < repeats; i++)
        round_trip(bench, data, len);
    return MPI_Wtime() - start;
}

/* The same clock for every MPI. */
static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Of so many round trips one by one. */
static double percentile(const struct bench *bench, char *data, int len,
                         int repeats)
{
    int count = repeats < TIMED_MIN ? TIMED_MIN : repeats;
    double *took;
    double value;

    if (count > TIMED_MAX)
        count = TIMED_MAX;
    took = (double *)(void *)bench_alloc((size_t)count * sizeof(*took));
    for (int i = 0; i < count; i++) {
        double start = now();

        round_trip(bench, data, len);
        took[i] = now() - start;
    }
    value = bench_quantile(took, count, 0.99);
    free(took);
    return value;
}

int main(int argc, char **argv)
{
    struct bench bench;

    bench_start(&bench, &argc, &argv);
    bool is_tail = argc > 1 && strcmp(argv[1], "p99") == 0;
    for (int i = is_tail ? 2 : 1; i < argc; i++) {
        size_t len = bench_size(argv[i]);
        char *data = bench_alloc(len);
        /* Twice: the first look may hold a connection being made. */
        double once = round_trips(&bench, data, (int)len, FIRST) / FIRST;
        int warm = bench_repeats(&bench, once * 4, FIRST);
        once = round_trips(&bench, data, (int)len, warm) / warm;
        int repeats = bench_repeats(&bench, once, FIRST);
        double each =
            is_tail ? percentile(&bench, data, (int)len, repeats)
                    : round_trips(&bench, data, (int)len, repeats) / repeats;
        bench_point(&bench, is_tail ? "p99" : "latency", len, each / 2 * 1e6,
                    "us");
        free(data);
    }
    MPI_Finalize();
    return 0;
}
