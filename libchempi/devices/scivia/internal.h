/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The scivia device's private state and the calls between its files.
 *
 *   D1  an endpoint stands in dev->opening while something of its connection
 *       is awaited from the adapter or must be tried again
 *   D2  it stands in dev->busy while rndv.control, .pumping or framed->left is
 *       not empty, wants_room is set, or its end must be reported
 *
 * No upcall is made but from progress() and from serving the adapter.
 */
#ifndef CHEMPI_LIBCHEMPI_DEVICES_SCIVIA_INTERNAL_H
#define CHEMPI_LIBCHEMPI_DEVICES_SCIVIA_INTERNAL_H

#include <string.h>

#include "libchempi/devices/scivia/adapter/sci/sci.h"
#include "libchempi/devices/scivia/adapter/via/via.h"
#include "libchempi/devices/scivia/wire.h"
#include "libchempi/services/registration/regcache.h"
#include "libchempi/services/rndv.h"
#include "libchempi/services/shortage.h"

#define SCIVIA_PAGE 4096u
#define SCIVIA_HOT_MAX 4u      /* rings that are polled directly */
#define SCIVIA_HOT_RINGS 4u    /* bells after which a ring may become hot */
#define SCIVIA_COLD_LINES 64u  /* heard elsewhere since a hot one was used */
#define SCIVIA_DRAIN_BUDGET 64 /* lines per ring and progress */
#define SCIVIA_TRIES 4096u     /* of one store, before the peer is given up */
#define SCIVIA_BLOCK 512u      /* bytes repeated together */
#define SCIVIA_WRITE_MAX                                                       \
    (UINT64_C(1) << 20)  /* bytes of one RDMA descriptor                       \
                          */
#define SCIVIA_STAGES 8u /* registered buffers for what has no other */
#define SCIVIA_REGIONS_MAX 256u
#define SCIVIA_WINDOW_MIN                                                      \
    (UINT64_C(64) << 10)      /* bytes registered at a time                    \
                               */
#define SCIVIA_BREAKS_MAX 64u /* of a connection, without progress between */

/* Which of a pair's connections a VI is for. */
enum scivia_discriminator {
    SCIVIA_DISCRIMINATOR_PAYLOAD,
    SCIVIA_DISCRIMINATOR_FRAMES
};

enum scivia_protocol {
    SCIVIA_PROTOCOL_SHARED_MEMORY, /* on cards with an SCI half */
    SCIVIA_PROTOCOL_SEND,          /* the same on cards without */
    SCIVIA_PROTOCOL_ONE_COPY,
    SCIVIA_PROTOCOL_ZERO_COPY,
    SCIVIA_PROTOCOL_COUNT
};

enum scivia_setting { SCIVIA_SETTING_REGISTERED_MAX, SCIVIA_SETTING_CACHE };

/* A transfer that takes more than one line, of both directions. Of several ways
 * base.took is the one with the most copies. */
struct scivia_xfer {
    struct chempi_xfer base;
    enum scivia_way way;
    uint64_t finished; /* out: of base.done, what the card has finished */
    uint64_t window;   /* where it begins, in the message */
    uint64_t addr;     /* RDMA target */
    uint32_t handle;
    uint32_t posts;                     /* out: descriptors the card has */
    struct chempi_registration *region; /* of the user's buffer, in use */
    bool is_staged;                     /* out: through registered buffers */
    bool is_piecewise;                  /* out: registered piece by piece */
    bool is_windowed;                   /* in: counted as such */
};

/* A frame on its way, in registered memory. */
struct scivia_slot {
    struct chempi_list link; /* dev->slot_free, or an endpoint's */
    struct chempi_via_descriptor descriptor;
    struct scivia_frame *frame;
};

/* What an endpoint has instead of segments where there is no SCI half. */
struct scivia_framed {
    struct scivia_frame *memory; /* [count], for receiving */
    uint32_t handle;
    uint32_t count;
    uint32_t room; /* of the peer, as told; SCIVIA_FRAMES_MIN before */
    bool has_told_room;
    struct scivia_told told;    /* as the peer's frames say */
    const unsigned char *bytes; /* payload of the frame being taken */
    uint32_t len;
    struct chempi_list left; /* of receives: not taken yet (F5) */
    struct chempi_via_descriptor receives[SCIVIA_FRAMES];
};

