/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Views (MPI 5.0, section 14.3): a file type, repeated from a displacement on,
 * as the layout that the datatype engine walks. The base of the iterator is
 * where in memory, or at which offset, byte `from` of the file lies.
 */
#include "libchempi/didl/io/view/view.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "common/containers/array.h"
#include "libchempi/didl/datatype/recipe.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/io/view/datarep.h"
#include "libchempi/services/layout/layout_order.h"

/* Offsets stay below this, so that sums of two do not overflow. */
#define OFFSET_END (INT64_C(1) << 61)

static int no_memory(void)
{
    return chempi_error_set(MPI_ERR_NO_MEM, "no memory for a file's view");
}

void chempi_io_view_release(struct chempi_io_view *view)
{
    if (!view ||
        atomic_fetch_sub_explicit(&view->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (view->etype && !view->etype->is_predefined)
        chempi_datatype_release(view->etype);
    if (view->filetype && !view->filetype->is_predefined)
        chempi_datatype_release(view->filetype);
    chempi_layout_release(view->tile.root);
    free(view);
}

/* ---- the tile ---- */

/* The tile in a representation in which all basic types of the file type have
 * the same size, so that all distances grow or shrink alike. */
struct scaling {
    MPI_Count native; /* bytes of the basic type; 0: none yet */
    MPI_Count file;
    uint64_t count;
    uint64_t offset_room;
    uint64_t len_room;
    int64_t *offsets;
    uint64_t *lens;
    struct chempi_io_view *view;
};

static bool make_room(struct scaling *s)
{
    return CHEMPI_ARRAY_FIT(s->offsets, s->offset_room, s->count + 1) &&
           CHEMPI_ARRAY_FIT(s->lens, s->len_room, s->count + 1);
}

static bool scale_leaf(void *arg, struct chempi_datatype *leaf, MPI_Count disp,
                       MPI_Count n)
{
    struct scaling *s = arg;
    MPI_Count file;

    if (chempi_io_datarep_size(s->view->rep, leaf, &file) || leaf->size == 0)
        return false;
    if (s->native == 0) {
        s->native = leaf->size;
        s->file = file;
    }
    if (s->native != leaf->size || s->file != file ||
        leaf->extent != leaf->size || disp % s->native != 0 || !make_room(s))
        return false;
    s->offsets[s->count] = disp / s->native * file;
    s->lens[s->count++] = (uint64_t)(n * file);
    return true;
}

static int scale_tile(struct chempi_io_view *view)
{
    struct scaling s = {.view = view};
    struct chempi_datatype *type = view->filetype;
    bool is_good = type->is_predefined ||
                   type->recipe->depth <= CHEMPI_DATATYPE_WALK_DEPTH_MAX;

    is_good = is_good && chempi_datatype_for_leaves(type, 1, scale_leaf, &s) &&
              s.native > 0 && type->extent % s.native == 0;
    if (is_good) {
        view->tile.root = chempi_layout_blocks(s.count, s.offsets, s.lens);
        view->tile.size = view->tile.root ? view->tile.root->size : 0;
        view->tile.extent = type->extent / s.native * s.file;
    }
    free(s.offsets);
    free(s.lens);
    if (is_good && !view->tile.root)
        return no_memory();
    return is_good ? MPI_SUCCESS
                   : chempi_error_set(
                         MPI_ERR_UNSUPPORTED_DATAREP,
                         "in the representation \"%s\" the sizes of data "
                         "differ, and the file type is made of several basic "
                         "types, or has gaps that are no multiples of one; "
                         "use file types of one basic type",
                         view->rep_name);
}

/* The tile of a representation in which everything has its native size. */
static int plain_tile(struct chempi_io_view *view)
{
    const struct chempi_datatype *type = view->filetype;

    view->tile.size = (uint64_t)type->size;
    view->tile.extent = type->extent;
    view->tile.root =
        type->layout ? chempi_layout_hold(type->layout->root)
                     : chempi_layout_block(type->true_lb, (uint64_t)type->size);
    return view->tile.root ? MPI_SUCCESS : no_memory();
}

int chempi_io_view_settle(struct chempi_io_view *view)
{
    const struct chempi_layout_node *root = view->tile.root;
    uint64_t reach = (uint64_t)view->tile.extent;

    if (view->tile.size == 0)
        return MPI_SUCCESS;
    view->first = chempi_layout_first(root);
    view->is_ordered = chempi_layout_is_ordered(root);
    if (view->is_ordered) {
        int64_t span = chempi_layout_end(root) - view->first;

        view->is_ordered = view->tile.extent >= span;
        if (span > view->tile.extent)
            reach = (uint64_t)span;
    }
    if (view->first < 0 || view->tile.extent <= 0)
        return chempi_error_set(MPI_ERR_IO,
                                "the file type begins at displacement %" PRId64
                                " and has an extent of %" PRId64
                                " bytes; in a file both must not be negative, "
                                "and a file type needs an extent",
                                view->first, view->tile.extent);
    if (view->disp > OFFSET_END || reach > OFFSET_END)
        return chempi_error_set(MPI_ERR_ARG,
                                "the view begins at %" PRId64
                                " or reaches further than 2^61 bytes",
                                (int64_t)view->disp);
    view->is_contiguous = root->kind == CHEMPI_LAYOUT_BLOCK &&
                          view->tile.extent == (int64_t)view->tile.size;
    view->tiles =
        OFFSET_END / (reach > view->tile.size ? reach : view->tile.size);
    view->run =
        view->is_contiguous ? OFFSET_END : view->tile.size / root->blocks;
    if (view->run == 0)
        view->run = 1;
    return MPI_SUCCESS;
}

int chempi_io_view_make(MPI_Offset disp, struct chempi_datatype *etype,
                        struct chempi_datatype *filetype, const char *rep_name,
                        struct chempi_io_datarep *rep,
                        struct chempi_io_view **out)
{
    struct chempi_io_view *view = chempi_sys->calloc(1, sizeof(*view));
    MPI_Count esize;
    MPI_Count size;
    int rc;

    if (!view)
        return no_memory();
    atomic_init(&view->refs, 1);
    view->disp = disp;
    view->etype = etype;
    view->filetype = filetype;
    view->rep = rep;
    chempi_datatype_hold(etype);
    chempi_datatype_hold(filetype);
    memcpy(view->rep_name, rep_name, strlen(rep_name) + 1);
    rc = chempi_io_datarep_size(rep, etype, &esize);
    if (!rc)
        rc = chempi_io_datarep_size(rep, filetype, &size);
    if (!rc) {
        view->esize = (uint64_t)esize;
        rc = size == filetype->size ? plain_tile(view) : scale_tile(view);
    }
    if (!rc)
        rc = chempi_io_view_settle(view);
    if (!rc && (esize == 0 ? size != 0 : size % esize != 0))
        rc = chempi_error_set(MPI_ERR_ARG,
                              "the file type has %" PRId64
                              " bytes, which is no multiple of the %" PRId64
                              " of the elementary type",
                              (int64_t)size, (int64_t)esize);
    if (rc)
        chempi_io_view_release(view);
    else
        *out = view;
    return rc;
}

struct chempi_io_view *chempi_io_view_default(void)
{
    struct chempi_datatype *byte = chempi_datatype_lookup(MPI_BYTE);
    struct chempi_io_view *view = NULL;

    (void)chempi_io_view_make(0, byte, byte, "native", NULL, &view);
    return view;
}

/* ---- positions and offsets ---- */

void chempi_io_view_iter(const struct chempi_io_view *view,
                         struct chempi_segment *iter, const void *base,
                         int64_t from, uint64_t position)
{
    uintptr_t at = (uintptr_t)base + (uintptr_t)(view->disp - from);

    chempi_segment_init(iter, (const void *)at, view->tiles, &view->tile);
    chempi_segment_seek(iter, position);
}

int64_t chempi_io_view_offset(const struct chempi_io_view *view,
                              uint64_t position)
{
    uint64_t tile;

    if (view->tile.size == 0)
        return view->disp;
    if (view->is_contiguous)
        return view->disp + view->first + (int64_t)position;
    tile = position / view->tile.size;
    return tile < view->tiles
               ? view->disp + (int64_t)tile * view->tile.extent +
                     chempi_layout_at(view->tile.root,
                                      position - tile * view->tile.size)
               : INT64_MAX;
}

uint64_t chempi_io_view_below(const struct chempi_io_view *view, int64_t offset)
{
    int64_t at = offset - view->disp;
    int64_t tile;

    if (view->tile.size == 0 || at <= view->first)
        return 0;
    tile = (at - view->first) / view->tile.extent;
    return (uint64_t)tile * view->tile.size +
           chempi_layout_below(view->tile.root, at - tile * view->tile.extent);
}
