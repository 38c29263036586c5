/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Persistent point-to-point requests (MPI 5.0, section 3.9) and the combined
 * calls that need more than one request or a copy of the data.
 */
#include <stdlib.h>

#include "common/base/sys.h"
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/base/status.h"
#include "libchempi/didl/comm/message_request.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/pt2pt/buffer.h"
#include "libchempi/didl/transport/engine.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/progress/progress.h"

static struct chempi_request *alloc_request(struct chempi_lane *lane)
{
    struct chempi_request *req;

    chempi_lane_lock(lane);
    req = chempi_request_alloc(lane);
    chempi_lane_unlock(lane);
    return req;
}

static void make_persistent(struct chempi_request *req, MPI_Request *request)
{
    req->is_persistent = true;
    req->is_active = false;
    chempi_request_set_pending(req, 0);
    chempi_lane_lock(req->lane);
    chempi_message_hold(req);
    chempi_lane_unlock(req->lane);
    *request = chempi_request_handle(req);
}

int chempi_pt2pt_send_init(const void *buf, MPI_Count count,
                           struct chempi_datatype *type, int dest, int tag,
                           struct chempi_comm *comm, MPI_Request *request,
                           int mode)
{
    struct chempi_request *req = alloc_request(comm->lane);

    if (!req)
        return chempi_message_no_memory();
    chempi_message_init_send(req, buf, count, type, dest, tag, comm,
                             CHEMPI_CONTEXT_PT2PT, (enum chempi_send_mode)mode);
    if (mode == CHEMPI_SEND_BUFFERED)
        chempi_buffer_adopt(req);
    make_persistent(req, request);
    return MPI_SUCCESS;
}

int chempi_pt2pt_recv_init(void *buf, MPI_Count count,
                           struct chempi_datatype *datatype, int source,
                           int tag, struct chempi_comm *comm,
                           MPI_Request *request)
{
    struct chempi_request *req = alloc_request(comm->lane);

    if (!req)
        return chempi_message_no_memory();
    chempi_message_init_recv(req, buf, count, datatype, source, tag, comm,
                             CHEMPI_CONTEXT_PT2PT);
    make_persistent(req, request);
    return MPI_SUCCESS;
}

/* ---- send and receive in one request ---- */

static int finish_pair(struct chempi_request *req, MPI_Status *status)
{
    MPI_Count bytes = req->bytes;
    int error = req->error;

    if (error == MPI_ERR_TRUNCATE) {
        bytes = req->count * req->type->size;
        error = chempi_error_set(
            error, "the message received has %lld bytes, the buffer %lld",
            (long long)req->bytes, (long long)bytes);
    }
    if (req->peer_rank == MPI_PROC_NULL)
        chempi_status_set_proc_null(status);
    else
        chempi_status_set(status, req->source, req->tag, bytes, false);
    return error;
}

static void destroy_pair(struct chempi_request *req)
{
    free(req->packed);
    chempi_message_fini(req);
    chempi_request_recycle(req);
}

static const struct chempi_request_ops pair_ops = {
    .call = "MPI_Isendrecv",
    .start = chempi_request_start_nothing,
    .cancel = chempi_request_cancel_nothing,
    .finish = finish_pair,
    .destroy = destroy_pair,
};

/* Start a half of a pair as an orphan that tells its parent. */
static int start_half(struct chempi_request *half,
                      struct chempi_request *parent)
{
    int rc;

    half->parent = parent;
    half->is_freed = false;
    rc = chempi_message_start(half);
    if (rc) {
        chempi_message_fini(half);
        chempi_request_recycle(half);
        return rc;
    }
    if (!chempi_request_is_complete(half)) {
        chempi_request_orphan(half);
        chempi_request_owe(half, (uint64_t)(half->count * half->type->size));
        return MPI_SUCCESS;
    }
    if (half->kind == CHEMPI_REQUEST_RECV) {
        parent->source = half->source;
        parent->tag = half->tag;
        parent->bytes = half->bytes;
    }
    chempi_request_progress(parent, half->error);
    chempi_request_drop(half);
    return MPI_SUCCESS;
}

struct pair {
    struct chempi_request *parent;
    struct chempi_request *recv;
    struct chempi_request *send;
};

static int alloc_pair(struct pair *pair, struct chempi_lane *lane)
{
    pair->parent = chempi_request_alloc(lane);
    pair->recv = chempi_request_alloc(lane);
    pair->send = chempi_request_alloc(lane);
    if (pair->parent && pair->recv && pair->send)
        return MPI_SUCCESS;
    if (pair->parent)
        chempi_request_recycle(pair->parent);
    if (pair->recv)
        chempi_request_recycle(pair->recv);
    if (pair->send)
        chempi_request_recycle(pair->send);
    return chempi_message_no_memory();
}

