/* SPDX-License-Identifier: BSD-3-Clause */
/* The shm device's private state and the calls between its files. */
#ifndef CHEMPI_LIBCHEMPI_DEVICES_SHM_INTERNAL_H
#define CHEMPI_LIBCHEMPI_DEVICES_SHM_INTERNAL_H

#include <string.h>
#include <sys/types.h>

#include "libchempi/ddi.h"
#include "libchempi/devices/shm/wire.h"
#include "libchempi/services/cma.h"
#include "libchempi/services/rndv.h"

#define SHM_HOT_MAX 4u            /* rings that are polled directly */
#define SHM_EAGER_MAX 8192u       /* bytes; <= a quarter of the data */
#define SHM_CHUNK 16384u          /* bytes; rndv.c */
#define SHM_LAP 8192u             /* bytes of data; eager.c, W4 */
#define SHM_PIECE (SHM_LAP / 4)   /* bytes; eager.c, W5 */
#define SHM_PUT_MIN 1024u         /* bytes; choice.c, M5 */
#define SHM_PUT_FAR 16u           /* points; choice.c, M5 */
#define SHM_GAP 128u              /* bytes; eager.c, W6 */
#define SHM_LONG_MIN (256u << 10) /* bytes; larger messages are long */

/* Classes of sizes: to 16, 32, 64, 256 KiB, 1 MiB, above; last: in pieces. */
#define SHM_PRICES 7u

enum shm_protocol {
    SHM_PROTOCOL_SHORT,
    SHM_PROTOCOL_EAGER,
    SHM_PROTOCOL_PIPELINE, /* also where single copy is refused or off */
    SHM_PROTOCOL_SINGLE_COPY,
    SHM_PROTOCOL_COUNT
};

/* Places in the panel's table of settings. */
enum shm_setting {
    SHM_SET_EAGER_MAX,
    SHM_SET_PIPELINE_MAX,
    SHM_SET_SINGLE_COPY,
    SHM_SET_SHARE_MIN,
    SHM_SET_SLICE,
    SHM_SET_DRAIN,
    SHM_SET_PUMP,
    SHM_SET_CONTEST,
    SHM_SET_COUNT
};

struct shm_dev;
struct shm_form;

/* A transfer that takes more than one line, of both directions. FETCHING ones
 * stand in dev->copying, ASKED ones that help in dev->helping. */
struct shm_xfer {
    struct chempi_xfer base;
    uint64_t addr;     /* payload, or its form, in the peer; or 0 */
    uint64_t offered;  /* the same, though the ring was chosen */
    uint32_t form_len; /* words at addr, form.c; 0: contiguous */
    struct shm_form *peer_form;
    uint64_t *own_form;  /* what the peer may read */
    uint32_t share;      /* slot, SHM_HELP_SLOTS: none */
    uint32_t mine;       /* in, shared: chunks claimed by this side ... */
    uint32_t theirs;     /* ... and by the sender, once is_claimed */
    int status;          /* in, shared: of reading chunks */
    uint64_t spent;      /* on copying, ns, if is_timed */
    uint64_t peer_spent; /* in: the sender's, as it says */
    bool is_timed;
    bool peer_would_copy; /* in: choice.c, M3 */
    bool is_refused;      /* in: the CTS says so */
    bool is_shared;       /* HELP was sent or came */
    bool is_claimed;      /* in, shared: there is nothing left to claim */
};

/* What copying from a peer has cost this process of late (choice.c), ns per
 * 64 KiB. */
struct shm_price {
    uint32_t in;         /* to the ring, by the sender */
    uint32_t out;        /* from there */
    uint32_t copy;       /* by system calls of one side */
    uint32_t shared;     /* .. of both at a time */
    uint32_t turns;      /* messages of which it was asked: ring or copy */
    uint32_t help_turns; /* .. with help or alone */
    bool is_copied;      /* what was chosen last, one way */
    bool is_both_ways; /* the last one that was timed met others going there */
};

/* How far a sender goes on in the data before it turns (choice.c, M6): zero at
 * first. */
