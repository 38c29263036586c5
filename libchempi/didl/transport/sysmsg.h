/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * System messages: sent without a matching receive; a negative tag names the
 * handler, which the receiving side runs from progress. doc/system-messages.md
 * shows the flow. A message has a head of at most CHEMPI_SYSMSG_HEAD_MAX bytes
 * and a body of any length, also none. Both travel together while they are
 * eager; a longer body stays at its sender until the handler has named the
 * memory for it.
 *
 *   -   they take the same numbered way as messages do: heads are handled in
 *       the order in which they were handed to chempi_sysmsg_send(), but for
 *       requests that wait for quota, which answers and messages may pass
 *   -   requests cost quota, which the receiver gives back when the handler,
 *       the body, and whatever took the cost over are done; answers cost
 *       nothing and never wait for quota: so a handler may answer, and what
 *       the answers need is bounded by the requests
 *   -   a handler runs under the lane lock, inside progress. It may send
 *       system messages, complete requests, and keep the cost; it must not
 *       block, poll, settle or call user code
 *   -   done() of a message and of a room is called once, from progress, never
 *       from inside the call that hands it in
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_TRANSPORT_SYSMSG_H
#define CHEMPI_LIBCHEMPI_DIDL_TRANSPORT_SYSMSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libchempi/ddi.h"
#include "libchempi/didl/transport/engine.h"
#include "libchempi/didl/transport/request.h"

struct chempi_peer;

#define CHEMPI_SYSMSG_HEAD_MAX 56u /* bytes */
/* What one message costs beside its head and body, and the most that a body
 * counts, bytes of quota. */
#define CHEMPI_SYSMSG_COST 64u
#define CHEMPI_SYSMSG_BODY_COST_MAX (64u << 10)

/* Who has which tags; both ends run the same library. */
enum chempi_sysmsg_tag {
    CHEMPI_SYSMSG_MATCHED = -1,       /* u32 serial, u32 count: so many sync
                                         sends from this one on are matched */
    CHEMPI_SYSMSG_CREDIT = -2,        /* nothing: the envelope says it */
    CHEMPI_SYSMSG_CANCEL = -3,        /* u32 serial: take it back */
    CHEMPI_SYSMSG_CANCEL_ANSWER = -4, /* u32 serial, u32 1: was taken back */
    CHEMPI_SYSMSG_REPAID = -5,        /* u32 cost given back in all, wraps */
    CHEMPI_SYSMSG_BODY = CHEMPI_ENGINE_TAG_BODY, /* of the message before */
    CHEMPI_SYSMSG_ORIGIN = -10,        /* u32 serial: where was it sent? */
    CHEMPI_SYSMSG_ORIGIN_ANSWER = -11, /* u32 serial, and the words */
    CHEMPI_SYSMSG_RMA = -16,           /* down to -31: one-sided */
    CHEMPI_SYSMSG_IO = -32,            /* down to -47: files */
    CHEMPI_SYSMSG_WORLD_LOST = -48,    /* struct loss: of another world; from a
                                          rank of the own job */
    CHEMPI_SYSMSG_PROC = -49,          /* down to -59: processes */
    CHEMPI_SYSMSG_TEST = -60,          /* down to -63: tests */
    CHEMPI_SYSMSG_LAST = -63
};

/* ---- receiving ---- */

/* A message that has arrived; valid during the upcall. */
struct chempi_sysmsg_in {
    struct chempi_peer *peer;
    const void *head; /* head_len bytes, aligned to 16 */
    const void *body; /* body_len bytes, any alignment; in begin(): NULL */
    uint64_t body_len;
    uint32_t head_len;
    /* Quota that the request holds; 0 for an answer. A handler that sets it
     * to 0 gives it back later, with its answer (chempi_sysmsg.repay). */
    uint32_t cost;
    int32_t tag;
};

/* Memory for a body that is still at its sender; the handler's, from begin()
 * until done(). */
