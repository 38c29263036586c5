/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the reading and writing calls have in common: blocking ones run here,
 * non-blocking ones in a worker or, where they are collective, as two-phase
 * access that goes on in progress; a split collective is a non-blocking one
 * whose request the file keeps.
 */
#include <errno.h>
#include <stdlib.h>

#include "common/base/sys.h"
#include "libchempi/didl/base/error.h"
#include "libchempi/didl/base/status.h"
#include "libchempi/didl/io/collective.h"
#include "libchempi/didl/io/op.h"
#include "libchempi/didl/io/worker.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/progress.h"
#include "libchempi/didl/transport/request.h"

struct io_request {
    struct chempi_request req; /* first: the handle points here */
    struct chempi_io_job job;
    struct chempi_io_op op;
    MPI_Status status;
    int error;
    bool is_closed; /* op is */
};

static int no_memory(void)
{
    return chempi_error_set(MPI_ERR_NO_MEM, "no memory for a request");
}

/* A read that ends early leaves the pointer where it stopped. */
static void correct_pointer(const struct chempi_io_call *c,
                            const struct chempi_io_op *op)
{
    struct chempi_file *file = op->file;
    uint64_t esize = op->view->esize;

    if (c->place != CHEMPI_IO_INDIVIDUAL || op->done == op->bytes)
        return;
    (void)pthread_mutex_lock(&file->lock);
    if (file->view == op->view)
        file->pointer -= (op->bytes - op->done) / esize;
    (void)pthread_mutex_unlock(&file->lock);
}

int chempi_io_do(const struct chempi_io_call *c, MPI_Status *status)
{
    struct chempi_io_op op;
    int rc;

    if (c->is_collective)
        return chempi_io_collective(c, status);
    rc = chempi_io_op_open(&op, c);
    if (rc)
        return rc;
    chempi_io_op_run(&op);
    correct_pointer(c, &op);
    return chempi_io_op_close(&op, status);
}

/* ---- requests ---- */

static struct io_request *of_request(struct chempi_request *req)
{
    return CHEMPI_CONTAINER_OF(req, struct io_request, req);
}

static struct io_request *of_job(struct chempi_io_job *job)
{
    return CHEMPI_CONTAINER_OF(job, struct io_request, job);
}

/* Converts, which may run user code; told again, it says the same. */
static int finish(struct chempi_request *req, MPI_Status *status)
{
    struct io_request *r = of_request(req);
    int rc = r->error;

    if (!r->is_closed) {
        chempi_object_hold(&r->op.file->obj);
        rc = chempi_io_op_close(&r->op, &r->status);
        r->error = rc;
        r->is_closed = true;
    } else if (rc) {
        (void)chempi_error_set(rc, "%s", r->op.words);
    }
    if (rc)
        chempi_error_blame(&r->op.file->obj);
    if (status != MPI_STATUS_IGNORE) {
        int keep = status->MPI_ERROR;

        *status = r->status;
        status->MPI_ERROR = keep;
    }
    return rc;
}

static void destroy(struct chempi_request *req)
{
    struct io_request *r = of_request(req);
    struct chempi_file *file = r->op.file;

    if (!r->is_closed) { /* the handle was freed: nobody hears of it */
        chempi_object_hold(&file->obj);
        if (chempi_io_op_close(&r->op, MPI_STATUS_IGNORE))
            chempi_error_forget();
    }
    req->obj.magic = 0;
    chempi_file_release(file);
    free(r);
}

static const struct chempi_request_ops ops[2] = {
    {.call = "reading a file",
     .start = chempi_request_start_nothing,
     .cancel = chempi_request_cancel_nothing,
     .finish = finish,
     .destroy = destroy},
    {.call = "writing a file",
     .start = chempi_request_start_nothing,
     .cancel = chempi_request_cancel_nothing,
     .finish = finish,
     .destroy = destroy},
};

static void run_job(struct chempi_io_job *job)
{
    chempi_io_op_run(&of_job(job)->op);
}

static void finish_job(struct chempi_io_job *job)
{
    chempi_request_progress(&of_job(job)->req, MPI_SUCCESS);
}

static int make_request(const struct chempi_io_call *c, struct io_request **out)
{
    struct io_request *r = chempi_sys->calloc(1, sizeof(*r));
    int rc;

    if (!r)
        return no_memory();
    rc = chempi_io_op_open(&r->op, c);
    if (rc) {
        free(r);
        return rc;
    }
    chempi_request_init(&r->req, CHEMPI_REQUEST_FILE, &ops[c->is_write], NULL,
                        NULL);
    chempi_list_init(&r->job.link);
    r->job.run = run_job;
    r->job.finish = finish_job;
    *out = r;
    return MPI_SUCCESS;
}

int chempi_io_start(const struct chempi_io_call *c, MPI_Request *request)
{
    struct io_request *r = NULL;
    int rc = make_request(c, &r);

    if (rc)
        return rc;
    *request = chempi_request_handle(&r->req);
    chempi_io_submit(&r->job);
    return MPI_SUCCESS;
}

/* ---- split collectives ---- */

/* The status of the collective waits in a request for the end call. */
static int begin(const struct chempi_io_call *c)
{
    struct chempi_file *file = c->file;
    struct io_request *r = chempi_sys->calloc(1, sizeof(*r));
    int rc;

    if (!r)
        return no_memory();
    rc = chempi_io_collective(c, &r->status);
    if (rc) {
        free(r);
        return rc;
    }
    r->op.file = file;
    r->is_closed = true;
    chempi_object_hold(&file->obj);
    chempi_request_init(&r->req, CHEMPI_REQUEST_FILE, &ops[c->is_write], NULL,
                        NULL);
    r->req.pending = 0;
    file->split = &r->req;
    return MPI_SUCCESS;
}

int chempi_io_begin(const struct chempi_io_call *c)
{
    struct chempi_file *file = c->file;
    int rc;

    if (file->split)
        return chempi_error_set(MPI_ERR_IO,
                                "a split collective operation on %s is under "
                                "way; each file can have one at a time",
                                file->path);
    rc = begin(c);
    if (rc)
        return rc;
    file->is_split_write = c->is_write;
    file->split_buf = c->buf;
    return MPI_SUCCESS;
}

int chempi_io_end(struct chempi_file *file, const void *buf, bool is_write,
                  MPI_Status *status)
{
    struct chempi_request *req = file->split;
    int rc;

    if (!req || file->is_split_write != is_write)
        return chempi_error_set(MPI_ERR_IO,
                                "no split collective operation that %s was "
                                "begun on %s",
                                is_write ? "writes" : "reads", file->path);
    if (file->split_buf != buf)
        return chempi_error_set(MPI_ERR_BUFFER,
                                "argument buf is not the buffer that the "
                                "operation was begun with");
    file->split = NULL;
    rc = chempi_request_await(req);
    if (!rc)
        rc = req->ops->finish(req, status);
    chempi_lane_lock(&chempi_lane_main);
    chempi_request_drop(req);
    chempi_lane_unlock(&chempi_lane_main);
    return rc;
}
