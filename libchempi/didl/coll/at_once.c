/* SPDX-License-Identifier: BSD-3-Clause */
/* Non-blocking collectives that are over before their call returns; see
 * async.h. */
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/coll/async.h"
#include "libchempi/didl/coll/node/node_later.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/request.h"

/* Of an error: whose it is. */
static void destroy(struct chempi_request *req)
{
    chempi_comm_release(req->comm);
    chempi_request_recycle(req);
}

static void keep(struct chempi_request *req)
{
    (void)req;
}

#define OPS(end)                                                               \
    {                                                                          \
        .call = "a non-blocking collective operation",                         \
        .start = chempi_request_start_nothing,                                 \
        .cancel = chempi_request_cancel_nothing,                               \
        .finish = chempi_request_finish_empty, .destroy = (end)                \
    }

static const struct chempi_request_ops failed_ops = OPS(destroy);
static const struct chempi_request_ops over_ops = OPS(keep);

/* Of all that are over without an error: nothing tells one from another, and
 * nobody writes it. */
static struct chempi_request over = {
    .obj = {.magic = CHEMPI_MAGIC_REQUEST, .refs = 1},
    .ops = &over_ops,
    .kind = CHEMPI_REQUEST_COLL,
    .is_active = true,
};

/* NULL: there is no memory. */
static CHEMPI_COLD struct chempi_request *fail(struct chempi_comm *comm, int rc)
{
    struct chempi_request *req = chempi_request_alloc();

    if (!req)
        return NULL;
    chempi_request_init(req, CHEMPI_REQUEST_COLL, &failed_ops, comm, NULL);
    req->pending = 0;
    req->error = rc;
    return req;
}

bool chempi_coll_at_once(const struct chempi_coll_call *c, MPI_Request *request,
                         int *rc)
{
    struct chempi_request *req = &over;
    int code = MPI_SUCCESS;

    chempi_lane_lock(&chempi_lane_main);
    if (!chempi_node_later_at_once(c, &code)) {
        chempi_lane_pause(&chempi_lane_main);
        return false;
    }
    (void)chempi_coll_next_tag(c->comm);
    if (CHEMPI_UNLIKELY(code))
        req = fail(c->comm, code);
    *rc = CHEMPI_LIKELY(req != NULL) ? MPI_SUCCESS : code;
    if (CHEMPI_LIKELY(req != NULL))
        *request = chempi_request_handle(req);
    chempi_lane_unlock(&chempi_lane_main);
    return true;
}