/* A descriptor, and a registered buffer that it may name. */
struct scivia_stage {
    struct chempi_list link;
    struct chempi_via_descriptor descriptor;
    struct scivia_xfer *xfer;
    struct chempi_registration *region; /* of this piece alone, or NULL */
    unsigned char *bytes;
    uint64_t len;
};

struct scivia_ep;

/*
 * How lines travel to a peer: stored in its segments (sci_eager.c), or in VIA
 * sends (via_eager.c) where one of the two has no SCI half. Everything else is
 * the same.
 */
struct scivia_carrier {
    uint32_t protocol;  /* of messages without a transfer */
    uint32_t piece_max; /* what a line may name, bytes */
    /* Of an endpoint that is new. 0 or -ENOMEM. */
    int (*init)(struct scivia_ep *ep);
    /* Make what the peer will write, and ep->told. 0; -EAGAIN: there will be
     * memory later; an error, with words in the device's err. */
    int (*prepare)(struct scivia_ep *ep);
    /* The link is up: connect to what the peer has made, or go on with it. 0:
     * lines can be sent; -EAGAIN or -EINPROGRESS; an error. */
    int (*open)(struct scivia_ep *ep);
    /* There was no memory for that: is something still to be asked for (else an
     * answer is awaited)? */
    bool (*has_to_ask)(const struct scivia_ep *ep);
    /* It is open (again): send what had not arrived, tell, call the peer. */
    void (*reopen)(struct scivia_ep *ep, bool is_first);
    /* Number the line and send it with what it names, if it has a span (in
     * itself) of len > 0 bytes; there is room. 0; -EAGAIN: the link has just
     * gone, nothing was taken; an error. */
    int (*send)(struct scivia_ep *ep, struct scivia_line *line,
                struct scivia_span *span, const void *src, uint32_t len);
    /* The payload that a line names, or NULL: it names none that can be. */
    const unsigned char *(*take_span)(struct scivia_ep *ep,
                                      const struct scivia_span *span);
    /* Tell the peer what was taken, now or when the connection is open; urgent:
     * it may sleep until it has room. */
    void (*tell)(struct scivia_ep *ep, bool is_urgent);
    /* The peer is gone: what was not sent never will be. */
    void (*fail)(struct scivia_ep *ep);
};

struct scivia_ep {
    struct chempi_ep base;
    const struct scivia_carrier *carrier;
    uint32_t tx_head; /* lines ever sent */
    uint32_t tx_tail; /* last known told.lines; head - LINES when closed */
    uint32_t window;  /* lines that may be untold */
    uint32_t data_head;
    uint32_t data_tail;
    const struct chempi_list *slots; /* what lines leave from; NULL: nothing */
    const struct scivia_told *told;  /* by the peer; NULL: not prepared */
    struct chempi_sci_remote *out;   /* the peer's pair for us */
    struct chempi_sci_remote *bell;  /* the peer's inbox */
    struct chempi_adapter_link *at;
    struct chempi_sci_segment *segment;
    struct scivia_pair *in;       /* its memory: what the peer writes */
    struct scivia_framed *framed; /* instead of the above, or NULL */
    uint32_t rx_head;             /* lines ever taken */
    uint32_t rx_told;             /* as last stored in the peer */
    uint32_t rx_data;
    uint32_t rx_data_told;
    uint32_t rung; /* bells rung */
    uint32_t heard;
    uint32_t rings;     /* times heard while not hot */
    uint64_t last_heat; /* dev->heat when a line was last taken while hot */
    bool is_hot;
    bool is_mode_owed; /* the peer does not know yet that it is polled */
    bool is_tx_open;
    bool was_up;       /* lines could be sent before */
    bool was_reached;  /* the peer's adapter is known to have been there */
    bool has_unsent;   /* a line that must be stored again */
    bool is_vi_broken; /* tx_vi: replace it */
    bool is_frame_broken;
    bool is_frame_refused;
    bool is_tell_owed;               /* frames: as soon as there is room */
    bool awaits_memory;              /* likewise */
    struct chempi_shortage shortage; /* to connect */
    uint32_t breaks;    /* connections broken since something went through */
    uint32_t vi_breaks; /* the same of tx_vi, where payload is something */
    struct scivia_line unsent;
    bool has_card;
    bool is_gone; /* the peer's adapter is */
    bool is_clean;
    bool is_broken; /* nothing goes to the peer any more */
    bool is_reported;
    int broken_status;
    const char *broken_why;
    bool wants_room;
    uint32_t wanted;
    unsigned char address[CHEMPI_ADAPTER_ADDRESS_BYTES];
    struct chempi_list opening_link;
    struct chempi_list busy_link;
    struct chempi_list used_link; /* in dev->used */
    struct chempi_rndv_peer rndv;
    /* VIA */
    struct chempi_via_vi *frame_tx; /* for frames, each way */
    struct chempi_via_vi *frame_rx;
    struct chempi_list sending; /* slots that the card has */
    struct chempi_list kept;    /* slots that must be sent again */
    struct chempi_via_vi *tx_vi;
    bool is_via_refused;
    uint32_t vi_sent; /* descriptors used of told.posted */
    struct chempi_via_vi *rx_vi;
    unsigned char *rx_buffers;
    uint32_t rx_handle;
    uint32_t rx_posted;
    uint32_t rx_posted_told;
    struct chempi_via_descriptor receives[SCIVIA_RECEIVES];
};

