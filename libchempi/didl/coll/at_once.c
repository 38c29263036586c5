/* SPDX-License-Identifier: BSD-3-Clause */
/* Non-blocking collectives that have failed before their call returns; see
 * async.h. */
#include "libchempi/didl/coll/async.h"
#include "libchempi/didl/transport/lane.h"

/* Of an error: whose it is. */
static void destroy(struct chempi_request *req)
{
    chempi_comm_release(req->comm);
    chempi_request_recycle(req);
}

#define FAILED(kind, small, large)                                             \
    [kind] = {.call = "MPI_I" small,                                           \
              .start = chempi_request_start_nothing,                           \
              .cancel = chempi_request_cancel_nothing,                         \
              .finish = chempi_request_finish_empty,                           \
              .destroy = destroy},

static const struct chempi_request_ops failed_ops[CHEMPI_COLL_KIND_COUNT] = {
    CHEMPI_COLL_NAMES(FAILED)};

CHEMPI_COLD struct chempi_request *
chempi_coll_failed(const struct chempi_coll_call *c, int *rc)
{
    struct chempi_request *req = chempi_request_alloc(&chempi_lane_main);

    if (!req)
        return NULL;
    chempi_request_init(req, &chempi_lane_main, CHEMPI_REQUEST_COLL,
                        &failed_ops[c->kind], c->comm, NULL);
    chempi_request_set_pending(req, 0);
    req->error = *rc;
    *rc = MPI_SUCCESS;
    return req;
}
