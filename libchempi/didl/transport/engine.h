/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The message engine: between requests and devices. Sends a request's message
 * by its route or queues it, matches arrivals, moves payload, answers sync
 * sends. Shared by pt2pt, sysmsg and conn; everything under the lock of the
 * lane that the peer or the request belongs to.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_ENGINE_H
#define CHEMPI_LIBCHEMPI_DIDL_ENGINE_H

#include <errno.h>

#include "libchempi/didl/transport/conn.h"
#include "libchempi/didl/transport/match.h"
#include "libchempi/didl/transport/request.h"

/* The sink that devices report to; its arg is the lane. */
extern const struct chempi_sink chempi_engine_sink;

/* To the place of what a process of another world sends before its turn it is
 * less (guard.h, G1). */
#define CHEMPI_ENGINE_STEPS 16u

/* The tag of bodies that travel apart from their heads. */
#define CHEMPI_ENGINE_TAG_BODY (-6)

/*
 * What system messages add to the engine (sysmsg.c). Under the lane lock; the
 * arriving side inside progress.
 */
struct chempi_engine_system {
    /* The next in order is here, whole. False: memory is missing; it comes
     * again. */
    bool (*arrived)(struct chempi_peer *peer, const struct chempi_envelope *env,
                    const void *data);
    /* The next in order is a body: where to put it, or NULL for nowhere. */
    struct chempi_incoming *(*room)(struct chempi_peer *peer,
                                    const struct chempi_envelope *env);
    void (*delivered)(struct chempi_incoming *in, int status);
    /* Hand it to its device: DONE, PENDING, -EAGAIN, error. */
    int (*send)(struct chempi_outgoing *out);
    /* It has left its list with this result, or its device has sent it. */
    void (*finish)(struct chempi_outgoing *out, int rc);
    void (*sent)(struct chempi_tx *tx, int status);
    void (*credit)(struct chempi_peer *peer);
    void (*matched)(struct chempi_peer *peer, uint32_t serial);
    /* Tell it what is matched; from settle(). */
    void (*tell_matched)(struct chempi_peer *peer);
    /* The peer cannot be reached any more. */
    void (*lost)(struct chempi_peer *peer);
};

/* Set once, at start; stays the caller's. */
void chempi_engine_set_system(const struct chempi_engine_system *system);

/* Queue a message in order; it leaves with the next settle. */
void chempi_engine_queue(struct chempi_peer *peer, struct chempi_outgoing *out);

/* Have the next settle look at this peer. */
void chempi_engine_mark(struct chempi_peer *peer);

/* The body that blocked this peer's messages is in place (N5). */
void chempi_engine_unblock(struct chempi_peer *peer);

/* Start the send that req describes (u.tx.env without numbers, buf or iter,
 * peer). The request advances when the payload may be reused. MPI error class
 * on failure, and then nothing happened. */
int chempi_engine_send(struct chempi_request *req);

/* Try to send a small contiguous message without a request: 0, -EAGAIN (use
 * chempi_engine_send), or a device's error. Flags of the envelope: none, or
 * CHEMPI_ENVELOPE_URGENT. may_keep: as in chempi_tx. */
static inline int chempi_engine_inject(struct chempi_peer *peer,
                                       struct chempi_envelope *env,
                                       const void *data, bool may_keep);

/* Fill in the numbers of an envelope that is about to leave. */
static inline void chempi_engine_stamp(struct chempi_peer *peer,
                                       struct chempi_envelope *env)
{
    env->serial = (uint32_t)peer->serial_out;
    env->credit = peer->eager_released;
}

/* The envelope has left: advance the numbers. */
static inline void chempi_engine_left(struct chempi_peer *peer,
                                      struct chempi_conn_route *route,
                                      const struct chempi_envelope *env)
{
    peer->serial_out++;
    peer->eager_told = env->credit;
    if (env->flags & CHEMPI_ENVELOPE_COUNTED)
        peer->eager_out += (uint32_t)env->len;
    route->messages++;
    route->bytes += env->len;
}

