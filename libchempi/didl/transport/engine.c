/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The message engine; see engine.h. Upcalls of devices never call down into a
 * device: what they cause (answers, retries, early messages that have become
 * due) is noted on a list of dirty peers and done by chempi_engine_settle()
 * when the device has returned.
 */
#define _GNU_SOURCE /* clock_gettime */
#include "libchempi/didl/transport/engine.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/sys.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/datatype/basic_type.h"
#include "libchempi/didl/datatype/signature.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/error/fatal.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/loss.h"
#include "libchempi/didl/transport/where/sent_sites.h"
#include "libchempi/didl/transport/worlds/foreign.h"
#include "libchempi/services/shortage.h"

static const struct chempi_engine_system *system_messages;

void chempi_engine_set_system(const struct chempi_engine_system *system)
{
    system_messages = system;
}

static inline void mark_dirty(struct chempi_peer *peer)
{
    if (chempi_list_is_empty(&peer->dirty) || peer->is_awaited) {
        chempi_list_remove(&peer->dirty);
        chempi_list_append(&peer->lane->engine.dirty, &peer->dirty);
    }
}

void chempi_engine_mark(struct chempi_peer *peer)
{
    mark_dirty(peer);
}

/* ---- sending ---- */

/* To users a device's other errors are of no class: no argument of theirs was
 * wrong. */
static int class_of(int rc)
{
    const int class = chempi_error_class_of_errno(rc);

    return class == MPI_ERR_NO_MEM || class == MPI_ERR_PROC_ABORTED
               ? class
               : MPI_ERR_OTHER;
}

enum { WHO_MAX = 128 }; /* a process in words */

static void note_send_error(const struct chempi_peer *peer,
                            const struct chempi_conn_route *route, int rc)
{
    const struct chempi_dev *dev = route->ep->dev;
    char who[WHO_MAX];

    chempi_foreign_words(peer->proc, who, sizeof(who));
    (void)chempi_error_set(
        class_of(rc), "sending to %s over device %s: %s", who, dev->ops->name,
        dev->err.code == rc && dev->err.text[0] ? dev->err.text
                                                : chempi_err_name(rc));
}

/* Do others wait for each message, since the library sends them? */
static inline bool is_library_context(uint32_t context)
{
    const uint32_t kind = context % CHEMPI_CONTEXT_STEP;

    return kind != CHEMPI_CONTEXT_PT2PT && kind != CHEMPI_CONTEXT_PARTITIONED;
}

/* A member of a collective operation, or of what makes communicators, that has
 * no memory for a message sends an empty one, so that nobody waits for it.
 * True: the request is that now. */
static CHEMPI_COLD bool is_emptied(struct chempi_request *req, int rc)
{
    struct chempi_tx *tx = &req->u.tx;

    if (rc != -ENOMEM || tx->env.len == 0 ||
        !is_library_context(tx->env.context))
        return false;
    req->error = MPI_ERR_NO_MEM;
    tx->env.len = 0;
    tx->iter = NULL;
    return true;
}

/* Hand the request's message to its device: DONE, PENDING, -EAGAIN, error. */
static int try_send(struct chempi_peer *peer, struct chempi_request *req)
{
    struct chempi_tx *tx = &req->u.tx;
    struct chempi_conn_route *route = chempi_conn_route(peer, tx->env.len);
    bool is_eager = tx->env.len <= route->eager_max;
    int rc;

    tx->protocol = route->protocol;
    tx->needs_consent = is_eager && !chempi_engine_has_quota(peer, tx->env.len);
    tx->env.flags &= CHEMPI_ENVELOPE_URGENT | CHEMPI_SIGNATURE_BITS;
    if (is_eager && !tx->needs_consent)
        tx->env.flags |= CHEMPI_ENVELOPE_COUNTED;
    chempi_engine_stamp(peer, &tx->env);
    rc = route->ops->send(route->ep, tx);
    if (rc == -EAGAIN)
        return rc;
    if (rc < 0) {
        note_send_error(peer, route, rc);
        return is_emptied(req, rc) ? try_send(peer, req) : rc;
    }
    chempi_engine_left(peer, route, &tx->env);
    if (CHEMPI_UNLIKELY(req->site))
        chempi_sent_sites_note(peer->proc, tx->env.serial, req->site);
    if (tx->env.kind == CHEMPI_KIND_SYNC) {
        chempi_list_append(&peer->sync, &req->match_link);
        req->is_queued = true;
    }
    if (rc != CHEMPI_KEPT)
        return rc;
    chempi_lane_keep(peer->lane);
    return CHEMPI_DONE;
}

