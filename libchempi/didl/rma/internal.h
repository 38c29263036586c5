/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of this room share. Under the lane lock unless said
 * otherwise; functions return an MPI error class unless said otherwise. */
#ifndef CHEMPI_LIBCHEMPI_DIDL_RMA_INTERNAL_H
#define CHEMPI_LIBCHEMPI_DIDL_RMA_INTERNAL_H

#include <assert.h>
#include <stddef.h>

#include "libchempi/didl/comm/make/comm_make.h"
#include "libchempi/didl/datatype/datatype.h"
#include "libchempi/didl/info/attr.h"
#include "libchempi/didl/rma/win.h"
#include "libchempi/didl/transport/request.h"

#include "libchempi/services/layout/layout.h"

/* The window's own contexts: requests to a target and its answers are apart,
 * so that neither waits behind the other. */
enum chempi_rma_context {
    CHEMPI_RMA_REQUESTS = CHEMPI_CONTEXT_PT2PT,
    CHEMPI_RMA_ANSWERS = CHEMPI_CONTEXT_PARTITIONED,
    CHEMPI_RMA_DATA = CHEMPI_CONTEXT_GROUP,  /* of large puts */
    CHEMPI_RMA_TOKENS = CHEMPI_CONTEXT_INTER /* without data */
};

/* ---- the window in words, and what it owes (win.c) ---- */

/* Its name for messages. */
const char *chempi_rma_name(const struct chempi_win *win);
/* "in an epoch of MPI_Win_start". */
const char *chempi_rma_access_words(const struct chempi_win *win);
/* " for the shared lock of rank 3 of ...". */
void chempi_rma_put_lock(struct chempi_wait_report *w,
                         const struct chempi_rma_peer *peer, bool is_exclusive);
/* Words: "for operations at rank 3 of ...", or for the lock before them. */
void chempi_rma_put_peer(struct chempi_wait_report *w, const void *object);
/* "ended", of the rank that is away. */
const char *chempi_rma_lost_words(const struct chempi_win *win);
/* MPI_ERR_PROC_ABORTED with words if a lock that is wanted cannot be had, as a
 * member has ended; else MPI_SUCCESS. */
int chempi_rma_lock_loss(const struct chempi_rma_peer *peer, bool is_exclusive);
/* Begin or cease to owe service (lane.h, L4), as the window's hints say. */
void chempi_rma_owe(struct chempi_win *win);

/* ---- peers (peer.c) ---- */

/* The record of a rank (valid), made when there is none; NULL: no memory. */
struct chempi_rma_peer *chempi_rma_peer(struct chempi_win *win, uint32_t rank);
/* The same for an argument of that name, which may be no rank. Without the
 * lane lock. MPI error class. */
int chempi_rma_find_slow(struct chempi_win *win, int rank, const char *argument,
                         struct chempi_rma_peer **out);
static inline int chempi_rma_find(struct chempi_win *win, int rank,
                                  const char *argument,
                                  struct chempi_rma_peer **out)
{
    struct chempi_rma_peer *peer = atomic_load_explicit(
        &win->recent[(uint32_t)rank % CHEMPI_RMA_RECENT], memory_order_acquire);

    if (CHEMPI_UNLIKELY(!peer || peer->rank != (uint32_t)rank))
        return chempi_rma_find_slow(win, rank, argument, out);
    *out = peer;
    return MPI_SUCCESS;
}

void chempi_rma_free_peers(struct chempi_win *win);
/* ---- one operation, checked (ops.c) ---- */

struct chempi_rma_op {
    struct chempi_win *win;
    struct chempi_rma_peer *peer;
    struct chempi_rma_side origin; /* buf NULL and count 0: none */
    struct chempi_rma_side result; /* of get and fetching */
    MPI_Aint disp;
    MPI_Count count; /* of the target type */
    struct chempi_datatype *type;
    uint64_t len;  /* packed bytes */
    uint64_t done; /* of these, are under way (accumulates by message) */
    uint32_t op;   /* enum chempi_op_index */
    uint8_t elem;  /* enum chempi_basic_type */
    bool is_fetch;
    struct chempi_request *user; /* of the request-based forms, or NULL */
};

/* ---- memory that the target has mapped here (direct.c) ---- */

