/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests: the struct that every pending operation has, and its life.
 *
 *   -   pending counts what must still happen; the request is complete at 0
 *   -   an active request is referenced by its engine (device, matching,
 *       schedule); the user's handle is a second reference
 *   -   a request that the user freed while active is destroyed at completion
 *   -   all members are guarded by the lock of its lane
 *   Q6  pending is also read without the lock, but changed under it only. Who
 *       has found it 0 may read what the operation has left, and takes the
 *       lock before the request is used again or goes: who completed it is in
 *       there until it lets go
 *   Q5  every request that holds a communicator is on the list of all
 *       requests, those of the pool while they are free, too; but for those
 *       on the stack of a call and the first message of a partitioned send,
 *       which are under way as long as they hold it. Generalized requests and
 *       flushes of buffers, and those on files, hold none
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_REQUEST_H
#define CHEMPI_LIBCHEMPI_DIDL_REQUEST_H

#include <mpi.h>
#include <stdatomic.h>

#include "common/containers/list.h"
#include "libchempi/ddi.h"
#include "libchempi/didl/base/object.h"
#include "libchempi/didl/base/setting.h"
#include "libchempi/didl/comm/comm.h"
#include "libchempi/didl/datatype/datatype.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/light.h"

struct chempi_peer;
struct chempi_queue;
struct chempi_wait_report;

enum chempi_request_kind {
    CHEMPI_REQUEST_SEND,
    CHEMPI_REQUEST_RECV,
    CHEMPI_REQUEST_NULL_PEER, /* MPI_PROC_NULL: complete from the start */
    CHEMPI_REQUEST_COLL,      /* a schedule */
    CHEMPI_REQUEST_GENERAL,   /* MPI_Grequest_start */
    CHEMPI_REQUEST_FLUSH,     /* of attached buffers */
    CHEMPI_REQUEST_FILE,      /* reading or writing a file */
    CHEMPI_REQUEST_RMA        /* MPI_Rput and its like */
};

enum chempi_send_mode {
    CHEMPI_SEND_STANDARD,
    CHEMPI_SEND_SYNC,
    CHEMPI_SEND_BUFFERED,
    CHEMPI_SEND_READY
};

struct chempi_request;

/* What a kind does; every member but the last two is mandatory. */
struct chempi_request_ops {
    /* Which MPI call begins it, for messages; chempi_request_call(). */
    const char *call;
    /* Begin a persistent operation (it is marked active, pending is 0); sets
     * pending. Under the lane lock. MPI error class. */
    int (*start)(struct chempi_request *req);
    /* Under the lane lock; may do nothing. */
    void (*cancel)(struct chempi_request *req);
    /* Fill in the status of a complete request; may run user code; without
     * the lock, but of one up to COLL that has no error perhaps under it.
     * Returns the operation's MPI error class. */
    int (*finish)(struct chempi_request *req, MPI_Status *status);
    /* Release what the kind owns, and the memory. Under the lane lock. */
    void (*destroy)(struct chempi_request *req);
    /* Put for whom an active request waits now (wait_report.h): of a kind that
     * is neither a message nor alone. Under the lane lock. */
    void (*awaits)(struct chempi_wait_report *w,
                   const struct chempi_request *req);
    /* Of COLL: wait for it in a way of its own. Holder of the lane, while it
     * does not lock. MPI error class. */
    int (*await)(struct chempi_request *req);
};

/* Members for kinds that are never begun again, cannot be cancelled (MPI does
 * not allow it; harmless), and have an empty status. */
int chempi_request_start_nothing(struct chempi_request *req);
void chempi_request_cancel_nothing(struct chempi_request *req);
int chempi_request_finish_empty(struct chempi_request *req, MPI_Status *status);

/* What a receive is embedded in. */
enum chempi_incoming_kind {
    CHEMPI_INCOMING_REQUEST, /* a request */
    CHEMPI_INCOMING_HELD,    /* a message without a receive */
    CHEMPI_INCOMING_SYSTEM   /* memory that a system handler has named */
};

/* A receive as a device sees it. */
struct chempi_incoming {
    struct chempi_rx rx;
    uint8_t kind;     /* enum chempi_incoming_kind */
    bool is_blocking; /* SYSTEM: the peer's later messages wait for it */
};

/* Something that waits for room at a peer, in order. */
struct chempi_outgoing {
    struct chempi_list link;
    bool is_system;
};

/* How a request holds its communicator. */
enum chempi_request_hold {
    CHEMPI_REQUEST_HOLDS,  /* one of obj.refs */
    CHEMPI_REQUEST_SHARES, /* together with others: one of comm->requests */
    CHEMPI_REQUEST_TRUSTS  /* not at all: the caller does, until it is over */
};