int chempi_engine_send(struct chempi_request *req)
{
    struct chempi_peer *peer = req->peer;
    int rc;

    rc = chempi_conn_resolve(peer);
    if (rc)
        return rc;
    if (CHEMPI_UNLIKELY(peer->is_lost))
        return MPI_ERR_PROC_ABORTED; /* chempi_error_explain() has words */
    rc = chempi_list_is_empty(&peer->waiting) ? try_send(peer, req) : -EAGAIN;
    if (rc == -EAGAIN) {
        req->outgoing.is_system = false;
        chempi_conn_route(peer, req->u.tx.env.len)->waits++;
        chempi_list_append(&peer->waiting, &req->outgoing.link);
        peer->lane->engine.waiting++;
        return 0;
    }
    if (rc < 0)
        return class_of(rc);
    if (rc == CHEMPI_DONE)
        chempi_request_progress(req, MPI_SUCCESS);
    return 0;
}

static void finish_waiting(struct chempi_outgoing *out, int rc)
{
    struct chempi_request *req;

    if (out->is_system) {
        system_messages->finish(out, rc);
        return;
    }
    req = CHEMPI_CONTAINER_OF(out, struct chempi_request, outgoing);
    if (rc < 0 && chempi_request_pending(req) > 1)
        chempi_request_set_pending(req,
                                   1); /* no match will be reported either */
    if (rc != CHEMPI_PENDING)
        chempi_request_progress(req, rc < 0 ? class_of(rc) : MPI_SUCCESS);
}

static int send_waiting(struct chempi_peer *peer, struct chempi_outgoing *out)
{
    if (out->is_system)
        return system_messages->send(out);
    return try_send(peer,
                    CHEMPI_CONTAINER_OF(out, struct chempi_request, outgoing));
}

static void flush_waiting(struct chempi_peer *peer)
{
    while (!chempi_list_is_empty(&peer->waiting)) {
        struct chempi_outgoing *out = CHEMPI_CONTAINER_OF(
            chempi_list_first(&peer->waiting), struct chempi_outgoing, link);
        int rc;

        rc = peer->is_lost ? -EPIPE : send_waiting(peer, out);
        if (rc == -EAGAIN)
            return;
        chempi_list_remove(&out->link);
        peer->lane->engine.waiting--;
        finish_waiting(out, rc);
    }
}

void chempi_engine_unqueue(struct chempi_request *req)
{
    chempi_list_remove(&req->outgoing.link);
    req->lane->engine.waiting--;
}

uint64_t chempi_engine_waiting_count(const struct chempi_lane *lane)
{
    return lane->engine.waiting;
}

uint64_t chempi_engine_early_count(const struct chempi_lane *lane)
{
    return lane->engine.early;
}

bool chempi_engine_has_due(const struct chempi_lane *lane)
{
    return !chempi_list_is_empty(&lane->engine.dirty) ||
           lane->engine.is_settling;
}

void chempi_engine_look_again(struct chempi_lane *lane, bool is_now)
{
    const uint64_t now_ns = chempi_clock_ns();

    if (lane->engine.misses && chempi_loss_has_changes(lane)) {
        lane->engine.may_be_vain = true;
        chempi_engine_settle_dirty(lane);
    }
    if (!is_now && now_ns - lane->engine.looked_ns < CHEMPI_NS_PER_MS)
        return;
    lane->engine.looked_ns = now_ns;
    chempi_list_splice(&lane->engine.dirty, &lane->engine.awaited);
}

bool chempi_engine_is_idle(const struct chempi_lane *lane)
{
    return lane->engine.waiting == 0 && !chempi_engine_has_due(lane);
}

void chempi_engine_queue(struct chempi_peer *peer, struct chempi_outgoing *out)
{
    chempi_list_append(&peer->waiting, &out->link);
    peer->lane->engine.waiting++;
    mark_dirty(peer);
}

/* ---- receiving ---- */

