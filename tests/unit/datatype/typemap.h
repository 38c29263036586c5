/* SPDX-License-Identifier: BSD-3-Clause */
/* A datatype beside its type map, written out entry by entry as the standard
 * defines it: what the tests compare the library with. */
#ifndef CHEMPI_TESTS_UNIT_DIDL_TYPEMAP_H
#define CHEMPI_TESTS_UNIT_DIDL_TYPEMAP_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TYPEMAP_MAX 4096 /* basic elements */

struct typemap_entry {
    MPI_Aint disp;
    MPI_Datatype basic;
    int size; /* bytes */
};

struct typemap {
    MPI_Datatype type; /* owned; not committed */
    size_t count;
    struct typemap_entry *entries;
    MPI_Aint lb;
    MPI_Aint ub;
    bool is_lb_set; /* by an explicit bound */
    bool is_ub_set;
    bool is_empty; /* neither entries nor bounds */
};

/* The same numbers in every run; below n. */
uint64_t typemap_random(uint64_t n);

/* A random datatype of up to `depth` constructors with at most TYPEMAP_MAX
 * basic elements. is_wide: large-count constructors. */
struct typemap typemap_make(int depth, bool is_wide);
void typemap_free(struct typemap *map);

MPI_Aint typemap_size(const struct typemap *map);
void typemap_true_bounds(const struct typemap *map, MPI_Aint *lb, MPI_Aint *ub);

#endif
