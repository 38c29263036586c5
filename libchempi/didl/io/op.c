/* SPDX-License-Identifier: BSD-3-Clause */
/* From the arguments of a call to an operation, and back; see op.h. */
#include "libchempi/didl/io/op.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "libchempi/didl/base/status.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/io/count.h"
#include "libchempi/didl/io/shared.h"
#include "libchempi/didl/io/view/datarep.h"

static int check_mode(const struct chempi_io_call *c)
{
    int amode = c->file->amode;

    if (c->is_write && amode & MPI_MODE_RDONLY)
        return chempi_error_set(MPI_ERR_READ_ONLY,
                                "%s was opened with MPI_MODE_RDONLY",
                                c->file->path);
    if (!c->is_write && amode & MPI_MODE_WRONLY)
        return chempi_error_set(MPI_ERR_ACCESS,
                                "%s was opened with MPI_MODE_WRONLY",
                                c->file->path);
    if (amode & MPI_MODE_SEQUENTIAL && c->place != CHEMPI_IO_SHARED)
        return chempi_error_set(MPI_ERR_UNSUPPORTED_OPERATION,
                                "%s was opened with MPI_MODE_SEQUENTIAL: use "
                                "the calls with the shared pointer",
                                c->file->path);
    if (c->place == CHEMPI_IO_AT && c->offset < 0)
        return chempi_error_set(
            MPI_ERR_ARG, "argument offset is %" PRId64 "; it must be 0 or more",
            (int64_t)c->offset);
    return MPI_SUCCESS;
}

/* Bytes in the file; whole elementary types. */
static int measure(const struct chempi_io_op *op, uint64_t *bytes)
{
    const struct chempi_io_view *view = op->view;
    MPI_Count each;
    int rc = chempi_io_datarep_size(view->rep, op->type, &each);

    if (rc)
        return rc;
    if (each > 0 && op->count > INT64_MAX / 2 / each)
        return chempi_error_set(MPI_ERR_COUNT,
                                "%" PRId64 " elements of %" PRId64
                                " bytes are more than a file can hold",
                                (int64_t)op->count, (int64_t)each);
    *bytes = (uint64_t)each * (uint64_t)op->count;
    if (*bytes > 0 && (view->esize == 0 || view->tile.size == 0))
        return chempi_error_set(MPI_ERR_IO, "the file type of the view has no "
                                            "bytes");
    if (*bytes > 0 && *bytes % view->esize != 0)
        return chempi_error_set(
            MPI_ERR_IO,
            "%" PRIu64 " bytes are no multiple of the view's elementary type, "
            "which has %" PRIu64,
            *bytes, view->esize);
    return MPI_SUCCESS;
}

int chempi_io_op_place(struct chempi_io_op *op, uint64_t at)
{
    const struct chempi_io_view *view = op->view;
    uint64_t esize = view->esize;

    if (esize > 0 &&
        (at > INT64_MAX / 2 / esize ||
         (op->bytes > 0 &&
          (at * esize + op->bytes) / view->tile.size >= view->tiles)))
        return chempi_error_set(MPI_ERR_ARG,
                                "offset %" PRIu64 " in elementary types of "
                                "%" PRIu64 " bytes is beyond 2^61 bytes",
                                at, esize);
    op->position = at * esize;
    return MPI_SUCCESS;
}

/* The individual pointer moves by what is asked for. */
static int place_at_pointer(struct chempi_io_op *op, uint64_t etypes)
{
    struct chempi_file *file = op->file;
    int rc;

    (void)pthread_mutex_lock(&file->lock);
    rc = chempi_io_op_place(op, file->pointer);
    if (!rc)
        file->pointer += etypes;
    (void)pthread_mutex_unlock(&file->lock);
    return rc;
}

/* In ordered access the place comes later. */
static int find_place(struct chempi_io_op *op, const struct chempi_io_call *c)
{
    uint64_t esize = op->view->esize;
    uint64_t etypes = esize ? op->bytes / esize : 0;
    uint64_t at = 0;
    int rc;

    if (c->place == CHEMPI_IO_INDIVIDUAL)
        return place_at_pointer(op, etypes);
    if (c->place == CHEMPI_IO_AT)
        return chempi_io_op_place(op, (uint64_t)c->offset);
    if (c->is_collective)
        return MPI_SUCCESS;
    rc = chempi_io_shared_add(op->file, etypes, &at);
    if (rc)
        return rc;
    rc = chempi_io_op_place(op, at);
    if (rc) /* whoever comes later is not led there */
        (void)chempi_io_shared_add(op->file, 0 - etypes, &at);
    return rc;
}

static bool is_consecutive(const struct chempi_io_op *op)
{
    return op->type->is_contiguous ||
           (op->count == 1 && op->type->layout &&
            op->type->layout->root->kind == CHEMPI_LAYOUT_BLOCK);
}