/* The peer's eager payload of len bytes is no longer held here. */
static inline void release_credit(struct chempi_peer *peer,
                                  const struct chempi_envelope *env)
{
    if (!(env->flags & CHEMPI_ENVELOPE_COUNTED))
        return;
    peer->eager_released += (uint32_t)env->len;
    if (CHEMPI_UNLIKELY(peer->eager_released - peer->eager_told >=
                        peer->quota / 4)) {
        peer->eager_told = peer->eager_released;
        system_messages->credit(peer);
    }
}

static inline void take_credit(struct chempi_peer *peer, uint32_t credit)
{
    if ((int32_t)(credit - peer->eager_credit) > 0)
        peer->eager_credit = credit;
}

/* Less has come than there is room for. In a collective operation both sides
 * name the same amount of data, and wherever the library sends no data at all
 * says that the sender has failed (is_emptied); elsewhere an element that is
 * cut off shows that the datatypes do not match. Messages have not the gaps of
 * pairs, whose alignment says nothing of them. */
static inline int shortage_error(const struct chempi_request *req, uint64_t len)
{
    const struct chempi_datatype *type = req->type;

    if (CHEMPI_UNLIKELY(req->context % CHEMPI_CONTEXT_STEP ==
                        CHEMPI_CONTEXT_COLL))
        return MPI_ERR_COUNT;
    if (CHEMPI_UNLIKELY(len == 0 && is_library_context(req->context)))
        return MPI_ERR_COUNT;
    if (CHEMPI_UNLIKELY(type->elem_kind != CHEMPI_BASIC_TYPE_NONE &&
                        type->elem_kind < CHEMPI_BASIC_TYPE_PAIR_FIRST &&
                        type->align > 1 && (len & (type->align - 1u)) != 0))
        return MPI_ERR_TYPE;
    return MPI_SUCCESS;
}

/* The sender's basic types are not those of the receive. */
static CHEMPI_COLD void check_signature(struct chempi_request *req,
                                        const struct chempi_envelope *env)
{
    if (!chempi_signature_is_watched())
        return;
    req->sent_bits = env->flags;
    req->serial = env->serial;
    if (!chempi_signature_is_ok(env->flags, env->len, req->type))
        req->error = MPI_ERR_TYPE;
}

/* A receive has met its message: status, and the answer to a sync send. */
static inline void begin_receive(struct chempi_request *req,
                                 struct chempi_peer *peer,
                                 const struct chempi_envelope *env)
{
    req->source = env->source;
    req->tag = env->tag;
    req->bytes = (MPI_Count)env->len;
    if (CHEMPI_UNLIKELY(env->len > req->u.in.rx.cap))
        req->error = MPI_ERR_TRUNCATE;
    else if (env->len < req->u.in.rx.cap)
        req->error = shortage_error(req, env->len);
    if (CHEMPI_UNLIKELY(env->flags & CHEMPI_SIGNATURE_BITS))
        check_signature(req, env);
    if (CHEMPI_UNLIKELY(env->kind == CHEMPI_KIND_SYNC))
        system_messages->matched(peer, env->serial);
}

/* Copy a payload that is here into the receive's buffer. */
static inline void fill_receive(struct chempi_request *req, const void *data,
                                uint64_t len)
{
    struct chempi_rx *rx = &req->u.in.rx;
    size_t n = (size_t)(len < rx->cap ? len : rx->cap);

    if (CHEMPI_LIKELY(rx->buf != NULL || !n)) {
        if (n)
            memcpy(rx->buf, data, n);
    } else {
        (void)chempi_segment_unpack(rx->iter, data, n);
    }
}

static enum chempi_verdict receive_arrived(struct chempi_request *req,
                                           struct chempi_peer *peer,
                                           const struct chempi_arrival *a,
                                           struct chempi_rx **rx)
{
    begin_receive(req, peer, &a->env);
    release_credit(peer, &a->env);
    if (CHEMPI_LIKELY(a->avail == a->env.len)) {
        fill_receive(req, a->data, a->env.len);
        chempi_request_progress(req, MPI_SUCCESS);
        return CHEMPI_TAKEN;
    }
    *rx = &req->u.in.rx;
    return CHEMPI_ACCEPT;
}

static bool is_taken(const struct chempi_peer *peer, uint32_t serial)
{
    return (int32_t)(serial - peer->serial_in) < 0;
}

