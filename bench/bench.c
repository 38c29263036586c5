/* SPDX-License-Identifier: BSD-3-Clause */
/* The benchmark programs' common part; see bench.h. */
#include "bench.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define REPEATS_MAX 2000000
#define PAGE 4096
#define HUGE_PAGE (2 << 20)

static void find_place(struct bench *bench)
{
    const char *ms = getenv("BENCH_POINT_MS");

    MPI_Comm_rank(MPI_COMM_WORLD, &bench->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &bench->size);
    bench->point_s = ms != NULL ? strtod(ms, NULL) / 1e3 : 0.02;
}

void bench_start(struct bench *bench, int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    find_place(bench);
}

void bench_start_threads(struct bench *bench, int *argc, char ***argv)
{
    int provided;

    MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided);
    find_place(bench);
    if (provided < MPI_THREAD_MULTIPLE) {
        fprintf(stderr, "this MPI has no MPI_THREAD_MULTIPLE\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
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

/* Whole pages, one byte more than wanted at least. */
static size_t whole_len(size_t len)
{
    return (len + PAGE) / PAGE * PAGE;
}

char *bench_alloc(size_t len)
{
    size_t whole = whole_len(len);
    char *data = aligned_alloc(PAGE, whole);

    if (data == NULL) {
        fprintf(stderr, "no memory for %zu bytes\n", len);
        MPI_Abort(MPI_COMM_WORLD, 1);
        exit(1);
    }
    memset(data, 1, whole);
    return data;
}

char *bench_map(size_t len)
{
    size_t whole = whole_len(len) + HUGE_PAGE;
    char *start = mmap(NULL, whole, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (start == MAP_FAILED) {
        fprintf(stderr, "no memory for %zu bytes\n", len);
        MPI_Abort(MPI_COMM_WORLD, 1);
        exit(1);
    }
    size_t before = (HUGE_PAGE - (uintptr_t)start % HUGE_PAGE) % HUGE_PAGE;
    char *data = start + before;
    if (before > 0)
        munmap(start, before);
    munmap(data + whole_len(len), HUGE_PAGE - before);
    memset(data, 1, whole_len(len));
    return data;
}

void bench_unmap(char *data, size_t len)
{
    munmap(data, whole_len(len));
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

double bench_median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof(*values), compare);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

double bench_quantile(double *values, int count, double share)
{
    int at = (int)(share * count);

    qsort(values, (size_t)count, sizeof(*values), compare);
    return values[at < count ? at : count - 1];
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