/* The address of displacement `disp` at a target that is_mapped. */
char *chempi_rma_address(const struct chempi_rma_peer *peer, MPI_Aint disp);
/* Memory of others has been stored to: the next flush orders that. */
static inline void chempi_rma_note_stores(struct chempi_win *win)
{
    atomic_store_explicit(&win->has_stored, true, memory_order_relaxed);
}

/* Between what a thread of this process does to the window's memory and what
 * another one that serves requests does: which was first both may know only by
 * way of other processes (a barrier in memory that they share), and C11 orders
 * nothing by that, nor does ThreadSanitizer. */
static inline void chempi_rma_take_turns(struct chempi_win *win)
{
    (void)atomic_fetch_add_explicit(&win->turns, 1, memory_order_acq_rel);
}

int chempi_rma_direct_put(struct chempi_rma_op *op);
int chempi_rma_direct_get(struct chempi_rma_op *op);
int chempi_rma_direct_fold(struct chempi_rma_op *op);
int chempi_rma_direct_swap(struct chempi_rma_op *op, const void *compare);
/* -1: better by message. */
int chempi_rma_attach_put(struct chempi_rma_op *op);
int chempi_rma_attach_get(struct chempi_rma_op *op);

/* ---- arithmetic at the target (fold.c) ---- */

/* What keeps accumulates to the memory of a member apart. */
struct chempi_rma_guard {
    struct chempi_rma_line *line; /* of the memory's owner; NULL: nobody
                                     else has the memory mapped */
    const struct chempi_win *win;
    uint32_t pid;    /* of this process */
    bool is_fine;    /* word by word, where that is possible */
    bool is_same_op; /* nothing else meets MPI_NO_OP */
};

/* Where accumulates go: count elements of a layout at base (layout NULL:
 * consecutive bytes). Nothing is touched from `end` on. */
struct chempi_rma_place {
    char *base;
    uintptr_t end;
    uint64_t count;
    const struct chempi_layout *layout;
    struct chempi_rma_guard guard;
};

/*
 * Fold len packed bytes of elements into the place from packed byte `at` on;
 * what was there before goes to `out` unless it is NULL. in may be NULL for
 * MPI_NO_OP. Any alignment of in and out. Whole elements.
 */
void chempi_rma_fold(const struct chempi_rma_place *place, uint32_t op,
                     uint8_t elem, uint64_t at, uint64_t len, const void *in,
                     void *out);
/* Compare and swap one element of `size` bytes. */
void chempi_rma_swap(const struct chempi_rma_guard *guard, char *addr,
                     size_t size, const void *compare, const void *in,
                     void *out);

/* What guards accumulates at a member of this node. */
struct chempi_rma_guard chempi_rma_guard(const struct chempi_win *win,
                                         uint32_t local);

/* ---- layouts on the way (types.c) ---- */

/* The number by which the peer knows the layout of a type; it is told first if
 * need be. 0: no memory. */
uint32_t chempi_rma_tell_type(struct chempi_rma_peer *peer,
                              struct chempi_datatype *type);
void chempi_rma_free_types(struct chempi_rma_peer *peer);

struct chempi_rma_type { /* at the target */
    struct chempi_list link;
    uint32_t serial;
    struct chempi_layout layout; /* root NULL: not whole yet */
    int64_t low;                 /* span of one element, bytes */
    int64_t high;
    uint64_t blob_len;
    uint64_t blob_have;
    unsigned char *blob;
};

/* NULL: not known. */
struct chempi_rma_type *chempi_rma_find_type(struct chempi_rma_peer *peer,
                                             uint32_t serial);
/* A piece of a description, or word that one is not needed any more. */
int chempi_rma_hear_type(struct chempi_rma_peer *peer, uint32_t serial,
                         uint64_t total, uint64_t at, int64_t extent,
                         const void *data, uint64_t len);
void chempi_rma_forget_type(struct chempi_rma_peer *peer, uint32_t serial);

/* ---- messages (wire.c, serve.c) ---- */