struct shm_laps {
    bool is_wide;      /* to the end of the data */
    bool is_settled;   /* that is what was chosen; else it is being tried */
    uint32_t samples;  /* .. of which so many were taken */
    uint32_t costs[2]; /* of short laps, of wide ones: ns per 64 KiB, or 0 */
};

/*
 * One peer. Members that a short message touches come first.
 *
 *   E1  tx_head - tx_tail < lines (R4), or equal when the sending side is not
 *       open yet or broken, so that one compare guards the fast path.
 *       Until it is open tx_pair, tx_lines and tx_data are NULL; tx_tiny is
 *       NULL likewise
 *   E2  in dev->busy exactly if something waits for room: rndv.control or
 *       .pumping is not empty, or wants_room is set; a broken one exactly if
 *       its end must be reported
 *   E3  data is put up to data_end only: what data_tail leaves free once all
 *       of it is reserved (is_data_open), before that what lies on the pages
 *       of the lines. Who waits for room has all of it reserved. What an early
 *       turn skips (eager.c, W4) is free as well, for spans behind it
 *
 * chempi_shm_eager_check() looks at both.
 */
struct shm_ep {
    struct chempi_ep base;
    struct shm_line *tx_lines;
    uint32_t tx_head; /* lines ever published */
    uint32_t tx_tail; /* last known taken.lines */
    struct shm_pair *tx_pair;
    struct chempi_wake *wake;
    int wake_fd;
    uint32_t line_mask;
    unsigned char *tx_data;
    uint32_t data_head;             /* bytes ever put, with what was skipped */
    uint32_t data_end;              /* E3 */
    struct shm_tiny *tx_tiny;       /* where the next message may go (R4), or
                                       NULL */
    struct chempi_envelope tx_next; /* which must be like this one */
    uint32_t data_turn; /* start of the last lap, plus 1 unless the one before
                           turned early (W4) */

    _Alignas(CHEMPI_CACHE_LINE) struct shm_line *rx_lines;
    const struct shm_tiny *rx_tiny; /* where the next message may be as well
                                       (R4), or NULL */
    uint32_t rx_head;               /* lines ever taken */
    uint32_t rx_told;               /* as published in taken.lines */
    uint32_t rx_data;      /* data position after the last span looked at */
    uint32_t rx_data_told; /* as published in taken.data */
    struct shm_pair *rx_pair;
    unsigned char *rx_base;
    uint32_t rings;  /* bells heard since the last contest */
    uint32_t recent; /* while hot: polls that found something, likewise */
    bool is_hot;
    bool is_initialized;
    bool is_tx_open;
    bool is_data_open;
    bool is_broken;
    bool is_reported; /* broken, and the sink knows */
    int broken_status;
    const char *broken_why; /* NULL: in dev->broken */
    bool wants_room;
    uint32_t wanted; /* payload bytes that were refused */

    enum { SHM_CMA_UNKNOWN, SHM_CMA_WORKS, SHM_CMA_REFUSED } cma;
    pid_t cma_pid;
    bool peer_refuses_cma;
    uint32_t peer;            /* local rank */
    uint32_t data_tail;       /* last known taken.data */
    struct shm_ep *next_open; /* in dev->open */
    uint32_t shares_used;     /* bits */
    struct chempi_rx *rx; /* of a message that comes in pieces (W5), or NULL */
    uint32_t rx_len;      /* its payload, bytes */
    uint32_t rx_done;     /* of which have come; < rx_len while there is rx */
    struct shm_price prices[SHM_PRICES];
    uint32_t put_points; /* choice.c, M5 */
    uint32_t puts_left;  /* before the next one that is timed */
    struct shm_laps laps;
    struct chempi_list busy_link;
    struct chempi_rndv_peer rndv;
};

