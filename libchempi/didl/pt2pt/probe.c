/* SPDX-License-Identifier: BSD-3-Clause */
/* Probes and matched receives (MPI 5.0, section 3.8). */
#include <errno.h>

#include "libchempi/api/api_impl.h"
#include "libchempi/didl/base/status.h"
#include "libchempi/didl/comm/message_request.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/transport/engine.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/loss.h"
#include "libchempi/didl/transport/progress/progress.h"

struct look {
    const struct chempi_comm *comm;
    uint32_t context;
    int source;
    int tag;
    bool take;
    int error;
    struct chempi_held *held; /* found */
    MPI_Status status;
};

static bool is_found(struct look *look)
{
    if (look->held) /* asked again after it was found */
        return true;
    look->held = chempi_match_find_held(look->comm->lane->match, look->context,
                                        look->source, look->tag, look->take,
                                        &look->error);
    if (look->held)
        chempi_status_set(&look->status, look->held->env.source,
                          look->held->env.tag, (MPI_Count)look->held->env.len,
                          false);
    return look->held || look->error;
}

/* Found, or nothing can come any more: also not what had come before a loss,
 * and waits for memory. */
static CHEMPI_NOINLINE bool is_over(void *arg)
{
    struct look *look = arg;

    if (!is_found(look) && !chempi_engine_has_due(look->comm->lane) &&
        chempi_loss_is_vain(look->comm, look->context, look->source, look->tag))
        look->error = -EPIPE;
    return look->held || look->error;
}

static void put_look(struct chempi_wait_report *w, const void *object)
{
    const struct look *look = object;

    chempi_wait_report_put_comm(w, look->comm);
    chempi_wait_report_put_source(w, look->comm, look->source, look->tag);
}

static void tell(const struct look *look, MPI_Status *status)
{
    chempi_status_set(status, look->status.MPI_SOURCE, look->status.MPI_TAG,
                      chempi_status_bytes(&look->status), false);
}

static int result_of(const struct look *look)
{
    if (look->error == -EPIPE) {
        chempi_loss_explain(look->comm, look->source, MPI_ERR_PROC_ABORTED);
        return MPI_ERR_PROC_ABORTED;
    }
    return look->error ? chempi_error_from(look->error, NULL) : MPI_SUCCESS;
}

static struct look look_for(int source, int tag, struct chempi_comm *comm,
                            bool take)
{
    return (struct look){
        .comm = comm,
        .context = comm->recv_context + CHEMPI_CONTEXT_PT2PT,
        .source = source,
        .tag = tag,
        .take = take,
    };
}

static void look_once(struct look *look)
{
    struct chempi_lane *lane = look->comm->lane;

    for (int turn = 0; turn < 2 && !look->held && !look->error; turn++) {
        if (turn)
            (void)chempi_progress_poll_in(lane);
        chempi_lane_lock(lane);
        (void)is_found(look);
        chempi_lane_unlock(lane);
    }
    if (CHEMPI_UNLIKELY(chempi_conn_missing_count() ||
                        look->comm->has_foreign) &&
        !look->held) { /* what is not there may never come */
        chempi_lane_lock(lane);
        chempi_engine_call_source(look->comm, look->source);
        (void)is_over(look);
        chempi_lane_unlock(lane);
    }
}

static int await(struct look *look)
{
    struct chempi_lane *lane = look->comm->lane;
    int rc;

    chempi_lane_lock(lane);
    if (!is_found(look)) /* and may never come */
        chempi_engine_call_source(look->comm, look->source);
    rc = chempi_progress_wait_in(lane, is_over, look, put_look, look);
    chempi_lane_unlock(lane);
    return rc;
}

int chempi_pt2pt_probe(int source, int tag, struct chempi_comm *comm,
                       MPI_Status *status)
{
    struct look look = look_for(source, tag, comm, false);
    int rc;

    if (source == MPI_PROC_NULL) {
        chempi_status_set_proc_null(status);
        return MPI_SUCCESS;
    }
    rc = await(&look);
    if (!rc)
        rc = result_of(&look);
    if (!rc)
        tell(&look, status);
    return rc;
}

int chempi_pt2pt_iprobe(int source, int tag, struct chempi_comm *comm,
                        int *flag, MPI_Status *status)
{
    struct look look = look_for(source, tag, comm, false);

    *flag = 1;
    if (source == MPI_PROC_NULL) {
        chempi_status_set_proc_null(status);
        return MPI_SUCCESS;
    }
    look_once(&look);
    *flag = look.held != NULL;
    if (*flag)
        tell(&look, status);
    return result_of(&look);
}

/* The message leaves the queues and gets a handle. */
static MPI_Message message_of(struct chempi_held *held,
                              struct chempi_comm *comm)
{
    held->comm = comm;
    chempi_object_hold(&comm->obj);
    return (MPI_Message)(void *)held;
}