enum chempi_rma_kind {
    CHEMPI_RMA_DO_PUT = 1,
    CHEMPI_RMA_DO_PUT_LARGE, /* payload follows on CHEMPI_RMA_DATA */
    CHEMPI_RMA_DO_GET,
    CHEMPI_RMA_DO_FOLD,       /* accumulate */
    CHEMPI_RMA_DO_FETCH_FOLD, /* answered with what was there */
    CHEMPI_RMA_DO_SWAP,       /* payload: compare, value */
    CHEMPI_RMA_DO_FLUSH,      /* answered when all before is done */
    CHEMPI_RMA_DO_LOCK,   /* op: enum chempi_rma_lock; answered at the grant */
    CHEMPI_RMA_DO_UNLOCK, /* flush, then release; answered */
    CHEMPI_RMA_DO_TYPE,
    CHEMPI_RMA_DO_FORGET,
    CHEMPI_RMA_DO_DROP,   /* the payload of PUT_LARGE `id` will not come */
    CHEMPI_RMA_NOTE_HELD, /* to who has asked for a lock: rank disp has it */
};

/* What a request begins with; its payload follows, then bytes up to a multiple
 * of 8. Host representation (all processes have the same). */
struct chempi_rma_head {
    uint8_t kind; /* enum chempi_rma_kind */
    uint8_t elem;
    uint16_t op;
    uint32_t id;      /* tag of the answer or of the data; 0: no answer */
    uint32_t type;    /* serial of the layout, 0: consecutive bytes */
    uint32_t payload; /* bytes that follow */
    int64_t disp;     /* target_disp as the origin gave it */
    int64_t shift;    /* bytes to add: lower bound of a type without layout */
    uint64_t count;   /* elements of the layout */
    uint64_t at;      /* packed position of this piece */
    uint64_t len;     /* packed bytes of this piece */
    uint64_t total;   /* TYPE: bytes of the description */
};
static_assert(sizeof(struct chempi_rma_head) == 64, "no gaps");

/* Memory of batches, payload of accumulates, and results on their way, that
 * wait at an origin, bytes: beyond it the origin waits for half of them to be
 * gone. */
#define CHEMPI_RMA_OUT_MAX (UINT64_C(8) << 20)
/* Bytes of answers to a member of another world that are kept until it takes
 * them: it asks for OUT_MAX at a time, and for small ones besides. */
#define CHEMPI_RMA_IN_MAX (4 * CHEMPI_RMA_OUT_MAX)

/* Bytes of requests in one message: with a device's head it fits into one
 * packet of 64 KiB less what protocols of the network put before it, as a few
 * bytes in a packet of their own cost as much as a whole one. */
#define CHEMPI_RMA_MESSAGE_MAX 65280u
#define CHEMPI_RMA_PIECE_MAX                                                   \
    (CHEMPI_RMA_MESSAGE_MAX - sizeof(struct chempi_rma_head))
/* Bytes of a put or accumulate that is copied: over a network a message of its
 * own costs more than the copies at both ends; while nothing else is under way
 * to that target, a longer one is, too, as the flush may go with it. */
#define CHEMPI_RMA_INLINE_MAX 16384u
#define CHEMPI_RMA_LONE_MAX 32768u
/* Bytes of a get up to which it waits for others that may go with it. */
#define CHEMPI_RMA_GATHER_MAX 8192u

/* Something under way with a peer, in order. */
struct chempi_rma_item {
    struct chempi_list link;
    struct chempi_request *req;  /* pt2pt; NULL: nothing to wait for */
    struct chempi_request *user; /* advances with it */
    void *buf;                   /* freed with it */
    uint32_t room;               /* bytes at buf, of a batch; else 0 */
    uint64_t buf_len;            /* bytes of it that are used */
    /* An answer that is expected: exactly so many bytes go to `into`, or to
     * the result if that is NULL; with is_packed on to the result's packed
     * position `at`. */
    bool is_answer;
    bool is_proof; /* it also says that the lock is granted */
    uint8_t asks;  /* enum chempi_rma_lock: of a batch that begins with it */
    bool is_packed;
    uint64_t expected;
    void *into;
    struct chempi_rma_side result; /* type held if is_packed */
    uint64_t at;
    /* Flushes are answered with it; of other requests, where they go. */
    struct chempi_rma_verdict verdict;
    /* Of the other's: a flush that waits for all before it. */
    bool is_marker;
    bool is_release;
    bool is_data; /* payload of a large put */
    uint32_t id;
    uint64_t copied;    /* bytes of an answer, in peer->in_bytes */
    uint64_t described; /* of descriptions that were withdrawn and are used
                           here, in peer->known_bytes */
    const struct chempi_layout_node *root; /* held, or NULL */
};

