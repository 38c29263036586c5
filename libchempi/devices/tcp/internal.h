/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tcp device's own structures and the calls between its files. An
 * endpoint stands for a process, a link for the connection to it over one
 * network. doc/devices-tcp.md draws the states.
 *
 *   T1  a link has a descriptor exactly while it is UP or MUTE, or DIALING
 *       with its attempt past socket(); item.slot != 0 then
 *   T2  attempt != NULL exactly while DIALING
 *   T3  no upcall is made but from chempi_tcp_work(), and from input while
 *       nothing of the link is half changed; whatever else finishes or breaks
 *       is put on a list for chempi_tcp_work() and sets has_work
 *   T4  a frame that is partly written is finished before anything else:
 *       `current` when it is_started, else what stands in `out`
 *   T5  a link with output that is UP is is_blocked (the kernel will say
 *       when) or stands in dev->flush; with kept messages, and with words of
 *       rndv for which memory is missing, too
 *   T6  an endpoint that is lost has no UP link; as long as it has one that is
 *       MUTE, or DIALING until its verdict comes, it stands in dev->broken or
 *       dev->awaited: to read them to their end, and then report
 *   T7  a link that is left, as dev->unread.link is, has something that waits
 *       for memory, and has_work is set; it has not when it is read anew
 *   T8  a process that has ended, or one connection with which has, is lost,
 *       and nothing more is written to it: its system would answer by a reset,
 *       and forget what it still has to send
 *   T9  messages and announcements leave a link in the order in which it has
 *       taken them: small ones and announcements in `out`, which holds up to
 *       tcp.queue of them, or at once if nothing waits; behind that the one
 *       that goes whole, in `whole` or `current`. While it has not begun to
 *       leave, no other one is taken: -EAGAIN, as without room in `out`. So
 *       the receiver never finds one before its turn (conn.h, N2), and nothing
 *       but answers grows with what is sent. Answers (CTS, DROP) have no turn
 *   T10 an endpoint that is_starved is in dev->room, or a link of it that
 *       has_refused is not written or not yet UP, or its card has not come:
 *       each flush of such a link that leaves half of `out` free, and room for
 *       the largest of small ones, a connection in use, the card, and the end
 *       of a link tell room(), once. Nothing asks meanwhile
 *   T11 while an attempt lasts, or waits for memory to begin anew, the call of
 *       the peer's that has been told to yield to it stays open: so whoever
 *       yields, and hears of the attempt no more, sees the end of this process,
 *       and calls again
 *   -   once BROKEN or ENDED, always so
 *
 * chempi_tcp_link_check() looks at T1, T2, T5, T6, T7, T10 and T11.
 */
#ifndef CHEMPI_LIBCHEMPI_DEVICES_TCP_STATE_H
#define CHEMPI_LIBCHEMPI_DEVICES_TCP_STATE_H

#include "libchempi/ddi.h"
#include "libchempi/devices/tcp/card.h"
#include "libchempi/devices/tcp/proof.h"
#include "libchempi/devices/tcp/wire.h"
#include "libchempi/services/rndv.h"

#define CHEMPI_TCP_CONGESTION_MAX 16   /* of a name, as the kernel's */
#define CHEMPI_TCP_LINK_MAX 4          /* networks used towards one process */
#define CHEMPI_TCP_ROUTE_MAX 8         /* size ranges with different networks */
#define CHEMPI_TCP_LISTENER_MAX 9      /* networks, and one for all the rest */
#define CHEMPI_TCP_GUEST_MAX 128       /* connections without proof */
#define CHEMPI_TCP_HOT_MAX 2           /* links read without asking epoll */
#define CHEMPI_TCP_RBUF (64 * 1024)    /* bytes of one ordinary read */
#define CHEMPI_TCP_SCRATCH (64 * 1024) /* bytes packed at a time */
#define CHEMPI_TCP_WHY_MAX 256         /* bytes with the terminating zero */
#define CHEMPI_TCP_WHO_MAX 160         /* the same */
#define CHEMPI_TCP_BULKY (16 * 1024)   /* a payload from here on is long */

enum {
    CHEMPI_TCP_PROTO_EAGER,
    CHEMPI_TCP_PROTO_RENDEZVOUS,
    CHEMPI_TCP_PROTO_COUNT
};