/* There is no memory for a message: it stays where it is, but not for too long.
 * The time counts from the first that stays, until it is taken (or, as far as
 * the shortage goes, no other one is refused for a while). A duplicate, which
 * has been taken before, begins nothing. */
static CHEMPI_COLD void miss_memory(struct chempi_peer *peer,
                                    const struct chempi_envelope *env)
{
    struct chempi_lane *lane = peer->lane;
    struct chempi_peer *first = lane->engine.first_poor;

    if (first && is_taken(first, lane->engine.poor_serial)) {
        chempi_shortage_end(&lane->engine.shortage);
        first = NULL;
    }
    if (!first && !is_taken(peer, env->serial)) {
        chempi_shortage_end(&lane->engine.shortage);
        first = peer;
        lane->engine.poor_serial = env->serial;
    }
    lane->engine.first_poor = first;
    if (chempi_shortage_may_wait(&lane->engine.shortage))
        return;
    chempi_fatal_die("out of memory for an unexpected message of %llu bytes "
                     "from rank %u; post receives earlier, or send fewer "
                     "messages before they are received",
                     (unsigned long long)env->len, peer->proc);
}

static CHEMPI_COLD enum chempi_verdict
has_no_room(struct chempi_peer *peer, const struct chempi_envelope *env)
{
    miss_memory(peer, env);
    return CHEMPI_NO_ROOM;
}

static inline void destroy_held(struct chempi_held *held)
{
    chempi_match_held_destroy(held->peer->lane->match, held);
}

/* Keep a message that has no receive yet (or is early). NULL: no memory. */
static struct chempi_held *hold_arrived(struct chempi_peer *peer,
                                        const struct chempi_arrival *a)
{
    bool is_whole = a->avail == a->env.len;
    bool is_stream = !is_whole && (a->flags & CHEMPI_ARRIVAL_STREAMED);
    struct chempi_held *held;

    held = chempi_match_held_create(peer->lane->match,
                                    is_whole || is_stream ? a->env.len : 0);
    if (!held)
        return NULL;
    held->env = a->env;
    held->peer = peer;
    held->ep = a->ep;
    held->token[0] = a->token[0];
    held->token[1] = a->token[1];
    held->state = CHEMPI_HELD_REMOTE;
    if (is_whole) {
        held->state = CHEMPI_HELD_COMPLETE;
        if (a->env.len)
            memcpy(held->data, a->data, (size_t)a->env.len);
    } else if (is_stream) {
        held->state = CHEMPI_HELD_STREAM;
        held->in.rx.buf = held->data;
        held->in.rx.iter = NULL;
        held->in.rx.cap = a->env.len;
    }
    return held;
}

static enum chempi_verdict verdict_of(struct chempi_held *held,
                                      struct chempi_rx **rx)
{
    if (held->state == CHEMPI_HELD_COMPLETE)
        return CHEMPI_TAKEN;
    if (held->state == CHEMPI_HELD_REMOTE)
        return CHEMPI_LATER;
    *rx = &held->in.rx;
    return CHEMPI_ACCEPT;
}

/* False: no memory. */
static bool match_or_hold(struct chempi_held *held)
{
    struct chempi_match *match = held->peer->lane->match;
    struct chempi_request *req = chempi_match_take_posted(
        match, held->env.context, held->env.source, held->env.tag);

    if (req) {
        chempi_engine_deliver_held(held, req);
        return true;
    }
    held->peer->lane->engine.may_be_vain = true;
    return chempi_match_hold(match, held) == 0;
}

static CHEMPI_NOINLINE enum chempi_verdict hold(struct chempi_peer *peer,
                                                const struct chempi_arrival *a,
                                                struct chempi_rx **rx)
{
    struct chempi_held *held = hold_arrived(peer, a);

    if (held && chempi_match_hold(peer->lane->match, held)) {
        destroy_held(held);
        held = NULL;
    }
    if (!held) {
        peer->serial_in--; /* it comes again */
        return has_no_room(peer, &a->env);
    }
    if (CHEMPI_UNLIKELY(peer->lane->engine.misses) &&
        held->state == CHEMPI_HELD_REMOTE) {
        peer->lane->engine.may_be_vain = true;
        mark_dirty(peer); /* nobody may want it */
    }
    return verdict_of(held, rx);
}

