/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a datatype was made (MPI 5.0, section 5.1.13): what its envelope and
 * contents say, and what commit compiles. Private to the datatype module.
 *
 *   -   values[] holds the constructor's numbers in the order in which the
 *       int form lists them: first those that are ints there (int_count of
 *       them), then those that are addresses
 *   -   types[] are held
 *   -   types may be nested as deeply as there is memory: whatever goes down
 *       recipes is a loop, or bounded by `depth`
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_DATATYPE_RECIPE_H
#define CHEMPI_LIBCHEMPI_DIDL_DATATYPE_RECIPE_H

#include <mpi.h>

#include "libchempi/didl/base/count_array.h"
#include "libchempi/didl/datatype/datatype.h"
#include "libchempi/services/layout/layout.h"

struct chempi_datatype_recipe {
    int combiner;   /* MPI_COMBINER_* */
    bool is_wide;   /* made by the large-count form */
    bool is_lb_set; /* an explicit lower bound lies in it (section 5.1.6) */
    bool is_ub_set;
    MPI_Count external_size; /* bytes in external32; -1: beyond 63 bits */
    MPI_Count int_count;
    MPI_Count value_count;
    MPI_Count type_count;
    MPI_Count *values;
    struct chempi_datatype **types;
    MPI_Count depth; /* levels of types that are not predefined below it */
    /* While a layout is compiled (compile.c): */
    const struct chempi_layout_node *node; /* what has come out, or NULL */
    struct chempi_datatype *next;          /* of a list */
    MPI_Count at;                          /* index into types[] */
};

/* Where an element lies, as constructors compute it. */
struct chempi_datatype_bounds {
    bool is_empty; /* nothing was added yet */
    bool has_data; /* true bounds are known */
    bool is_lb_set;
    bool is_ub_set;
    bool is_overflown; /* some number did not fit 63 bits */
    MPI_Count size;
    MPI_Count external_size; /* -1: beyond 63 bits */
    MPI_Count elements;
    MPI_Count lb;
    MPI_Count ub;
    MPI_Count true_lb;
    MPI_Count true_ub;
    uint16_t align;
    bool is_mixed; /* of several basic types */
    uint8_t elem_kind;
};

#define CHEMPI_DATATYPE_BOUNDS_INIT                                            \
    ((struct chempi_datatype_bounds){.is_empty = true, .align = 1})

/* Add count copies of type from disp on, stride bytes apart. */
void chempi_datatype_bounds_add(struct chempi_datatype_bounds *bounds,
                                struct chempi_datatype *type, MPI_Count disp,
                                MPI_Count count, MPI_Count stride);
/* count * outer copies: outer rows, outer_stride apart, of count elements. */
void chempi_datatype_bounds_add_rows(struct chempi_datatype_bounds *bounds,
                                     struct chempi_datatype *type,
                                     MPI_Count disp, MPI_Count count,
                                     MPI_Count outer, MPI_Count outer_stride);
/* Round the upper bound to the alignment, unless it was set. */
void chempi_datatype_bounds_pad(struct chempi_datatype_bounds *bounds);
/* Set both bounds explicitly. */
void chempi_datatype_bounds_resize(struct chempi_datatype_bounds *bounds,
                                   MPI_Count lb, MPI_Count extent);

/* a * b + c in 63 bits, noting overflow in *is_overflown. */
MPI_Count chempi_datatype_muladd(MPI_Count a, MPI_Count b, MPI_Count c,
                                 bool *is_overflown);

/* Bytes of n elements in external32, added to sum; -1 beyond 63 bits, or when
 * sum is -1. */
MPI_Count chempi_datatype_external_size(const struct chempi_datatype *type,
                                        MPI_Count n, MPI_Count sum);

/*
 * A new, uncommitted datatype with room for a recipe of so many values and
 * types; the caller fills both. NULL with words when out of memory.
 */
struct chempi_datatype *chempi_datatype_make(int combiner, bool is_wide,
                                             MPI_Count int_count,
                                             MPI_Count value_count,
                                             MPI_Count type_count);

/* Let types[i] be old, with a reference of its own. */
void chempi_datatype_note_type(struct chempi_datatype *type, MPI_Count i,
                               struct chempi_datatype *old);

/* A type of its own with the recipe, bounds and layout of another; without its
 * name and attributes. NULL with words when out of memory. */
struct chempi_datatype *
chempi_datatype_copy_of(const struct chempi_datatype *from);

/* Where the standard does not say that it is: another thread may commit it
 * meanwhile. */
bool chempi_datatype_is_committed(const struct chempi_datatype *type);

/* Give the finished type to the user; on overflow destroys it instead. */
int chempi_datatype_give(struct chempi_datatype *type,
                         const struct chempi_datatype_bounds *bounds,
                         MPI_Datatype *newtype);

/* The layout of one element; a reference of the caller's, NULL when out of
 * memory or beyond 63 bits. One thread at a time. */
const struct chempi_layout_node *
chempi_datatype_compile_locked(struct chempi_datatype *type);

/* A process's share of one dimension of a distributed array: `count` blocks of
 * `block` elements at start, start + stride, ..., and a last one of `rest`
 * elements (0: none) at rest_start. */
struct chempi_datatype_share {
    MPI_Count start;
    MPI_Count block;
    MPI_Count count;
    MPI_Count stride;
    MPI_Count rest_start;
    MPI_Count rest;
};

/* The share of coordinate `coord` of `psize` in an array of `gsize`. */
void chempi_datatype_share_of(MPI_Count gsize, int distrib, MPI_Count darg,
                              MPI_Count psize, MPI_Count coord,
                              struct chempi_datatype_share *share);

/* Most levels that can be walked: each takes some hundred bytes of a stack. */
#define CHEMPI_DATATYPE_WALK_DEPTH_MAX 1000

/* Run fn over the basic types of `count` elements in packed order: each call
 * names `n` consecutive elements of a predefined type at displacement disp.
 * Stops when fn returns false, and returns false then. The depth of the type
 * is at most WALK_DEPTH_MAX. */
typedef bool chempi_datatype_leaf_fn(void *arg, struct chempi_datatype *leaf,
                                     MPI_Count disp, MPI_Count n);
bool chempi_datatype_for_leaves(struct chempi_datatype *type, MPI_Count count,
                                chempi_datatype_leaf_fn *fn, void *arg);

/* The d-th dimension of an array counted from the fastest one. */
static inline MPI_Count chempi_datatype_fastest(MPI_Count ndims,
                                                MPI_Count order, MPI_Count d)
{
    return order == MPI_ORDER_C ? ndims - 1 - d : d;
}

#endif