struct chempi_sysmsg_room {
    void *buf;                   /* contiguous; NULL when iter is set */
    struct chempi_segment *iter; /* non-contiguous, or NULL */
    /* Messages of this peer that come after the body wait for it. */
    bool is_ordered;
    /* The body is in place (0) or will never be (-errno). *cost as in
     * chempi_sysmsg_in. The room may be freed or used again. */
    void (*done)(struct chempi_sysmsg_room *room, int status, uint32_t *cost);
    void *arg; /* the handler's */
    /* --- the module's */
    struct chempi_incoming in;
    struct chempi_peer *peer;
    uint64_t len;
    uint32_t cost;
};

struct chempi_sysmsg_handler {
    /* Bytes of head that are accepted; others are ignored with a log record. */
    uint32_t head_min;
    uint32_t head_max;
    /* The whole message is here. */
    void (*run)(struct chempi_sysmsg_in *in);
    /* The body is at the sender: name room for all of it, or NULL to throw it
     * away. A NULL begin throws every such body away, with a log record. */
    struct chempi_sysmsg_room *(*begin)(struct chempi_sysmsg_in *in);
    bool is_open; /* processes of other worlds may send it, too */
};

/* Have messages of this tag handled; the handler stays the caller's and must
 * stay. At start, before any peer can send them. */
void chempi_sysmsg_register(int32_t tag,
                            const struct chempi_sysmsg_handler *handler);

/* Is there a handler that takes it from processes of other worlds, with such a
 * head? */
bool chempi_sysmsg_is_open(const struct chempi_envelope *env);

/* ---- sending ---- */

/* A message under way; the caller's memory, until done(). */
struct chempi_sysmsg {
    struct chempi_peer *peer;
    int32_t tag;
    uint32_t head_len;
    _Alignas(16) unsigned char head[CHEMPI_SYSMSG_HEAD_MAX];
    const void *body;            /* contiguous; NULL when iter is set */
    struct chempi_segment *iter; /* non-contiguous, at position 0; or NULL */
    uint64_t body_len;           /* bytes; 0: none */
    bool is_answer;              /* of a handler: costs no quota */
    bool is_urgent;              /* the receiver's agent may handle it */
    uint32_t repay;              /* cost that is given back when it is done */
    /* The body may be reused (0), or the peer cannot be reached any more
     * (-errno). The message may be freed or used again. */
    void (*done)(struct chempi_sysmsg *msg, int status);
    void *arg; /* the caller's */
    /* --- the module's */
    struct chempi_outgoing outgoing;
    struct chempi_tx tx;
    void *packed;
    bool is_split;
    bool is_head_gone;
};

/* Hand a message in. 0, or -ENOMEM, and then nothing happened. It leaves with
 * the next settle; who is not inside progress calls chempi_engine_settle()
 * to have it leave at once. Under the lane lock. */
int chempi_sysmsg_send(struct chempi_sysmsg *msg);

/* Hand in a head alone, copied: an answer, without quota. 0 or -ENOMEM. */
int chempi_sysmsg_post(struct chempi_peer *peer, int32_t tag, const void *head,
                       size_t head_len);

/* The same for what the peer waits for: without memory the job ends with a
 * sentence instead of waiting for ever. */
void chempi_sysmsg_answer(struct chempi_peer *peer, int32_t tag,
                          const void *head, size_t head_len);

/* Requests that wait for quota, all peers of a lane. Under its lock. */
uint64_t chempi_sysmsg_waiting_count(const struct chempi_lane *lane);

/* Before the devices are opened. */
void chempi_sysmsg_init(void);

/* For a lane that was added. 0 or -ENOMEM. */
int chempi_sysmsg_open_lane(struct chempi_lane *lane);

/* After they are closed: give memory back that the lane keeps. */
void chempi_sysmsg_fini(struct chempi_lane *lane);

#endif