struct shm_dev {
    struct chempi_dev base;
    struct shm_inbox *inbox; /* this process's */
    int drain_budget;        /* lines per ring and progress */
    uint32_t hot_count;
    bool has_work; /* busy, copying or helping is not empty */
    bool is_fixed; /* ring or single copy as tx->protocol says (choice.c) */
    bool is_asked; /* a message is being announced to the sink */
    struct shm_ep *hot[SHM_HOT_MAX];
    struct shm_ep *eps; /* [local_size], zero until first used */
    size_t eps_len;     /* bytes mapped */
    uint32_t line_mask;
    uint32_t data_size; /* bytes, a power of two */
    uint32_t local_size;
    uint32_t local_rank;
    size_t inbox_stride; /* bytes */
    size_t pair_stride;
    size_t pair_lines; /* bytes of a pair before its data */
    char *inboxes;
    char *received;          /* pairs to this process */
    uint64_t pairs_at;       /* place of all pairs in the region's file */
    struct shm_ep *open;     /* those whose tx_pair is mapped */
    uint32_t *proc_of_local; /* [local_size] */
    struct chempi_list busy;
    struct chempi_list copying; /* incoming, by single copy */
    struct chempi_list helping; /* outgoing, of shared copies */
    struct chempi_rndv rndv;
    struct chempi_err broken; /* why an endpoint was given up */
    unsigned char probe_byte; /* what peers read to try single copy */
    uint64_t refused; /* peers whose memory the kernel lets us not read */
    uint64_t shared;  /* single copies that both sides took part in */
    uint64_t bells;   /* heard */
    uint64_t past;    /* pieces written past the caches */
    struct chempi_dev_caps caps;
    uint64_t protocol_max[SHM_PROTOCOL_COUNT];
};

static inline struct shm_dev *shm_dev_of(const struct shm_ep *ep)
{
    return (struct shm_dev *)ep->base.dev;
}

static inline struct shm_ep *shm_ep_of(const struct shm_xfer *xfer)
{
    return (struct shm_ep *)xfer->base.peer->ep;
}

/* --- panel.c: what tools may see and set --- */

extern const struct chempi_dev_panel chempi_shm_panel;
/* Capabilities as the settings say. */
void chempi_shm_panel_take(struct shm_dev *dev);

/* --- endpoint.c: where things lie, who is who --- */

int chempi_shm_endpoint_init(struct shm_dev *dev, struct chempi_err *err);
/* The endpoint of a local rank, made ready for receiving. */
struct shm_ep *chempi_shm_endpoint_ep(struct shm_dev *dev, uint32_t peer);
/* Map and reserve what sending needs. 0 or -errno with words in dev->base.err.
 */
int chempi_shm_endpoint_open_tx(struct shm_ep *ep);
/* Reserve all of an open endpoint's data. The same. */
int chempi_shm_endpoint_open_data(struct shm_ep *ep);
/* Unmap what the area's calls have mapped. */
void chempi_shm_endpoint_fini(struct shm_dev *dev);
/* Ring the bell of a peer's inbox. */
void chempi_shm_endpoint_ring(struct shm_ep *ep);
/* Ring a bell of an inbox, also of this process's own. */
void chempi_shm_endpoint_bell(struct shm_inbox *inbox, uint32_t sender);
/* Is that one's ringing? */
bool chempi_shm_endpoint_has_rung(const struct shm_inbox *inbox,
                                  uint32_t sender);
/* Has a line arrived, or rung? */
bool chempi_shm_endpoint_is_ready(struct shm_dev *dev);
/* Stop polling the ring of a broken endpoint. */
void chempi_shm_endpoint_cool(struct shm_ep *ep);

/* --- eager.c: lines and room --- */

int chempi_shm_eager_inject(struct chempi_ep *ep,
                            const struct chempi_envelope *env, const void *data,
                            size_t len, bool may_keep);
/* Like inject, from an iterator. len <= eager_max. */
int chempi_shm_eager_inject_iter(struct shm_ep *ep,
                                 const struct chempi_envelope *env,
                                 struct chempi_segment *iter, size_t len);
/* Is there a line and room for a span of len bytes? Looks at the peer's
 * counters if need be. 0, -EAGAIN, or why the endpoint cannot be used. */
