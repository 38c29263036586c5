/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages over communicators (MPI 5.0, chapter 3): from arguments to requests.
 * A blocking call tries to do without a request first; if it needs one, that
 * lives on its stack.
 */
#include "libchempi/didl/comm/message_request.h"

#include <stdio.h>
#include <string.h>

#include "libchempi/didl/base/call_site.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/base/status.h"
#include "libchempi/didl/comm/context_id.h"
#include "libchempi/didl/comm/send_site.h"
#include "libchempi/didl/datatype/basic_type.h"
#include "libchempi/didl/datatype/signature.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/error/fatal.h"
#include "libchempi/didl/transport/engine.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/loss.h"
#include "libchempi/didl/transport/progress/agent.h"
#include "libchempi/didl/transport/progress/progress.h"

enum { AMOUNT_TEXT = 64, ORIGIN_TEXT = CHEMPI_CALL_SITE_TEXT + 32 }; /* bytes */

/* ---- requests ---- */

static uint16_t flags_of(const struct chempi_request *req)
{
    return req->is_urgent ? CHEMPI_ENVELOPE_URGENT : 0;
}

/* What a checker compares, and tells, at the receiver. */
static CHEMPI_COLD void tell_checker(struct chempi_request *req)
{
    if (req->context % CHEMPI_CONTEXT_STEP != CHEMPI_CONTEXT_PT2PT)
        return;
    req->u.tx.env.flags |= chempi_signature_bits(req->type, req->count);
    req->site = chempi_call_site_number();
}

static int start_send(struct chempi_request *req)
{
    struct chempi_tx *tx = &req->u.tx;
    MPI_Count len = req->count * req->type->size;

    chempi_request_set_pending(req, req->mode == CHEMPI_SEND_SYNC ? 2 : 1);
    tx->env = (struct chempi_envelope){
        .len = (uint64_t)len,
        .context = req->context,
        .source = req->comm->rank,
        .tag = req->peer_tag,
        .kind = req->mode == CHEMPI_SEND_SYNC ? CHEMPI_KIND_SYNC
                                              : CHEMPI_KIND_MESSAGE,
        .flags = flags_of(req),
    };
    if (CHEMPI_UNLIKELY(chempi_signature_is_watched()))
        tell_checker(req);
    tx->may_keep = req->is_posted;
    tx->buf = NULL;
    tx->iter = NULL;
    if (req->packed) {
        tx->buf = req->packed;
    } else if (req->type->is_contiguous || len == 0) {
        tx->buf = (const char *)req->buf + req->type->true_lb;
    } else {
        chempi_segment_init(&req->iter, req->buf, (uint64_t)req->count,
                            req->type->layout);
        tx->iter = &req->iter;
    }
    return chempi_engine_send(req);
}

void chempi_message_aim_recv(struct chempi_request *req)
{
    struct chempi_rx *rx = &req->u.in.rx;

    chempi_request_set_pending(req, 1);
    req->u.in.kind = CHEMPI_INCOMING_REQUEST;
    rx->cap = (uint64_t)(req->count * req->type->size);
    rx->buf = NULL;
    rx->iter = NULL;
    if (req->type->is_contiguous || rx->cap == 0) {
        rx->buf = (char *)req->buf + req->type->true_lb;
    } else {
        chempi_segment_init(&req->iter, req->buf, (uint64_t)req->count,
                            req->type->layout);
        rx->iter = &req->iter;
    }
}

static int start_recv(struct chempi_request *req)
{
    chempi_message_aim_recv(req);
    return chempi_engine_recv(req);
}

/* Where the data lies, if it lies in one piece: its bytes, or 0. */
static size_t piece_of(const void *buf, MPI_Count count,
                       const struct chempi_datatype *type, const char **start)
{
    if (!type || !type->is_contiguous || count <= 0)
        return 0;
    *start = (const char *)buf + type->true_lb;
    return (size_t)(count * type->size);
}

void chempi_message_hold_piece(const void *buf, MPI_Count count,
                               const struct chempi_datatype *type)
{
    const char *start = NULL;
    size_t len = piece_of(buf, count, type, &start);

    if (len > 0)
        chempi_memory_hold(chempi_ctx.services.memory, start, len);
}

