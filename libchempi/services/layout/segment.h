/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The segment iterator: walks (base, count, layout) as a stream of packed
 * bytes, resumable at any byte, so that devices pack into their own slots,
 * unpack as bytes arrive, or hand lists of runs to the kernel. A layout is
 * compiled once, when its datatype is committed, and never changes.
 * Walking never allocates; not thread-safe for one iterator.
 */
#ifndef CHEMPI_LIBCHEMPI_SERVICES_SEGMENT_H
#define CHEMPI_LIBCHEMPI_SERVICES_SEGMENT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* Compiled layout of one element; opaque to devices (layout.h). */
struct chempi_layout;
struct chempi_layout_node;

struct chempi_segment {
    const struct chempi_layout *layout;
    char *base;        /* address of displacement 0 of the first element */
    uint64_t size;     /* packed bytes in all */
    uint64_t position; /* packed bytes done */
    uint64_t state[8]; /* the walker's own resume point */
};

/* count elements of layout at base. */
void chempi_segment_init(struct chempi_segment *iter, const void *base,
                         uint64_t count, const struct chempi_layout *layout);

/* Copy the next at most max packed bytes out of / into the user's memory;
 * returns the number done (less than max only at the end). */
size_t chempi_segment_pack(struct chempi_segment *iter, void *dst, size_t max);
size_t chempi_segment_unpack(struct chempi_segment *iter, const void *src,
                             size_t len);

/* The next runs of contiguous memory: at most max_runs and max_bytes; advances
 * past them. Returns the number of runs, 0 at the end. */
size_t chempi_segment_runs(struct chempi_segment *iter, struct iovec *runs,
                           size_t max_runs, uint64_t max_bytes);

/* How long a run is on average, bytes, before neighbouring elements are
 * joined; at least 1. */
uint64_t chempi_segment_mean_run(const struct chempi_segment *iter);

/* The layout of all elements, as one; a reference of the caller's. NULL: out of
 * memory. The only call here that allocates. */
const struct chempi_layout_node *
chempi_segment_layout(const struct chempi_segment *iter);

/* Go to any packed byte position (0 <= position <= size). */
void chempi_segment_seek(struct chempi_segment *iter, uint64_t position);

#endif
