/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections: for every process its routes (which device and protocol for
 * which size), the serial numbers that keep its messages in order, and the
 * quota that bounds unexpected payload.
 *
 *   N1  serial_out is the number of the next message that a device accepts;
 *       "no room" burns none
 *   N2  messages are released to matching in the order of their numbers;
 *       early ones stand in `early`, sorted; older ones are duplicates. None
 *       is early that comes the same way as those before it (ddi.h). By two
 *       ways early ones come in order, too; by more, the place of one is
 *       searched for from the end
 *   N3  eager_out - eager_credit <= quota: eager payload that
 *       the peer has not released; beyond it messages wait for consent
 *   N4  while `waiting` is not empty, new messages queue behind it
 *   N5  while is_blocked, serial_in is the number of a system message whose
 *       body is being moved; later ones are early
 *
 * Guarded by the lock of the lane that the peer belongs to.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_CONN_H
#define CHEMPI_LIBCHEMPI_DIDL_CONN_H

#include "common/containers/list.h"
#include "common/control/wire.h"
#include "libchempi/ddi.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/base/setting.h"
#include "libchempi/didl/transport/lane.h"

enum chempi_envelope_flags {
    CHEMPI_ENVELOPE_COUNTED = 1, /* the payload counts against the quota */
    /* System messages only: */
    CHEMPI_ENVELOPE_SPLIT = 2,  /* the body follows in a message of its own */
    CHEMPI_ENVELOPE_REQUEST = 4 /* costs quota of system messages */
    /* 8: CHEMPI_ENVELOPE_URGENT (ddi.h) */
    /* CHEMPI_SIGNATURE_BITS (datatype/signature.h): messages of the user's */
};

/* Eager payload that one process may have outstanding at another, bytes. The
 * receiver tells what it has released at the latest after a quarter. */
static inline uint64_t chempi_conn_quota(void)
{
    return chempi_setting(CHEMPI_SET_CONN_EAGER_QUOTA);
}

struct chempi_conn_route {
    uint64_t max_len; /* bytes, inclusive; the last one UINT64_MAX */
    struct chempi_ep *ep;
    const struct chempi_dev_ops *ops;
    uint32_t protocol;
    uint32_t device;     /* index among the lane's */
    uint32_t range;      /* of the table, 0 without one */
    uint64_t inject_max; /* bytes; 0: send() only */
    uint64_t eager_max;  /* bytes */
    uint64_t messages;   /* counters: sent by this route */
    uint64_t bytes;
    uint64_t told_messages; /* of these, reported already */
    uint64_t told_bytes;
    uint64_t waits; /* messages that had to wait for room */
    uint64_t told_waits;
};

/* What each message touches lies in the first two cache lines. */
struct chempi_peer {
    _Alignas(CHEMPI_CACHE_LINE) struct chempi_conn_route
        *routes;                /* [route_count]; NULL until first use */
    struct chempi_list waiting; /* struct chempi_outgoing */
    struct chempi_list early;   /* struct chempi_held.all, by serial */
    uint64_t serial_out;        /* envelopes have the low half */
    uint32_t serial_in;
    uint32_t eager_out;      /* bytes sent, wraps */
    uint32_t eager_credit;   /* bytes the peer has released, wraps */
    uint32_t eager_released; /* of the peer's, by us; wraps */
    uint32_t eager_told;     /* what the peer knows of eager_released */
    uint32_t quota; /* chempi_conn_quota(), at hand for the fast path; of a
                       process of another world the smaller of the two */
    /* The peer's sync messages from this number on, without a gap, are matched
     * and it has not been told; 0: of none. Then the peer is dirty. */
    uint32_t matched_first;
    uint32_t matched_count;
    uint16_t route_count;
    _Atomic bool is_made;   /* the rest means something: chempi_conn_peer() */
    _Atomic bool is_met;    /* of the first lane: by any (event.h) */
    _Atomic bool is_lost;   /* written under the lock */
    _Atomic bool has_ended; /* the launcher says that the process is no more */
    bool is_blocked;        /* N5 */
    bool is_awaited;        /* it has ended, and more of it may come: it stands
                               in engine.awaited, or is due for another look */
    uint32_t proc;
    uint32_t node;
    struct chempi_lane *lane;
    struct chempi_sysmsg_peer *system; /* one piece of memory, or NULL */
    struct chempi_list dirty;          /* engine: has something to settle */
    struct chempi_list cancels; /* chempi_request.outgoing.link: sends whose
                                   cancellation is not answered yet */
    struct chempi_list sync;    /* chempi_request.match_link: sync sends that
                                   wait for their match, by serial */
    struct chempi_peer *next_made;
    struct chempi_peer *next_lost; /* in chempi_lane.lost */
    char *why;                     /* another lane has lost it, or NULL */
    uint32_t eager_in; /* of a process of another world: its eager payload that
                          has come (guard.h), bytes; wraps */
};