/* What it counts for in out_bytes: a batch with all memory that it has. */
static inline uint64_t chempi_rma_weight(const struct chempi_rma_item *item)
{
    return item->room ? item->room + sizeof(struct chempi_rma_item) +
                            sizeof(struct chempi_request)
                      : item->buf_len;
}

/* ---- what is under way (item.c) ---- */

/* A new item, which is at no peer yet; NULL: no memory. */
struct chempi_rma_item *chempi_rma_make_item(void);
/* Append it to peer->out or in. */
void chempi_rma_add_item(struct chempi_rma_peer *peer, struct chempi_list *list,
                         struct chempi_rma_item *item);
void chempi_rma_free_item(struct chempi_rma_item *item);
/* Put the peer on win->active. */
void chempi_rma_activate(struct chempi_rma_peer *peer);
/* Start a message of the window's with it. */
int chempi_rma_send(struct chempi_rma_peer *peer, struct chempi_rma_item *item,
                    const void *buf, MPI_Count count,
                    struct chempi_datatype *type, uint32_t tag,
                    enum chempi_rma_context context);
int chempi_rma_receive(struct chempi_rma_peer *peer,
                       struct chempi_rma_item *item, void *buf, MPI_Count count,
                       struct chempi_datatype *type, uint32_t tag,
                       enum chempi_rma_context context);
/* A small one that needs no memory: 0, -EAGAIN, or another -errno. */
int chempi_rma_inject(struct chempi_rma_peer *peer, const void *data,
                      uint64_t len, uint32_t tag,
                      enum chempi_rma_context context);
struct chempi_datatype *chempi_rma_bytes(void); /* MPI_BYTE */
/* A datatype of this layout, whose owner keeps it until the message is over:
 * nobody counts its references. */
void chempi_rma_borrow_type(struct chempi_datatype *type,
                            const struct chempi_layout *layout);
/* The origin would wait for ever: ends the process. */
void chempi_rma_no_answer(const struct chempi_rma_peer *peer);
/* Send an answer; data is copied. */
void chempi_rma_answer(struct chempi_rma_peer *peer, uint32_t id,
                       const void *data, uint64_t len);
/* Tell an origin that waits for a lock who has it; may fail. */
void chempi_rma_tell_holder(struct chempi_rma_peer *peer, int32_t holder);

/* ---- the window's hook (wire.c) ---- */

int chempi_rma_open_wire(struct chempi_win *win);
/* Take no more requests; those that are coming in have come. Without the lock.
 */
void chempi_rma_stop_serving(struct chempi_win *win);
/* And leave the hook: all is flushed and every member has said so. */
void chempi_rma_close_wire(struct chempi_win *win);

/* ---- requests in batches (batch.c) ---- */

/* Append a request with len <= CHEMPI_RMA_PIECE_MAX bytes, taken from data or,
 * if data is NULL, from iter, to what goes to the peer. The memory may be
 * reused at return. */
int chempi_rma_request(struct chempi_rma_peer *peer,
                       const struct chempi_rma_head *head, const void *data,
                       struct chempi_segment *iter, uint64_t len);
/* The same with len <= CHEMPI_RMA_PIECE_MAX bytes at data, which leave at once
 * and from there if they may, before what is being gathered if the window's
 * accumulates have no order: the memory is the request's until the next
 * flush, or until user (may be NULL) is complete. */
int chempi_rma_request_long(struct chempi_rma_peer *peer,
                            const struct chempi_rma_head *head,
                            const void *data, uint64_t len,
                            struct chempi_request *user);
/* Is a put or accumulate of len bytes copied into a batch? */
static inline bool chempi_rma_is_copied(const struct chempi_rma_peer *peer,
                                        uint64_t len)
{
    return len <= CHEMPI_RMA_INLINE_MAX ||
           (len <= CHEMPI_RMA_LONE_MAX && peer->batch.len == 0 &&
            chempi_list_is_empty(&peer->batch.sealed) &&
            chempi_list_is_empty(&peer->out));
}
/* Is there room for one with len bytes in what is being gathered, or a spare
 * buffer, so that nothing leaves and no memory is needed? */