static struct chempi_held *early_at(struct chempi_list *pos)
{
    return CHEMPI_CONTAINER_OF(pos, struct chempi_held, all);
}

static bool is_before(const struct chempi_arrival *a,
                      const struct chempi_held *held)
{
    return (int32_t)(held->env.serial - a->env.serial) > 0;
}

/* G1 of guard.h */
static CHEMPI_COLD enum chempi_verdict refuse(const struct chempi_peer *peer,
                                              const char *why)
{
    chempi_conn_set_lost(peer->lane, peer->proc, why);
    return CHEMPI_REFUSED;
}

/* Put an early message in its place, or drop a duplicate (N2). A system message
 * in order that is not whole is put there, too: it waits for its payload. */
static CHEMPI_NOINLINE enum chempi_verdict
arrived_out_of_order(struct chempi_peer *peer, const struct chempi_arrival *a,
                     int32_t ahead, struct chempi_rx **rx)
{
    struct chempi_list *pos = peer->early.prev;
    struct chempi_held *held;
    uint32_t steps = 0;

    if (ahead < 0 && a->avail == a->env.len)
        return CHEMPI_TAKEN; /* a duplicate */
    if (ahead < 0 && (a->flags & CHEMPI_ARRIVAL_STREAMED))
        chempi_conn_set_lost(peer->lane, peer->proc, "it sent a message twice");
    for (; pos != &peer->early && is_before(a, early_at(pos)); steps++)
        if (steps < CHEMPI_ENGINE_STEPS || !chempi_foreign_is(peer->proc))
            pos = pos->prev;
        else
            return refuse(peer, "it has sent a message out of turn");
    if (pos != &peer->early && early_at(pos)->env.serial == a->env.serial &&
        chempi_foreign_is(peer->proc))
        return refuse(peer, "it sent a message twice");
    held = hold_arrived(peer, a);
    if (!held)
        return has_no_room(peer, &a->env);
    chempi_list_insert_between(&held->all, pos, pos->next);
    peer->lane->engine.early += ahead > 0;
    if (ahead <= 0)
        mark_dirty(peer);
    return verdict_of(held, rx);
}

static inline bool is_body(const struct chempi_envelope *env)
{
    return env->tag == CHEMPI_ENGINE_TAG_BODY;
}

/* The next in order is being released. */
static inline void take_number(struct chempi_peer *peer)
{
    peer->serial_in++;
    if (CHEMPI_UNLIKELY(!chempi_list_is_empty(&peer->early) ||
                        !chempi_list_is_empty(&peer->waiting)))
        mark_dirty(peer);
}

static CHEMPI_NOINLINE enum chempi_verdict
system_arrived(struct chempi_peer *peer, const struct chempi_arrival *a,
               struct chempi_rx **rx)
{
    if (a->avail != a->env.len || is_body(&a->env))
        return arrived_out_of_order(peer, a, 0, rx);
    take_number(peer);
    if (CHEMPI_LIKELY(system_messages->arrived(peer, &a->env, a->data)))
        return CHEMPI_TAKEN;
    peer->serial_in--;
    return has_no_room(peer, &a->env);
}

static enum chempi_verdict arrived(void *arg, const struct chempi_arrival *a,
                                   struct chempi_rx **rx)
{
    struct chempi_lane *lane = arg;
    struct chempi_peer *peer = chempi_conn_peer(lane, a->ep->proc);
    int32_t ahead = (int32_t)(a->env.serial - peer->serial_in);
    struct chempi_request *req;

    take_credit(peer, a->env.credit);
    if (CHEMPI_UNLIKELY(ahead != 0))
        return arrived_out_of_order(peer, a, ahead, rx);
    if (CHEMPI_UNLIKELY(a->env.kind == CHEMPI_KIND_SYSTEM))
        return system_arrived(peer, a, rx);
    take_number(peer);
    req = chempi_match_take_posted(lane->match, a->env.context, a->env.source,
                                   a->env.tag);
    if (CHEMPI_LIKELY(req != NULL))
        return receive_arrived(req, peer, a, rx);
    return hold(peer, a, rx);
}

void chempi_engine_drop_held(struct chempi_held *held)
{
    release_credit(held->peer, &held->env);
    if (held->state == CHEMPI_HELD_REMOTE)
        held->ep->dev->ops->drop(held->ep, held->token);
    destroy_held(held);
}