void chempi_message_unhold_piece(const void *buf, MPI_Count count,
                                 const struct chempi_datatype *type)
{
    const char *start = NULL;
    size_t len = piece_of(buf, count, type, &start);

    if (len > 0)
        chempi_memory_release(chempi_ctx.services.memory, start, len);
}

void chempi_message_hold(const struct chempi_request *req)
{
    /* Devices of other lanes register none. */
    if (req->kind != CHEMPI_REQUEST_NULL_PEER && req->lane->number == 0)
        chempi_message_hold_piece(req->buf, req->count, req->type);
}

static void unhold(const struct chempi_request *req)
{
    if (req->kind != CHEMPI_REQUEST_NULL_PEER && req->lane->number == 0)
        chempi_message_unhold_piece(req->buf, req->count, req->type);
}

static int start_null(struct chempi_request *req)
{
    chempi_request_set_pending(req, 0);
    return MPI_SUCCESS;
}

static void cancel_recv(struct chempi_request *req)
{
    if (!req->is_queued)
        return; /* matched, or complete */
    chempi_match_unpost(req->lane->match, req);
    req->is_cancelled = true;
    chempi_request_progress(req, MPI_SUCCESS);
}

int chempi_message_finish_send(struct chempi_request *req, MPI_Status *status)
{
    chempi_status_set(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0,
                      req->is_cancelled);
    if (CHEMPI_UNLIKELY(req->error == MPI_ERR_PROC_ABORTED) && req->comm)
        chempi_loss_explain(req->comm, req->peer_rank, req->error);
    return req->error;
}

int chempi_message_note_too_much(int rank, uint64_t len, uint64_t room)
{
    char who[32] = "another rank";

    if (rank >= 0)
        (void)snprintf(who, sizeof(who), "rank %d", rank);
    return chempi_error_set(
        MPI_ERR_TRUNCATE,
        "%s gives %llu bytes, this rank's arguments have room for %llu: all "
        "members must give amounts that match",
        who, (unsigned long long)len, (unsigned long long)room);
}

int chempi_message_note_too_little(int rank, uint64_t len, uint64_t room)
{
    return chempi_error_set(
        MPI_ERR_COUNT,
        "rank %d sent %llu bytes in a collective operation where %llu were "
        "expected%s",
        rank, (unsigned long long)len, (unsigned long long)room,
        len ? ": all members must give amounts that match"
            : "; it may have met the mistake of another rank");
}

/* " (3 of MPI_INT)" if that is known, else "". */
static void put_amount(char *out, size_t len, uint8_t kind, MPI_Count bytes)
{
    out[0] = '\0';
    if (kind != CHEMPI_BASIC_TYPE_NONE && kind < CHEMPI_BASIC_TYPE_PAIR_FIRST)
        (void)snprintf(out, len, " (%lld of %s)",
                       (long long)(bytes / chempi_basic_type_table[kind].size),
                       chempi_signature_name(kind));
}

/* "; it was sent by MPI_Send at ring.c:12", or why that is not known. */
static void put_origin(char *out, size_t len, const struct chempi_request *req)
{
    char text[CHEMPI_CALL_SITE_TEXT];

    out[0] = '\0';
    if (req->sent_bits && req->source >= 0 &&
        chempi_send_site_ask(
            chempi_conn_peer(
                req->lane, chempi_comm_proc(req->comm, (uint32_t)req->source)),
            req->serial, text))
        (void)snprintf(out, len, "; %s", text);
}

static int note_truncation(const struct chempi_request *req)
{
    char sent[AMOUNT_TEXT];
    char room[AMOUNT_TEXT];
    char origin[ORIGIN_TEXT];

    if (req->context % CHEMPI_CONTEXT_STEP == CHEMPI_CONTEXT_COLL)
        return chempi_message_note_too_much(
            req->source, (uint64_t)req->bytes,
            (uint64_t)(req->count * req->type->size));
    put_amount(sent, sizeof(sent), chempi_signature_kind(req->sent_bits),
               req->bytes);
    put_amount(room, sizeof(room),
               *sent ? req->type->elem_kind : CHEMPI_BASIC_TYPE_NONE,
               req->count * req->type->size);
    put_origin(origin, sizeof(origin), req);
    return chempi_error_set(
        MPI_ERR_TRUNCATE,
        "the message from rank %d with tag %d has %lld bytes%s, the receive "
        "buffer %lld%s; post a larger one, or probe first%s",
        req->source, req->tag, (long long)req->bytes, sent,
        (long long)(req->count * req->type->size), room, origin);
}