struct scivia_dev {
    struct chempi_dev base;
    const struct scivia_carrier *carriers[2]; /* of endpoints; [is framed] */
    struct chempi_adapter *adapter;
    struct chempi_adapter_attributes attributes;
    struct chempi_dev_caps caps;
    struct chempi_poll_item item;  /* the adapter's descriptor */
    struct chempi_poll_item timer; /* rings again what was not heard */
    bool is_watched;
    bool is_timed;
    uint32_t timer_ms;
    uint32_t polls;    /* in vain */
    uint64_t again_ns; /* when they last rang again */
    uint32_t again_ms; /* and when they will next, doubled like timer_ms */
    uint32_t again_went;
    uint32_t went; /* lines told and taken before the last sleep */
    uint32_t tag;  /* of SCI segments */
    uint32_t ptag;
    struct chempi_sci_segment *inbox_segment;
    struct scivia_inbox *inbox;
    struct scivia_inbox *own_inbox; /* where there is no SCI half */
    struct scivia_ep **eps;         /* [proc_count], NULL until used */
    struct scivia_ep *hot[SCIVIA_HOT_MAX];
    uint32_t hot_count;
    uint64_t heat; /* lines heard of by bells */
    bool has_work;
    bool is_armed;
    struct chempi_list opening;
    struct chempi_list busy;
    struct chempi_list used; /* all endpoints */
    struct chempi_rndv rndv;
    struct chempi_via_cq *cq;
    struct chempi_regcache cache;
    struct chempi_memory_user memory_user;
    bool has_joined;
    bool has_new_share;     /* not looked at since it was told */
    bool is_over_share;     /* and some of it can be given back after use */
    bool is_admitted;       /* has had a share that frames can live on */
    bool is_awaiting;       /* somebody's connection waits for memory */
    uint64_t granted;       /* bytes by share, setting and RLIMIT_MEMLOCK */
    uint64_t needed_bytes;  /* of library_bytes, what no message goes without */
    uint64_t reserve;       /* bytes of the share set aside for more of that */
    uint32_t framed_procs;  /* that frames will reach, as far as is known */
    uint32_t framed_sets;   /* of frames: slots, and those of endpoints */
    uint64_t library_bytes; /* registered for good */
    uint64_t library_denied;
    uint64_t windowed; /* transfers in several windows */
    unsigned char *stage_memory;
    uint32_t stage_handle;
    struct scivia_stage stages[SCIVIA_STAGES];
    struct chempi_list stage_free;
    struct scivia_frame *slot_memory;
    uint32_t slot_handle;
    uint32_t slot_count;
    struct scivia_slot slots[SCIVIA_FRAMES];
    struct chempi_list slot_free;
    uint32_t unsent; /* lines and frames that have not left */
    uint64_t reconnects;
    uint64_t bytes_copied; /* by this side's processor, out of a buffer */
    struct chempi_err broken;
    struct chempi_err refusal; /* why frames could not be received */
};

static inline struct scivia_dev *scivia_dev_of(const struct scivia_ep *ep)
{
    return (struct scivia_dev *)ep->base.dev;
}

static inline struct scivia_ep *scivia_ep_of(const struct scivia_xfer *xfer)
{
    return (struct scivia_ep *)xfer->base.peer->ep;
}