/*
 * A device without a network of its own: it sends in messages of the others.
 * It is opened after them, over them, in jobs that need it, and hears of
 * processes that are no ranks. Ranges of the table with more than one stage
 * are its.
 */
struct chempi_conn_overlay {
    const struct chempi_dev_ops *ops;
    bool (*is_needed)(void);
    /* The sink for the devices below, before any is opened: what is not the
     * overlay's goes on to `above`. */
    const struct chempi_sink *(*sink)(const struct chempi_sink *above);
    /* devices[0 .. *device_count) are open and stay. */
    int (*open)(struct chempi_dev *const *devices, const uint32_t *device_count,
                const _Atomic uint64_t *settings, struct chempi_dev **out,
                struct chempi_err *err);
    /* Append lines on what went which way since the last report. */
    void (*report)(struct chempi_writer *out);
    /* As chempi_conn_card(), for any process; as chempi_conn_set_lost() and
     * chempi_conn_drained(), for those that are no ranks. */
    void (*card)(uint32_t proc, const char *key, const void *card, size_t len);
    void (*lost)(uint32_t proc, const char *why);
    void (*drained)(uint32_t proc, bool is_drained);
};

struct chempi_conn_params {
    const struct chempi_sink *sink;
    const struct chempi_sink *foreign_sink; /* for processes of other worlds */
    const struct chempi_conn_overlay *overlay;
    uint32_t lanes; /* that processes of this node may have */
    /* The values of a device's settings, in the order of its panel. */
    const _Atomic uint64_t *(*settings)(const struct chempi_dev_ops *ops);
    /* The routes to a process have just been found, before its cards are asked
     * for; under the lane lock. */
    void (*resolved)(uint32_t proc);
};

/* Open the devices that the job needs, exchange their cards (not yet their
 * connections). The overlay stays the caller's and must stay. MPI error
 * class. */
int chempi_conn_open(const struct chempi_conn_params *params);
/* Open a lane that was added: its devices, those of the first one that reach
 * processes of one node. MPI error class; nothing stays open then. */
int chempi_conn_open_lane(struct chempi_lane *lane);
/* May there be such lanes: do these devices reach all processes of the node,
 * whatever the size of a message? */
bool chempi_conn_can_add_lanes(void);
/* True when all that was handed to devices has left the process. */
bool chempi_conn_is_drained(const struct chempi_lane *lane);
/* The device of the first lane that reaches processes of other worlds, opened
 * at the first call. 0 or -errno with words. Holder of that lane. */
int chempi_conn_open_foreign(struct chempi_dev **out, struct chempi_err *err);
void chempi_conn_close(void);

/* Is this index a rank's, or that of a process of another world? */
bool chempi_conn_is_peer(uint32_t proc);

/* Peer of a lane by process index (valid index), made at its first use: who is
 * not spoken to costs no memory but addresses. From any thread. */
CHEMPI_COLD void chempi_conn_make_peer(struct chempi_lane *lane, uint32_t proc);
static inline struct chempi_peer *chempi_conn_peer(struct chempi_lane *lane,
                                                   uint32_t proc)
{
    struct chempi_peer *peer = &lane->conn.peers[proc];

    if (CHEMPI_UNLIKELY(
            !atomic_load_explicit(&peer->is_made, memory_order_acquire)))
        chempi_conn_make_peer(lane, proc);
    return peer;
}