struct chempi_request {
    struct chempi_object obj;
    const struct chempi_request_ops *ops;
    struct chempi_lane *lane; /* whose lock guards it */
    _Atomic uint32_t pending; /* Q6 */
    uint8_t kind;             /* enum chempi_request_kind */
    uint8_t mode;             /* enum chempi_send_mode */
    bool is_persistent;
    bool is_active;    /* started, or not persistent */
    bool is_freed;     /* the user's handle is gone */
    uint8_t hold;      /* enum chempi_request_hold */
    bool is_cancelled; /* completed by cancellation */
    bool is_cancelling;
    bool is_queued;     /* outgoing.link or match_link is on a list */
    bool is_owed;       /* counted by the lane (L4) */
    bool is_urgent;     /* a send: the receiver's agent may take it */
    bool is_posted;     /* a send of a call that does not wait, and of a process
                           whose agent sees to it if it goes away */
    uint16_t sent_bits; /* a receive: what the sender told of its type */
    uint16_t site;      /* a send: where it was called; 0: not known */
    int error;          /* MPI error class of the finished operation */
    int32_t source;     /* status */
    int32_t tag;        /* status, and the tag of a send */
    MPI_Count bytes;
    struct chempi_comm *comm; /* held, as `hold` says; may be NULL */
    struct chempi_datatype *type;
    /* Point-to-point only, from here on. */
    void *buf;
    MPI_Count count;
    int32_t peer_rank; /* argument: destination, source or MPI_ANY_SOURCE */
    int32_t peer_tag;  /* argument: tag or MPI_ANY_TAG */
    uint32_t context;
    uint32_t serial;          /* of a receive's message, where sent_bits are */
    struct chempi_peer *peer; /* of a send */
    struct chempi_outgoing outgoing;
    struct chempi_list match_link; /* posted receives; sync sends; sends whose
                                      light handles were cancelled */
    struct chempi_queue *queue;
    uint64_t stamp; /* of a posted receive; a cancelled send's light handle */
    struct chempi_request *parent; /* of an orphan: told of completion */
    void *packed;                  /* buffered sends: memory to give back */
    struct chempi_segment iter;
    union {
        struct chempi_tx tx;
        struct chempi_incoming in;
    } u;
    struct chempi_list all_link; /* Q5; not touched by chempi_request_init */
};

/* Of all operations that are over before their call returns, without an error
 * and with an empty status, in each lane: nothing tells one from another, and
 * no operation writes it. Sends have light handles, others its address. */
extern struct chempi_request chempi_request_over[CHEMPI_LANES_MAX];

static inline struct chempi_request *chempi_request_of_light(MPI_Request handle)
{
    struct chempi_request *req =
        chempi_light_is_plain() ? NULL : chempi_light_find(handle);

    return CHEMPI_LIKELY(!req) ? &chempi_request_over[chempi_light_lane(handle)]
                               : req;
}

/* NULL when the handle names no request. */
static inline struct chempi_request *chempi_request_lookup(MPI_Request handle)
{
    struct chempi_request *req = (struct chempi_request *)(void *)handle;

    if (!chempi_handle_is_address(handle))
        return chempi_light_is(handle) ? chempi_request_of_light(handle) : NULL;
    return req->obj.magic == CHEMPI_MAGIC_REQUEST ? req : NULL;
}

static inline MPI_Request chempi_request_handle(struct chempi_request *req)
{
    return (MPI_Request)(void *)req;
}

/* Set the common members of a new request (memory is the caller's, or of the
 * lane's pool): one
 * reference, active, pending 1, no error. comm and type are held if given. */
void chempi_request_init(struct chempi_request *req, struct chempi_lane *lane,
                         enum chempi_request_kind kind,
                         const struct chempi_request_ops *ops,
                         struct chempi_comm *comm,
                         struct chempi_datatype *type);

/* Hold its communicator together with others: one that is on the list of all,
 * under the lane lock until it leaves it. */
static inline void chempi_request_share(struct chempi_request *req)
{
    if (CHEMPI_UNLIKELY(req->lane != &chempi_lane_main)) {
        chempi_object_hold(&req->comm->obj); /* requests is the first one's */
        return;
    }
    req->hold = CHEMPI_REQUEST_SHARES;
    if (req->comm->requests++ == 0)
        chempi_object_hold(&req->comm->obj);
}

/* It holds its communicator no longer. In another lane than the first, under
 * its lock. */
static inline void chempi_request_leave(struct chempi_request *req)
{
    if (CHEMPI_LIKELY(req->hold == CHEMPI_REQUEST_SHARES)) {
        if (--req->comm->requests == 0)
            chempi_comm_release(req->comm);
    } else if (req->hold == CHEMPI_REQUEST_HOLDS) {
        if (req->lane == &chempi_lane_main)
            chempi_comm_release(req->comm);
        else
            chempi_comm_leave(req->comm, req->lane);
    }
}

/* A request from the pool of a lane, which it then belongs to; NULL when out
 * of memory. Under the lane's lock. */
struct chempi_request *chempi_request_alloc(struct chempi_lane *lane);
void chempi_request_recycle(struct chempi_request *req);

/* Put a request outside the pool on the list of all of a lane, and take it off
 * before it goes. Under the lock. */
