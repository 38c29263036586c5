/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Errors of files in words, and error handlers of files (MPI 5.0, sections 9.3
 * and 14.7). A new file has the one of MPI_FILE_NULL, which is
 * MPI_ERRORS_RETURN at first and hears of errors that belong to no open file.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/fd/file.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/io/file.h"
#include "libchempi/didl/io/op.h"
#include "libchempi/didl/transport/loss.h"

static int class_of(int neg_errno)
{
    switch (-neg_errno) {
    case ENOENT:
        return MPI_ERR_NO_SUCH_FILE;
    case EEXIST:
        return MPI_ERR_FILE_EXISTS;
    case EACCES:
    case EPERM:
        return MPI_ERR_ACCESS;
    case EROFS:
        return MPI_ERR_READ_ONLY;
    case ENOSPC:
        return MPI_ERR_NO_SPACE;
    case EDQUOT:
    case EFBIG:
        return MPI_ERR_QUOTA;
    case EISDIR:
    case ENOTDIR:
    case ENAMETOOLONG:
    case ELOOP:
        return MPI_ERR_BAD_FILE;
    case ETXTBSY:
    case EBUSY:
        return MPI_ERR_FILE_IN_USE;
    case ENOMEM:
        return MPI_ERR_NO_MEM;
    case ENOLCK:
    case EOPNOTSUPP:
    case ENOSYS:
        return MPI_ERR_UNSUPPORTED_OPERATION;
    default:
        return MPI_ERR_IO;
    }
}

/* A file may not be as large: of two limits, the lower one. */
static const char *whose_limit(int64_t offset)
{
    uint64_t limit = chempi_file_size_limit();

    return limit == UINT64_MAX || (offset >= 0 && (uint64_t)offset < limit)
               ? "; the file system has no larger files"
               : "; see 'ulimit -f'";
}

int chempi_io_fail_path(const char *path, int neg_errno, const char *what,
                        int64_t offset)
{
    const char *limit = neg_errno == -EFBIG ? whose_limit(offset) : "";
    char where[48] = "";

    if (offset >= 0)
        (void)snprintf(where, sizeof(where), " at offset %" PRId64, offset);
    return chempi_error_set(class_of(neg_errno), "%s %.160s%s: %s (errno %d)%s",
                            what, path, where, chempi_err_name(neg_errno),
                            -neg_errno, limit);
}

int chempi_io_fail(const struct chempi_file *file, int neg_errno,
                   const char *what, int64_t offset)
{
    return chempi_io_fail_path(file->path, neg_errno, what, offset);
}

int chempi_io_name_path(const char *whole, int rc, int64_t offset)
{
    const char *noted;
    char where[48] = "";
    char words[256];
    char path[121];

    chempi_error_explain(rc);
    noted = chempi_error_noted(rc);
    (void)snprintf(path, sizeof(path), "%s", whole);
    if (rc == MPI_SUCCESS || (noted && strstr(noted, path)))
        return rc;
    (void)snprintf(words, sizeof(words), "%s", noted ? noted : "");
    if (offset >= 0)
        (void)snprintf(where, sizeof(where), ", offset %" PRId64, offset);
    return chempi_error_set(rc, "%s%s: %s", path, where, words);
}

int chempi_io_name_file(const struct chempi_file *file, int rc, int64_t offset)
{
    chempi_loss_explain(file->comm, -1, rc);
    return chempi_io_name_path(file->path, rc, offset);
}

void chempi_io_op_note(struct chempi_io_op *op, int rc)
{
    const char *noted;

    if (rc == MPI_SUCCESS || op->error)
        return;
    op->error = chempi_io_name_file(op->file, rc, -1);
    noted = chempi_error_noted(rc);
    (void)snprintf(op->words, sizeof(op->words), "%s", noted ? noted : "");
    chempi_error_forget();
}

void chempi_io_op_fail(struct chempi_io_op *op, int neg_errno, const char *what,
                       int64_t offset)
{
    if (neg_errno)
        chempi_io_op_note(op,
                          chempi_io_fail(op->file, neg_errno, what, offset));
}
