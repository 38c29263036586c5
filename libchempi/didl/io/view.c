/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Views (MPI 5.0, section 14.3): a file type, repeated from a displacement on,
 * as the layout that the datatype engine walks. The base of the iterator is
 * where in memory, or at which offset, byte `from` of the file lies.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/array.h"
#include "common/base/sys.h"
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/base/error.h"
#include "libchempi/didl/datatype/recipe.h"
#include "libchempi/didl/io/collective.h"
#include "libchempi/didl/io/datarep.h"
#include "libchempi/didl/io/file.h"
#include "libchempi/didl/io/op.h"
#include "libchempi/services/layout_order.h"

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

    is_good = is_good &&
              chempi_datatype_for_leaves(type, 0, 1, scale_leaf, &s) &&
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

static int make(MPI_Offset disp, struct chempi_datatype *etype,
                struct chempi_datatype *filetype, const char *rep_name,
                struct chempi_io_datarep *rep, struct chempi_io_view **out)
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

    (void)make(0, byte, byte, "native", NULL, &view);
    return view;
}

/* ---- positions and offsets ---- */

void chempi_io_view_iter(const struct chempi_io_view *view,
                         struct chempi_iter *iter, const void *base,
                         int64_t from, uint64_t position)
{
    uintptr_t at = (uintptr_t)base + (uintptr_t)(view->disp - from);

    chempi_iter_init(iter, (const void *)at, view->tiles, &view->tile);
    chempi_iter_seek(iter, position);
}

