/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flows: what travels from this process to another one through gateways, and
 * back. A flow is an endpoint of the device, which users know as "gate".
 *
 *   F1  every numbered frame stands in `unacked` from its number until the
 *       receiver has acknowledged it: a lost gateway loses nothing; has_strays:
 *       for want of memory some of them have still to be sent by another way
 *   F2  unacked_bytes <= window + one message of 64 KiB in its frames, and
 *       less than CHEMPI_ROUTED_FRAMES frames are unacknowledged: so much of a
 *       flow can lie in gateways. All flows together: routed.unacked_bytes <=
 *       total, but for one such message of each flow that has nothing else on
 *       its way
 *   F3  a frame is taken once: seq_in is the next expected number, `seen` says
 *       which of the following ones have come already
 *   F4  what must not be refused (CTS, DROP) waits in `held` for a number,
 *       in order
 *   F5  a flow that owes an acknowledgement stands in routed.owing, one that
 *       can send in routed.work
 *   F6  a message that was announced has a slot in `announced` until the
 *       receiver clears or drops it, then it stands in `bulk` until all of it
 *       is in frames; a receive that was cleared has a slot in `cleared` until
 *       all its bytes have come; until there is memory for that it stands in
 *       `uncleared`; of one that is dropped the sender's token stands in
 *       `dropped` until then, which has room for all that may come to that
 *   -   upcalls are made from progress only, by this or by a real device
 *   F8  a flow that the sum of all has stopped stands in routed.pressed until
 *       three quarters of that sum are left: while any stands there, more than
 *       that is unacknowledged, so acknowledgements come
 *   F9  in a secure job what is queued for a gateway is sealed, and what has
 *       come is opened before it is looked at (seal.h): of the outside only
 *       `gateway_count` and where it came from count until then
 *   F10 a message of at most CHEMPI_NEIGHBOR_CHUNK_MAX bytes that its way's
 * chunk is too small for travels in parts, numbered one after the other; the
 *       receiver has it in `parts` from the first that comes until the last,
 *       and announces it then: to all others it is one that came whole
 *   F11 a flow whose process has died is gone, too, and has nothing in
 *       `cleared` and `uncleared`: of what still comes out of gateways only
 *       messages are taken, and accept() refuses those that were announced
 *   F12 such a flow has a `flush` while gateways may have something of it:
 *       what each of them has taken of the flow, when it has said so; `come`
 *       counts the same here
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_TRANSPORT_ROUTED_INTERNAL_H
#define CHEMPI_LIBCHEMPI_DIDL_TRANSPORT_ROUTED_INTERNAL_H

#include "libchempi/didl/transport/routed/routed.h"
#include "libchempi/neighbors/neighbors.h"
#include "libchempi/neighbors/route_stats.h"
#include "libchempi/neighbors/seal.h"
#include "libchempi/services/handle_table.h"

#define CHEMPI_ROUTED_FRAMES                                                   \
    1024u /* unacknowledged per flow; a power of two                           \
           */
/* Messages of a flow that have come in part: at least one frame of each is
 * there, and one is still unacknowledged (F2). */
#define CHEMPI_ROUTED_PARTS_MAX (CHEMPI_ROUTED_FRAMES / 2)
#define CHEMPI_ROUTED_CHUNK_MIN 1024u

enum { CHEMPI_ROUTED_EAGER, CHEMPI_ROUTED_RENDEZVOUS, CHEMPI_ROUTED_PROTOCOLS };

/* What this device keeps in chempi_tx.priv and chempi_rx.priv. */
enum {
    CHEMPI_ROUTED_TX_POS,      /* payload bytes in frames */
    CHEMPI_ROUTED_TX_END,      /* payload bytes to send in all */
    CHEMPI_ROUTED_TX_RECEIVER, /* the peer's token */
    CHEMPI_ROUTED_TX_TALLY,   /* number of the way that it takes (route_stats.h)
                               */
    CHEMPI_ROUTED_RX_GOT = 0, /* payload bytes that have come */
    CHEMPI_ROUTED_RX_TAKE,    /* payload bytes to take */
    CHEMPI_ROUTED_RX_SENDER   /* the peer's token */
};

/* What a flow wants memory for. Each has a shortage of its own: else what is
 * large waited for ever while what is small finds some, and what is small had
 * no time left after what is large. */