static int isendrecv(const void *sendbuf, MPI_Count sendcount,
                     struct chempi_datatype *sendtype, int dest, int sendtag,
                     void *recvbuf, MPI_Count recvcount,
                     struct chempi_datatype *recvtype, int source, int recvtag,
                     struct chempi_comm *comm, void *packed,
                     MPI_Request *request)
{
    struct chempi_lane *lane = comm->lane;
    struct pair pair;
    int rc;

    chempi_lane_lock(lane);
    rc = alloc_pair(&pair, lane);
    if (rc) {
        chempi_lane_unlock(lane);
        free(packed);
        return rc;
    }
    chempi_request_init(pair.parent, lane, CHEMPI_REQUEST_COLL, &pair_ops, comm,
                        recvtype);
    chempi_request_set_pending(pair.parent, 2);
    pair.parent->count = recvcount;
    pair.parent->peer_rank = source;
    pair.parent->packed = packed;
    chempi_message_init_recv(pair.recv, recvbuf, recvcount, recvtype, source,
                             recvtag, comm, CHEMPI_CONTEXT_PT2PT);
    chempi_message_init_send(pair.send, sendbuf, sendcount, sendtype, dest,
                             sendtag, comm, CHEMPI_CONTEXT_PT2PT,
                             CHEMPI_SEND_STANDARD);
    rc = start_half(pair.recv, pair.parent);
    if (rc) {
        chempi_message_fini(pair.send);
        chempi_request_recycle(pair.send);
        destroy_pair(pair.parent);
    } else {
        int send_rc = start_half(pair.send, pair.parent);

        if (send_rc) /* the receive stays; the request reports the error */
            chempi_request_progress(pair.parent, send_rc);
        *request = chempi_request_handle(pair.parent);
    }
    chempi_progress_nudge_in(lane);
    chempi_lane_unlock(lane);
    return rc;
}

int chempi_pt2pt_isendrecv(const void *sendbuf, MPI_Count sendcount,
                           struct chempi_datatype *sendtype, int dest,
                           int sendtag, void *recvbuf, MPI_Count recvcount,
                           struct chempi_datatype *recvtype, int source,
                           int recvtag, struct chempi_comm *comm,
                           MPI_Request *request)
{
    return isendrecv(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf,
                     recvcount, recvtype, source, recvtag, comm, NULL, request);
}

/* A packed copy of the user's data; *out may be NULL for no data. */
static int copy_out(const void *buf, MPI_Count count,
                    struct chempi_datatype *type, void **out)
{
    MPI_Count len = count * type->size;

    *out = NULL;
    if (len == 0)
        return MPI_SUCCESS;
    *out = chempi_sys->malloc((size_t)len);
    if (!*out)
        return chempi_error_set(MPI_ERR_NO_MEM,
                                "no memory for a copy of %lld bytes",
                                (long long)len);
    return chempi_datatype_copy(buf, count, type, *out, len,
                                chempi_datatype_lookup(MPI_BYTE));
}

int chempi_pt2pt_isendrecv_replace(void *buf, MPI_Count count,
                                   struct chempi_datatype *datatype, int dest,
                                   int sendtag, int source, int recvtag,
                                   struct chempi_comm *comm,
                                   MPI_Request *request)
{
    void *copy;
    int rc;

    rc = copy_out(buf, count, datatype, &copy);
    if (rc)
        return rc;
    return isendrecv(copy, count * datatype->size,
                     chempi_datatype_lookup(MPI_BYTE), dest, sendtag, buf,
                     count, datatype, source, recvtag, comm, copy, request);
}

int chempi_pt2pt_sendrecv_replace(void *buf, MPI_Count count,
                                  struct chempi_datatype *datatype, int dest,
                                  int sendtag, int source, int recvtag,
                                  struct chempi_comm *comm, MPI_Status *status)
{
    void *copy;
    int rc;

    rc = copy_out(buf, count, datatype, &copy);
    if (rc)
        return rc;
    rc = chempi_message_sendrecv_on(
        copy, count * datatype->size, chempi_datatype_lookup(MPI_BYTE), dest,
        sendtag, buf, count, datatype, source, recvtag, comm,
        CHEMPI_CONTEXT_PT2PT, status);
    free(copy);
    return rc;
}