/* What the device keeps in chempi_tx.priv. */
enum {
    CHEMPI_TCP_TX_STATUS, /* on dev->done: for sent() */
    CHEMPI_TCP_TX_IS_DONE /* 1: stands on dev->done */
};

enum chempi_tcp_state {
    CHEMPI_TCP_IDLE,    /* nothing asked for yet */
    CHEMPI_TCP_DIALING, /* our connection is under way, or the peer's */
    CHEMPI_TCP_UP,
    CHEMPI_TCP_MUTE,  /* nothing is written any more; what comes is read */
    CHEMPI_TCP_ENDED, /* the peer has said BYE */
    CHEMPI_TCP_BROKEN
};

/* Places in the panel's table of settings. */
enum chempi_tcp_setting {
    CHEMPI_TCP_SET_EAGER_MAX,
    CHEMPI_TCP_SET_CHUNK,
    CHEMPI_TCP_SET_QUEUE,
    CHEMPI_TCP_SET_FLUSH,
    CHEMPI_TCP_SET_KEEP,
    CHEMPI_TCP_SET_KEEP_NS,
    CHEMPI_TCP_SET_READ,
    CHEMPI_TCP_SET_DIAL_AGAIN,
    CHEMPI_TCP_SET_WARM_MISSES,
    CHEMPI_TCP_SET_COOL_MISSES,
    CHEMPI_TCP_SET_KEEPALIVE_IDLE,
    CHEMPI_TCP_SET_KEEPALIVE_EVERY,
    CHEMPI_TCP_SET_KEEPALIVE_COUNT,
    CHEMPI_TCP_SET_ENDED,
    CHEMPI_TCP_SET_SECURE,
    CHEMPI_TCP_SET_COUNT
};

struct chempi_tcp_dev;
struct chempi_tcp_ep;

enum chempi_tcp_step { /* of connecting; see connect.c */
                       CHEMPI_TCP_STEP_CALL,
                       CHEMPI_TCP_STEP_REPLY,
                       CHEMPI_TCP_STEP_VERDICT,
                       CHEMPI_TCP_STEP_YIELDED
};

struct chempi_tcp_attempt {
    struct chempi_tcp_proof proof;
    struct chempi_address addresses[CHEMPI_TCP_ENTRY_MAX];
    size_t address_count;
    size_t address; /* the one being tried */
    unsigned again;
    enum chempi_tcp_step step;
    uint8_t in[sizeof(struct chempi_tcp_verdict) + CHEMPI_TCP_PROOF_MAX];
    size_t in_len;
    size_t in_need;
    uint8_t out[sizeof(struct chempi_tcp_preamble) + CHEMPI_TCP_PROOF_MAX];
    size_t out_len;
    size_t out_done;
};

/* The frame with a user's payload that is being written. */
struct chempi_tcp_current {
    struct chempi_tx *tx;     /* NULL: none */
    struct chempi_xfer *xfer; /* whose piece it is; NULL: whole, eager */
    uint64_t pos;             /* in the message, of the next byte */
    uint64_t left;            /* payload bytes of the frame */
    uint32_t head_len;
    uint32_t head_done;
    bool is_started; /* some byte of it has left (T4) */
    uint8_t head[CHEMPI_TCP_FIXED_MAX];
};

/* Small messages and control frames, copied: bytes head .. tail of data, which
 * is NULL while there are none. */
struct chempi_tcp_out {
    uint8_t *data;
    size_t head;
    size_t tail;
    size_t cap;
};

struct chempi_tcp_link {
    struct chempi_poll_item item;
    struct chempi_tcp_ep *ep;
    enum chempi_tcp_state state;
    uint32_t network;   /* chempi_tcp_card_network() */
    uint32_t misses;    /* direct reads in a row that found nothing */
    bool is_blocked;    /* the kernel took no more (T5) */
    bool is_armed;      /* EPOLLOUT is asked for */
    bool is_acked;      /* the peer's kernel has all that was written */
    uint32_t posted;    /* messages that might have been kept, since */
    uint32_t post_tick; /* this call of progress() */
    uint64_t kept_ns;   /* since when `out` is not empty, if they are kept */
    struct chempi_list flush_link;
    struct chempi_list left_link;
    struct chempi_tcp_attempt *attempt;
    struct chempi_poll_item yielded; /* the peer's call (T11); fd -1: none */
    struct chempi_address peer;