enum chempi_routed_want {
    CHEMPI_ROUTED_FOR_MESSAGE, /* whole, in parts or announced */
    CHEMPI_ROUTED_FOR_CTS,
    CHEMPI_ROUTED_FOR_DROP,
    CHEMPI_ROUTED_FOR_DATA,
    CHEMPI_ROUTED_FOR_STRAYS, /* F1 */
    CHEMPI_ROUTED_FOR_PARTS,  /* that come */
    CHEMPI_ROUTED_FOR_RTS,    /* that come */
    CHEMPI_ROUTED_FOR_FLUSH,
    CHEMPI_ROUTED_WANTS
};

struct chempi_routed_way {
    uint64_t max_len; /* bytes, inclusive */
    const struct chempi_table_range *range;
    uint32_t chunk;        /* payload of one frame, bytes */
    bool is_direct;        /* no gateway is left, and none is needed */
    uint8_t gateway_count; /* 0: none of the range's ways is left */
    uint32_t gateways[CHEMPI_NEIGHBOR_GATEWAYS_MAX];
};

struct chempi_routed_flow {
    struct chempi_ep ep;
    uint32_t way_count;
    struct chempi_routed_way *ways; /* by size */
    struct chempi_list work;        /* in routed.work */
    struct chempi_list owing;       /* in routed.owing */
    struct chempi_list pressed;     /* in routed.pressed */
    bool is_starved;                /* was told -EAGAIN; room() is owed */
    bool has_strays;                /* F1 */
    bool has_direct;   /* the table has a way without gateways, too */
    bool is_gone;      /* the process has finished */
    bool has_ended;    /* it has died, and the job goes on (F11) */
    bool is_said_gone; /* a gateway says so, in a secure job */
    bool is_asked;     /* drain has asked for acknowledgement */
    bool is_stopped;   /* for traces: a message found no room, */
    uint32_t stopped;  /* the one with this serial number last */
    struct chempi_shortage shortages[CHEMPI_ROUTED_WANTS]; /* of memory */

    /* sending */
    uint64_t seq_out; /* of the next frame; frames show the lower half */
    uint64_t unacked_bytes;
    uint32_t unacked_count;
    struct chempi_list unacked; /* chempi_neighbor_buf.link, by number */
    struct chempi_list held;    /* chempi_neighbor_buf.link */
    struct chempi_list bulk;    /* chempi_tx.link */
    struct chempi_handle_table announced;

    /* receiving */
    uint64_t seq_in;
    uint64_t seen[CHEMPI_ROUTED_FRAMES / 64]; /* bit seq % FRAMES */
    uint32_t early;                           /* bits that are set */
    struct chempi_list gap; /* in routed.gaps: seq_in is missing, */
    uint64_t gap_seq;       /* this number, since */
    uint64_t gap_ns;
    uint32_t owed_frames; /* come since the last ack */
    uint32_t owed_bytes;
    uint32_t owed_polls;
    bool owes_now;
    uint64_t come_poll;  /* of routed.polls, when a frame was taken last */
    uint64_t quiet_ns;   /* it has died; since when nothing has come ... */
    uint64_t quiet_poll; /* ... and since which of routed.polls */
    struct chempi_handle_table cleared;
    struct chempi_list uncleared; /* chempi_rx.link, for want of memory */
    uint32_t undecided; /* announced to this process, and neither accepted nor
                           dropped */
    uint64_t *dropped;  /* [dropped_room] */
    uint32_t dropped_count;
    uint32_t dropped_room;
    struct chempi_list parts; /* chempi_routed_part.link (F10) */
    uint32_t part_count;
    uint64_t come; /* numbered frames that have come through gateways */
    struct chempi_routed_flush *flush; /* F12, or NULL */
};

/* A message of which some parts have come. */
struct chempi_routed_part {
    struct chempi_list link; /* in flow.parts */
    uint64_t number;         /* the sender's */
    uint64_t got;            /* bytes */
    struct chempi_envelope env;
    uint8_t data[]; /* env.len bytes */
};

