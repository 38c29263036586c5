/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting for one request; see request.h. */
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/progress/progress.h"
#include "libchempi/didl/transport/request.h"

static bool is_done(void *arg)
{
    return chempi_request_is_complete(arg);
}

int chempi_request_await(struct chempi_request *req)
{
    struct chempi_lane *lane = req->lane;
    int rc;

    chempi_lane_lock(lane);
    rc = chempi_progress_wait_in(lane, is_done, req,
                                 chempi_wait_report_put_request, req);
    chempi_lane_unlock(lane);
    return rc;
}

int chempi_request_await_locked(struct chempi_request *req)
{
    if (req->kind == CHEMPI_REQUEST_COLL && req->ops->await &&
        !chempi_lane_main.is_locking)
        return req->ops->await(req);
    return chempi_progress_wait_in(req->lane, is_done, req,
                                   chempi_wait_report_put_request, req);
}