int chempi_shm_eager_room(struct shm_ep *ep, uint32_t len);
/* Ask for the room() upcall, when there is as much. */
void chempi_shm_eager_want(struct shm_ep *ep, uint32_t len);
/* The same without asking for the room() upcall. */
int chempi_shm_eager_try(struct shm_ep *ep, uint32_t len);
/* Take room for len bytes, which is there. */
unsigned char *chempi_shm_eager_span(struct shm_ep *ep, uint32_t len,
                                     struct shm_span *span);
/* Where a received span lies, or NULL when it is out of bounds. */
const unsigned char *chempi_shm_eager_take_span(struct shm_ep *ep,
                                                const struct shm_span *span);
/* NULL, or what does not hold (invariant.h). */
const char *chempi_shm_eager_check(const struct shm_ep *ep);
/* Note that something waits for room. */
void chempi_shm_eager_wait(struct shm_ep *ep);
/* Give up on a peer that broke the rules of shared memory; why is a static
 * clause. Reported from progress. */
void chempi_shm_eager_break(struct shm_ep *ep, const char *why);
/* Give up on a peer that cannot be answered, for the reason in dev->err. */
void chempi_shm_eager_give_up(struct shm_ep *ep, int status);
/* 0; of a broken one -ECONNRESET, with words for whoever sends to it or takes
 * from it. */
int chempi_shm_eager_status(struct chempi_ep *ep);
/* Read what the peer has taken; it may not be more than was put. */
void chempi_shm_eager_refresh(struct shm_ep *ep);

/* --- drain.c: what has arrived --- */

/* Take at most budget lines of a ring. Returns events. */
int chempi_shm_drain_ring(struct shm_ep *ep, int budget);
/* Hear the bells: drain the rings of all that rang. Returns events. */
int chempi_shm_drain_hear(struct shm_dev *dev);
/* Serve the endpoints that wait for room. Returns events. */
int chempi_shm_drain_serve(struct shm_dev *dev);
bool chempi_shm_drain_can_serve(struct shm_dev *dev);

/* --- rndv.c: transfers of more than one line --- */

extern const struct chempi_rndv_ops chempi_shm_rndv_ops;
int chempi_shm_rndv_send(struct shm_ep *ep, struct chempi_tx *tx);
/* Handle one line; 0 or a clause that says which rule was broken. */
const char *chempi_shm_rndv_rts(struct shm_ep *ep, const struct shm_line *line);
const char *chempi_shm_rndv_cts(struct shm_ep *ep, const struct shm_line *line);
const char *chempi_shm_rndv_data(struct shm_ep *ep,
                                 const struct shm_line *line);
const char *chempi_shm_rndv_help(struct shm_ep *ep,
                                 const struct shm_line *line);
/* Send chunks while there is room. Returns events. */
int chempi_shm_rndv_pump(struct shm_ep *ep);
/* Is there a chunk to send, and room for it? */
bool chempi_shm_rndv_can_pump(struct shm_ep *ep);

/* --- choice.c: ring or single copy, by what they have cost --- */

/* Does a connection table (NULL: there is none) settle it? Not where it has
 * both: its figures are those of another minute. */
bool chempi_shm_choice_is_fixed(const struct chempi_table *table);
/* Which of the two for a message that may take either. What it announces is
 * set in xfer. */
bool chempi_shm_choice_is_copy(struct shm_xfer *xfer);
/* Is the sender to help with a single copy? */
bool chempi_shm_choice_is_shared(struct shm_xfer *xfer);
/* It was, but cannot be asked: the next one is instead. */
void chempi_shm_choice_take_back(const struct shm_xfer *xfer);
/* Are single copies cheaper for messages of this size from a peer while as many
 * go there? */
bool chempi_shm_choice_would_copy(struct shm_ep *ep, uint64_t len,
                                  bool is_in_pieces);