int64_t chempi_io_view_offset(const struct chempi_io_view *view,
                              uint64_t position)
{
    struct chempi_iter iter;
    struct iovec run;

    if (view->tile.size == 0)
        return view->disp;
    if (view->is_contiguous)
        return view->disp + view->first + (int64_t)position;
    chempi_io_view_iter(view, &iter, NULL, 0, position);
    return chempi_iter_runs(&iter, &run, 1, 1) == 1
               ? (int64_t)(uintptr_t)run.iov_base
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

/* ---- the calls ---- */

/* What the standard asks of types in a view (section 14.1.1). */
static int check_type(const struct chempi_file *file,
                      const struct chempi_datatype *type, const char *which)
{
    const struct chempi_layout_node *root =
        type->layout ? type->layout->root : NULL;

    if (type->size > 0 && type->true_lb < 0)
        return chempi_error_set(MPI_ERR_IO,
                                "the %s type has data at displacement "
                                "%" PRId64 ", before its start",
                                which, (int64_t)type->true_lb);
    if (type->size == 0 || !root)
        return MPI_SUCCESS;
    if (!chempi_layout_is_ascending(root))
        return chempi_error_set(
            MPI_ERR_IO, "the displacements of the %s type must grow", which);
    if (!(file->amode & MPI_MODE_RDONLY) && !chempi_layout_is_ordered(root))
        return chempi_error_set(MPI_ERR_IO,
                                "the %s type overlaps itself, which only "
                                "files opened with MPI_MODE_RDONLY allow",
                                which);
    return MPI_SUCCESS;
}

static int check_view(struct chempi_file *file, MPI_Offset disp,
                      struct chempi_datatype *etype,
                      struct chempi_datatype *filetype)
{
    if (!etype->is_committed || !filetype->is_committed)
        return chempi_error_set(MPI_ERR_TYPE,
                                "the %s type is not committed; call "
                                "MPI_Type_commit first",
                                etype->is_committed ? "file" : "elementary");
    if (disp < 0)
        return chempi_error_set(
            MPI_ERR_ARG,
            "the displacement is %" PRId64 "; it must be 0 or "
            "more%s",
            (int64_t)disp,
            disp == MPI_DISPLACEMENT_CURRENT
                ? ", but for MPI_DISPLACEMENT_CURRENT in files opened with "
                  "MPI_MODE_SEQUENTIAL"
                : "");
    if (check_type(file, etype, "elementary"))
        return MPI_ERR_IO;
    return check_type(file, filetype, "file");
}

/* In a sequential file the view may begin where the shared pointer is. */
static int displacement(struct chempi_file *file, MPI_Offset *disp)
{
    uint64_t at = 0;
    int rc;

    if (!(file->amode & MPI_MODE_SEQUENTIAL) ||
        *disp != MPI_DISPLACEMENT_CURRENT)
        return MPI_SUCCESS;
    rc = chempi_io_shared_add(file, 0, &at);
    *disp = chempi_io_view_offset(file->view, at * file->view->esize);
    return rc;
}

static void replace_view(struct chempi_file *file, struct chempi_io_view *view)
{
    struct chempi_io_view *old;

    (void)pthread_mutex_lock(&file->lock);
    old = file->view;
    file->view = view;
    file->pointer = 0;
    file->views++;
    (void)pthread_mutex_unlock(&file->lock);
    chempi_io_view_release(old);
}

int chempi_io_set_view(struct chempi_file *fh, MPI_Offset disp,
                       struct chempi_datatype *etype,
                       struct chempi_datatype *filetype, const char *datarep,
                       struct chempi_info *info, int refused)
{
    struct chempi_io_hints hints = fh->hints;
    struct chempi_io_view *view = NULL;
    struct chempi_io_datarep *rep = NULL;
    bool has_hints;
    int rc = chempi_io_quiet_for(fh, refused);

    if (!rc)
        rc = displacement(fh, &disp);
    if (!rc)
        rc = check_view(fh, disp, etype, filetype);
    if (!rc)
        rc = chempi_io_datarep_find(datarep, &rep);
    if (!rc)
        rc = make(disp, etype, filetype, datarep, rep, &view);
    if (!rc)
        rc = chempi_io_hints_take(&hints, info);
    has_hints =
        fh->comm->rank == 0 && !chempi_io_hints_are_alike(&hints, &fh->hints);
    rc = chempi_io_agree_wish(fh->comm, chempi_io_name_file(fh, rc, -1),
                              &has_hints);
    if (!rc && has_hints)
        rc = chempi_io_hints_share(fh->comm, &hints);
    if (rc) {
        chempi_io_view_release(view);
        return rc;
    }
    replace_view(fh, view);
    if (has_hints)
        return chempi_io_hints_put(fh, &hints);
    if (fh->cast)
        chempi_io_cast_forget(fh);
    return MPI_SUCCESS;
}

static int give_type(struct chempi_datatype *type, MPI_Datatype *out)
{
    if (!type->is_predefined) {
        type = chempi_datatype_copy_of(type);
        if (!type)
            return MPI_ERR_NO_MEM;
    }
    *out = type->handle;
    return MPI_SUCCESS;
}

int chempi_io_get_view(struct chempi_file *fh, MPI_Offset *disp,
                       MPI_Datatype *etype, MPI_Datatype *filetype,
                       char *datarep)
{
    const struct chempi_io_view *view = fh->view;
    int rc = give_type(view->etype, etype);

    if (!rc)
        rc = give_type(view->filetype, filetype);
    if (rc)
        return rc;
    *disp = view->disp;
    memcpy(datarep, view->rep_name, strlen(view->rep_name) + 1);
    return MPI_SUCCESS;
}

int chempi_io_get_byte_offset(struct chempi_file *fh, MPI_Offset offset,
                              MPI_Offset *disp)
{
    if (offset < 0)
        return chempi_error_set(
            MPI_ERR_ARG, "the offset is %" PRId64 "; it must be 0 or more",
            (int64_t)offset);
    if (fh->amode & MPI_MODE_SEQUENTIAL)
        return chempi_error_set(MPI_ERR_UNSUPPORTED_OPERATION,
                                "the file was opened with "
                                "MPI_MODE_SEQUENTIAL, and has a shared "
                                "pointer only");
    if (fh->view->esize > 0 &&
        (uint64_t)offset > INT64_MAX / 2 / fh->view->esize)
        return chempi_error_set(MPI_ERR_ARG,
                                "the offset is %" PRId64 " elementary types "
                                "of %" PRIu64 " bytes, beyond 2^61 bytes",
                                (int64_t)offset, fh->view->esize);
    *disp = chempi_io_view_offset(fh->view, (uint64_t)offset * fh->view->esize);
    return MPI_SUCCESS;
}

int chempi_io_get_type_extent(struct chempi_file *fh,
                              struct chempi_datatype *datatype,
                              MPI_Count *extent)
{
    return chempi_io_datarep_extent(fh->view->rep, datatype, extent);
}
