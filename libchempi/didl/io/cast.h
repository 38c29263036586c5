/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the members of a file know of each other for two-phase access: who the
 * aggregators are and, at aggregators, everybody's view. Learned at the first
 * collective access that can use it, and again when a view or a hint changes.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_IO_CAST_H
#define CHEMPI_LIBCHEMPI_DIDL_IO_CAST_H

#include "libchempi/didl/io/collective.h"
#include "libchempi/didl/io/file.h"

struct chempi_io_cast {
    bool is_usable; /* all views are ordered and small enough to travel */
    int count;      /* of aggregators */
    int *ranks;     /* [count] of the aggregators, in ascending order */
    int mine;       /* this member's place in ranks, or -1 */
    struct chempi_io_view *views; /* [comm->size], at aggregators; no types */
    int64_t *told; /* [comm->size * CHEMPI_IO_TOLD_WORDS], of this access */
};

/* A stage: learn it, if it is not known. `after` finds the error in rc, which
 * is everybody's. */
void chempi_io_cast_learn(struct chempi_io_coll *a, chempi_io_stage_fn *after);

#endif