    struct chempi_tcp_out out;
    struct chempi_tcp_current current;
    struct chempi_tx *whole; /* to be sent so (T9), in turn with pumping */
    bool is_bulk_turn;
    bool has_refused;             /* a message, since room() was told (T10) */
    struct chempi_rndv_peer rndv; /* pumping: a piece each round */

    struct chempi_rx *rx; /* takes the frame that is being read */
    uint64_t rx_left;     /* payload bytes of that frame still to come */
    uint64_t rx_pos;      /* payload bytes of the message that have come */
    uint64_t rx_limit;    /* and are to be stored */
    struct chempi_xfer *rx_xfer; /* NULL: an eager message */
    bool is_bulky;  /* the last payload was long: the next may be, too */
    uint8_t *stash; /* the start of an incomplete frame */
    size_t stash_len;

    struct chempi_seal *seal; /* of a secure job's connection */
    uint8_t *plain;           /* what a record has beyond the last read */
    size_t plain_head;
    size_t plain_len;
    bool is_sparing; /* for now, no more is read than has been */

    /* Of this link alone: another one has memory for less. Transfers have
     * theirs together (rndv). */
    struct chempi_shortage coming;
    struct chempi_shortage sending; /* and to connect */
};

struct chempi_tcp_route {
    uint64_t max_len; /* bytes, inclusive */
    struct chempi_tcp_link *link;
};

struct chempi_tcp_ep {
    struct chempi_ep ep;
    uint32_t route_count;
    uint32_t link_count;
    struct chempi_tcp_route routes[CHEMPI_TCP_ROUTE_MAX];
    struct chempi_tcp_link *links[CHEMPI_TCP_LINK_MAX];
    size_t card_len;                     /* 0: it has not come */
    uint8_t card[CHEMPI_TCP_CARD_BYTES]; /* as it came, validated */
    int status;                          /* 0, or why nothing goes any more */
    bool is_starved;                     /* was told -EAGAIN; room() is owed */
    bool is_lost;       /* and not just finished: lost() is owed */
    bool has_finished;  /* with bonds: finished() is owed */
    bool is_told;       /* or not any more */
    bool is_unread;     /* lost by a write: it may have said BYE before */
    bool has_come;      /* something, since the rest was last looked for */
    uint64_t looked_ns; /* when that was; */
    uint64_t waited_ns; /* for how long it is waited for, and */
    uint64_t quiet_ns;  /* nothing has come, while somebody looked */
    struct chempi_list room_link;
    struct chempi_list broken_link; /* in dev->broken or dev->awaited (T6) */
    struct chempi_list lost_link;
    char why[CHEMPI_TCP_WHY_MAX];
};

struct chempi_tcp_listener {
    struct chempi_poll_item item;
    struct chempi_tcp_dev *dev;
    uint32_t network;
    bool is_anywhere; /* on all addresses of this host */
    char congestion[CHEMPI_TCP_CONGESTION_MAX]; /* the system's control of
                                                   congestion, "": left so */
};

