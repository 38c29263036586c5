/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What can be asked of and told to an open file beside its data (MPI 5.0,
 * sections 14.2 and 14.6): size, room, mode, pointers, hints, atomic mode.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "common/base/sys.h"
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/io/agree.h"
#include "libchempi/didl/io/collective.h"
#include "libchempi/didl/io/file.h"
#include "libchempi/didl/io/shared.h"

#define ZEROS_BYTES (UINT64_C(1) << 20)

static int size_of(struct chempi_file *file, int64_t *size)
{
    struct chempi_io_stat st = {0};
    int rc = file->fd.ops->stat(&file->fd, &st);

    if (rc)
        return chempi_io_fail(file, rc, "asking for the size of", -1);
    *size = st.size;
    return MPI_SUCCESS;
}

int chempi_io_get_size(struct chempi_file *fh, MPI_Offset *size)
{
    int64_t bytes = 0;
    int rc = size_of(fh, &bytes);

    if (!rc)
        *size = bytes;
    return rc;
}

static int check_size(struct chempi_file *file, MPI_Offset size)
{
    int rc = chempi_io_quiet(file);

    if (rc)
        return rc;
    if (size < 0)
        return chempi_error_set(
            MPI_ERR_ARG, "argument size is %" PRId64 "; it must be 0 or more",
            (int64_t)size);
    if (file->amode & MPI_MODE_RDONLY)
        return chempi_error_set(MPI_ERR_READ_ONLY,
                                "%s was opened with MPI_MODE_RDONLY",
                                file->path);
    if (file->amode & MPI_MODE_SEQUENTIAL)
        return chempi_error_set(MPI_ERR_UNSUPPORTED_OPERATION,
                                "%s was opened with MPI_MODE_SEQUENTIAL",
                                file->path);
    return MPI_SUCCESS;
}

static int agree_size(struct chempi_file *file, MPI_Offset size)
{
    const struct chempi_io_same same = {"size", size, NULL};
    int rc = chempi_io_name_file(file, check_size(file, size), -1);

    return chempi_io_agree_args(file, rc, &same, 1);
}

/* All are done with what came before, and one member changes the size. */
int chempi_io_set_size(struct chempi_file *fh, MPI_Offset size)
{
    int rc = agree_size(fh, size);
    int failed = 0;

    if (rc)
        return rc;
    if (fh->comm->rank == 0) {
        failed = fh->fd.ops->truncate(&fh->fd, size);
        fh->was_written = true;
    }
    if (failed)
        rc = chempi_io_fail(fh, failed, "changing the size of", size);
    return chempi_io_agree(fh, rc);
}

/* Zeros from the end of the file on, where nothing can be reserved. */
static int fill(struct chempi_file *file, int64_t size)
{
    char *zeros = chempi_sys->calloc(1, ZEROS_BYTES);
    struct chempi_io_stat st = {0};
    int rc = zeros ? file->fd.ops->stat(&file->fd, &st) : -ENOMEM;

    while (!rc && st.size < size) {
        uint64_t left = (uint64_t)(size - st.size);
        struct iovec run = {zeros, left < ZEROS_BYTES ? left : ZEROS_BYTES};
        uint64_t done;

        rc = chempi_io_write_runs(file, &run, 1, st.size, &done);
        st.size += (int64_t)done;
    }
    free(zeros);
    return rc;
}

static int reserve(struct chempi_file *file, int64_t size)
{
    int rc = size == 0 ? 0 : file->fd.ops->reserve(&file->fd, 0, size);

    file->was_written = true;
    return rc == -EOPNOTSUPP || rc == -ENOSYS ? fill(file, size) : rc;
}

int chempi_io_preallocate(struct chempi_file *fh, MPI_Offset size)
{
    int rc = agree_size(fh, size);
    int failed = 0;

    if (rc)
        return rc;
    if (fh->comm->rank == 0)
        failed = reserve(fh, size);
    if (failed)
        rc = chempi_io_fail(fh, failed, "reserving room in", size);
    return chempi_io_agree(fh, rc);
}

int chempi_io_get_group(struct chempi_file *fh, MPI_Group *group)
{
    return chempi_comm_get_group(fh->comm, group);
}

int chempi_io_get_amode(struct chempi_file *fh, int *amode)
{
    *amode = fh->amode;
    return MPI_SUCCESS;
}

/* ---- hints ---- */

int chempi_io_set_info(struct chempi_file *fh, struct chempi_info *info,
                       int refused)
{
    struct chempi_io_hints hints = fh->hints;
    int rc = chempi_io_quiet_for(fh, refused);

    if (!rc)
        rc = chempi_io_hints_take(&hints, info);
    rc = chempi_io_agree(fh, rc);
    if (!rc)
        rc = chempi_io_hints_share(fh->comm, &hints);
    if (rc)
        return rc;
    return chempi_io_hints_put(fh, &hints);
}

/* ---- pointers ---- */

