/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requests of messages over a communicator: what the calls of
 * point-to-point consist of. As the MPI calls, but in the context that `kind`
 * names and without checks of arguments; MPI error classes.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_COMM_MESSAGE_REQUEST_H
#define CHEMPI_LIBCHEMPI_DIDL_COMM_MESSAGE_REQUEST_H

#include "libchempi/didl/comm/comm.h"
#include "libchempi/didl/comm/message.h"
#include "libchempi/didl/datatype/datatype.h"
#include "libchempi/didl/transport/engine.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/progress/progress.h"
#include "libchempi/didl/transport/request.h"

/* The lane of messages over a communicator in a context. */
static inline struct chempi_lane *
chempi_message_lane(const struct chempi_comm *comm, uint32_t kind)
{
    return kind == CHEMPI_CONTEXT_PT2PT ? comm->lane : &chempi_lane_main;
}

/* Fill in a request (memory is the caller's); nothing is started. kind: enum
 * chempi_context_kind. dest, source may be MPI_PROC_NULL. */
void chempi_message_init_send(struct chempi_request *req, const void *buf,
                              MPI_Count count, struct chempi_datatype *type,
                              int dest, int tag, struct chempi_comm *comm,
                              uint32_t kind, enum chempi_send_mode mode);
void chempi_message_init_recv(struct chempi_request *req, void *buf,
                              MPI_Count count, struct chempi_datatype *type,
                              int source, int tag, struct chempi_comm *comm,
                              uint32_t kind);

/* Name the buffer for the device; start does this too. */
void chempi_message_aim_recv(struct chempi_request *req);

/* Start it. Under the lock. MPI error class. */
int chempi_message_start(struct chempi_request *req);

/* Tell the devices that the buffer of a request is that of a persistent one,
 * or is no longer: they keep its registration. Under the lock. */
void chempi_message_hold(const struct chempi_request *req);
/* The same for a buffer that is in one piece (nothing happens if it is not),
 * for requests that are persistent and consist of others. */
void chempi_message_hold_piece(const void *buf, MPI_Count count,
                               const struct chempi_datatype *type);
void chempi_message_unhold_piece(const void *buf, MPI_Count count,
                                 const struct chempi_datatype *type);

/* Drop what it holds, not the memory. */
void chempi_message_fini(struct chempi_request *req);

/* Does a started send still wait for room? Under the lock. */
bool chempi_message_is_waiting(const struct chempi_request *req);

/* Register the handlers of its system messages, at start. */
void chempi_message_register(void);

/* MPI_Cancel of a send. Under the lock. */
void chempi_message_cancel_send(struct chempi_request *req);
/* The same of one that has a light handle. 0, or MPI_ERR_REQUEST: it is that of
 * no message. */
int chempi_message_recall(MPI_Request handle);

/* Start a fresh request from the pool, or give it back. Under the lock. */
int chempi_message_launch(struct chempi_request *req,
                          struct chempi_request **out);

/* The error of a call that finds no memory for a request. */
int chempi_message_no_memory(void);

/* Members of the tables of requests for messages. */
int chempi_message_finish_send(struct chempi_request *req, MPI_Status *status);
void chempi_message_destroy(struct chempi_request *req);

/* A send of the user's that does not wait. */
int chempi_message_post(const void *buf, MPI_Count count,
                        struct chempi_datatype *type, int dest, int tag,
                        struct chempi_comm *comm, enum chempi_send_mode mode,
                        MPI_Request *request);

/* Try to send a contiguous message without a request, not to MPI_PROC_NULL;
 * may_keep: as in chempi_tx. The peer, or NULL: not so. Under the lock. */
static inline struct chempi_peer *
chempi_message_inject(struct chempi_lane *lane, const void *buf,
                      MPI_Count count, const struct chempi_datatype *type,
                      int dest, int tag, const struct chempi_comm *comm,
                      uint32_t kind, bool may_keep)
{
    struct chempi_peer *peer =
        chempi_conn_peer(lane, chempi_comm_proc(comm, (uint32_t)dest));
    struct chempi_envelope env = {
        .len = (uint64_t)(count * type->size),
        .context = comm->send_context + kind,
        .source = comm->rank,
        .tag = tag,
        .kind = CHEMPI_KIND_MESSAGE,
    };

    return CHEMPI_LIKELY(!chempi_engine_inject(
               peer, &env, (const char *)buf + type->true_lb, may_keep))
               ? peer
               : NULL;
}

/* The slow half of chempi_message_send(). */
int chempi_message_send_by_request(const void *buf, MPI_Count count,
                                   struct chempi_datatype *type, int dest,
                                   int tag, struct chempi_comm *comm,
                                   uint32_t kind, enum chempi_send_mode mode);

/* Blocking; small messages need no request. */
static inline int chempi_message_send(const void *buf, MPI_Count count,
                                      struct chempi_datatype *type, int dest,
                                      int tag, struct chempi_comm *comm,
                                      uint32_t kind, enum chempi_send_mode mode)
{
    struct chempi_lane *lane = chempi_message_lane(comm, kind);
    bool is_sent = false;

    if (CHEMPI_UNLIKELY(dest == MPI_PROC_NULL))
        return MPI_SUCCESS;
    if (CHEMPI_LIKELY(type->is_contiguous && mode != CHEMPI_SEND_SYNC)) {
        chempi_lane_lock(lane);
        is_sent = chempi_message_inject(lane, buf, count, type, dest, tag, comm,
                                        kind, false);
        chempi_progress_unlock(lane);
    }
    if (CHEMPI_LIKELY(is_sent))
        return MPI_SUCCESS;
    return chempi_message_send_by_request(buf, count, type, dest, tag, comm,
                                          kind, mode);
}

#endif