struct chempi_tcp_dev {
    struct chempi_dev dev;
    bool has_work;             /* one of the six lists is not empty */
    bool is_working;           /* chempi_tcp_work() is on the stack */
    struct chempi_list left;   /* chempi_tcp_link.left_link: memory is missing
                                  for what has come */
    struct chempi_list flush;  /* chempi_tcp_link.flush_link */
    struct chempi_list done;   /* chempi_tx.link: sent() is owed */
    struct chempi_list room;   /* chempi_tcp_ep.room_link: room() is owed */
    struct chempi_list broken; /* chempi_tcp_ep.broken_link: the rest is
                                  read, and what was pending there fails */
    struct chempi_list lost;   /* chempi_tcp_ep.lost_link: lost() is owed */
    struct chempi_rndv rndv;
    uint32_t tick;                                   /* calls of progress() */
    struct chempi_tcp_link *hot[CHEMPI_TCP_HOT_MAX]; /* latest first */
    struct chempi_tcp_ep **eps; /* [chempi_tcp_tie_max()] */
    struct chempi_tcp_listener listeners[CHEMPI_TCP_LISTENER_MAX];
    uint32_t listener_count;
    struct chempi_keys *keys;      /* of a secure job, else NULL */
    struct chempi_keys *rank_keys; /* the same, between its ranks */
    struct chempi_list guests;     /* oldest first */
    uint32_t guest_count;
    int reserve_fd;       /* given up to answer when descriptors run out */
    bool has_turned_away; /* and said so */
    struct chempi_poll_item timer; /* while it is not drained .. */
    long timer_ns;                 /* .. so often */
    struct chempi_list awaited; /* chempi_tcp_ep.broken_link: more may come, and
                                   while there are any, this ticks: */
    struct chempi_poll_item watch;
    struct chempi_tcp_card card; /* ours */
    struct chempi_dev_caps caps;
    uint64_t protocol_max[CHEMPI_TCP_PROTO_COUNT];
    uint64_t opened;  /* connections that became usable */
    uint64_t redials; /* attempts that were made again */
    uint64_t blocked; /* times that the kernel took no more */
    uint8_t rbuf[CHEMPI_TCP_RBUF];
    struct {
        struct chempi_tcp_link *link; /* NULL: nothing */
        size_t from;
        size_t len;
        uint8_t data[CHEMPI_TCP_RBUF];
    } unread; /* has been read, and is left */
    uint8_t scratch[CHEMPI_TCP_SCRATCH];
    struct chempi_tcp_out spare; /* empty: for the next link that has some */
};

static inline struct chempi_tcp_dev *
chempi_tcp_dev_of(const struct chempi_tcp_link *link)
{
    return (struct chempi_tcp_dev *)(void *)link->ep->ep.dev;
}

/* May there be something to read? */
static inline bool chempi_tcp_is_open(const struct chempi_tcp_link *link)
{
    return link->state == CHEMPI_TCP_UP || link->state == CHEMPI_TCP_MUTE;
}

/* panel.c: what tools may see and set. */
extern const struct chempi_dev_panel chempi_tcp_panel;
/* Capabilities as the settings say. */
void chempi_tcp_panel_take(struct chempi_tcp_dev *dev);

static inline size_t chempi_tcp_setting(const struct chempi_tcp_link *link,
                                        enum chempi_tcp_setting i)
{
    return (size_t)chempi_dev_setting(&chempi_tcp_dev_of(link)->dev, i);
}

/* tie.c: what ties this process to others. Indexes are as in the sink. */

struct chempi_tcp_tie {
    const struct chempi_bond *bond; /* NULL: the own job's */
    uint32_t self;                  /* numbers in it */
    uint32_t peer;
};

/* Indexes are always below it; or so far: what loops go up to. */
uint32_t chempi_tcp_tie_max(const struct chempi_services *services);
uint32_t chempi_tcp_tie_end(const struct chempi_services *services);
/* Is it one of those that this device serves? */
bool chempi_tcp_tie_leads_to(const struct chempi_services *services,
                             uint32_t proc);
/* How to call it. 0, -EHOSTUNREACH. */
int chempi_tcp_tie_get(const struct chempi_services *services, uint32_t proc,
                       struct chempi_tcp_tie *out);
/* How it calls, who says to be whom, and looks for this process; 0, or -ENOENT:
 * nobody that is known here. Nothing is proven yet. */
int chempi_tcp_tie_find(const struct chempi_services *services,
                        const struct chempi_tcp_preamble *preamble,
                        struct chempi_tcp_tie *out, uint32_t *proc);
/* Of two processes, one is before the other: its connections stay when both
 * call at once. */
bool chempi_tcp_tie_is_before(const struct chempi_services *services,
                              uint32_t proc);
/* What the authentication is bound to; returns its length. Tests prove by it,
 * too, as a process that lies would. */
size_t chempi_tcp_tie_context(const struct chempi_services *services,
                              const struct chempi_bond *bond, uint32_t from,
                              uint32_t to, uint32_t network,
                              uint8_t context[CHEMPI_AUTH_CONTEXT_MAX]);
/* Begin to prove it. 0, -ENOMEM, -EIO. */
int chempi_tcp_tie_prove(const struct chempi_tcp_dev *dev,
                         const struct chempi_tcp_tie *tie, bool is_caller,
                         uint32_t network, struct chempi_tcp_proof *p);
