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
#include "libchempi/didl/base/status.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/io/collective.h"
#include "libchempi/didl/io/op.h"
#include "libchempi/didl/io/task/worker.h"
#include "libchempi/didl/io/view/datarep.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/progress/progress.h"
#include "libchempi/didl/transport/request.h"

struct io_request {
    struct chempi_request req;  /* first: the handle points here */
    struct chempi_io_coll coll; /* independent ones use only op */
    struct chempi_io_job job;   /* of those */
    MPI_Status status;
    int error;
    bool is_closed; /* op is */
};

static int no_memory(void)
{
    return chempi_error_set(MPI_ERR_NO_MEM, "no memory for a request");
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
    chempi_io_op_correct_pointer(&op, c->place);
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

static struct io_request *of_task(struct chempi_io_task *t)
{
    return CHEMPI_CONTAINER_OF(chempi_io_coll_of(t), struct io_request, coll);
}

/* Converts, which may run user code; told again, it says the same. */
static int finish(struct chempi_request *req, MPI_Status *status)
{
    struct io_request *r = of_request(req);
    struct chempi_io_op *op = &r->coll.op;
    int rc = r->error;

    if (!r->is_closed) {
        chempi_object_hold(&op->file->obj);
        rc = chempi_io_op_close(op, &r->status);
        r->error = rc;
        r->is_closed = true;
    } else if (rc) {
        (void)chempi_error_set(rc, "%s", op->words);
    }
    if (rc)
        chempi_error_blame(&op->file->obj);
    if (status != MPI_STATUS_IGNORE) {
        int keep = status->MPI_ERROR;

        *status = r->status;
        status->MPI_ERROR = keep;
    }
    return rc;
}

/* Of a handle that was freed nobody hears; functions of the user's cannot run
 * here. */
static void destroy(struct chempi_request *req)
{
    struct io_request *r = of_request(req);
    struct chempi_io_op *op = &r->coll.op;
    struct chempi_file *file = op->file;

    if (!r->is_closed) {
        chempi_object_hold(&file->obj);
        if (chempi_io_datarep_is_users(op->view->rep))
            op->done = 0;
        if (chempi_io_op_close(op, MPI_STATUS_IGNORE))
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
    chempi_io_op_run(&of_job(job)->coll.op);
}

static void finish_job(struct chempi_io_job *job)
{
    struct io_request *r = of_job(job);

    (void)atomic_fetch_sub(&r->coll.op.file->jobs, 1);
    chempi_request_progress(&r->req, MPI_SUCCESS);
}

static void end_task(struct chempi_io_task *t)
{
    chempi_request_progress(&of_task(t)->req, MPI_SUCCESS);
}

static struct io_request *make_request(bool is_write)
{
    struct io_request *r = chempi_sys->calloc(1, sizeof(*r));

    if (!r)
        return NULL;
    chempi_request_init(&r->req, &chempi_lane_main, CHEMPI_REQUEST_FILE,
                        &ops[is_write], NULL, NULL);
    chempi_list_init(&r->job.link);
    r->job.run = run_job;
    r->job.finish = finish_job;
    return r;
}

static int start_alone(const struct chempi_io_call *c, struct io_request *r)
{
    int rc = chempi_io_op_open(&r->coll.op, c);

    if (rc) {
        free(r);
        return rc;
    }
    (void)atomic_fetch_add(&c->file->jobs, 1);
    chempi_io_submit(&r->job);
    return MPI_SUCCESS;
}

/* A member whose arguments are wrong has no request; the others have one, and
 * its part of the access goes on without it. */
static int start_together(const struct chempi_io_call *c, struct io_request *r)
{
    int rc = chempi_io_coll_start(&r->coll, c, end_task);

    if (!rc)
        return MPI_SUCCESS;
    chempi_lane_lock(&chempi_lane_main);
    if (chempi_request_is_complete(&r->req))
        chempi_request_drop(&r->req);
    else
        chempi_request_orphan(&r->req);
    chempi_lane_unlock(&chempi_lane_main);
    return rc;
}

static int start(const struct chempi_io_call *c, struct chempi_request **out)
{
    struct io_request *r = make_request(c->is_write);
    int rc;

    if (!r && c->is_collective)
        chempi_io_task_starve();
    if (!r)
        return no_memory();
    rc = c->is_collective ? start_together(c, r) : start_alone(c, r);
    if (!rc)
        *out = &r->req;
    return rc;
}

int chempi_io_start(const struct chempi_io_call *c, MPI_Request *request)
{
    struct chempi_request *req = NULL;
    int rc = start(c, &req);

    if (!rc)
        *request = chempi_request_handle(req);
    return rc;
}

/* ---- split collectives ---- */

/* The request waits in the file for the end call. */
int chempi_io_begin(const struct chempi_io_call *c)
{
    struct chempi_file *file = c->file;
    struct chempi_request *req = NULL;
    int rc = start(c, &req); /* fails where one is under way */

    if (rc)
        return rc;
    file->split = req;
    file->split_place = (uint8_t)c->place;
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
    if (!rc) {
        chempi_io_op_correct_pointer(&of_request(req)->coll.op,
                                     file->split_place);
        rc = req->ops->finish(req, status);
    }
    chempi_lane_lock(&chempi_lane_main);
    chempi_request_drop(req);
    chempi_lane_unlock(&chempi_lane_main);
    return rc;
}