struct chempi_routed {
    struct chempi_dev dev;
    struct chempi_neighbors neighbors;
    struct chempi_shortage shortage;   /* of memory for flows */
    struct chempi_routed_flow **flows; /* [rank_count], NULL until used */
    uint32_t rank_count;
    uint8_t *gateways; /* [gateways], enum chempi_routed_state */
    struct chempi_list work;
    struct chempi_list owing;
    struct chempi_list pressed; /* flow.pressed (F8) */
    uint64_t unacked_bytes;     /* of all flows (F2) */
    uint64_t polls;             /* calls of progress() */
    uint64_t left_poll; /* the one when a frame was left to a device last */
    bool is_sleepy;     /* the process wants to sleep: acknowledge now */
    uint64_t drain_ns;  /* since when only acknowledgements are missing */
    struct chempi_poll_item timer;
    struct chempi_neighbor_seal *seals; /* [rank_count]; NULL: the job is not
                                      secure */
    uint8_t *opened;                    /* the frame that is being looked at */
    uint32_t timed;                     /* questions that time decides, too, */
    struct chempi_poll_item clock;      /* while there are any */
    struct chempi_list gaps;            /* flow.gap, of a secure job */
    struct chempi_poll_item alarm;      /* while there are any */
    uint64_t resent;                    /* frames */
    struct chempi_route_stats tally;    /* is_on: chempirun --trace-routes */
};

/* Messages whose frames were sent again in one go, by the peer's tokens. */
struct chempi_routed_moves {
    uint32_t count;
    uint64_t receivers[CHEMPI_ROUTED_FRAMES];
    bool has_part; /* one that travels in parts, this one last */
    uint64_t part;
};

enum chempi_routed_state {
    CHEMPI_ROUTED_UP,
    CHEMPI_ROUTED_DRAINED, /* taken only when there is no other */
    CHEMPI_ROUTED_DEAD
};

/* Places in the panel's table of settings. */
enum chempi_routed_setting {
    CHEMPI_ROUTED_SET_LINGER,
    CHEMPI_ROUTED_SET_WINDOW,
    CHEMPI_ROUTED_SET_TOTAL,
    CHEMPI_ROUTED_SET_GAP,
    CHEMPI_ROUTED_SET_COUNT
};

static inline struct chempi_routed *
chempi_routed_of(const struct chempi_routed_flow *flow)
{
    return (struct chempi_routed *)(void *)flow->ep.dev;
}

/* flow.c */

/* The flow with a rank, made if need be. 0, -EHOSTUNREACH, -ENOMEM. */
int chempi_routed_flow_get(struct chempi_routed *routed, uint32_t proc,
                           struct chempi_routed_flow **out);
void chempi_routed_flow_destroy(struct chempi_routed_flow *flow);

/* Fill in a frame's numbers and way for a message of len bytes, and send it
 * with `n` bytes of payload from data or iter. DONE, -EAGAIN, -ENOMEM,
 * -EHOSTUNREACH, -EPIPE; calls no device. */
int chempi_routed_flow_send(struct chempi_routed_flow *flow,
                            struct chempi_neighbor_frame *frame, uint64_t len,
                            const void *data, struct chempi_segment *iter,
                            size_t n);
/* The frame *f (kind, its own members, seq) for a message of len bytes on its
 * way, with n bytes of payload from data or iter; NULL: no memory. */
struct chempi_neighbor_buf *chempi_routed_flow_make(
    struct chempi_routed_flow *flow, const struct chempi_routed_way *way,
    struct chempi_neighbor_frame *f, uint64_t len, const void *data,
    struct chempi_segment *iter, size_t n);
/* Give a frame that was made its number, keep it (F1), and send it on its way.
 */
void chempi_routed_flow_launch(struct chempi_routed_flow *flow,
                               const struct chempi_routed_way *way,
                               struct chempi_neighbor_buf *buf);
/* Does the sender wait, or soon, for what the receiver owes it, when n bytes
 * more are on their way? */
bool chempi_routed_flow_is_in_hurry(const struct chempi_routed_flow *flow,
                                    size_t n);
/* There is no memory for what is to be sent. True: the flow gets to work in the
 * next progress(); false: that has been in vain for too long. */
bool chempi_routed_flow_may_wait(struct chempi_routed_flow *flow,
                                 enum chempi_routed_want want);
/* Tell the sender that there is a place for its message (F6). 0, -ENOMEM,
 * -EHOSTUNREACH. */
int chempi_routed_flow_clear(struct chempi_routed_flow *flow,
                             struct chempi_rx *rx);
/* A message is announced; it may be dropped later without memory. False: there
 * is none for that. */
