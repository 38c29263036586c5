/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a small message costs, for comparing with and without --check.
 *
 *   latency   messages of 8 bytes to and fro, MPI_Send and MPI_Recv
 *   rate      windows of 64 messages of 8 bytes by MPI_Isend and MPI_Irecv, an
 *             answer after each
 *
 * usage: cost latency|rate ROUNDS; prints microseconds of a message, in the
 * fastest of BATCHES batches of so many rounds, which other programs have not
 * disturbed. Rank 0 and 1 talk.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 64, BATCHES = 100 };

static const MPI_Comm world = MPI_COMM_WORLD;
static int rank;

static void round_trip(void)
{
    double value = 0;

    if (rank == 0) {
        MPI_Send(&value, 1, MPI_DOUBLE, 1, 1, world);
        MPI_Recv(&value, 1, MPI_DOUBLE, 1, 1, world, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(&value, 1, MPI_DOUBLE, 0, 1, world, MPI_STATUS_IGNORE);
        MPI_Send(&value, 1, MPI_DOUBLE, 0, 1, world);
    }
}

static void window(void)
{
    static double values[WINDOW];
    MPI_Request requests[WINDOW];

    for (int i = 0; i < WINDOW; i++)
        if (rank == 0)
            MPI_Isend(&values[i], 1, MPI_DOUBLE, 1, 1, world, &requests[i]);
        else
            MPI_Irecv(&values[i], 1, MPI_DOUBLE, 0, 1, world, &requests[i]);
    MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
    if (rank == 0)
        MPI_Recv(NULL, 0, MPI_BYTE, 1, 2, world, MPI_STATUS_IGNORE);
    else
        MPI_Send(NULL, 0, MPI_BYTE, 0, 2, world);
}

/* Of a round. */
static double seconds(void (*once)(void), int rounds)
{
    const double begin = MPI_Wtime();

    for (int i = 0; i < rounds && rank < 2; i++)
        once();
    return (MPI_Wtime() - begin) / rounds;
}

int main(int argc, char **argv)
{
    const int is_rate = argc > 1 && strcmp(argv[1], "rate") == 0;
    const int rounds = argc > 2 ? atoi(argv[2]) : 1;
    double best = 1;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(world, &rank);
    for (int i = 0; i < BATCHES; i++) {
        const double s = seconds(is_rate ? window : round_trip, rounds);

        best = s < best ? s : best;
    }
    if (rank == 0)
        printf("%.4f\n", best / (is_rate ? WINDOW : 2) * 1e6);
    MPI_Finalize();
    return 0;
}