/* Do ranks of this node share cores? */
bool chempi_shm_choice_is_crowded(const struct shm_ep *ep);
/* Around each piece that is copied. */
uint64_t chempi_shm_choice_start(const struct shm_xfer *xfer);
void chempi_shm_choice_stop(struct shm_xfer *xfer, uint64_t start);
/* All of it has come through the ring. */
void chempi_shm_choice_learn_ring(const struct shm_xfer *xfer);
/* All of it has been copied once: `copied` bytes by this process, the rest by
 * the sender. */
void chempi_shm_choice_learn_copy(const struct shm_xfer *xfer, uint64_t copied);

/* Points after a write of len bytes that took so long (M5). */
uint32_t chempi_shm_choice_judge(uint32_t points, uint64_t took_ns, size_t len);
/* A write of len bytes took so long: which laps are next (M6). Returns how many
 * writes there are before the next one that is timed. */
uint32_t chempi_shm_choice_lap(struct shm_laps *laps, uint64_t ns, size_t len,
                               bool may_be_wide);
/* Write SHM_PUT_MIN bytes or more into the ring. Ordered before what is
 * published next. */
void chempi_shm_choice_put(struct shm_ep *ep, void *to, const void *from,
                           size_t len);

/* --- form.c: where non-contiguous payload lies --- */

/* Describe what iter walks, for the peer to read: the address and *form_len
 * words, kept until the transfer ends; 0: better through the ring. */
uint64_t chempi_shm_form_tell(struct shm_xfer *xfer,
                              const struct chempi_segment *iter,
                              uint32_t *form_len);
/* Have peer_form, if there is to be one. 0, or -errno: -EBADMSG when it does
 * not describe xfer->want bytes, -ENOMEM, and those of chempi_cma_read(). */
int chempi_shm_form_learn(struct shm_xfer *xfer);
/* The peer's side of a copy, from byte `at` on. */
struct chempi_cma_side chempi_shm_form_side(const struct shm_xfer *xfer,
                                            uint64_t at);
void chempi_shm_form_free(struct shm_xfer *xfer);

/* --- copy.c: single copy by cross-memory attach --- */

/* May this endpoint's payload be read? Probes once. */
bool chempi_shm_copy_is_possible(struct shm_ep *ep);
/* Start fetching the payload to xfer->rx. */
void chempi_shm_copy_start(struct shm_xfer *xfer);
/* The receiver asks for help with an outgoing transfer. */
void chempi_shm_copy_help(struct shm_xfer *xfer, const struct shm_help *help);
/* Copy a bounded amount. Returns events. */
int chempi_shm_copy_advance(struct shm_dev *dev);
bool chempi_shm_copy_is_ready(struct shm_dev *dev);

/* --- hot helpers --- */

static inline bool chempi_shm_eager_has_line(const struct shm_ep *ep)
{
    const struct shm_line *line = &ep->rx_lines[ep->rx_head & ep->line_mask];

    return atomic_load_explicit(&line->seq, memory_order_acquire) ==
           ep->rx_head + 1; /* partner: publish */
}

static inline bool chempi_shm_eager_has_tiny(const struct shm_ep *ep)
{
    return ep->rx_tiny &&
           atomic_load_explicit(&ep->rx_tiny->mark, memory_order_acquire) != 0;
}

/* Has anything arrived? */
static inline bool chempi_shm_eager_has_any(const struct shm_ep *ep)
{
    return chempi_shm_eager_has_line(ep) || chempi_shm_eager_has_tiny(ep);
}

static inline struct shm_line *shm_next_line(struct shm_ep *ep)
{
    return &ep->tx_lines[ep->tx_head & ep->line_mask];
}

/* Something was published: call the peer if it does not look. */
static inline void shm_call(struct shm_ep *ep, bool is_registered)
{
    if (CHEMPI_LIKELY(is_registered))
        atomic_signal_fence(memory_order_seq_cst);
    else
        atomic_thread_fence(memory_order_seq_cst);
    /* Partners of the fence: the barrier between leaving POLLED and the last
     * look at the ring, in endpoint.c, and that of a sleeper, in wake.h. */
    if (CHEMPI_UNLIKELY(atomic_load_explicit(&ep->tx_pair->taken.mode,
                                             memory_order_relaxed) !=
                        SHM_MODE_POLLED))
        chempi_shm_endpoint_ring(ep);
    chempi_wake_look(ep->wake, ep->wake_fd);
}