/* May len bytes of eager payload go now (N3)? */
static inline bool chempi_engine_has_quota(const struct chempi_peer *peer,
                                           uint64_t len)
{
    return (uint64_t)(peer->eager_out - peer->eager_credit) + len <=
           peer->quota;
}

static inline int chempi_engine_inject(struct chempi_peer *peer,
                                       struct chempi_envelope *env,
                                       const void *data, bool may_keep)
{
    struct chempi_conn_route *route;
    int rc;

    if (CHEMPI_UNLIKELY(!peer->routes || !chempi_list_is_empty(&peer->waiting)))
        return -EAGAIN;
    route = chempi_conn_route(peer, env->len);
    if (CHEMPI_UNLIKELY(env->len > route->inject_max ||
                        !chempi_engine_has_quota(peer, env->len)))
        return -EAGAIN;
    chempi_engine_stamp(peer, env);
    env->flags |= CHEMPI_ENVELOPE_COUNTED;
    rc = route->ops->inject(route->ep, env, data, (size_t)env->len, may_keep);
    if (CHEMPI_UNLIKELY(rc < 0))
        return rc;
    chempi_engine_left(peer, route, env);
    if (CHEMPI_UNLIKELY(rc == CHEMPI_KEPT))
        chempi_lane_keep(peer->lane);
    return 0;
}

/* A receive (context, peer_rank, peer_tag, u.in.rx are set): take a held
 * message or post it. MPI error class on failure. */
int chempi_engine_recv(struct chempi_request *req);

/* Whoever waits for a process of another world has a connection to it, whose
 * end tells; nobody else may. `source` is waited for in the communicator
 * (negative: any rank): it is called if it never was. Receives do so by
 * themselves. */
void chempi_engine_call_source(const struct chempi_comm *comm, int source);

/* Give a held message, already taken out of matching, to a receive. */
void chempi_engine_deliver_held(struct chempi_held *held,
                                struct chempi_request *req);

/* Throw a held message away (cancelled, or its receive failed). */
void chempi_engine_drop_held(struct chempi_held *held);

/* Take a request that waits for room out of its list (cancel). */
void chempi_engine_unqueue(struct chempi_request *req);

/* After a device's progress: do what its upcalls have caused. */
void chempi_engine_settle_dirty(struct chempi_lane *lane);
static inline void chempi_engine_settle(struct chempi_lane *lane)
{
    if (CHEMPI_UNLIKELY(!chempi_list_is_empty(&lane->engine.dirty)))
        chempi_engine_settle_dirty(lane);
}

/* Is there something for the next settle, since memory was missing? */
bool chempi_engine_has_due(const struct chempi_lane *lane);
/* Ends that are awaited are settled anew in the next settle: by who polls, once
 * in a millisecond; is_now: at once, by who goes to sleep or was woken. And
 * held messages for contexts that have changed since the last look are looked
 * at again, at once. */
void chempi_engine_look_again(struct chempi_lane *lane, bool is_now);
static inline void chempi_engine_look(struct chempi_lane *lane, bool is_now)
{
    if (CHEMPI_UNLIKELY(lane->engine.misses ||
                        !chempi_list_is_empty(&lane->engine.awaited)))
        chempi_engine_look_again(lane, is_now);
}

/* Messages that wait for room, and those that have come before their turn. */
uint64_t chempi_engine_waiting_count(const struct chempi_lane *lane);
uint64_t chempi_engine_early_count(const struct chempi_lane *lane);

/* At the end, before chempi_match_fini(): forget what has come before its turn,
 * of processes that were lost before that came. */
void chempi_engine_forget_early(struct chempi_lane *lane);

/* Any peer with messages that wait for room? (finalize) */
bool chempi_engine_is_idle(const struct chempi_lane *lane);

#endif