/* The payload of a held message is here, or will never be whole. */
static void finish_held(struct chempi_held *held, struct chempi_request *req)
{
    int status = held->status;

    if (CHEMPI_LIKELY(status == 0))
        fill_receive(req, held->data, held->env.len);
    release_credit(held->peer, &held->env);
    destroy_held(held);
    chempi_request_progress(req, status < 0 ? class_of(status) : MPI_SUCCESS);
}

void chempi_engine_deliver_held(struct chempi_held *held,
                                struct chempi_request *req)
{
    int rc;

    begin_receive(req, held->peer, &held->env);
    if (held->state == CHEMPI_HELD_STREAM) {
        held->claimed = req;
        return;
    }
    if (held->state == CHEMPI_HELD_COMPLETE) {
        finish_held(held, req);
        return;
    }
    rc = held->ep->dev->ops->accept(held->ep, held->token, &req->u.in.rx);
    destroy_held(held);
    if (rc != CHEMPI_PENDING)
        chempi_request_progress(req, rc < 0 ? class_of(rc) : MPI_SUCCESS);
}

void chempi_engine_call_source(const struct chempi_comm *comm, int source)
{
    struct chempi_peer *peer;

    if (!comm->has_foreign || source < 0)
        return;
    peer =
        chempi_conn_peer(comm->lane, chempi_comm_proc(comm, (uint32_t)source));
    if (!peer->routes && !peer->is_lost && chempi_foreign_is(peer->proc))
        system_messages->credit(peer);
}

/* A receive was posted, and nothing may come. */
static CHEMPI_COLD void watch_receive(struct chempi_request *req)
{
    struct chempi_lane *lane = req->lane;

    chempi_engine_call_source(req->comm, req->peer_rank);
    if (lane->engine.misses &&
        chempi_loss_is_vain(req->comm, req->context, req->peer_rank,
                            req->peer_tag)) {
        if (chempi_engine_has_due(lane))
            lane->engine.has_vain = true;
        else
            chempi_loss_end_receive(req);
    }
}

int chempi_engine_recv(struct chempi_request *req)
{
    struct chempi_held *held;
    int error;

    held = chempi_match_post(req->lane->match, req, &error);
    if (CHEMPI_UNLIKELY(error))
        return chempi_error_set(MPI_ERR_NO_MEM,
                                "no memory to post the receive");
    if (held) {
        chempi_engine_deliver_held(held, req);
        chempi_engine_settle(req->lane);
    } else if (CHEMPI_UNLIKELY(req->lane->engine.is_wary)) {
        watch_receive(req);
    }
    return MPI_SUCCESS;
}

static void delivered(void *arg, struct chempi_rx *rx, int status)
{
    struct chempi_incoming *in =
        CHEMPI_CONTAINER_OF(rx, struct chempi_incoming, rx);
    struct chempi_held *held;

    (void)arg;
    if (CHEMPI_LIKELY(in->kind == CHEMPI_INCOMING_REQUEST)) {
        chempi_request_progress(
            CHEMPI_CONTAINER_OF(in, struct chempi_request, u.in),
            status < 0 ? class_of(status) : MPI_SUCCESS);
        return;
    }
    if (in->kind == CHEMPI_INCOMING_SYSTEM) {
        system_messages->delivered(in, status);
        return;
    }
    held = CHEMPI_CONTAINER_OF(in, struct chempi_held, in);
    held->state = CHEMPI_HELD_COMPLETE;
    held->status = status;
    if (held->claimed)
        finish_held(held, held->claimed);
    else if (held->env.kind == CHEMPI_KIND_SYSTEM)
        mark_dirty(held->peer);
}

static void sent(void *arg, struct chempi_tx *tx, int status)
{
    struct chempi_request *req =
        CHEMPI_CONTAINER_OF(tx, struct chempi_request, u.tx);

    (void)arg;
    if (CHEMPI_UNLIKELY(tx->env.kind == CHEMPI_KIND_SYSTEM)) {
        system_messages->sent(tx, status);
        return;
    }
    if (CHEMPI_UNLIKELY(status < 0 && req->is_queued)) {
        chempi_list_remove(&req->match_link); /* nor will it be matched */
        req->is_queued = false;
        chempi_request_set_pending(req, chempi_request_pending(req) - 1);
    }
    chempi_request_progress(req, status < 0 ? class_of(status) : MPI_SUCCESS);
}

