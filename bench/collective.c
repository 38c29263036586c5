/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Time of one collective, in microseconds, by the size that each rank
 * contributes (bytes; a multiple of 8).
 *
 * usage: collective NAME SIZE ...        (barrier: the size is ignored)
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct buffers {
    char *out;
    char *in;
    int len;
};

static void barrier(const struct buffers *b)
{
    (void)b;
    MPI_Barrier(MPI_COMM_WORLD);
}

static void bcast(const struct buffers *b)
{
    MPI_Bcast(b->out, b->len, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void reduce(const struct buffers *b)
{
    MPI_Reduce(b->out, b->in, b->len / 8, MPI_DOUBLE, MPI_SUM, 0,
               MPI_COMM_WORLD);
}

static void allreduce(const struct buffers *b)
{
    MPI_Allreduce(b->out, b->in, b->len / 8, MPI_DOUBLE, MPI_SUM,
                  MPI_COMM_WORLD);
}

static void gather(const struct buffers *b)
{
    MPI_Gather(b->out, b->len, MPI_BYTE, b->in, b->len, MPI_BYTE, 0,
               MPI_COMM_WORLD);
}

static void scatter(const struct buffers *b)
{
    MPI_Scatter(b->in, b->len, MPI_BYTE, b->out, b->len, MPI_BYTE, 0,
                MPI_COMM_WORLD);
}

static void allgather(const struct buffers *b)
{
    MPI_Allgather(b->out, b->len, MPI_BYTE, b->in, b->len, MPI_BYTE,
                  MPI_COMM_WORLD);
}

static void alltoall(const struct buffers *b)
{
    MPI_Alltoall(b->out, b->len, MPI_BYTE, b->in, b->len, MPI_BYTE,
                 MPI_COMM_WORLD);
}

static const struct {
    const char *name;
    void (*run)(const struct buffers *b);
} table[] = {
    {"barrier", barrier},     {"bcast", bcast},       {"reduce", reduce},
    {"allreduce", allreduce}, {"gather", gather},     {"scatter", scatter},
    {"allgather", allgather}, {"alltoall", alltoall},
};

#define TABLE_LEN (sizeof(table) / sizeof(table[0]))

static double run_many(void (*run)(const struct buffers *b),
                       const struct buffers *buffers, int repeats)
{
    double start = MPI_Wtime();

    for (int i = 0; i < repeats; i++)
        run(buffers);
    return MPI_Wtime() - start;
}

static void measure(const struct bench *bench, size_t which, size_t len)
{
    size_t whole = len * (size_t)bench->size + 8;
    struct buffers buffers = {
        .out = bench_alloc(whole), .in = bench_alloc(whole), .len = (int)len};

    /* Zero bytes are small, denormal numbers would not be. */
    memset(buffers.out, 0, whole);
    (void)run_many(table[which].run, &buffers, 1);
    double once = run_many(table[which].run, &buffers, 4) / 4;
    int repeats = bench_repeats(bench, once, 4);
    MPI_Barrier(MPI_COMM_WORLD);
    double mine = run_many(table[which].run, &buffers, repeats) / repeats;
    double sum = 0;
    MPI_Reduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    bench_point(bench, table[which].name, len, sum / bench->size * 1e6, "us");
    free(buffers.in);
    free(buffers.out);
}

int main(int argc, char **argv)
{
    struct bench bench;

    bench_start(&bench, &argc, &argv);
    for (size_t which = 0; argc > 1 && which < TABLE_LEN; which++) {
        if (strcmp(argv[1], "all") != 0 &&
            strcmp(argv[1], table[which].name) != 0)
            continue;
        for (int i = 2; i < argc; i++) {
            measure(&bench, which, bench_size(argv[i]));
            if (which == 0)
                break; /* a barrier has no size */
        }
    }
    MPI_Finalize();
    return 0;
}