/* What the sender has told of its types is not what is received. */
static int note_mismatch(const struct chempi_request *req)
{
    const uint8_t sent = chempi_signature_kind(req->sent_bits);
    const uint8_t own = req->type->elem_kind;
    const bool is_known =
        sent != CHEMPI_BASIC_TYPE_NONE || own != CHEMPI_BASIC_TYPE_NONE;
    char origin[ORIGIN_TEXT];

    put_origin(origin, sizeof(origin), req);
    return chempi_error_set(
        MPI_ERR_TYPE,
        "the message from rank %d with tag %d (%lld bytes) was sent as %s and "
        "is received as %s: both sides must name the same basic types%s%s",
        req->source, req->tag, (long long)req->bytes,
        chempi_signature_name(sent), chempi_signature_name(own),
        is_known ? "" : " in the same order", origin);
}

/* Inside a collective the ranks do not agree about the amount; elsewhere the
 * message ends within an element. */
static int note_shortage(const struct chempi_request *req)
{
    if (req->error == MPI_ERR_COUNT)
        return chempi_message_note_too_little(
            req->source, (uint64_t)req->bytes,
            (uint64_t)(req->count * req->type->size));
    if (!chempi_signature_is_ok(req->sent_bits, (uint64_t)req->bytes,
                                req->type))
        return note_mismatch(req);
    return chempi_error_set(
        MPI_ERR_TYPE,
        "the message from rank %d with tag %d has %lld bytes, which is no "
        "whole number of the elements to be received",
        req->source, req->tag, (long long)req->bytes);
}

static int finish_recv(struct chempi_request *req, MPI_Status *status)
{
    MPI_Count bytes = req->bytes;
    int error = req->error;

    if (CHEMPI_UNLIKELY(error == MPI_ERR_COUNT || error == MPI_ERR_TYPE))
        error = note_shortage(req);
    if (CHEMPI_UNLIKELY(error == MPI_ERR_TRUNCATE)) {
        bytes = req->count * req->type->size;
        error = note_truncation(req);
    }
    if (CHEMPI_UNLIKELY(error == MPI_ERR_PROC_ABORTED))
        chempi_loss_explain(req->comm, req->peer_rank, error);
    chempi_status_set(status, req->source, req->tag, bytes, req->is_cancelled);
    return error;
}

static int finish_null_recv(struct chempi_request *req, MPI_Status *status)
{
    (void)req;
    chempi_status_set_proc_null(status);
    return MPI_SUCCESS;
}

void chempi_message_destroy(struct chempi_request *req)
{
    if (CHEMPI_UNLIKELY(req->is_persistent))
        unhold(req);
    chempi_message_fini(req);
    chempi_request_recycle(req);
}

#define MESSAGE_OPS(name, call_name, start_fn, cancel_fn, finish_fn)           \
    static const struct chempi_request_ops name = {                            \
        .call = call_name,                                                     \
        .start = start_fn,                                                     \
        .cancel = cancel_fn,                                                   \
        .finish = finish_fn,                                                   \
        .destroy = chempi_message_destroy,                                     \
    }

MESSAGE_OPS(send_ops, "MPI_Isend", start_send, chempi_message_cancel_send,
            chempi_message_finish_send);
MESSAGE_OPS(recv_ops, "MPI_Irecv", start_recv, cancel_recv, finish_recv);
MESSAGE_OPS(null_send_ops, "MPI_Isend", start_null,
            chempi_request_cancel_nothing, chempi_message_finish_send);
MESSAGE_OPS(null_recv_ops, "MPI_Irecv", start_null,
            chempi_request_cancel_nothing, finish_null_recv);

