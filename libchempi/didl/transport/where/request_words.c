/* SPDX-License-Identifier: BSD-3-Clause */
/* What a request stands for, and why it has failed, in words; request.h. */
#include <stdio.h>

#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/transport/conn.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/loss.h"
#include "libchempi/didl/transport/request.h"
#include "libchempi/didl/transport/worlds/foreign.h"

enum { WHOM_TEXT = 320 }; /* bytes; node names are longer only by mistake */

const char *chempi_request_call(const struct chempi_request *req)
{
    static const char *const sends[][2] = {
        [CHEMPI_SEND_STANDARD] = {"MPI_Isend", "MPI_Send_init"},
        [CHEMPI_SEND_SYNC] = {"MPI_Issend", "MPI_Ssend_init"},
        [CHEMPI_SEND_BUFFERED] = {"MPI_Ibsend", "MPI_Bsend_init"},
        [CHEMPI_SEND_READY] = {"MPI_Irsend", "MPI_Rsend_init"},
    };

    if (req->kind == CHEMPI_REQUEST_SEND)
        return sends[req->mode][req->is_persistent ? 1 : 0];
    if (req->kind == CHEMPI_REQUEST_RECV && req->is_persistent)
        return "MPI_Recv_init";
    return req->ops->call;
}

/* The device that messages of this length to the peer take, or NULL. */
static const char *device_of(const struct chempi_request *req)
{
    const char *name = NULL;

    chempi_lane_lock(&chempi_lane_main);
    if (req->peer->routes)
        name = chempi_conn_route(req->peer,
                                 (uint64_t)(req->count * req->type->size))
                   ->ops->name;
    chempi_lane_unlock(&chempi_lane_main);
    return name;
}

/* " to rank 1 on node b by tcp"; nothing where there is no peer. */
static void put_whom(const struct chempi_request *req, char *buf, size_t len)
{
    const bool is_send = req->kind == CHEMPI_REQUEST_SEND;
    const char *device = is_send ? device_of(req) : NULL;
    const int32_t rank =
        is_send || req->source < 0 ? req->peer_rank : req->source;
    uint32_t proc;

    if (rank < 0 || (uint32_t)rank >= req->comm->remote_size) {
        (void)snprintf(buf, len, " from any rank");
        return;
    }
    proc = chempi_comm_proc(req->comm, (uint32_t)rank);
    (void)snprintf(buf, len, " %s rank %d on node %s%s%s",
                   is_send ? "to" : "from", (int)rank,
                   chempi_foreign_node_name(proc), device ? " by " : "",
                   device ? device : "");
}

int chempi_request_explain(const struct chempi_request *req, int error)
{
    char whom[WHOM_TEXT] = "";
    char why[CHEMPI_ERR_TEXT_MAX] = "";
    const char *noted;

    if (req->comm)
        chempi_loss_explain(req->comm, -1, error);
    chempi_error_explain(error);
    noted = chempi_error_noted(error);
    if (noted)
        (void)snprintf(why, sizeof(why), "%s", noted);
    if (req->kind == CHEMPI_REQUEST_SEND || req->kind == CHEMPI_REQUEST_RECV)
        put_whom(req, whom, sizeof(whom));
    return chempi_error_set(error, "%s%s%s%s", chempi_request_call(req), whom,
                            noted ? ": " : " has failed", why);
}