/* The line is filled: show it. */
static inline void shm_publish(struct shm_ep *ep, struct shm_line *line,
                               bool is_registered)
{
    ep->tx_head++;
    ep->tx_tiny = NULL;
    atomic_store_explicit(&line->seq, ep->tx_head,
                          memory_order_release); /* partner: drain */
    shm_call(ep, is_registered);
}

/* What the peer's agent may deal with: after publishing it. */
static inline void shm_urge(struct shm_ep *ep)
{
    chempi_wake_urge(ep->wake, ep->wake_fd,
                     ep->base.dev->params.services->is_wake_registered);
}

/* A line of a transfer: its receiver is to deal with it soon. */
static inline void shm_send_line(struct shm_ep *ep, struct shm_line *line)
{
    shm_publish(ep, line, ep->base.dev->params.services->is_wake_registered);
    shm_urge(ep);
}

/* Lines that a short message takes beside its first. */
static inline uint32_t shm_row_rest(size_t len)
{
    return len <= SHM_INLINE_MAX
               ? 0
               : (uint32_t)(len - SHM_INLINE_MAX + CHEMPI_CACHE_LINE - 1) /
                     CHEMPI_CACHE_LINE;
}

/* What a span of len bytes takes of the data (W6). */
static inline uint32_t shm_round(uint32_t len)
{
    return ((len + CHEMPI_CACHE_LINE - 1) & ~(CHEMPI_CACHE_LINE - 1u)) +
           (len < SHM_PIECE ? SHM_GAP : 0);
}

/* Is this behind the last message that its line may hold (R4)? */
static inline bool shm_is_line_over(const struct shm_tiny *tiny)
{
    return (uintptr_t)tiny % CHEMPI_CACHE_LINE == 0;
}

static inline uint32_t shm_data_at(const struct shm_ep *ep)
{
    return ep->data_head & (shm_dev_of(ep)->data_size - 1);
}

/* Does what is for this peer go past the caches (choice.c, M5)? */
static inline bool shm_is_far(const struct shm_ep *ep)
{
    return CHEMPI_UNLIKELY(ep->put_points >= SHM_PUT_FAR);
}

/* Does data turn back at the end of all of it only (choice.c, M6)? */
static inline bool shm_is_wide(const struct shm_ep *ep)
{
    return ep->laps.is_wide || shm_is_far(ep);
}

/* Does the lap end before a span of len bytes, though there is data (W4)? */
static inline bool shm_turns_early(const struct shm_ep *ep, uint32_t len)
{
    return len <= SHM_PIECE && !shm_is_wide(ep) && shm_data_at(ep) <= SHM_LAP &&
           shm_data_at(ep) + shm_round(len) > SHM_LAP;
}

/* Where a span of len bytes would start, skipping what is left of a lap. */
static inline uint32_t shm_span_start(const struct shm_ep *ep, uint32_t len)
{
    uint32_t left = shm_dev_of(ep)->data_size - shm_data_at(ep);

    return shm_round(len) <= left && !shm_turns_early(ep, len)
               ? ep->data_head
               : ep->data_head + left;
}

static inline bool shm_has_line(const struct shm_ep *ep)
{
    return ep->tx_head - ep->tx_tail < ep->line_mask;
}

static inline bool shm_has_room(const struct shm_ep *ep, uint32_t len)
{
    return shm_has_line(ep) &&
           (len == 0 || (int32_t)(ep->data_end - shm_span_start(ep, len) -
                                  shm_round(len)) >= 0);
}

/* Write payload into the ring. */
static inline void shm_put(struct shm_ep *ep, void *to, const void *from,
                           size_t len)
{
    if (len < SHM_PUT_MIN)
        memcpy(to, from, len);
    else
        chempi_shm_choice_put(ep, to, from, len);
}

#endif
