/* SPDX-License-Identifier: BSD-3-Clause */
/* Non-blocking collectives that are over before their call returns; see
 * async.h. */
#include "libchempi/didl/coll/async.h"
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

struct chempi_request *chempi_coll_over(struct chempi_comm *comm, int *rc)
{
    struct chempi_request *req = &over;

    if (CHEMPI_UNLIKELY(*rc))
        req = fail(comm, *rc);
    if (CHEMPI_LIKELY(req != NULL))
        *rc = MPI_SUCCESS;
    return req;
}