void chempi_message_fini(struct chempi_request *req)
{
    chempi_request_leave(req);
    if (req->type && !req->type->is_predefined)
        chempi_datatype_release(req->type);
    req->obj.magic = 0;
}

static void fill_send(struct chempi_lane *lane, struct chempi_request *req,
                      const void *buf, MPI_Count count,
                      struct chempi_datatype *type, int dest, int tag,
                      struct chempi_comm *comm, uint32_t kind,
                      enum chempi_send_mode mode)
{
    const struct chempi_request_ops *ops = &send_ops;

    if (dest == MPI_PROC_NULL)
        ops = &null_send_ops;
    chempi_request_init(req, lane,
                        dest == MPI_PROC_NULL ? CHEMPI_REQUEST_NULL_PEER
                                              : CHEMPI_REQUEST_SEND,
                        ops, NULL, type);
    req->comm = comm;
    req->mode = (uint8_t)mode;
    req->buf = (void *)(uintptr_t)buf;
    req->count = count;
    req->peer_rank = dest;
    req->peer_tag = tag;
    req->context = comm->send_context + kind;
    if (dest != MPI_PROC_NULL)
        req->peer =
            chempi_conn_peer(lane, chempi_comm_proc(comm, (uint32_t)dest));
}

static void fill_recv(struct chempi_lane *lane, struct chempi_request *req,
                      void *buf, MPI_Count count, struct chempi_datatype *type,
                      int source, int tag, struct chempi_comm *comm,
                      uint32_t kind)
{
    chempi_request_init(req, lane,
                        source == MPI_PROC_NULL ? CHEMPI_REQUEST_NULL_PEER
                                                : CHEMPI_REQUEST_RECV,
                        source == MPI_PROC_NULL ? &null_recv_ops : &recv_ops,
                        NULL, type);
    req->comm = comm;
    req->buf = buf;
    req->count = count;
    req->peer_rank = source;
    req->peer_tag = tag;
    req->context = comm->recv_context + kind;
}

void chempi_message_init_send(struct chempi_request *req, const void *buf,
                              MPI_Count count, struct chempi_datatype *type,
                              int dest, int tag, struct chempi_comm *comm,
                              uint32_t kind, enum chempi_send_mode mode)
{
    fill_send(chempi_message_lane(comm, kind), req, buf, count, type, dest, tag,
              comm, kind, mode);
    chempi_object_hold(&comm->obj);
}

void chempi_message_init_recv(struct chempi_request *req, void *buf,
                              MPI_Count count, struct chempi_datatype *type,
                              int source, int tag, struct chempi_comm *comm,
                              uint32_t kind)
{
    fill_recv(chempi_message_lane(comm, kind), req, buf, count, type, source,
              tag, comm, kind);
    chempi_object_hold(&comm->obj);
}

/* Of a blocking call: with one thread, nobody frees the communicator until it
 * returns. */
static inline void trust(struct chempi_request *req)
{
    if (CHEMPI_UNLIKELY(req->lane->is_locking))
        chempi_object_hold(&req->comm->obj);
    else
        req->hold = CHEMPI_REQUEST_TRUSTS;
}

/* The same under the lane lock until the request is over. */
static inline void trust_locked(struct chempi_request *req)
{
    if (CHEMPI_UNLIKELY(req->lane->is_locking))
        chempi_request_share(req);
    else
        req->hold = CHEMPI_REQUEST_TRUSTS;
}

int chempi_message_start(struct chempi_request *req)
{
    return req->ops->start(req);
}

int chempi_message_launch(struct chempi_request *req,
                          struct chempi_request **out)
{
    int rc = req->ops->start(req);

    if (CHEMPI_UNLIKELY(rc)) {
        chempi_message_destroy(req);
        return rc;
    }
    *out = req;
    return MPI_SUCCESS;
}

int chempi_message_no_memory(void)
{
    return chempi_error_set(MPI_ERR_NO_MEM, "no memory for a request");
}

/* Under the lock. */
static int launch_send(struct chempi_lane *lane, const void *buf,
                       MPI_Count count, struct chempi_datatype *type, int dest,
                       int tag, struct chempi_comm *comm, uint32_t kind,
                       enum chempi_send_mode mode, struct chempi_request **out)
{
    struct chempi_request *req = chempi_request_alloc(lane);
    int rc;