/* The memory side. */
static int aim(struct chempi_io_op *op)
{
    if (op->bytes == 0)
        return MPI_SUCCESS;
    if (op->view->rep) {
        op->converted = chempi_sys->malloc(op->bytes);
        op->mem = op->converted;
        if (!op->mem)
            return chempi_error_set(MPI_ERR_NO_MEM,
                                    "no memory for %" PRIu64
                                    " bytes in the file's representation",
                                    op->bytes);
        return op->is_write
                   ? chempi_io_datarep_to_file(op->view->rep, op->buf,
                                               op->count, op->type, op->mem)
                   : MPI_SUCCESS;
    }
    if (is_consecutive(op)) {
        op->mem = (char *)((uintptr_t)op->buf + (uintptr_t)op->type->true_lb);
        return MPI_SUCCESS;
    }
    chempi_segment_init(&op->iter, op->buf, (uint64_t)op->count,
                        op->type->layout);
    return MPI_SUCCESS;
}

static void let_go(struct chempi_io_op *op)
{
    free(op->converted);
    chempi_io_view_release(op->view);
    if (!op->type->is_predefined)
        chempi_datatype_release(op->type);
    chempi_file_release(op->file);
}

int chempi_io_op_open(struct chempi_io_op *op, const struct chempi_io_call *c)
{
    int rc = check_mode(c);

    if (rc)
        return rc;
    *op = (struct chempi_io_op){.file = c->file,
                                .is_write = c->is_write,
                                .is_atomic = c->file->is_atomic,
                                .buf = c->buf,
                                .count = c->count,
                                .type = c->type};
    (void)pthread_mutex_lock(&c->file->lock);
    op->view = chempi_io_view_hold(c->file->view);
    (void)pthread_mutex_unlock(&c->file->lock);
    chempi_object_hold(&c->file->obj);
    chempi_datatype_hold(op->type);
    rc = measure(op, &op->bytes);
    if (!rc)
        rc = find_place(op, c);
    if (!rc) {
        rc = aim(op);
        if (rc)
            chempi_io_op_correct_pointer(op, c->place); /* nothing is moved */
    }
    if (rc)
        let_go(op);
    else
        chempi_io_count(CHEMPI_IO_COUNT_ASKED, op->bytes);
    return rc;
}

void chempi_io_op_open_empty(struct chempi_io_op *op,
                             const struct chempi_io_call *c, int rc)
{
    *op = (struct chempi_io_op){.file = c->file,
                                .is_write = c->is_write,
                                .is_atomic = c->file->is_atomic,
                                .type = chempi_datatype_lookup(MPI_BYTE)};
    chempi_io_op_note(op,
                      chempi_io_name_file(c->file, rc,
                                          c->refused || c->place != CHEMPI_IO_AT
                                              ? -1
                                              : (int64_t)c->offset));
    op->view = chempi_io_view_hold(c->file->view);
    chempi_object_hold(&c->file->obj);
}

void chempi_io_op_correct_pointer(struct chempi_io_op *op,
                                  enum chempi_io_place place)
{
    struct chempi_file *file = op->file;
    uint64_t esize = op->view->esize;

    if (place != CHEMPI_IO_INDIVIDUAL || op->done >= op->bytes)
        return;
    (void)pthread_mutex_lock(&file->lock);
    if (file->view == op->view &&
        file->pointer == (op->position + op->bytes) / esize)
        file->pointer -= (op->bytes - op->done) / esize;
    (void)pthread_mutex_unlock(&file->lock);
}

/* What of the user's data was moved, in bytes of memory. */
static MPI_Count bytes_moved(const struct chempi_io_op *op)
{
    uint64_t each;

    if (!op->view->rep || op->bytes == 0)
        return (MPI_Count)op->done;
    each = op->bytes / (uint64_t)op->count;
    return (MPI_Count)(op->done / each) * op->type->size;
}

int chempi_io_op_close(struct chempi_io_op *op, MPI_Status *status)
{
    uint64_t each = op->bytes > 0 ? op->bytes / (uint64_t)op->count : 1;
    int rc = op->error;

    if (rc)
        (void)chempi_error_set(rc, "%s", op->words);
    if (op->converted && !op->is_write && op->done >= each) {
        int failed = chempi_io_datarep_from_file(op->view->rep, op->buf,
                                                 (MPI_Count)(op->done / each),
                                                 op->type, op->mem);

        rc = rc ? rc : failed;
    }
    chempi_status_set(status, MPI_ANY_SOURCE, MPI_ANY_TAG, bytes_moved(op),
                      false);
    let_go(op);
    return rc;
}

void chempi_io_op_pack(struct chempi_io_op *op, uint64_t position, void *to,
                       uint64_t len)
{
    if (op->mem) {
        memcpy(to, op->mem + position, len);
        return;
    }
    chempi_segment_seek(&op->iter, position);
    (void)chempi_segment_pack(&op->iter, to, len);
}

void chempi_io_op_unpack(struct chempi_io_op *op, uint64_t position,
                         const void *from, uint64_t len)
{
    if (op->mem) {
        memcpy(op->mem + position, from, len);
        return;
    }
    chempi_segment_seek(&op->iter, position);
    (void)chempi_segment_unpack(&op->iter, from, len);
}
