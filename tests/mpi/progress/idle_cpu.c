/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks that wait use no CPU: all but rank 0 block in MPI_Recv while rank 0
 * stays outside MPI for the given time, then all say what CPU time they used.
 * With threads, each of them waits over a communicator of its own, and those of
 * rank 0, too, while its first one is away.
 *
 * usage: idle [milliseconds [CPU allowed to all ranks together, ms [threads]]]
 */
#include "check.h"

#include <poll.h>
#include <pthread.h>
#include <time.h>

enum { THREADS_MAX = 8 };

static MPI_Comm comms[THREADS_MAX];

static double cpu_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void *await(void *arg)
{
    MPI_Recv(NULL, 0, MPI_BYTE, 0, 0, *(MPI_Comm *)arg, MPI_STATUS_IGNORE);
    return NULL;
}

/* What rank 0 sends then, to itself, too. */
static void call(int threads)
{
    for (int r = 0; r < check_size(); r++)
        for (int t = 0; t < threads; t++)
            MPI_Send(NULL, 0, MPI_BYTE, r, 0, comms[t]);
}

int main(int argc, char **argv)
{
    const int threads = (int)check_arg(argc, argv, 3, 0);
    pthread_t ids[THREADS_MAX];
    double used;
    double all = 0;

    check_start_thread(&argc, &argv,
                       threads > 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
    int wall_ms = (int)check_arg(argc, argv, 1, 1000);
    double allowed_ms = (double)check_arg(argc, argv, 2, 200);
    CHECK_OR_DIE(threads <= THREADS_MAX, "%d threads", threads);
    for (int t = 0; t < threads; t++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[t]);
    MPI_Barrier(MPI_COMM_WORLD);
    double before = cpu_ms();
    for (int t = 0; t < threads; t++)
        CHECK_OR_DIE(pthread_create(&ids[t], NULL, await, &comms[t]) == 0,
                     "no thread");
    if (check_rank() == 0) {
        /* The interval is what is measured here, nothing waits for it. */
        poll(NULL, 0, wall_ms);
        call(threads);
        for (int r = 1; r < check_size(); r++)
            MPI_Send(NULL, 0, MPI_BYTE, r, 0, MPI_COMM_WORLD);
    } else {
        MPI_Recv(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    for (int t = 0; t < threads; t++)
        pthread_join(ids[t], NULL);
    used = cpu_ms() - before;
    MPI_Reduce(&used, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (check_rank() == 0)
        printf("%d ranks used %.1f ms of CPU in %d ms\n", check_size(), all,
               wall_ms);
    CHECK(check_rank() != 0 || all <= allowed_ms,
          "idle ranks used %.1f ms of CPU, %.0f allowed", all, allowed_ms);
    for (int t = 0; t < threads; t++)
        MPI_Comm_free(&comms[t]);
    return check_finish();
}