int chempi_pt2pt_mprobe(int source, int tag, struct chempi_comm *comm,
                        MPI_Message *message, MPI_Status *status)
{
    struct look look = look_for(source, tag, comm, true);
    int rc;

    if (source == MPI_PROC_NULL) {
        *message = MPI_MESSAGE_NO_PROC;
        chempi_status_set_proc_null(status);
        return MPI_SUCCESS;
    }
    rc = await(&look);
    if (!rc)
        rc = result_of(&look);
    if (rc)
        return rc;
    tell(&look, status);
    *message = message_of(look.held, comm);
    return MPI_SUCCESS;
}

int chempi_pt2pt_improbe(int source, int tag, struct chempi_comm *comm,
                         int *flag, MPI_Message *message, MPI_Status *status)
{
    struct look look = look_for(source, tag, comm, true);

    *flag = 1;
    if (source == MPI_PROC_NULL) {
        *message = MPI_MESSAGE_NO_PROC;
        chempi_status_set_proc_null(status);
        return MPI_SUCCESS;
    }
    look_once(&look);
    *flag = look.held != NULL;
    if (*flag) {
        tell(&look, status);
        *message = message_of(look.held, comm);
    }
    return result_of(&look);
}

/* The message behind a handle, or NULL with *rc set. */
static struct chempi_held *lookup(MPI_Message handle, int *rc)
{
    struct chempi_held *held = (struct chempi_held *)(void *)handle;
    char text[CHEMPI_ERROR_HANDLE_TEXT];

    if (chempi_handle_is_address(handle) &&
        held->obj.magic == CHEMPI_MAGIC_MESSAGE)
        return held;
    *rc = chempi_error_set(MPI_ERR_REQUEST,
                           "the message handle %s names no message; only "
                           "MPI_Mprobe and MPI_Improbe make one, and one "
                           "receive uses it up",
                           chempi_error_put_handle(text, handle));
    return NULL;
}

/* Receive a taken message into req, which is started then. */
static void start_mrecv(struct chempi_request *req, struct chempi_held *held,
                        void *buf, MPI_Count count,
                        struct chempi_datatype *type)
{
    struct chempi_comm *comm = held->comm;

    chempi_message_init_recv(req, buf, count, type, held->env.source,
                             held->env.tag, comm, CHEMPI_CONTEXT_PT2PT);
    chempi_comm_release(comm); /* the handle's; the request holds its own */
    held->comm = NULL;
    chempi_message_aim_recv(req);
    chempi_engine_deliver_held(held, req);
    chempi_engine_settle(req->lane);
    chempi_progress_nudge_in(req->lane);
}

int chempi_pt2pt_mrecv(void *buf, MPI_Count count,
                       struct chempi_datatype *datatype, MPI_Message *message,
                       MPI_Status *status)
{
    struct chempi_request req;
    struct chempi_held *held;
    struct chempi_lane *lane;
    int rc = MPI_SUCCESS;

    if (*message == MPI_MESSAGE_NO_PROC) {
        *message = MPI_MESSAGE_NULL;
        chempi_status_set_proc_null(status);
        return MPI_SUCCESS;
    }
    held = lookup(*message, &rc);
    if (!held)
        return rc;
    *message = MPI_MESSAGE_NULL;
    lane = held->comm->lane;
    chempi_lane_lock(lane);
    start_mrecv(&req, held, buf, count, datatype);
    rc = chempi_request_await_locked(&req);
    chempi_lane_pause(lane);
    if (!rc)
        rc = req.ops->finish(&req, status);
    if (rc)
        chempi_error_set_comm(req.comm);
    chempi_lane_lock(lane);
    chempi_message_fini(&req);
    chempi_lane_unlock(lane);
    return rc;
}

int chempi_pt2pt_imrecv(void *buf, MPI_Count count,
                        struct chempi_datatype *datatype, MPI_Message *message,
                        MPI_Request *request)
{
    struct chempi_request *req;
    struct chempi_held *held = NULL;
    struct chempi_lane *lane;
    int rc = MPI_SUCCESS;

    if (*message != MPI_MESSAGE_NO_PROC) {
        held = lookup(*message, &rc);
        if (!held)
            return rc;
    }
    lane = held ? held->comm->lane : chempi_comm_self.lane;
    chempi_lane_lock(lane);
    req = chempi_request_alloc(lane);
    if (!req) {
        rc = chempi_error_set(MPI_ERR_NO_MEM, "no memory for a request");
    } else if (held) {
        start_mrecv(req, held, buf, count, datatype);
    } else {
        chempi_message_init_recv(req, buf, count, datatype, MPI_PROC_NULL, 0,
                                 &chempi_comm_self, CHEMPI_CONTEXT_PT2PT);
        rc = chempi_message_start(req);
    }
    if (!rc)
        chempi_request_owe(req, (uint64_t)(count * datatype->size));
    chempi_lane_unlock(lane);
    if (!rc) {
        *message = MPI_MESSAGE_NULL;
        *request = chempi_request_handle(req);
    }
    return rc;
}
