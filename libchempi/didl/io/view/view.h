/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Views of files (MPI 5.0, section 14.3): displacement, elementary type and
 * file type as a layout that is walked over file offsets. A view does not
 * change; it may be used by any thread.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_IO_VIEW_H
#define CHEMPI_LIBCHEMPI_DIDL_IO_VIEW_H

#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "libchempi/didl/datatype/datatype.h"
#include "libchempi/services/layout/layout.h"

struct chempi_io_datarep; /* datarep.h */

struct chempi_io_view {
    _Atomic int32_t refs;
    MPI_Offset disp;
    struct chempi_datatype *etype; /* ours; or predefined */
    struct chempi_datatype *filetype;
    struct chempi_io_datarep *rep; /* NULL: native and internal */
    char rep_name[MPI_MAX_DATAREP_STRING + 1];
    uint64_t esize; /* bytes of an etype in the file; may be 0 */
    struct chempi_layout tile;
    int64_t first;      /* displacement of the tile's first byte */
    uint64_t tiles;     /* as many as file offsets can have */
    bool is_contiguous; /* position p lies at disp + first + p */
    bool is_ordered;    /* offsets grow with positions */
    uint64_t run;       /* bytes of a run, on average */
};

/* Predefined types, or held with it. MPI error class with words. */
int chempi_io_view_make(MPI_Offset disp, struct chempi_datatype *etype,
                        struct chempi_datatype *filetype, const char *rep_name,
                        struct chempi_io_datarep *rep,
                        struct chempi_io_view **out);
struct chempi_io_view *chempi_io_view_default(void);
void chempi_io_view_release(struct chempi_io_view *view);
static inline struct chempi_io_view *
chempi_io_view_hold(struct chempi_io_view *view)
{
    (void)atomic_fetch_add_explicit(&view->refs, 1, memory_order_relaxed);
    return view;
}

/* What follows from disp and tile, which are there. MPI error class. */
int chempi_io_view_settle(struct chempi_io_view *view);

/* The file offset of packed byte `position` of the view. */
int64_t chempi_io_view_offset(const struct chempi_io_view *view,
                              uint64_t position);
/* Packed bytes at offsets below `offset`; of an ordered view. */
uint64_t chempi_io_view_below(const struct chempi_io_view *view,
                              int64_t offset);
/* An iterator over the view whose base is memory that holds the file from
 * offset `from` on; at `position`. */
void chempi_io_view_iter(const struct chempi_io_view *view,
                         struct chempi_segment *iter, const void *base,
                         int64_t from, uint64_t position);

#endif
