/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CPU time of all ranks together, seconds, while all but rank 0 are blocked
 * in MPI_Recv and rank 0 is outside MPI for the given number of seconds.
 *
 * usage: idle SECONDS
 */
#include "bench.h"

#include <poll.h>
#include <stdlib.h>
#include <time.h>

static double cpu_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    struct bench bench;
    double sum = 0;

    bench_start(&bench, &argc, &argv);
    int wall_s = argc > 1 ? atoi(argv[1]) : 10;
    MPI_Barrier(MPI_COMM_WORLD);
    double used = cpu_s();
    if (bench.rank == 0) {
        (void)poll(NULL, 0, wall_s * 1000);
        for (int r = 1; r < bench.size; r++)
            MPI_Send(NULL, 0, MPI_BYTE, r, 1, MPI_COMM_WORLD);
    } else {
        MPI_Recv(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    used = cpu_s() - used;
    MPI_Reduce(&used, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    bench_point(&bench, "idle", (size_t)bench.size, sum, "s");
    MPI_Finalize();
    return 0;
}
