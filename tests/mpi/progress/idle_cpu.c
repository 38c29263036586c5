/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks that wait use no CPU: all but rank 0 block in MPI_Recv while rank 0
 * stays outside MPI for the given time, then all say what CPU time they used.
 *
 * usage: idle [milliseconds [CPU allowed to all ranks together, ms]]
 */
#include "check.h"

#include <poll.h>
#include <time.h>

static double cpu_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

int main(int argc, char **argv)
{
    double used;
    double all = 0;

    check_start(&argc, &argv);
    int wall_ms = (int)check_arg(argc, argv, 1, 1000);
    double allowed_ms = (double)check_arg(argc, argv, 2, 200);
    MPI_Barrier(MPI_COMM_WORLD);
    double before = cpu_ms();
    if (check_rank() == 0) {
        /* The interval is what is measured here, nothing waits for it. */
        poll(NULL, 0, wall_ms);
        for (int r = 1; r < check_size(); r++)
            MPI_Send(NULL, 0, MPI_BYTE, r, 0, MPI_COMM_WORLD);
    } else {
        MPI_Recv(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    used = cpu_ms() - before;
    MPI_Reduce(&used, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (check_rank() == 0)
        printf("%d ranks used %.1f ms of CPU in %d ms\n", check_size(), all,
               wall_ms);
    CHECK(check_rank() != 0 || all <= allowed_ms,
          "idle ranks used %.1f ms of CPU, %.0f allowed", all, allowed_ms);
    return check_finish();
}