/* --- panel.c: what tools may see and set --- */

extern const struct chempi_dev_panel chempi_scivia_panel;
/* Capabilities of the card that was opened. */
void chempi_scivia_panel_take(struct scivia_dev *dev);

/* --- endpoint.c: who there is, and what is to be done --- */

int chempi_scivia_endpoint_get(struct scivia_dev *dev, uint32_t proc,
                               struct scivia_ep **out, struct chempi_err *err);
/* Do two nodes have cards with an SCI half on a common network? */
bool chempi_scivia_endpoint_has_sci(const struct chempi_services *services,
                                    const char *node, const char *other);
/* How many processes are on nodes that frames reach. */
uint32_t chempi_scivia_endpoint_count_framed(const struct scivia_dev *dev);
/* NULL, or which of D2 and R3 (wire.h) does not hold (invariant.h). */
const char *chempi_scivia_endpoint_check(const struct scivia_ep *ep);
/* Something of its connections must be mended by pair.c. */
void chempi_scivia_endpoint_mend(struct scivia_ep *ep);
/* Something of this endpoint must be looked at by progress. */
void chempi_scivia_endpoint_mark(struct scivia_ep *ep);
/* Nothing can be sent until the connection is there again. */
void chempi_scivia_endpoint_close(struct scivia_ep *ep);
/* Its ring is not polled any more. */
void chempi_scivia_endpoint_cool(struct scivia_ep *ep);
/* Give up on a peer; reported from progress. */
void chempi_scivia_endpoint_break(struct scivia_ep *ep, int status,
                                  const char *why);
/* The peer's adapter is gone. */
void chempi_scivia_endpoint_end(struct scivia_ep *ep, bool is_clean);

/* --- connect.c: the first steps of a connection --- */

/* Begin whatever is missing for sending. 0: nothing is; -EAGAIN; an error. */
int chempi_scivia_connect_open(struct scivia_ep *ep);
/* The same for VIA. 0: connected or never will be. */
int chempi_scivia_connect_via(struct scivia_ep *ep);
/* Make a VI and ask the peer for its connection. -EAGAIN, or an error. */
int chempi_scivia_connect_vi(struct scivia_ep *ep, struct chempi_via_vi **vi,
                             struct chempi_via_cq *send_cq,
                             enum scivia_discriminator discriminator);
/* Make a VI for a connection that the peer asks for. */
int chempi_scivia_connect_receiver(struct scivia_ep *ep,
                                   struct chempi_via_vi **vi);
/* Post receives into registered buffers of len bytes that lie in a row. */
int chempi_scivia_connect_post(struct chempi_via_vi *vi,
                               struct chempi_via_descriptor *receives,
                               uint32_t count, void *memory, uint32_t len,
                               uint32_t handle, uint32_t *posted);

/* --- pair.c: connections and their end --- */

extern const struct chempi_adapter_events chempi_scivia_pair_events;
void chempi_scivia_pair_fini(struct scivia_dev *dev);
/* Go on with connections that are being opened. Returns events. */
int chempi_scivia_pair_advance(struct scivia_dev *dev);
/* Would that get anywhere, before the adapter has news? */
bool chempi_scivia_pair_can_advance(const struct scivia_dev *dev);
void chempi_scivia_pair_accept_vis(struct scivia_dev *dev);
/* Post receives where memory for them was denied before. */
void chempi_scivia_pair_post(struct scivia_dev *dev);
/* Give back the memory of receives that nobody uses, by ending the connections
 * for which they are posted, until no more is registered than may be. */
void chempi_scivia_pair_withdraw(struct scivia_dev *dev);
/* Report the end of a broken or gone endpoint. Returns events. */
int chempi_scivia_pair_report(struct scivia_ep *ep);

/* --- eager.c: lines and room --- */

int chempi_scivia_eager_inject(struct chempi_ep *ep,
                               const struct chempi_envelope *env,
                               const void *data, size_t len, bool may_keep);
int chempi_scivia_eager_inject_iter(struct scivia_ep *ep,
                                    const struct chempi_envelope *env,
                                    struct chempi_segment *iter, size_t len);
/* 0; of one that is broken or gone -ECONNRESET, with words that say why for
 * whoever sends to it or takes from it. */
