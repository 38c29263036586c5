/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cancelling a send that has a light handle (light.h): it gets a request, which
 * asks the receiver as others do (cancel.c).
 */
#include "libchempi/didl/comm/message_request.h"
#include "libchempi/didl/transport/light.h"
#include "libchempi/didl/transport/progress/progress.h"
#include "libchempi/didl/transport/worlds/foreign.h"

static void destroy_recalled(struct chempi_request *req)
{
    chempi_light_remove(req);
    chempi_message_destroy(req);
}

/* Which communicator it was sent over, and with what tag, is not known. */
static const struct chempi_request_ops recalled_ops = {
    .call = "MPI_Isend",
    .start = chempi_request_start_nothing,
    .cancel = chempi_message_cancel_send,
    .finish = chempi_message_finish_send,
    .destroy = destroy_recalled,
};

/* A request for it, which is complete; NULL: no memory. */
static struct chempi_request *
make_recalled(MPI_Request handle, struct chempi_peer *peer, uint32_t serial)
{
    struct chempi_request *req = chempi_request_alloc(peer->lane);

    if (!req)
        return NULL;
    chempi_request_init(req, peer->lane, CHEMPI_REQUEST_SEND, &recalled_ops,
                        NULL, chempi_datatype_lookup(MPI_BYTE));
    chempi_request_set_pending(req, 0);
    req->hold = CHEMPI_REQUEST_TRUSTS;
    req->count = 0;
    req->peer = peer;
    req->u.tx.env.serial = serial;
    chempi_light_add(handle, req);
    return req;
}

/* Serial numbers at the receiver are 32 bits: a message before so many others
 * counts as received, and so does one that there is no memory to ask for. */
static int recall(MPI_Request handle, struct chempi_peer *peer, uint64_t serial)
{
    const uint64_t age = (peer->serial_out - serial) & CHEMPI_LIGHT_SERIAL_MASK;
    struct chempi_request *req;

    if (age == 0 || age > peer->serial_out)
        return MPI_ERR_REQUEST;
    if (age > UINT32_MAX / 2)
        return MPI_SUCCESS;
    req = chempi_light_find(handle);
    if (!req)
        req = make_recalled(handle, peer, (uint32_t)serial);
    if (req)
        chempi_message_cancel_send(req);
    return MPI_SUCCESS;
}

int chempi_message_recall(MPI_Request handle)
{
    const struct chempi_light_message m = chempi_light_message(handle);
    struct chempi_lane *lane;
    int rc;

    if (m.lane >= chempi_lane_count || !chempi_conn_is_peer(m.proc) ||
        (m.lane > 0 && chempi_foreign_is(m.proc)))
        return MPI_ERR_REQUEST;
    lane = chempi_lanes[m.lane];
    chempi_lane_lock(lane);
    rc = recall(handle, chempi_conn_peer(lane, m.proc), m.serial);
    chempi_progress_nudge_in(lane);
    chempi_lane_unlock(lane);
    return rc;
}