bool chempi_rma_find_space(struct chempi_rma_peer *peer, uint64_t len);
/* The same, and expect an answer; the item is taken over, also on failure. */
int chempi_rma_ask(struct chempi_rma_peer *peer, struct chempi_rma_head *head,
                   const void *data, struct chempi_segment *iter, uint64_t len,
                   struct chempi_rma_item *item);
/* The same for what is answered with a status. */
int chempi_rma_ask_status(struct chempi_rma_peer *peer,
                          enum chempi_rma_kind kind);
/* Send what has been appended, unless a lock must be granted first: then the
 * window's hook does it. */
int chempi_rma_push(struct chempi_rma_peer *peer);
/* The same for a request whose answer of len bytes is wanted soon: at once if
 * it is long or nothing else is under way, else together with what comes next.
 */
int chempi_rma_push_idle(struct chempi_rma_peer *peer, uint64_t len);
bool chempi_rma_has_batch(const struct chempi_rma_peer *peer);
/* Nothing is under way at the peer any more, and no batch is there. */
void chempi_rma_rest_batch(struct chempi_rma_peer *peer);
void chempi_rma_free_batch(struct chempi_rma_peer *peer);
/* Memory of a batch that has been sent, item->room != 0, for the next ones. */
void chempi_rma_give_back(struct chempi_win *win, struct chempi_rma_item *item);
void chempi_rma_free_spares(struct chempi_win *win);
/* Nothing of it will be sent. */
void chempi_rma_drop_batch(struct chempi_rma_peer *peer);
/* Ask for a lock now; batch.lazy asks for it with the next request. */
int chempi_rma_ask_lock(struct chempi_rma_peer *peer,
                        enum chempi_rma_lock kind);
/* A number for an answer or for data. */
uint32_t chempi_rma_next_id(struct chempi_win *win);

/* ---- messages (wire.c, serve.c) ---- */

int chempi_rma_message_put(struct chempi_rma_op *op);
int chempi_rma_message_get(struct chempi_rma_op *op);
/* Goes on at op->done, and ends there when the window has CHEMPI_RMA_OUT_MAX
 * bytes of copies waiting. */
int chempi_rma_message_fold(struct chempi_rma_op *op);
int chempi_rma_message_swap(struct chempi_rma_op *op, const void *compare);
/* Ask for a flush unless nothing is out that needs one. */
int chempi_rma_begin_flush(struct chempi_rma_peer *peer);
/* Run what a peer asks for; len bytes at data, untrusted. */
void chempi_rma_serve(struct chempi_win *win, uint32_t source, const void *data,
                      uint64_t len);
/* The markers of a peer whose turn has come. Returns the number of events. */
int chempi_rma_reap_in(struct chempi_rma_peer *peer);

/* Locks by the target's process (sync/gate.c). */
struct chempi_rma_claim {
    struct chempi_list link;
    struct chempi_list guest;
    struct chempi_rma_peer *peer;
    uint32_t id;
    int32_t held_by; /* a rank that has the lock, or -1; for words only */
    uint16_t kind;   /* enum chempi_rma_lock; what is unknown is shared */
    bool is_granted; /* of this process's own claim */
    bool is_own;
    unsigned char *rest; /* requests that came with it or after it */
    uint64_t rest_len;
    /* Of others' claims: what has come with it, when it is granted. */
    void (*serve_rest)(struct chempi_rma_peer *peer, const unsigned char *data,
                       uint64_t len);
};
void chempi_rma_free_claim(struct chempi_rma_claim *claim);
/* It excludes nobody from now on. */
void chempi_rma_gate_open(struct chempi_win *win);
void chempi_rma_gate_ask(struct chempi_win *win,
                         struct chempi_rma_claim *claim);
void chempi_rma_gate_leave(struct chempi_win *win, bool was_exclusive);

/* ---- windows (create.c, query.c) ---- */

/* Are these bytes of this process attached, by one or by adjoining pieces? */
bool chempi_rma_is_attached(const struct chempi_win *win, int64_t start,
                            int64_t end);