int chempi_scivia_eager_status(struct chempi_ep *ep);
/* Room for a line and a span of len bytes? Asks for room() if not. */
int chempi_scivia_eager_room(struct scivia_ep *ep, uint32_t len);
/* Ask for room(), when there is as much. */
void chempi_scivia_eager_want(struct scivia_ep *ep, uint32_t len);
int chempi_scivia_eager_try(struct scivia_ep *ep, uint32_t len);
/* Read what the peer has taken; it may not be more than was sent. */
void chempi_scivia_eager_refresh(struct scivia_ep *ep);

/* --- take.c: what lines and frames say --- */

/* Handle one line of the peer; NULL, why it breaks the rules, or
 * chempi_shortage_left. */
const char *chempi_scivia_take_line(struct scivia_ep *ep,
                                    const struct scivia_line *line);

/* --- drain.c: what has arrived --- */

/* Take at most budget lines of a ring. Returns events. */
int chempi_scivia_drain_ring(struct scivia_ep *ep, int budget);
/* Take what the card has finished. Returns events. */
int chempi_scivia_drain_completed(struct scivia_dev *dev);
/* Hear the bells: drain the rings of all that rang. Returns events. */
int chempi_scivia_drain_hear(struct scivia_dev *dev);
/* Take what has come from a process that has ended, whatever others send
 * meanwhile. False: memory for some of it is missing. */
bool chempi_scivia_drain_rest(struct scivia_ep *ep);
/* Serve the endpoints that wait for room. Returns events. */
int chempi_scivia_drain_serve(struct scivia_dev *dev);
bool chempi_scivia_drain_can_serve(struct scivia_dev *dev);

static inline bool scivia_has_line(const struct scivia_ep *ep)
{
    return atomic_load_explicit(&ep->in->lines[ep->rx_head % SCIVIA_LINES].seq,
                                memory_order_acquire) ==
           ep->rx_head + 1; /* partner: deliver */
}

/* --- sci_eager.c: lines in segments --- */

extern const struct scivia_carrier chempi_scivia_sci_eager;
/* Call the peer, if it waits for lines or may. */
void chempi_scivia_sci_eager_wake(struct scivia_ep *ep);

/* --- via_eager.c: lines in VIA sends --- */

extern const struct scivia_carrier chempi_scivia_via_eager;
void chempi_scivia_via_eager_fini(struct scivia_ep *ep);
void chempi_scivia_via_eager_free(struct scivia_dev *dev);
/* Take back what the card has finished. Returns events: whoever waits for the
 * device to be drained must look again. */
int chempi_scivia_via_eager_reap(struct scivia_ep *ep);
/* A receive descriptor of frame_rx has come back. */
void chempi_scivia_via_eager_take(struct scivia_ep *ep,
                                  struct chempi_via_descriptor *descriptor);
/* All that have. */
void chempi_scivia_via_eager_take_all(struct scivia_ep *ep);
/* Take frames for which memory was missing; returns events. */
int chempi_scivia_via_eager_retake(struct scivia_ep *ep);
static inline bool chempi_scivia_via_eager_has_left(const struct scivia_ep *ep)
{
    return ep->framed && !chempi_list_is_empty(&ep->framed->left);
}
/* The peer asks for its direction. 0, -EAGAIN: there will be memory later; an
 * error. */
int chempi_scivia_via_eager_accept(struct scivia_ep *ep,
                                   struct chempi_via_request *request);
/* Forget a broken connection of one direction. */
void chempi_scivia_via_eager_drop_tx(struct scivia_ep *ep);
void chempi_scivia_via_eager_drop_rx(struct scivia_ep *ep);

/* --- rndv.c: transfers --- */

extern const struct chempi_rndv_ops chempi_scivia_rndv_ops;
int chempi_scivia_rndv_send(struct scivia_ep *ep, struct chempi_tx *tx);
const char *chempi_scivia_rndv_rts(struct scivia_ep *ep,
                                   const struct scivia_line *line);
const char *chempi_scivia_rndv_cts(struct scivia_ep *ep,
                                   const struct scivia_line *line);
const char *chempi_scivia_rndv_data(struct scivia_ep *ep,
                                    const struct scivia_line *line);
const char *chempi_scivia_rndv_done(struct scivia_ep *ep,
                                    const struct scivia_line *line);
