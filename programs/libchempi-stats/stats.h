/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libchempi-stats: counts a program's MPI calls by operation and size, through
 * the profiling interface (MPI 5.0, section 15.2). The wrappers around all
 * calls are generated; counting is lock-free, so that threads may call.
 */
#ifndef CHEMPI_STATS_STATS_H
#define CHEMPI_STATS_STATS_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/compiler.h"
#include "programs/libchempi-stats/calls.h" /* generated */

#define STATS_NO_SIZE (-1)

/* Bins: calls without a size, of 0 bytes, and of 2^i to 2^(i+1) - 1 bytes. */
enum { STATS_BINS = 66 };

struct stats_call {
    enum stats_id id;
    int64_t bytes; /* STATS_NO_SIZE: it has none, or has failed */
    uint64_t since_ns;
    uint64_t time_ns; /* by stats_end() */
    const void *from; /* where it returns to */
};

/* What one process has counted in one bin; travels to rank 0 as it is. */
struct stats_line {
    uint32_t id; /* enum stats_id */
    uint32_t bin;
    uint64_t calls;
    uint64_t bytes;
    uint64_t time_ns;
};

/* The lines of one process, in the order of operations and bins. */
struct stats_lines {
    struct stats_line *list;
    size_t count;
    uint64_t run_ns; /* from the start of MPI to its end */
};

/* Around each call; what it carried is put in, then it is counted. */
#define STATS_BEGIN(call, name)                                                \
    stats_begin(call, STATS_##name, CHEMPI_RETURN_ADDRESS())
void stats_begin(struct stats_call *call, enum stats_id id, const void *from);
void stats_end(struct stats_call *call);
void stats_count(const struct stats_call *call);

/* The sizes below are asked for calls that succeeded: their arguments are
 * right, so that no error is raised here. */

/* Bytes of count elements. */
int64_t stats_bytes(MPI_Count count, MPI_Datatype type);
/* The mean over the processes of comm; counts are int, or MPI_Count. */
int64_t stats_mean(const void *counts, bool is_wide, MPI_Datatype type,
                   MPI_Comm comm);
/* The same where counts has an entry for each process of one's own group. */
int64_t stats_mean_own(const void *counts, bool is_wide, MPI_Datatype type,
                       MPI_Comm comm);
int64_t stats_mean_w(const void *counts, bool is_wide,
                     const MPI_Datatype types[], MPI_Comm comm);
/* Bytes that a receive has brought. */
int64_t stats_received(const MPI_Status *status);

/* The least size that a bin holds, bytes; -1 for that of calls without. */
int64_t stats_bin_from(uint32_t bin);

#define STATS_ALL (-1)

struct stats_sites;

/* Print all processes' lines: the sum, and what each has counted if asked
 * for. With a `process` instead of STATS_ALL the lines are that one's only.
 * sites (sites.h): those of all, or NULL. */
void stats_print_text(FILE *file, const struct stats_lines all[], int ranks,
                      int process, bool wants_ranks,
                      const struct stats_sites *sites);
void stats_print_json(FILE *file, const struct stats_lines all[], int ranks,
                      int process, const struct stats_sites *sites);

#endif