bool chempi_routed_flow_expect(struct chempi_routed_flow *flow);
/* Tell the sender that nothing is wanted of its message; now or later. */
void chempi_routed_flow_drop(struct chempi_routed_flow *flow, uint64_t sender);
/* Acknowledge; hurry asks for an acknowledgement in return. */
void chempi_routed_flow_ack(struct chempi_routed_flow *flow, bool hurry);
/* May so many frames with n bytes of payload in all go (F2)? Else the flow gets
 * to work when there is room again. */
bool chempi_routed_flow_has_room(struct chempi_routed_flow *flow,
                                 uint32_t frames, size_t n);
/* The peer has all before `ack`. */
void chempi_routed_flow_acked(struct chempi_routed_flow *flow, uint32_t ack);
/* A frame with this number has come: true if it is new. -EPROTO: it cannot
 * have been sent. */
int chempi_routed_flow_take(struct chempi_routed_flow *flow,
                            const struct chempi_neighbor_frame *f);
/* The frame that has just been taken is not after all, since memory for it is
 * missing: it comes again. */
void chempi_routed_flow_untake(struct chempi_routed_flow *flow,
                               const struct chempi_neighbor_frame *f);
/* Send what is held and what is cleared, as far as there is room; returns the
 * number of events. */
int chempi_routed_flow_pump(struct chempi_routed_flow *flow);
/* The process has finished: nothing for it will be acknowledged. */
void chempi_routed_flow_end(struct chempi_routed_flow *flow);
/* The process has died: the same, and nothing large will come from it (F11). */
void chempi_routed_flow_bury(struct chempi_routed_flow *flow);
/* NULL, or which of F1 and F2 does not hold (invariant.h). */
const char *chempi_routed_flow_check(const struct chempi_routed_flow *flow);
void chempi_routed_flow_work(struct chempi_routed_flow *flow);
/* Send again by other ways what went through a gateway that is dead now.
 * -EHOSTUNREACH: there is no other way. */
int chempi_routed_flow_reroute(struct chempi_routed_flow *flow, uint32_t dead);

/* part.c (F10) */

/* Send a message that its way's chunk is too small for. As
 * chempi_routed_flow_send(); all of it goes or nothing. */
int chempi_routed_part_send(struct chempi_routed_flow *flow,
                            const struct chempi_routed_way *way,
                            const struct chempi_envelope *env, const void *data,
                            struct chempi_segment *iter);
/* A part has come. NULL, what is wrong with it, or chempi_shortage_left; *whole
 * is the message when it was the last one, the caller's to free after its use,
 * or NULL. */
const char *chempi_routed_part_take(struct chempi_routed_flow *flow,
                                    const struct chempi_neighbor_frame *f,
                                    struct chempi_routed_part **whole);
/* The last part of this message comes again, since there was no memory for the
 * message. */
void chempi_routed_part_untake(struct chempi_routed_flow *flow,
                               const struct chempi_neighbor_frame *f,
                               struct chempi_routed_part *part);

/* flush.c (F12) */

/* What remains in gateways of this process, which has died? Asks them.
 * is_quiet: nothing has come from it for a while. */
enum chempi_remains chempi_routed_flush_end(struct chempi_routed_flow *flow,
                                            bool is_quiet);
/* A gateway has answered. */
void chempi_routed_flush_take(struct chempi_routed_flow *flow,
                              const struct chempi_neighbor_frame *f);
/* A gateway is lost, and with it perhaps frames, questions and answers. */
void chempi_routed_flush_lose(struct chempi_routed_flow *flow,
                              uint32_t gateway);

/* way.c */

/* Gateways that lead to a gateway, it being the last, for a message of its own;
 * returns how many, or 0: no way leads there (any more). */
uint32_t
chempi_routed_way_to_gateway(const struct chempi_routed *routed, uint32_t proc,
                             uint32_t gateways[CHEMPI_NEIGHBOR_GATEWAYS_MAX]);
/* The ways that the table has for this process. -EHOSTUNREACH: none, or no
 * gateway of them is left. -ENOMEM. */
int chempi_routed_way_open(struct chempi_routed_flow *flow);
/* Choose the gateways of each way anew. -EHOSTUNREACH: none is left. */
int chempi_routed_way_choose(struct chempi_routed_flow *flow);
/* Answer by the gateways that this frame has come by. */
void chempi_routed_way_learn(struct chempi_routed_flow *flow,
                             const struct chempi_neighbor_frame *f);
