/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls that set a file's view and ask for it (MPI 5.0, section 14.3). */
#include <inttypes.h>
#include <string.h>

#include "libchempi/api/api_impl.h"
#include "libchempi/didl/datatype/recipe.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/io/agree.h"
#include "libchempi/didl/io/collective.h"
#include "libchempi/didl/io/exchange/aggregators.h"
#include "libchempi/didl/io/file.h"
#include "libchempi/didl/io/shared.h"
#include "libchempi/didl/io/view/datarep.h"
#include "libchempi/services/layout/layout_order.h"

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

/* In a sequential file the view may begin where the shared pointer is, when all
 * have come here, so that no member moves it any more. Collective; rc: of this
 * member so far. */
static int displacement(struct chempi_file *file, int rc, MPI_Offset *disp)
{
    uint64_t at = 0;

    if (!(file->amode & MPI_MODE_SEQUENTIAL))
        return rc;
    rc = chempi_io_agree(file, rc);
    if (rc || *disp != MPI_DISPLACEMENT_CURRENT)
        return rc;
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

/* Runs from here on are accessed by their owners: a call of the system costs
 * less than an exchange. Other file systems have more to gain from few callers.
 */
#define RUN_LONG_LOCAL (8u << 10)
#define RUN_LONG (64u << 10)

static bool has_short_runs(const struct chempi_file *file,
                           const struct chempi_io_view *view)
{
    return view->tile.size > 0 &&
           view->run <
               (file->home == CHEMPI_IO_ELSEWHERE ? RUN_LONG : RUN_LONG_LOCAL);
}

/* What members say of a new view; the largest counts. */
enum { SAYS_NOTHING, SAYS_SHORT_RUNS, SAYS_NEW_HINTS };

/* New hints are member 0's, and hide whether runs are short. Collective. */
static int share_hints(struct chempi_file *file, struct chempi_io_hints *hints,
                       uint8_t *says)
{
    int rc = chempi_io_hints_share(file->comm, hints);

    return rc ? rc
              : chempi_io_agree_same(file->comm, file->path, MPI_SUCCESS, NULL,
                                     0, says);
}

/* Different ones of different names, as good as always (FNV-1a). */
static int64_t name_number(const char *name)
{
    uint64_t sum = UINT64_C(0xcbf29ce484222325);

    for (; *name; name++)
        sum = (sum ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    return (int64_t)sum;
}

/* What MPI wants alike of a view, whose errors go first (section 14.3). */
static int agree_view(struct chempi_file *file, int rc,
                      const struct chempi_io_view *view, uint8_t *says)
{
    struct chempi_io_same same[2] = {{"etype's extent", 0, NULL},
                                     {"datarep", 0, NULL}};
    MPI_Count extent = 0;

    if (!rc)
        rc = chempi_io_datarep_extent(view->rep, view->etype, &extent);
    if (!rc) {
        same[0].value = extent;
        same[1].text = view->rep_name;
        same[1].value = name_number(view->rep_name);
    }
    return chempi_io_agree_same(file->comm, file->path,
                                chempi_io_name_file(file, rc, -1), same, 2,
                                says);
}

int chempi_io_set_view(struct chempi_file *fh, MPI_Offset disp,
                       struct chempi_datatype *etype,
                       struct chempi_datatype *filetype, const char *datarep,
                       struct chempi_info *info, int refused)
{
    struct chempi_io_hints hints = fh->hints;
    struct chempi_io_view *view = NULL;
    struct chempi_io_datarep *rep = NULL;
    uint8_t runs = SAYS_NOTHING;
    uint8_t says;
    int rc = chempi_io_quiet_for(fh, refused);

    rc = displacement(fh, rc, &disp);
    if (!rc)
        rc = check_view(fh, disp, etype, filetype);
    if (!rc)
        rc = chempi_io_datarep_find(datarep, &rep);
    if (!rc)
        rc = chempi_io_view_make(disp, etype, filetype, datarep, rep, &view);
    if (!rc)
        rc = chempi_io_hints_take(&hints, info);
    if (!rc && has_short_runs(fh, view))
        runs = SAYS_SHORT_RUNS;
    says = fh->comm->rank == 0 && !chempi_io_hints_are_alike(&hints, &fh->hints)
               ? SAYS_NEW_HINTS
               : runs;
    rc = agree_view(fh, rc, view, &says);
    if (says != SAYS_NEW_HINTS)
        runs = says;
    else if (!rc)
        rc = share_hints(fh, &hints, &runs);
    if (rc) {
        chempi_io_view_release(view);
        return rc;
    }
    replace_view(fh, view);
    fh->has_short_runs = runs == SAYS_SHORT_RUNS;
    if (says == SAYS_NEW_HINTS)
        rc = chempi_io_hints_put(fh, &hints);
    if (rc || !fh->aggregators)
        return rc;
    chempi_io_aggregators_forget(fh);
    return chempi_io_aggregators_meet(fh);
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
    int64_t at = INT64_MAX;

    if (offset < 0)
        return chempi_error_set(
            MPI_ERR_ARG, "the offset is %" PRId64 "; it must be 0 or more",
            (int64_t)offset);
    if (fh->amode & MPI_MODE_SEQUENTIAL)
        return chempi_error_set(MPI_ERR_UNSUPPORTED_OPERATION,
                                "the file was opened with "
                                "MPI_MODE_SEQUENTIAL, and has a shared "
                                "pointer only");
    if (fh->view->esize == 0 ||
        (uint64_t)offset <= INT64_MAX / 2 / fh->view->esize)
        at =
            chempi_io_view_offset(fh->view, (uint64_t)offset * fh->view->esize);
    if (at == INT64_MAX)
        return chempi_error_set(MPI_ERR_ARG,
                                "the offset is %" PRId64 " elementary types "
                                "of %" PRIu64 " bytes, beyond 2^61 bytes",
                                (int64_t)offset, fh->view->esize);
    *disp = at;
    return MPI_SUCCESS;
}

int chempi_io_get_type_extent(struct chempi_file *fh,
                              struct chempi_datatype *datatype,
                              MPI_Count *extent)
{
    return chempi_io_datarep_extent(fh->view->rep, datatype, extent);
}
