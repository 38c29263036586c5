/* SPDX-License-Identifier: BSD-3-Clause */
/* Non-blocking collectives that are over before their call returns; see
 * async.h. */
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/coll/async.h"
#include "libchempi/didl/coll/node/node_later.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/request.h"

static void destroy(struct chempi_request *req)
{
    if (CHEMPI_UNLIKELY(req->comm != NULL))
        chempi_comm_release(req->comm);
    chempi_request_recycle(req);
}

static const struct chempi_request_ops ops = {
    .call = "a non-blocking collective operation",
    .start = chempi_request_start_nothing,
    .cancel = chempi_request_cancel_nothing,
    .finish = chempi_request_finish_empty,
    .destroy = destroy,
};

bool chempi_coll_at_once(const struct chempi_coll_call *c, MPI_Request *request)
{
    struct chempi_request *req;
    int rc = MPI_SUCCESS;

    chempi_lane_lock(&chempi_lane_main);
    req = chempi_request_alloc();
    if (!req || !chempi_node_later_at_once(c, &rc)) {
        if (req)
            chempi_request_recycle(req);
        chempi_lane_pause(&chempi_lane_main);
        return false;
    }
    (void)chempi_coll_next_tag(c->comm);
    /* Whose error it is. */
    chempi_request_init(req, CHEMPI_REQUEST_COLL, &ops, rc ? c->comm : NULL,
                        NULL);
    req->pending = 0;
    req->error = rc;
    *request = chempi_request_handle(req);
    chempi_lane_unlock(&chempi_lane_main);
    return true;
}
