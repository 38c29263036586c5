/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls of point-to-point communication (MPI 5.0, chapter 3). */
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/comm/message_request.h"
#include "libchempi/didl/pt2pt/buffer.h"

#define BLOCKING(name, mode)                                                   \
    int name(const void *buf, MPI_Count count,                                 \
             struct chempi_datatype *datatype, int dest, int tag,              \
             struct chempi_comm *comm)                                         \
    {                                                                          \
        return chempi_message_send(buf, count, datatype, dest, tag, comm,      \
                                   CHEMPI_CONTEXT_PT2PT, mode);                \
    }

BLOCKING(chempi_pt2pt_send, CHEMPI_SEND_STANDARD)
BLOCKING(chempi_pt2pt_ssend, CHEMPI_SEND_SYNC)
BLOCKING(chempi_pt2pt_rsend, CHEMPI_SEND_READY)

int chempi_pt2pt_recv(void *buf, MPI_Count count,
                      struct chempi_datatype *datatype, int source, int tag,
                      struct chempi_comm *comm, MPI_Status *status)
{
    return chempi_message_recv_on(buf, count, datatype, source, tag, comm,
                                  CHEMPI_CONTEXT_PT2PT, status);
}

#define NONBLOCKING(name, mode)                                                \
    int name(const void *buf, MPI_Count count,                                 \
             struct chempi_datatype *datatype, int dest, int tag,              \
             struct chempi_comm *comm, MPI_Request *request)                   \
    {                                                                          \
        return chempi_message_post(buf, count, datatype, dest, tag, comm,      \
                                   mode, request);                             \
    }

NONBLOCKING(chempi_pt2pt_isend, CHEMPI_SEND_STANDARD)
NONBLOCKING(chempi_pt2pt_issend, CHEMPI_SEND_SYNC)
NONBLOCKING(chempi_pt2pt_irsend, CHEMPI_SEND_READY)

static int ibsend(const void *buf, MPI_Count count,
                  struct chempi_datatype *type, int dest, int tag,
                  struct chempi_comm *comm, struct chempi_request **out)
{
    struct chempi_lane *lane = comm->lane;
    struct chempi_request *req;
    int rc;

    chempi_lane_lock(lane);
    req = chempi_request_alloc(lane);
    if (CHEMPI_UNLIKELY(!req)) {
        rc = chempi_message_no_memory();
    } else {
        chempi_message_init_send(req, buf, count, type, dest, tag, comm,
                                 CHEMPI_CONTEXT_PT2PT, CHEMPI_SEND_BUFFERED);
        chempi_buffer_adopt(req);
        rc = chempi_message_launch(req, out);
        chempi_progress_nudge_in(lane);
    }
    chempi_lane_unlock(lane);
    return rc;
}

int chempi_pt2pt_ibsend(const void *buf, MPI_Count count,
                        struct chempi_datatype *datatype, int dest, int tag,
                        struct chempi_comm *comm, MPI_Request *request)
{
    struct chempi_request *req = NULL;
    int rc = ibsend(buf, count, datatype, dest, tag, comm, &req);

    if (CHEMPI_LIKELY(!rc))
        *request = chempi_request_handle(req);
    return rc;
}

int chempi_pt2pt_bsend(const void *buf, MPI_Count count,
                       struct chempi_datatype *datatype, int dest, int tag,
                       struct chempi_comm *comm)
{
    struct chempi_request *req = NULL;
    int rc;

    if (dest == MPI_PROC_NULL)
        return MPI_SUCCESS;
    rc = ibsend(buf, count, datatype, dest, tag, comm, &req);
    return rc ? rc : chempi_message_wait_all(&req, 1);
}

int chempi_pt2pt_irecv(void *buf, MPI_Count count,
                       struct chempi_datatype *datatype, int source, int tag,
                       struct chempi_comm *comm, MPI_Request *request)
{
    struct chempi_request *req = NULL;
    int rc = chempi_message_irecv_on(buf, count, datatype, source, tag, comm,
                                     CHEMPI_CONTEXT_PT2PT, &req);

    if (CHEMPI_LIKELY(!rc))
        *request = chempi_request_handle(req);
    return rc;
}

int chempi_pt2pt_sendrecv(const void *sendbuf, MPI_Count sendcount,
                          struct chempi_datatype *sendtype, int dest,
                          int sendtag, void *recvbuf, MPI_Count recvcount,
                          struct chempi_datatype *recvtype, int source,
                          int recvtag, struct chempi_comm *comm,
                          MPI_Status *status)
{
    return chempi_message_sendrecv_on(
        sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount,
        recvtype, source, recvtag, comm, CHEMPI_CONTEXT_PT2PT, status);
}