/* Find the routes of a peer; idempotent. MPI error class with words. */
int chempi_conn_resolve(struct chempi_peer *peer);

/* The route for a payload of len bytes; routes are resolved, and the last one
 * has no upper size. A compare and a load for small messages; two ranges a
 * turn for others. */
static inline struct chempi_conn_route *
chempi_conn_route(const struct chempi_peer *peer, uint64_t len)
{
    struct chempi_conn_route *route = peer->routes;

    while (CHEMPI_UNLIKELY(len > route->max_len)) {
        if (len <= route[1].max_len)
            return &route[1];
        route += 2;
    }
    return route;
}

/* Open devices of a lane. */
static inline uint32_t chempi_conn_device_count(const struct chempi_lane *lane)
{
    return lane->conn.device_count;
}
static inline struct chempi_dev *
chempi_conn_device(const struct chempi_lane *lane, uint32_t i)
{
    return lane->conn.devices[i];
}
/* Some open device sleeps on descriptors. */
static inline bool chempi_conn_has_fds(const struct chempi_lane *lane)
{
    return lane->conn.has_fds;
}

/* A card that the key-value store delivered (length 0: none was published). */
void chempi_conn_card(uint32_t proc, const char *key, const void *card,
                      size_t len);

/* A process is gone; requests that need it fail with MPI_ERR_PROC_ABORTED. A
 * lane's lock is held, and it has found that; the first one tells all others.
 */
void chempi_conn_set_lost(struct chempi_lane *lane, uint32_t proc,
                          const char *why);
/* What another lane has found (chempi_lane.lost, which is cleared). Holder of
 * the first lane's lock alone. */
void chempi_conn_lose_deferred(struct chempi_peer *lost);

/* The same by the launcher's word: what it started has ended, perhaps a shell
 * whose child goes on (see chempi_region_is_marked()). Or a process of another
 * world has finished: nothing is said of others. */
void chempi_conn_set_ended(uint32_t proc, const char *why);
bool chempi_conn_has_ended(uint32_t rank);
/* The process of another world is lost, though it has finished, if it has. */
void chempi_conn_forget_end(uint32_t proc);

/* Be told of each peer that is lost, once, at any place under the lock. */
void chempi_conn_on_lost(void (*told)(struct chempi_peer *peer));

/* Be told of each process of another world that is lost, after that. */
void chempi_conn_on_foreign_lost(void (*told)(uint32_t proc, const char *why));

/* Use a gateway only where there is no other way from now on, or again. */
void chempi_conn_drained(uint32_t gateway, bool is_drained);

/* Processes whose routes were looked up, and those that are lost; is_own: of
 * the job's. */
uint64_t chempi_conn_resolved_count(void);
uint64_t chempi_conn_lost_count(void);
bool chempi_conn_has_lost_own(void);
/* The same, without ranks where the first of them ends the job. */
static inline uint64_t chempi_conn_missing_count(void)
{
    return atomic_load_explicit(&chempi_ctx.missing, memory_order_relaxed);
}
/* Let devices take what one had sent, and end what is under way with it: some
 * cannot notice. Call again while something remains. Not from an upcall of
 * theirs. */
enum chempi_remains chempi_conn_end(struct chempi_peer *peer);
/* Is this process one of them? */
bool chempi_conn_is_missing(uint32_t proc);

/* What was sent by a protocol of an open device. */
struct chempi_dev_traffic chempi_conn_sent(const struct chempi_lane *lane,
                                           uint32_t device, uint32_t protocol);

/* NULL: the job needs none. */
const struct chempi_conn_overlay *chempi_conn_get_overlay(void);

/* Append "traffic ...", "route ..." and "hop ..." lines
 * (chempid/stats/traffic.h, trace.h), as `what` says (CHEMPI_STATS_*), for what
 * this rank has sent since the last report. 0 or -ENOMEM. */
int chempi_conn_report(uint32_t what, struct chempi_writer *out);

#endif