void chempi_request_track(struct chempi_request *req, struct chempi_lane *lane);
void chempi_request_untrack(struct chempi_request *req);

/*
 * Is nothing under way on a communicator? Requests hold it, too, that are
 * complete and nobody has waited for, or inactive, be they posted (a
 * partitioned receive waits for its sender's description from the start).
 * Whoever asks again and again keeps one that is under way in mind: as long as
 * it is, nothing else is looked at.
 */
struct chempi_request_lull {
    struct chempi_list link;
    struct chempi_comm *comm;
    struct chempi_request *blocker; /* where to look on; may be NULL */
};

/* Open and close it without the lock; ask under the lock of the first lane. */
void chempi_request_lull_open(struct chempi_request_lull *lull,
                              struct chempi_comm *comm);
bool chempi_request_lull_is_there(struct chempi_request_lull *lull);
void chempi_request_lull_close(struct chempi_request_lull *lull);

/* A started request of len bytes is left to itself: if it is large, progress
 * is owed to it until it is complete. Under the lock. */
void chempi_request_owe_large(struct chempi_request *req);
static inline void chempi_request_owe(struct chempi_request *req, uint64_t len)
{
    if (CHEMPI_UNLIKELY(len >= chempi_setting(CHEMPI_SET_AGENT_BYTES)))
        chempi_request_owe_large(req);
}

/* One thing that had to happen has happened; at the last the request is
 * complete: waiters are told, a freed one is destroyed. Under the lock. */
void chempi_request_progress(struct chempi_request *req, int error);

/* What tells threads that wait of a complete request, while the lane locks.
 * Set by progress before the first request. */
void chempi_request_on_complete(void (*tell)(void));

/* Any thread that has the request (Q6). */
static inline bool chempi_request_is_complete(const struct chempi_request *req)
{
    return atomic_load_explicit(&req->pending, memory_order_acquire) == 0;
}

/* Under the lock, as all that follow. */
static inline uint32_t chempi_request_pending(const struct chempi_request *req)
{
    return atomic_load_explicit(&req->pending, memory_order_relaxed);
}

static inline void chempi_request_set_pending(struct chempi_request *req,
                                              uint32_t pending)
{
    atomic_store_explicit(&req->pending, pending,
                          memory_order_release); /* partner: is_complete() */
}

static inline void chempi_request_add_pending(struct chempi_request *req,
                                              uint32_t more)
{
    chempi_request_set_pending(req, chempi_request_pending(req) + more);
}

/* Is it a receive that has met its message, and gets the data now? */
static inline bool chempi_request_is_filling(const struct chempi_request *req)
{
    return req->kind == CHEMPI_REQUEST_RECV && req->is_active &&
           !chempi_request_is_complete(req) && !req->is_queued;
}

/* Is there any such receive? Looks at all requests. Under the lock. */
bool chempi_request_is_any_filling(const struct chempi_lane *lane);

/* The MPI call behind a request, for messages: "MPI_Issend". */
const char *chempi_request_call(const struct chempi_request *req);

/* Set the words of the class that a complete request has failed with: the
 * call, the peer as far as it is known, and the reason, which is what words of
 * this class were noted before. Any thread, without the lock; returns error. */
int chempi_request_explain(const struct chempi_request *req, int error);

/* Wait for one request without consuming it. Takes the lock itself. */
int chempi_request_await(struct chempi_request *req);
/* The same by who holds the lock, and does when it returns; not meanwhile. */
int chempi_request_await_locked(struct chempi_request *req);

int chempi_request_finish_unlocked(struct chempi_request *req,
                                   MPI_Status *status);

/* Have a complete request finish. Holder of the lock, which is let go meanwhile
 * but for messages and collectives without an error: many of these take it
 * once. */
static inline int chempi_request_finish_locked(struct chempi_request *req,
                                               MPI_Status *status)
{
    if (CHEMPI_LIKELY(req->kind <= CHEMPI_REQUEST_COLL &&
                      req->error == MPI_SUCCESS))
        return req->ops->finish(req, status);
    return chempi_request_finish_unlocked(req, status);
}

/* Drop the holder's reference of an inactive or complete request. Under the
 * lock. */
void chempi_request_drop(struct chempi_request *req);

/* A complete generalized request is about to go: run the user's free
 * callback, once. Without the lock. What it returns, with words. */
int chempi_request_release_general(struct chempi_request *req);

/* Run the user's cancel callback of one. Without the lock; req may be gone
 * afterwards. What it returns, with words. */
int chempi_request_cancel_general(struct chempi_request *req);

/* The user has freed the handle of an active request. Under the lock. */
void chempi_request_orphan(struct chempi_request *req);

/* A lane was added: chempi_request_over is in it. */
void chempi_request_open_lane(struct chempi_lane *lane);

/* Give pooled memory back (finalize); the lane may go. */
void chempi_request_fini(struct chempi_lane *lane);

/* Operations in flight whose handle the user freed (finalize waits). */
uint32_t chempi_request_orphans(const struct chempi_lane *lane);

#endif