/* "process 3", "rank 3 of world 1 on node b"; returns buf. */
const char *chempi_tcp_tie_words(const struct chempi_services *services,
                                 uint32_t proc, char buf[CHEMPI_TCP_WHO_MAX]);

/* endpoint.c: who there is. */

/* The endpoint of a process, made if need be. -EHOSTUNREACH: no network in
 * common; -ENOMEM. */
int chempi_tcp_endpoint_get(struct chempi_tcp_dev *dev, uint32_t proc,
                            struct chempi_tcp_ep **out, struct chempi_err *err);
void chempi_tcp_endpoint_destroy(struct chempi_tcp_ep *ep);
/* The link of this network, or NULL. */
struct chempi_tcp_link *chempi_tcp_endpoint_link(const struct chempi_tcp_ep *ep,
                                                 uint32_t network);

/* link.c: connections. */

/* The process is lost, unless something else is known of it: nothing more is
 * written to it (T8). The caller sees to the rest (T6). */
void chempi_tcp_link_lose(struct chempi_tcp_ep *ep, int status,
                          const char *why);
/* It is lost since this link is broken, which closes; lost() follows. */
void chempi_tcp_link_break(struct chempi_tcp_link *link, int status,
                           const char *fmt, ...) CHEMPI_PRINTF(3, 4);
/* The same from errno. */
void chempi_tcp_link_fail(struct chempi_tcp_link *link, int status);
/* The same of an UP link, from errno of a write: what has come is still read.
 */
void chempi_tcp_link_mute(struct chempi_tcp_link *link, int status);
/* The peer has finished; what it has not taken fails, but it is not lost. */
void chempi_tcp_link_end(struct chempi_tcp_link *link);
/* Nothing more of it is wanted: end all links of a process that is lost or has
 * said BYE. */
void chempi_tcp_link_end_all(const struct chempi_tcp_ep *ep);
/* Something of this endpoint is broken or ended: reap it. */
void chempi_tcp_link_owe_reap(struct chempi_tcp_ep *ep);
/* Report what was pending on broken or ended links. */
void chempi_tcp_link_reap(struct chempi_tcp_ep *ep);
void chempi_tcp_link_close_fd(struct chempi_tcp_link *link);
/* Forget the attempt to connect (T2), but not its descriptor. */
void chempi_tcp_link_forget_attempt(struct chempi_tcp_link *link);
/* Close the call that yields to the attempt, if there is one. */
void chempi_tcp_link_drop_yielded(struct chempi_tcp_link *link);
/* Forget all three. */
void chempi_tcp_link_cancel(struct chempi_tcp_link *link);
/* Forget the attempt and its descriptor: it begins anew later, and who yields
 * to it goes on waiting. */
void chempi_tcp_link_put_off(struct chempi_tcp_link *link);
/* Has the kernel got everything? */
bool chempi_tcp_link_is_written(const struct chempi_tcp_link *link);
/* The tx is finished: sent() follows. */
void chempi_tcp_link_done(struct chempi_tcp_dev *dev, struct chempi_tx *tx,
                          int status);
/* NULL, or what does not hold (invariant.h); after chempi_tcp_work(). */
const char *chempi_tcp_link_check(const struct chempi_tcp_link *link);
/* Read this link directly for a while. */
void chempi_tcp_link_heat(struct chempi_tcp_link *link);
/* room() is owed to the endpoint. */
void chempi_tcp_link_owe_room(struct chempi_tcp_ep *ep);
/* chempi_tcp_work() goes on with what the link has to write, answer or connect
 * for. */
void chempi_tcp_link_owe_flush(struct chempi_tcp_link *link);
/* Options of a connection or of a listener, which hands them on. */
void chempi_tcp_link_set_options(struct chempi_tcp_dev *dev, int fd);
/*
 * For a connection within this host, before it is made, or for a listener: no
 * control of congestion that spaces packets by timers, as there is nothing to
 * be congested. `before`: what the system has chosen, "" if that stays.
 */
