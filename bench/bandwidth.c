/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Streams of messages with a window of outstanding requests, closed by an
 * empty answer. Rank r of the lower half sends to rank r + size/2.
 *
 *   one    lower half sends                          GB/s, summed over pairs
 *   both   both halves send at the same time         GB/s, both ways together
 *   rate   as "one", for small messages              million messages/s
 *
 * usage: bandwidth one|both|rate WINDOW SIZE ...
 */
#include "bench.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TAG 1
#define DONE 2
#define WINDOW_MAX 1024

struct stream {
    int peer;
    int window;
    bool sends;
    bool receives;
    char *out; /* window buffers of len bytes would not fit a cache: one */
    char *in;
    int len;
};

static void one_window(const struct stream *stream)
{
    MPI_Request requests[2 * WINDOW_MAX];
    int count = 0;

    for (int i = 0; stream->receives && i < stream->window; i++)
        MPI_Irecv(stream->in, stream->len, MPI_BYTE, stream->peer, TAG,
                  MPI_COMM_WORLD, &requests[count++]);
    for (int i = 0; stream->sends && i < stream->window; i++)
        MPI_Isend(stream->out, stream->len, MPI_BYTE, stream->peer, TAG,
                  MPI_COMM_WORLD, &requests[count++]);
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    /* One way: the receiver confirms. */
    if (stream->sends && !stream->receives)
        MPI_Recv(NULL, 0, MPI_BYTE, stream->peer, DONE, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    else if (stream->receives && !stream->sends)
        MPI_Send(NULL, 0, MPI_BYTE, stream->peer, DONE, MPI_COMM_WORLD);
}

static double windows(const struct stream *stream, int repeats)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int i = 0; i < repeats; i++)
        one_window(stream);
    MPI_Barrier(MPI_COMM_WORLD);
    return MPI_Wtime() - start;
}

static void measure(const struct bench *bench, struct stream *stream,
                    const char *mode, size_t len)
{
    stream->len = (int)len;
    stream->out = bench_alloc(len);
    stream->in = bench_alloc(len);
    double once = windows(stream, 3) / 3;
    once = windows(stream, 3) / 3;
    int repeats = bench_repeats(bench, once, 3);
    double seconds = windows(stream, repeats);
    double messages = (double)repeats * stream->window * (bench->size / 2.0) *
                      (strcmp(mode, "both") == 0 ? 2 : 1);
    if (strcmp(mode, "rate") == 0)
        bench_point(bench, "rate", len, messages / seconds / 1e6, "M/s");
    else
        bench_point(bench, strcmp(mode, "both") == 0 ? "both" : "bandwidth",
                    len, messages * (double)len / seconds / 1e9, "GB/s");
    free(stream->in);
    free(stream->out);
}

int main(int argc, char **argv)
{
    struct bench bench;
    struct stream stream = {0};

    bench_start(&bench, &argc, &argv);
    int half = bench.size / 2;
    int window = argc > 2 ? atoi(argv[2]) : 0;
    if (window < 1 || window > WINDOW_MAX || bench.size % 2 != 0) {
        fprintf(stderr, "bandwidth: even number of ranks, window 1 to %d\n",
                WINDOW_MAX);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    bool both = strcmp(argv[1], "both") == 0;
    bool lower = bench.rank < half;
    stream.window = window;
    stream.peer = lower ? bench.rank + half : bench.rank - half;
    stream.sends = both || lower;
    stream.receives = both || !lower;
    for (int i = 3; i < argc; i++)
        measure(&bench, &stream, argv[1], bench_size(argv[i]));
    MPI_Finalize();
    return 0;
}