struct chempi_info;
/* Values that are not known are ignored. */
void chempi_rma_take_hints(struct chempi_win *win,
                           const struct chempi_info *info);

/* ---- epochs (sync/epoch.c, sync/passive.c) ---- */

/* Tags of messages without data. */
enum {
    CHEMPI_RMA_TOKEN_POST,
    CHEMPI_RMA_TOKEN_COMPLETE,
    CHEMPI_RMA_TOKEN_FREE,
    CHEMPI_RMA_TOKEN_NONE /* the sender has no window; any member takes it */
};

/* A barrier of the members that are there, for MPI_Win_free. Where a world
 * survives one of its processes: a message of each member to each other one.
 * Else worlds are lost as a whole, and their first members meet. */
void chempi_rma_meet_survivors(struct chempi_win *win);

/* This member has no window, since another one is lost or has failed, but those
 * who have not heard of that may have theirs: they hear that it has ended, as
 * far as the window goes. What it has served is done. */
void chempi_rma_leave_survivors(struct chempi_win *win);

/* Is there an epoch for operations on the peer? Takes the lock of a target
 * that lock_all has left for its first use; may let go of the lane lock. */
int chempi_rma_need_epoch(struct chempi_rma_peer *peer);

/* ---- waiting (sync/flush.c); without the lane lock ---- */

/* Ask for a flush and wait until nothing is out at this peer, or at any. */
int chempi_rma_flush_peer(struct chempi_rma_peer *peer);
int chempi_rma_flush_all(struct chempi_win *win);
/* Wait for what has been asked for already; what went wrong since the last
 * time, of one peer. words(..., peer) say what is waited for. */
int chempi_rma_await_peer(struct chempi_rma_peer *peer,
                          chempi_wait_report_fn *words);
void chempi_rma_await_all(struct chempi_win *win);
/* Words for what a target has refused; returns the class. */
int chempi_rma_refused(const struct chempi_win *win, uint32_t rank,
                       const struct chempi_rma_verdict *verdict);
/* Progress, now and then: of calls that have nothing to wait for. */
void chempi_rma_breathe(struct chempi_win *win);
/* The first error of any peer; all are forgotten. */
int chempi_rma_take_errors(struct chempi_win *win);

/* ---- members that are away (loss.c) ---- */

/* From the window's hook, when somebody is missing who was not. */
void chempi_rma_look_for_loss(struct chempi_win *win);
/* MPI_ERR_PROC_ABORTED with words if a member is away, else rc. */
int chempi_rma_loss(struct chempi_win *win, int rc);

/* ---- locks (sync/lock.c); without the lane lock ---- */

/* Take or leave a lock of MPI_Win_lock. */
int chempi_rma_take_lock(struct chempi_rma_peer *peer,
                         enum chempi_rma_lock kind);
int chempi_rma_leave_lock(struct chempi_rma_peer *peer);
/* What lock_all takes at once: locks whose absence loads and stores of the
 * program's would not meet. */
int chempi_rma_lock_mapped(struct chempi_win *win, enum chempi_rma_lock kind);
/* Leave what is held: that which messages end, without waiting; all. */
int chempi_rma_leave_by_messages(struct chempi_win *win);
int chempi_rma_leave_all(struct chempi_win *win);
/* What is peer->wanted, by shared memory (sync/ticket.c) or by the own
 * process's gate (sync/gate.c). */
int chempi_rma_take_ticket(struct chempi_rma_peer *peer);
void chempi_rma_leave_ticket(struct chempi_rma_peer *peer, bool is_exclusive);
int chempi_rma_enter_own_gate(struct chempi_rma_peer *peer);

/* ---- the node's file (share.c); without the lock ---- */

/* All members of the node: make or open one file of len bytes, mapped; the
 * first `common` bytes and this process's own part are reserved. 0 or -errno,
 * the same at all. */
int chempi_rma_share(struct chempi_win *win, uint64_t len, uint64_t common,
                     uint64_t at, uint64_t own);
/* The members on this node, for small collectives among them. */
struct chempi_comm_channel chempi_rma_node_channel(struct chempi_win *win);
void chempi_rma_unshare(struct chempi_win *win);

#endif
