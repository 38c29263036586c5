/* SPDX-License-Identifier: BSD-3-Clause */
/* The benchmark programs' common part; see bench.h. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPEATS_MAX 2000000

void bench_start(struct bench *bench, int *argc, char ***argv)
{
    const char *ms = getenv("BENCH_POINT_MS");

    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &bench->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &bench->size);
    bench->point_s = ms != NULL ? strtod(ms, NULL) / 1e3 : 0.02;
}

void bench_point(const struct bench *bench, const char *name, size_t x,
                 double value, const char *unit)
{
    if (bench->rank == 0) {
        printf("point %s %zu %.6g %s\n", name, x, value, unit);
        fflush(stdout);
    }
}

int bench_repeats(const struct bench *bench, double once_s, int least)
{
    double wanted = bench->point_s / (once_s > 1e-9 ? once_s : 1e-9);
    int repeats = wanted > REPEATS_MAX ? REPEATS_MAX : (int)wanted;

    if (repeats < least)
        repeats = least;
    MPI_Bcast(&repeats, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return repeats;
}

char *bench_alloc(size_t len)
{
    size_t whole = (len + 4096) / 4096 * 4096;
    char *data = aligned_alloc(4096, whole);

    if (data == NULL) {
        fprintf(stderr, "no memory for %zu bytes\n", len);
        MPI_Abort(MPI_COMM_WORLD, 1);
        exit(1);
    }
    memset(data, 1, whole);
    return data;
}

size_t bench_size(const char *text)
{
    char *end = NULL;
    unsigned long long value = strtoull(text, &end, 10);

    if (*end == 'k' || *end == 'K')
        value <<= 10;
    else if (*end == 'M')
        value <<= 20;
    return (size_t)value;
}