static void room(void *arg, struct chempi_ep *ep)
{
    mark_dirty(chempi_conn_peer(arg, ep->proc));
}

static void lost(void *arg, uint32_t proc, int status, const char *why)
{
    (void)status;
    chempi_conn_set_lost(arg, proc, why);
    if (chempi_conn_is_peer(proc) && chempi_conn_peer(arg, proc)->is_awaited)
        mark_dirty(chempi_conn_peer(arg, proc)); /* nothing more wakes for it */
}

const struct chempi_sink chempi_engine_sink = {
    .arrived = arrived,
    .delivered = delivered,
    .sent = sent,
    .room = room,
    .lost = lost,
};

void chempi_engine_unblock(struct chempi_peer *peer)
{
    peer->is_blocked = false;
    peer->serial_in++;
    mark_dirty(peer);
}

/* Copy a payload that is here into memory that a handler has named. */
static void fill_room(struct chempi_rx *rx, const struct chempi_held *held)
{
    size_t n = (size_t)(held->env.len < rx->cap ? held->env.len : rx->cap);

    if (rx->iter)
        (void)chempi_segment_unpack(rx->iter, held->data, n);
    else if (n)
        memcpy(rx->buf, held->data, n);
}

/* The next in order is a body: move it to the room that its head was given. */
static void release_body(struct chempi_peer *peer, struct chempi_held *held)
{
    struct chempi_incoming *in = system_messages->room(peer, &held->env);
    int rc;

    chempi_list_remove(&held->all);
    peer->serial_in++;
    if (!in) {
        chempi_engine_drop_held(held);
        return;
    }
    if (held->state == CHEMPI_HELD_COMPLETE) {
        rc = held->status;
        if (rc == 0)
            fill_room(&in->rx, held);
    } else {
        rc = held->ep->dev->ops->accept(held->ep, held->token, &in->rx);
    }
    destroy_held(held);
    if (rc != CHEMPI_PENDING) {
        system_messages->delivered(in, rc);
    } else if (in->is_blocking) {
        peer->serial_in--;
        peer->is_blocked = true;
    }
}

/* It is due, but there is no memory for it: the next settle tries again. */
static CHEMPI_COLD void starve(struct chempi_peer *peer,
                               const struct chempi_held *held)
{
    miss_memory(peer, &held->env);
    chempi_list_remove(&peer->dirty);
    chempi_list_append(&peer->lane->engine.starved, &peer->dirty);
}

/* A system message that its device announces, though it is short: fetch it. */
static void fetch(struct chempi_held *held)
{
    int rc;

    held->data = chempi_sys->malloc((size_t)held->env.len);
    if (!held->data) {
        starve(held->peer, held);
        return;
    }
    held->state = CHEMPI_HELD_STREAM;
    held->room = held->env.len;
    held->in.rx.buf = held->data;
    held->in.rx.iter = NULL;
    held->in.rx.cap = held->env.len;
    rc = held->ep->dev->ops->accept(held->ep, held->token, &held->in.rx);
    if (rc == CHEMPI_PENDING)
        return;
    held->state = CHEMPI_HELD_COMPLETE;
    held->status = rc;
}

/* Have the next in order handled, which is whole. False: no memory. */
static bool run_system(struct chempi_peer *peer, struct chempi_held *held)
{
    chempi_list_remove(&held->all);
    peer->serial_in++;
    if (held->status == 0 &&
        !system_messages->arrived(peer, &held->env, held->data)) {
        peer->serial_in--;
        chempi_list_prepend(&peer->early, &held->all);
        starve(peer, held);
        return false;
    }
    destroy_held(held);
    return true;
}

/* The next in order is a system message; false: its payload is not here yet, or
 * there is no memory for it. */
static bool release_system(struct chempi_peer *peer, struct chempi_held *held)
{
    if (held->state == CHEMPI_HELD_REMOTE && !is_body(&held->env))
        fetch(held);
    if (is_body(&held->env) && held->state != CHEMPI_HELD_STREAM) {
        release_body(peer, held);
        return true;
    }
    return held->state == CHEMPI_HELD_COMPLETE && run_system(peer, held);
}