/* Where a seek leads, in elementary types. from: of MPI_SEEK_CUR. */
static int target(struct chempi_file *file, MPI_Offset offset, int whence,
                  uint64_t from, uint64_t *out)
{
    const struct chempi_io_view *view = file->view;
    int64_t at = 0;
    int rc = MPI_SUCCESS;

    if (whence == MPI_SEEK_CUR) {
        at = (int64_t)from;
    } else if (whence == MPI_SEEK_END) {
        rc = size_of(file, &at);
        if (!rc && !view->is_ordered)
            return chempi_error_set(MPI_ERR_UNSUPPORTED_OPERATION,
                                    "MPI_SEEK_END needs a file type whose "
                                    "displacements grow");
        at = (int64_t)(chempi_io_view_below(view, at) + view->esize - 1);
        at /= view->esize ? (int64_t)view->esize : 1;
    } else if (whence != MPI_SEEK_SET) {
        rc = chempi_error_set(MPI_ERR_ARG,
                              "argument whence is %d; it must be "
                              "MPI_SEEK_SET, MPI_SEEK_CUR or MPI_SEEK_END",
                              whence);
    }
    if (rc)
        return rc;
    if (offset > INT64_MAX - at || at + offset < 0)
        return chempi_error_set(MPI_ERR_ARG,
                                "offset %" PRId64 " from %" PRId64
                                " leads before the start of the view, or too "
                                "far",
                                (int64_t)offset, at);
    *out = (uint64_t)(at + offset);
    return MPI_SUCCESS;
}

static int check_individual(const struct chempi_file *file)
{
    if (file->amode & MPI_MODE_SEQUENTIAL)
        return chempi_error_set(MPI_ERR_UNSUPPORTED_OPERATION,
                                "%s was opened with MPI_MODE_SEQUENTIAL, and "
                                "has a shared pointer only",
                                file->path);
    return MPI_SUCCESS;
}

int chempi_io_seek(struct chempi_file *fh, MPI_Offset offset, int whence)
{
    uint64_t at = 0;
    int rc = check_individual(fh);

    if (rc)
        return rc;
    (void)pthread_mutex_lock(&fh->lock);
    rc = target(fh, offset, whence, fh->pointer, &at);
    if (!rc)
        fh->pointer = at;
    (void)pthread_mutex_unlock(&fh->lock);
    return rc;
}

int chempi_io_get_position(struct chempi_file *fh, MPI_Offset *offset)
{
    int rc = check_individual(fh);

    if (rc)
        return rc;
    (void)pthread_mutex_lock(&fh->lock);
    *offset = (MPI_Offset)fh->pointer;
    (void)pthread_mutex_unlock(&fh->lock);
    return MPI_SUCCESS;
}

static const char *whence_name(int whence)
{
    return whence == MPI_SEEK_SET   ? "MPI_SEEK_SET"
           : whence == MPI_SEEK_CUR ? "MPI_SEEK_CUR"
           : whence == MPI_SEEK_END ? "MPI_SEEK_END"
                                    : NULL;
}

/* Collective: all give the same arguments; member 0 has the pointer. */
int chempi_io_seek_shared(struct chempi_file *fh, MPI_Offset offset, int whence)
{
    const struct chempi_io_same same[] = {
        {"offset", offset, NULL}, {"whence", whence, whence_name(whence)}};
    uint64_t at = 0;
    uint64_t to = 0;
    int rc = chempi_io_agree_args(fh, chempi_io_quiet(fh), same, 2);

    if (rc)
        return rc;
    if (fh->comm->rank == 0) {
        rc = chempi_io_shared_add(fh, 0, &at);
        if (!rc)
            rc = target(fh, offset, whence, at, &to);
        if (!rc)
            chempi_io_shared_set(fh, to);
    }
    return chempi_io_agree(fh, rc);
}

int chempi_io_get_position_shared(struct chempi_file *fh, MPI_Offset *offset)
{
    uint64_t at = 0;
    int rc = chempi_io_shared_add(fh, 0, &at);

    if (!rc)
        *offset = (MPI_Offset)at;
    return rc;
}

/* ---- atomic mode ---- */

int chempi_io_set_atomicity(struct chempi_file *fh, int flag)
{
    const struct chempi_io_same same = {"flag", flag != 0, NULL};
    int failed = 0;
    int rc = chempi_io_quiet(fh);

    if (!rc && flag) { /* are there locks? */
        failed = chempi_io_probe_locks(fh);
        if (failed)
            rc = chempi_io_fail(
                fh, failed, "locking, which atomic mode needs, parts of", -1);
    }
    rc = chempi_io_agree_args(fh, rc, &same, 1);
    if (!rc)
        fh->is_atomic = flag != 0;
    return rc;
}

int chempi_io_get_atomicity(struct chempi_file *fh, int *flag)
{
    *flag = fh->is_atomic;
    return MPI_SUCCESS;
}
