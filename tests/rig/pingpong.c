/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Round trips between ranks 0 and 1, each one timed: half of it in
 * microseconds, as a line "pingpong BEST TENTH MEDIAN MEAN", so that what
 * others do on the machine can be told from what a message takes.
 *
 * usage: pingpong BYTES COUNT
 */
#include <stdio.h>
#include <stdlib.h>

#include <mpi.h>

#define WARM_MAX 500 /* round trips before; at most as many as are timed */
#define TAG 1

static void trip(int rank, char *data, int len)
{
    if (rank == 0) {
        MPI_Send(data, len, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
        MPI_Recv(data, len, MPI_BYTE, 1, TAG, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    } else if (rank == 1) {
        MPI_Recv(data, len, MPI_BYTE, 0, TAG, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        MPI_Send(data, len, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
    }
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

static void report(double *times, int count)
{
    double sum = 0;

    for (int i = 0; i < count; i++)
        sum += times[i];
    qsort(times, (size_t)count, sizeof(*times), compare);
    printf("pingpong %.2f %.2f %.2f %.2f\n", times[0], times[count / 10],
           times[count / 2], sum / count);
}

int main(int argc, char **argv)
{
    int len = argc == 3 ? atoi(argv[1]) : -1;
    int count = argc == 3 ? atoi(argv[2]) : 0;
    int warm = count < WARM_MAX ? count : WARM_MAX;
    double *times;
    char *data;
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    times = calloc(count > 0 ? (size_t)count : 1, sizeof(*times));
    data = calloc(len > 0 ? (size_t)len : 1, 1);
    if (len < 0 || count < 1 || !times || !data)
        MPI_Abort(MPI_COMM_WORLD, 2);
    for (int i = 0; i < warm; i++)
        trip(rank, data, len);
    for (int i = 0; i < count; i++) {
        double start = MPI_Wtime();

        trip(rank, data, len);
        times[i] = (MPI_Wtime() - start) / 2 * 1e6;
    }
    if (rank == 0)
        report(times, count);
    free(data);
    free(times);
    MPI_Finalize();
    return 0;
}