/* Send pieces while there is room. Returns events. */
int chempi_scivia_rndv_pump(struct scivia_ep *ep);
bool chempi_scivia_rndv_can_pump(const struct scivia_ep *ep);
/* A descriptor of tx_vi has come back. */
void chempi_scivia_rndv_posted(struct scivia_ep *ep, struct scivia_dev *dev,
                               struct chempi_via_descriptor *d);
/* A receive descriptor of rx_vi has come back. */
void chempi_scivia_rndv_piece(struct scivia_ep *ep,
                              struct chempi_via_descriptor *d);
/* All that have. */
void chempi_scivia_rndv_take_pieces(struct scivia_ep *ep);
/* Forget a broken VI; what it had not moved is moved again. */
void chempi_scivia_rndv_drop_tx(struct scivia_ep *ep);
void chempi_scivia_rndv_drop_rx(struct scivia_ep *ep);

/* --- memory.c: registered memory --- */

/* -ENOSPC with words: this process may not register what frames need. */
int chempi_scivia_memory_init(struct scivia_dev *dev, struct chempi_err *err);
void chempi_scivia_memory_fini(struct scivia_dev *dev);
/* A registration that covers the range; NULL: denied, which is counted. */
struct chempi_registration *chempi_scivia_memory_get(struct scivia_dev *dev,
                                                     const void *start,
                                                     size_t len,
                                                     uint32_t enables);
void chempi_scivia_memory_put(struct scivia_dev *dev,
                              struct chempi_registration *region);
/* How much user memory could be registered now, bytes. */
uint64_t chempi_scivia_memory_room(const struct scivia_dev *dev);
/* Give back what is above the share and out of use, stages last. */
void chempi_scivia_memory_give(struct scivia_dev *dev);
/* Note whether more is registered than may be, and some of it can go. */
void chempi_scivia_memory_note_over(struct scivia_dev *dev);
/* Is more registered than may be? */
bool chempi_scivia_memory_is_over(const struct scivia_dev *dev);
/* Register library memory, at the cost of user memory nobody uses. */
int chempi_scivia_memory_register(struct scivia_dev *dev, const void *start,
                                  size_t len, uint32_t *handle);
/*
 * The same for frames, out of what is set aside for them (F4); what they take
 * beyond that, others leave: what is idle makes room for it, stages too.
 * -EAGAIN: more than the share is still in use, so it must wait.
 */
int chempi_scivia_memory_need(struct scivia_dev *dev, const void *start,
                              size_t len, uint32_t *handle);
/* handle 0: nothing. */
void chempi_scivia_memory_unneed(struct scivia_dev *dev, uint32_t handle,
                                 size_t len);
/* handle 0: nothing. */
void chempi_scivia_memory_deregister(struct scivia_dev *dev, uint32_t handle,
                                     size_t len);
/* Are there registered buffers for what has no other? Tries if not. */
bool chempi_scivia_memory_stage(struct scivia_dev *dev);

/* --- helpers --- */

static inline uint32_t scivia_round_up(uint32_t len)
{
    return (len + CHEMPI_CACHE_LINE - 1) & ~(CHEMPI_CACHE_LINE - 1u);
}

static inline uint32_t scivia_span_start(const struct scivia_ep *ep,
                                         uint32_t len)
{
    uint32_t left =
        SCIVIA_DATA_BYTES - (ep->data_head & (SCIVIA_DATA_BYTES - 1));

    return scivia_round_up(len) <= left ? ep->data_head : ep->data_head + left;
}

/* For a line, and a span of len bytes? */
static inline bool scivia_has_room(const struct scivia_ep *ep, uint32_t len)
{
    return ep->tx_head - ep->tx_tail < ep->window &&
           (CHEMPI_LIKELY(!ep->slots) || !chempi_list_is_empty(ep->slots)) &&
           (len == 0 ||
            scivia_span_start(ep, len) + scivia_round_up(len) - ep->data_tail <=
                SCIVIA_DATA_BYTES);
}

/* What so many frames take of the share, bytes: whole pages. */
static inline uint64_t scivia_frame_bytes(uint32_t count)
{
    uint64_t len = count * (uint64_t)sizeof(struct scivia_frame);

    return (len + SCIVIA_PAGE - 1) & ~(uint64_t)(SCIVIA_PAGE - 1);
}

#endif