void chempi_tcp_link_hurry(int fd, char before[CHEMPI_TCP_CONGESTION_MAX]);
/* Back to what the system has chosen: it leads elsewhere. */
void chempi_tcp_link_calm(int fd, const char before[CHEMPI_TCP_CONGESTION_MAX]);
/* "127.0.0.1:4711 (process 3)" */
const char *chempi_tcp_link_name(const struct chempi_tcp_link *link,
                                 char buf[CHEMPI_TCP_WHY_MAX]);

/* work.c: what an event sets off. */

/* Make the upcalls that are owed and write what can be written; returns the
 * number of events. */
int chempi_tcp_work(struct chempi_tcp_dev *dev);
/* Take what has come of a process that has ended. While more may come,
 * something of the pollset makes chempi_tcp_work() look again; else nothing
 * does. */
enum chempi_remains chempi_tcp_work_rest(struct chempi_tcp_ep *ep);
/* Proven on both sides: the descriptor of link->item, which is in the pollset,
 * carries frames, which are sealed by `seal` (NULL: they are not). The link
 * takes it over. */
void chempi_tcp_work_up(struct chempi_tcp_link *link, struct chempi_seal *seal);

/* connect.c: connecting. */

/* IDLE -> DIALING (or BROKEN); or IDLE and in dev->flush: again, when there is
 * memory. The card is there. */
void chempi_tcp_connect_start(struct chempi_tcp_link *link);
/* This descriptor was opened for a connection. May it be? Processes of other
 * worlds do not have the last ones. */
bool chempi_tcp_connect_may_have(const struct chempi_tcp_dev *dev, int fd);

/* listen.c: being connected to. */

/* Open the listeners and make our card. */
int chempi_tcp_listen_open(struct chempi_tcp_dev *dev, struct chempi_err *err);
void chempi_tcp_listen_close(struct chempi_tcp_dev *dev);

/* eager.c */

int chempi_tcp_eager_inject(struct chempi_tcp_link *link,
                            const struct chempi_envelope *env, const void *data,
                            bool may_keep);
/* DONE, KEPT, PENDING, -EAGAIN (T9), or an error. */
int chempi_tcp_eager_send(struct chempi_tcp_link *link, struct chempi_tx *tx);
/* Put a control frame into `out` and write it if possible; 0, -ENOMEM. */
int chempi_tcp_eager_control(struct chempi_tcp_link *link, const void *frame,
                             size_t len);
/* Write until the kernel takes no more, all is written, or it has been a
 * lot. */
void chempi_tcp_eager_flush(struct chempi_tcp_link *link);

/* sealed.c: as send and recv of a secure link, but with -errno; -ENOMEM:
 * nothing has been lost. */

ssize_t chempi_tcp_sealed_write(struct chempi_tcp_link *link,
                                const struct iovec *iov, size_t count);
ssize_t chempi_tcp_sealed_read(struct chempi_tcp_link *link,
                               const struct iovec *iov, size_t count);
/* As recv with MSG_PEEK: what comes next, of one record. */
ssize_t chempi_tcp_sealed_peek(struct chempi_tcp_link *link, uint8_t *to,
                               size_t room);
/* Has been sealed and does not leave: the socket is full. */
bool chempi_tcp_sealed_is_pending(const struct chempi_tcp_link *link);
/* Something has been read from the socket that the next read finds; epoll
 * knows nothing of it. */
bool chempi_tcp_sealed_has_input(const struct chempi_tcp_link *link);
void chempi_tcp_sealed_close(struct chempi_tcp_link *link);

/* drain.c */

/* Read and deliver; returns the number of events. */
int chempi_tcp_drain_poll(struct chempi_tcp_link *link);
/* Deliver what is left, if there is memory for it now, and what has come behind
 * it. */
int chempi_tcp_drain_left(struct chempi_tcp_dev *dev);
/* All that is here of a process that has ended. False: there is memory missing
 * for it. */
bool chempi_tcp_drain_rest(struct chempi_tcp_link *link);

/* rest.c */

/* Take what has come over all links of a process that has ended, and end them,
 * unless more may come (COMING), or memory is missing (LEFT). */
enum chempi_remains chempi_tcp_rest_take(struct chempi_tcp_ep *ep);

/* rndv.c */

extern const struct chempi_rndv_ops chempi_tcp_rndv_ops;

#endif