    if (CHEMPI_UNLIKELY(!req))
        return chempi_message_no_memory();
    fill_send(lane, req, buf, count, type, dest, tag, comm, kind, mode);
    chempi_request_share(req);
    req->is_posted = kind == CHEMPI_CONTEXT_PT2PT && chempi_agent_is_offered();
    rc = chempi_message_launch(req, out);
    if (rc == MPI_SUCCESS && kind == CHEMPI_CONTEXT_PT2PT)
        chempi_request_owe(req, (uint64_t)(count * type->size));
    return rc;
}

/* May a send have a light handle? */
static inline bool is_light_allowed(void)
{
    const uint32_t refused = chempi_light_refused();

    if (CHEMPI_UNLIKELY(refused == CHEMPI_LIGHT_NOT_NOW))
        chempi_context_id_wake(); /* then the next one */
    return CHEMPI_LIKELY(refused == 0);
}

int chempi_message_post(const void *buf, MPI_Count count,
                        struct chempi_datatype *type, int dest, int tag,
                        struct chempi_comm *comm, enum chempi_send_mode mode,
                        MPI_Request *request)
{
    struct chempi_lane *lane = comm->lane;
    struct chempi_request *req = NULL;
    struct chempi_peer *peer = NULL;
    int rc = MPI_SUCCESS;

    chempi_lane_lock(lane);
    if (CHEMPI_LIKELY(type->is_contiguous && dest != MPI_PROC_NULL &&
                      mode != CHEMPI_SEND_SYNC && is_light_allowed()))
        peer = chempi_message_inject(lane, buf, count, type, dest, tag, comm,
                                     CHEMPI_CONTEXT_PT2PT,
                                     chempi_agent_is_offered());
    if (CHEMPI_LIKELY(peer)) {
        chempi_light_count(lane, 1);
        *request =
            chempi_light_handle(lane->number, peer->proc, peer->serial_out - 1);
    } else {
        rc = launch_send(lane, buf, count, type, dest, tag, comm,
                         CHEMPI_CONTEXT_PT2PT, mode, &req);
    }
    if (req)
        *request = chempi_request_handle(req);
    chempi_progress_unlock_posted(lane);
    return rc;
}

int chempi_message_irecv_on(void *buf, MPI_Count count,
                            struct chempi_datatype *type, int source, int tag,
                            struct chempi_comm *comm,
                            enum chempi_context_kind kind,
                            struct chempi_request **out)
{
    struct chempi_lane *lane = chempi_message_lane(comm, kind);
    struct chempi_request *req;
    int rc;

    chempi_lane_lock(lane);
    req = chempi_request_alloc(lane);
    if (CHEMPI_UNLIKELY(!req)) {
        rc = chempi_message_no_memory();
    } else {
        fill_recv(lane, req, buf, count, type, source, tag, comm, kind);
        chempi_request_share(req);
        rc = chempi_message_launch(req, out);
        if (rc == MPI_SUCCESS && kind == CHEMPI_CONTEXT_PT2PT)
            chempi_request_owe(req, (uint64_t)(count * type->size));
    }
    chempi_progress_unlock_posted(lane);
    return rc;
}

/* ---- blocking ---- */

int chempi_message_send_by_request(const void *buf, MPI_Count count,
                                   struct chempi_datatype *type, int dest,
                                   int tag, struct chempi_comm *comm,
                                   uint32_t kind, enum chempi_send_mode mode)
{
    struct chempi_lane *lane = chempi_message_lane(comm, kind);
    struct chempi_request req;
    int rc;

    chempi_lane_lock(lane);
    fill_send(lane, &req, buf, count, type, dest, tag, comm, kind, mode);
    trust_locked(&req);
    rc = req.ops->start(&req);
    chempi_progress_nudge_in(lane);
    if (!rc)
        rc = chempi_request_await_locked(&req);
    if (!rc)
        rc = req.error;
    chempi_message_fini(&req);
    chempi_lane_unlock(lane);
    return rc;
}

