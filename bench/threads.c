/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two processes with THREADS threads each, under MPI_THREAD_MULTIPLE; thread t
 * of one speaks with thread t of the other, over a communicator of their own.
 *
 *   latency   half a round trip, mean over threads          us
 *   rate      windows of 64 non-blocking sends              million messages/s,
 *                                                           of all threads
 *
 * usage: threads latency|rate THREADS SIZE ...
 */
#define _POSIX_C_SOURCE 200809L /* pthread_barrier_t */
#include "bench.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS_MAX 64
#define WINDOW 64

struct worker {
    pthread_t thread;
    MPI_Comm comm;
    int rank;
    int len;
    int repeats;
    bool is_rate;
    char *data;
    pthread_barrier_t *start;
    double began; /* MPI_Wtime() */
    double ended;
};

static void ping_pong(const struct worker *w, int repeats)
{
    for (int i = 0; i < repeats; i++) {
        if (w->rank == 0)
            MPI_Send(w->data, w->len, MPI_BYTE, 1, 0, w->comm);
        MPI_Recv(w->data, w->len, MPI_BYTE, 1 - w->rank, 0, w->comm,
                 MPI_STATUS_IGNORE);
        if (w->rank == 1)
            MPI_Send(w->data, w->len, MPI_BYTE, 0, 0, w->comm);
    }
}

static void stream(const struct worker *w)
{
    MPI_Request requests[WINDOW];

    for (int i = 0; i < w->repeats; i++) {
        for (int k = 0; k < WINDOW; k++) {
            if (w->rank == 0)
                MPI_Isend(w->data, w->len, MPI_BYTE, 1, 0, w->comm,
                          &requests[k]);
            else
                MPI_Irecv(w->data, w->len, MPI_BYTE, 0, 0, w->comm,
                          &requests[k]);
        }
        MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
        if (w->rank == 0)
            MPI_Recv(NULL, 0, MPI_BYTE, 1, 1, w->comm, MPI_STATUS_IGNORE);
        else
            MPI_Send(NULL, 0, MPI_BYTE, 0, 1, w->comm);
    }
}

static void *work(void *arg)
{
    struct worker *w = arg;

    (void)pthread_barrier_wait(w->start);
    ping_pong(w, 1); /* both are there */
    w->began = MPI_Wtime();
    if (w->is_rate)
        stream(w);
    else
        ping_pong(w, w->repeats);
    w->ended = MPI_Wtime();
    return NULL;
}

/* Seconds from the first thread's beginning to the last one's end; the thread
 * that waits for them may have its core late. */
static double run(struct worker *workers, int threads, int repeats)
{
    pthread_barrier_t start;
    double began;
    double ended;

    MPI_Barrier(MPI_COMM_WORLD);
    (void)pthread_barrier_init(&start, NULL, (unsigned)threads);
    for (int t = 0; t < threads; t++) {
        workers[t].repeats = repeats;
        workers[t].start = &start;
        if (pthread_create(&workers[t].thread, NULL, work, &workers[t]) != 0) {
            fprintf(stderr, "threads: cannot make a thread\n");
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
    }
    for (int t = 0; t < threads; t++)
        (void)pthread_join(workers[t].thread, NULL);
    (void)pthread_barrier_destroy(&start);
    began = workers[0].began;
    ended = workers[0].ended;
    for (int t = 1; t < threads; t++) {
        began = workers[t].began < began ? workers[t].began : began;
        ended = workers[t].ended > ended ? workers[t].ended : ended;
    }
    return ended - began;
}

static void measure(const struct bench *bench, struct worker *workers,
                    int threads, size_t len)
{
    double once;
    double seconds;
    int repeats;

    for (int t = 0; t < threads; t++) {
        workers[t].len = (int)len;
        workers[t].data = bench_alloc(len);
    }
    once = run(workers, threads, 50) / 50;
    repeats = bench_repeats(bench, once, 50);
    seconds = run(workers, threads, repeats);
    if (workers[0].is_rate)
        bench_point(bench, "rate", len,
                    (double)repeats * WINDOW * threads / seconds / 1e6, "M/s");
    else
        bench_point(bench, "latency", len, seconds / repeats / 2 * 1e6, "us");
    for (int t = 0; t < threads; t++)
        free(workers[t].data);
}

int main(int argc, char **argv)
{
    struct worker workers[THREADS_MAX];
    struct bench bench;
    int threads;

    bench_start_threads(&bench, &argc, &argv);
    threads = argc > 2 ? atoi(argv[2]) : 0;
    if (bench.size != 2 || threads < 1 || threads > THREADS_MAX) {
        fprintf(stderr, "threads: 2 ranks, 1 to %d threads\n", THREADS_MAX);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (int t = 0; t < threads; t++) {
        workers[t] = (struct worker){
            .rank = bench.rank,
            .is_rate = strcmp(argv[1], "rate") == 0,
        };
        MPI_Comm_dup(MPI_COMM_WORLD, &workers[t].comm);
    }
    for (int i = 3; i < argc; i++)
        measure(&bench, workers, threads, bench_size(argv[i]));
    for (int t = 0; t < threads; t++)
        MPI_Comm_free(&workers[t].comm);
    MPI_Finalize();
    return 0;
}