/* The neighbour that a way begins with. */
static inline uint32_t
chempi_routed_way_next(const struct chempi_routed_flow *flow,
                       const struct chempi_routed_way *way)
{
    return way->gateway_count ? way->gateways[0] : flow->ep.proc;
}
/* The way for a message of len bytes, or NULL. */
const struct chempi_routed_way *
chempi_routed_way_find(const struct chempi_routed_flow *flow, uint64_t len);
/* End the job: this gateway is lost, and with it the only way to the
 * processes of some flows. */
void chempi_routed_way_cut(struct chempi_routed *routed, uint32_t proc,
                           const char *why);

/* -EHOSTUNREACH with words: no way leads to this node of the job (any more). */
int chempi_routed_way_none(struct chempi_routed *routed, uint32_t node,
                           struct chempi_err *err);

/* trace.c; nothing is done unless routed.tally.is_on */

/* The class of a message of len bytes. */
uint8_t chempi_routed_trace_class(const struct chempi_routed_flow *flow,
                                  uint64_t len);
/* The number (route_stats.h) of a way for messages of this class; 0: not
 * counted. */
uint32_t chempi_routed_trace_way(const struct chempi_routed_flow *flow,
                                 const struct chempi_routed_way *way,
                                 uint8_t class);
/* The frame *f with n bytes of payload has set out. */
void chempi_routed_trace_sent(const struct chempi_routed_flow *flow,
                              const struct chempi_neighbor_buf *buf,
                              const struct chempi_neighbor_frame *f, size_t n);
/* There was no room for a message. */
void chempi_routed_trace_stopped(struct chempi_routed_flow *flow,
                                 const struct chempi_envelope *env);
/* There was none for the next piece of a large one. */
void chempi_routed_trace_waits(const struct chempi_routed_flow *flow,
                               const struct chempi_tx *tx);
/* A large one was announced, or its next piece goes now. */
void chempi_routed_trace_goes(const struct chempi_routed_flow *flow,
                              struct chempi_tx *tx);
/* A frame is sent again: `before` and `now` are the numbers of its ways. */
void chempi_routed_trace_resent(const struct chempi_routed_flow *flow,
                                const struct chempi_neighbor_frame *f,
                                uint32_t before, uint32_t now,
                                struct chempi_routed_moves *moves);

/* sealed.c: secure jobs (F9) */

/* 0, -ENOMEM; -EINVAL: the launcher has sent no key. */
int chempi_routed_sealed_open(struct chempi_routed *routed,
                              struct chempi_err *err);
void chempi_routed_sealed_close(struct chempi_routed *routed);
/* Bytes that a frame grows by. */
static inline size_t
chempi_routed_sealed_extra(const struct chempi_routed *routed)
{
    return routed->seals ? CHEMPI_NEIGHBOR_SEAL_BYTES : 0;
}
/* Seal a frame that has this number and acknowledges flow.seq_in. */
void chempi_routed_sealed_put(struct chempi_routed_flow *flow,
                              struct chempi_neighbor_buf *buf, uint64_t seq);
/* Read a frame that was written here, sealed or not. Its payload is valid
 * until *copy, which is the caller's to free, or the buffer is gone. 0,
 * -ENOMEM. */
int chempi_routed_sealed_undo(const struct chempi_routed_flow *flow,
                              const struct chempi_neighbor_buf *buf,
                              struct chempi_neighbor_frame *f, uint8_t **copy);
/* Open and read what has come from this flow's peer; -EPROTO with *why. */
int chempi_routed_sealed_get(struct chempi_routed_flow *flow,
                             const uint8_t *data, size_t len,
                             struct chempi_neighbor_frame *f, const char **why);
/* What has been opened just now is left, and comes again. */
void chempi_routed_sealed_unget(struct chempi_routed_flow *flow,
                                const uint8_t *data, size_t len);
/* A frame was taken: is one before it missing? */
void chempi_routed_sealed_note(struct chempi_routed_flow *flow);
/* Report flows of which a number is missing for too long. Only if any is
 * missing at all. */
void chempi_routed_sealed_check(struct chempi_routed *routed);

/* input.c */
bool chempi_routed_input(void *arg, uint32_t from, const uint8_t *data,
                         size_t len, struct chempi_neighbor_buf *buf);

#endif