int chempi_message_recv_on(void *buf, MPI_Count count,
                           struct chempi_datatype *type, int source, int tag,
                           struct chempi_comm *comm,
                           enum chempi_context_kind kind, MPI_Status *status)
{
    struct chempi_lane *lane = chempi_message_lane(comm, kind);
    struct chempi_request req;
    int rc;

    chempi_lane_lock(lane);
    fill_recv(lane, &req, buf, count, type, source, tag, comm, kind);
    trust_locked(&req);
    rc = req.ops->start(&req);
    chempi_progress_nudge_in(lane);
    if (!rc && !chempi_request_is_complete(&req))
        rc = chempi_request_await_locked(&req);
    if (!rc)
        rc = chempi_request_finish_locked(&req, status);
    chempi_message_fini(&req);
    chempi_lane_unlock(lane);
    return rc;
}

/* ---- for the rest of the library ---- */

int chempi_message_send_on(const void *buf, MPI_Count count,
                           struct chempi_datatype *type, int dest, int tag,
                           struct chempi_comm *comm,
                           enum chempi_context_kind kind)
{
    return chempi_message_send(buf, count, type, dest, tag, comm, kind,
                               CHEMPI_SEND_STANDARD);
}

int chempi_message_isend_on(const void *buf, MPI_Count count,
                            struct chempi_datatype *type, int dest, int tag,
                            struct chempi_comm *comm,
                            enum chempi_context_kind kind,
                            struct chempi_request **out)
{
    struct chempi_lane *lane = chempi_message_lane(comm, kind);
    int rc;

    chempi_lane_lock(lane);
    rc = launch_send(lane, buf, count, type, dest, tag, comm, kind,
                     CHEMPI_SEND_STANDARD, out);
    chempi_progress_unlock_posted(lane);
    return rc;
}

static char nothing; /* the address of no data */

/* Under the lock; nobody waits for it. False: there is no memory for it. */
static bool leave_nothing(bool is_send, int peer, int tag,
                          struct chempi_comm *comm,
                          enum chempi_context_kind kind)
{
    struct chempi_lane *lane = chempi_message_lane(comm, kind);
    struct chempi_datatype *byte = chempi_datatype_lookup(MPI_BYTE);
    struct chempi_request *req = chempi_request_alloc(lane);
    int rc;

    if (!req)
        return false;
    if (is_send)
        chempi_message_init_send(req, &nothing, 0, byte, peer, tag, comm, kind,
                                 CHEMPI_SEND_STANDARD);
    else
        chempi_message_init_recv(req, &nothing, 0, byte, peer, tag, comm, kind);
    rc = chempi_message_launch(req, &req);
    if (rc)
        return rc != MPI_ERR_NO_MEM; /* else the peer is not to be reached */
    if (chempi_request_is_complete(req))
        chempi_request_drop(req);
    else
        chempi_request_orphan(req);
    chempi_progress_nudge_in(lane);
    return true;
}

void chempi_message_pass(bool is_send, int peer, int tag,
                         struct chempi_comm *comm,
                         enum chempi_context_kind kind, bool is_locked)
{
    struct chempi_lane *lane = chempi_message_lane(comm, kind);
    struct chempi_datatype *byte = chempi_datatype_lookup(MPI_BYTE);
    bool is_left;

    if (!is_locked)
        chempi_lane_lock(lane);
    is_left = leave_nothing(is_send, peer, tag, comm, kind);
    if (!is_locked)
        chempi_lane_unlock(lane);
    if (is_left)
        return;
    if (is_locked)
        chempi_fatal_die("out of memory for a collective operation, which "
                         "other processes wait for");
    if (is_send)
        (void)chempi_message_send_on(&nothing, 0, byte, peer, tag, comm, kind);
    else
        (void)chempi_message_recv_on(&nothing, 0, byte, peer, tag, comm, kind,
                                     MPI_STATUS_IGNORE);
}

struct all {
    struct chempi_request **reqs;
    int n;
    int done; /* reqs[0..done) are complete */
};

static bool are_done(void *arg)
{
    struct all *all = arg;

    while (all->done < all->n &&
           (!all->reqs[all->done] ||
            chempi_request_is_complete(all->reqs[all->done])))
        all->done++;
    return all->done == all->n;
}

