/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Generalized requests (MPI 5.0, section 13.2). The user's callbacks run
 * without the lane lock: query and free when a completion call harvests the
 * request, free alone when the handle was freed before. What a callback returns
 * is what the call that runs it returns.
 */
#include <stdlib.h>

#include "common/base/sys.h"
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/base/status.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/progress/progress.h"
#include "libchempi/didl/transport/request.h"

struct grequest {
    struct chempi_request req;
    MPI_Grequest_query_function *query;
    MPI_Grequest_free_function *release;
    MPI_Grequest_cancel_function *cancel;
    void *extra_state;
};

static struct grequest *grequest_of(struct chempi_request *req)
{
    return CHEMPI_CONTAINER_OF(req, struct grequest, req);
}

static int note(int rc, const char *callback)
{
    return rc == MPI_SUCCESS
               ? rc
               : chempi_error_set(rc,
                                  "the %s callback of a generalized request "
                                  "returned %d",
                                  callback, rc);
}

/* The request may be gone when the callback has completed it. */
int chempi_request_cancel_general(struct chempi_request *req)
{
    struct grequest *g = grequest_of(req);

    return note(g->cancel(g->extra_state, chempi_request_is_complete(req)),
                "cancel");
}

int chempi_request_release_general(struct chempi_request *req)
{
    struct grequest *g = grequest_of(req);
    MPI_Grequest_free_function *fn = g->release;

    g->release = NULL;
    return fn ? note(fn(g->extra_state), "free") : MPI_SUCCESS;
}

static int finish(struct chempi_request *req, MPI_Status *status)
{
    struct grequest *g = grequest_of(req);
    MPI_Status own = {0};
    int error;

    chempi_status_set_empty(&own);
    error = g->query(g->extra_state, &own);
    if (status != MPI_STATUS_IGNORE) {
        int keep = status->MPI_ERROR;

        *status = own;
        status->MPI_ERROR = keep;
    }
    return error;
}

static void destroy(struct chempi_request *req)
{
    req->obj.magic = 0;
    free(grequest_of(req));
}

static const struct chempi_request_ops ops = {
    .call = "MPI_Grequest_start",
    .start = chempi_request_start_nothing,
    .cancel = chempi_request_cancel_nothing, /* that is cancel_general()'s */
    .finish = finish,
    .destroy = destroy,
};

int chempi_request_grequest_start(MPI_Grequest_query_function *query_fn,
                                  MPI_Grequest_free_function *free_fn,
                                  MPI_Grequest_cancel_function *cancel_fn,
                                  void *extra_state, MPI_Request *request)
{
    struct grequest *g = chempi_sys->malloc(sizeof(*g));

    if (!g)
        return chempi_error_set(MPI_ERR_NO_MEM, "no memory for a request");
    chempi_request_init(&g->req, &chempi_lane_main, CHEMPI_REQUEST_GENERAL,
                        &ops, NULL, NULL);
    g->query = query_fn;
    g->release = free_fn;
    g->cancel = cancel_fn;
    g->extra_state = extra_state;
    *request = chempi_request_handle(&g->req);
    return MPI_SUCCESS;
}

int chempi_request_grequest_complete(MPI_Request request)
{
    struct chempi_request *req = chempi_request_lookup(request);
    int rc = MPI_SUCCESS;

    if (!req || req->kind != CHEMPI_REQUEST_GENERAL ||
        chempi_request_is_complete(req))
        return chempi_error_set(MPI_ERR_REQUEST,
                                "this is not a pending generalized request");
    chempi_lane_lock(&chempi_lane_main);
    if (req->is_freed) { /* if not, it cannot be before it is complete */
        chempi_lane_unlock(&chempi_lane_main);
        rc = chempi_request_release_general(req);
        chempi_lane_lock(&chempi_lane_main);
    }
    chempi_request_progress(req, MPI_SUCCESS);
    chempi_progress_nudge();
    chempi_lane_unlock(&chempi_lane_main);
    return rc;
}