void chempi_engine_forget_early(struct chempi_lane *lane)
{
    for (struct chempi_peer *p = lane->conn.made; p; p = p->next_made)
        while (!chempi_list_is_empty(&p->early)) {
            struct chempi_held *held = early_at(chempi_list_first(&p->early));

            chempi_list_remove(&held->all);
            chempi_match_held_destroy(lane->match, held);
        }
}

static void release_early(struct chempi_peer *peer)
{
    while (!chempi_list_is_empty(&peer->early) && !peer->is_blocked) {
        struct chempi_held *held = CHEMPI_CONTAINER_OF(
            chempi_list_first(&peer->early), struct chempi_held, all);

        int32_t ahead = (int32_t)(held->env.serial - peer->serial_in);

        if (ahead > 0 || (ahead < 0 && held->state == CHEMPI_HELD_STREAM))
            return;
        if (ahead == 0 && held->env.kind == CHEMPI_KIND_SYSTEM) {
            if (!release_system(peer, held))
                return;
            continue;
        }
        chempi_list_remove(&held->all);
        if (ahead < 0) { /* a duplicate whose payload is at the sender */
            chempi_engine_drop_held(held);
            continue;
        }
        peer->serial_in++;
        if (CHEMPI_UNLIKELY(!match_or_hold(held))) {
            peer->serial_in--;
            chempi_list_prepend(&peer->early, &held->all);
            starve(peer, held);
            return;
        }
    }
}

/* What it had sent comes first; until all of it is here its end is settled
 * again. */
static CHEMPI_COLD void settle_lost(struct chempi_peer *peer)
{
    struct chempi_lane *lane = peer->lane;
    enum chempi_remains end;

    if (system_messages)
        system_messages->lost(peer);
    if (!chempi_conn_is_missing(peer->proc))
        return;
    chempi_loss_note_miss(lane);
    end = chempi_conn_end(peer);
    if (end == CHEMPI_REMAINS_COMING && chempi_list_is_empty(&peer->dirty) &&
        lane == &chempi_lane_main) {
        peer->is_awaited = true;
        chempi_list_append(&lane->engine.awaited, &peer->dirty);
        return;
    }
    if (end != CHEMPI_REMAINS_NONE) {
        chempi_list_remove(&peer->dirty);
        chempi_list_append(&lane->engine.starved, &peer->dirty);
        return;
    }
    release_early(peer); /* what had come before others of one network */
    if (chempi_list_is_empty(&peer->dirty))
        chempi_loss_end(peer);
}

static CHEMPI_COLD void settle_vain(struct chempi_lane *lane)
{
    struct chempi_held *held;

    if (lane->engine.may_be_vain || chempi_loss_has_changes(lane)) {
        lane->engine.may_be_vain = false;
        while ((held = chempi_loss_take_vain(lane)))
            chempi_engine_drop_held(held);
    }
    if (!lane->engine.has_vain || chempi_engine_has_due(lane))
        return;
    lane->engine.has_vain = false;
    chempi_loss_end_vain(lane);
}

void chempi_engine_settle_dirty(struct chempi_lane *lane)
{
    struct chempi_list *dirty = &lane->engine.dirty;
    const bool is_within = lane->engine.is_settling;

    lane->engine.is_settling = true;
    while (!chempi_list_is_empty(dirty)) {
        struct chempi_peer *peer = CHEMPI_CONTAINER_OF(
            chempi_list_first(dirty), struct chempi_peer, dirty);

        chempi_list_remove(&peer->dirty);
        peer->is_awaited = false;
        release_early(peer);
        if (CHEMPI_UNLIKELY(peer->is_lost))
            settle_lost(peer);
        if (chempi_list_is_empty(&peer->waiting) && !peer->matched_count)
            continue;
        if (chempi_conn_resolve(peer))
            chempi_conn_set_lost(peer->lane, peer->proc, chempi_error_words());
        flush_waiting(peer);
        if (peer->matched_count)
            system_messages->tell_matched(peer);
    }
    chempi_list_splice(dirty, &lane->engine.starved);
    lane->engine.is_settling = is_within;
    if (CHEMPI_UNLIKELY(lane->engine.misses))
        settle_vain(lane);
}