static void put_all(struct chempi_wait_report *w, const void *object)
{
    const struct all *all = object;
    int pending = 0;

    for (int i = all->done; i < all->n; i++)
        if (all->reqs[i] && !chempi_request_is_complete(all->reqs[i]))
            chempi_wait_report_put_one(w, all->reqs[i], pending++);
    chempi_wait_report_put_rest(w, pending);
}

int chempi_message_wait_all(struct chempi_request **reqs, int n)
{
    struct all all = {.reqs = reqs, .n = n};
    struct chempi_lane *lane = &chempi_lane_main;
    int first;

    for (int i = 0; i < n; i++) /* they are of one communicator and kind */
        if (reqs[i])
            lane = reqs[i]->lane;
    chempi_lane_lock(lane);
    first = chempi_progress_wait_in(lane, are_done, &all, put_all, &all);
    chempi_lane_unlock(lane);
    if (first)
        return first;
    for (int i = 0; i < n; i++) {
        int rc = reqs[i] ? reqs[i]->ops->finish(reqs[i], MPI_STATUS_IGNORE)
                         : MPI_SUCCESS;

        if (rc && (!first || rc == MPI_ERR_PROC_ABORTED))
            first = rc;
    }
    chempi_lane_lock(lane);
    for (int i = 0; i < n; i++)
        if (reqs[i])
            chempi_request_drop(reqs[i]);
    chempi_lane_unlock(lane);
    return first;
}

/* Both halves at once; `pair` has the receive first. The message goes out
 * though there is no memory to post the receive: the peer waits for it. And the
 * library receives what it can though it cannot send: its sender may wait for
 * that. After a failure nobody knows the requests any more. */
static int start_pair(struct chempi_request pair[2], bool is_users)
{
    struct chempi_lane *lane = pair[0].lane;
    int in;
    int out;

    chempi_lane_lock(lane);
    in = pair[0].ops->start(&pair[0]);
    if (in)
        chempi_request_set_pending(&pair[0], 0);
    out = pair[1].ops->start(&pair[1]);
    if (out)
        chempi_request_set_pending(&pair[1], 0);
    if (out && pair[0].is_queued && is_users) {
        chempi_match_unpost(lane->match, &pair[0]);
        chempi_request_set_pending(&pair[0], 0);
    }
    chempi_progress_nudge_in(lane);
    chempi_lane_unlock(lane);
    if (in || out) { /* a device may be filling one, or reading the other */
        (void)chempi_request_await(&pair[0]);
        (void)chempi_request_await(&pair[1]);
    }
    return in ? in : out;
}

int chempi_message_sendrecv_on(const void *sbuf, MPI_Count scount,
                               struct chempi_datatype *stype, int dest,
                               int stag, void *rbuf, MPI_Count rcount,
                               struct chempi_datatype *rtype, int source,
                               int rtag, struct chempi_comm *comm,
                               enum chempi_context_kind kind,
                               MPI_Status *status)
{
    struct chempi_request pair[2];
    struct chempi_request *reqs[2] = {&pair[0], &pair[1]};
    struct all all = {.reqs = reqs, .n = 2};
    struct chempi_lane *lane = chempi_message_lane(comm, kind);
    int rc;

    fill_recv(lane, &pair[0], rbuf, rcount, rtype, source, rtag, comm, kind);
    fill_send(lane, &pair[1], sbuf, scount, stype, dest, stag, comm, kind,
              CHEMPI_SEND_STANDARD);
    trust(&pair[0]);
    trust(&pair[1]);
    rc = start_pair(pair, kind == CHEMPI_CONTEXT_PT2PT);
    chempi_lane_lock(lane);
    if (!rc)
        rc = chempi_progress_wait_in(lane, are_done, &all, put_all, &all);
    chempi_lane_pause(lane);
    if (!rc)
        rc = pair[1].error;
    if (!rc)
        rc = pair[0].ops->finish(&pair[0], status);
    chempi_lane_lock(lane);
    chempi_message_fini(&pair[0]);
    chempi_message_fini(&pair[1]);
    chempi_lane_unlock(lane);
    return rc;
}
