/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the benchmark programs share. They use the MPI-3 API only and print
 * one line per measured point, which bench/run reads:
 *
 *     point NAME X VALUE UNIT
 *
 * X is a size in bytes, a number of ranks, or a number of receives.
 */
#ifndef CHEMPI_BENCH_BENCH_H
#define CHEMPI_BENCH_BENCH_H

#include <stddef.h>

#include <mpi.h>

struct bench {
    int rank;
    int size;
    double point_s; /* seconds to spend on one point */
};

/* Initialize MPI; reads BENCH_POINT_MS (default 20). */
void bench_start(struct bench *bench, int *argc, char ***argv);

/* The same with MPI_THREAD_MULTIPLE; ends the job where there is none. */
void bench_start_threads(struct bench *bench, int *argc, char ***argv);

/* Rank 0 prints a point. */
void bench_point(const struct bench *bench, const char *name, size_t x,
                 double value, const char *unit);

/* How often to repeat something that took `once_s` so that it fills a
 * point's time; the same on all ranks of the world. At least `least`. */
int bench_repeats(const struct bench *bench, double once_s, int least);

/* Page-aligned, written to; ends the job when there is no memory. */
char *bench_alloc(size_t len);

/* The same at a multiple of 2 MiB, straight from the kernel: the layout depends
 * neither on what an MPI does to the allocator nor on what was freed. */
char *bench_map(size_t len);
void bench_unmap(char *data, size_t len);

/* The median of count > 0 values, which are sorted for it. */
double bench_median(double *values, int count);
/* The same for what a share of them, below 1, is less than. */
double bench_quantile(double *values, int count, double share);

/* Size "64k", "4M", or plain bytes. */
size_t bench_size(const char *text);

#endif
