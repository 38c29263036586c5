/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rendezvous: messages whose payload stays with the sender until the receiver
 * has named a place. The states, the ids and who owes which answer are here;
 * how words travel and how payload moves are the device's.
 *
 * The sender says RTS (ready to send). The receiver answers CTS (clear to
 * send): payload may come, all that is wanted or a window of it; or FIN: it has
 * fetched the payload itself, or wants none. A sender that writes where the
 * receiver cannot see it come says DONE when a window is written.
 *
 *   outgoing: ASKED -> PUMPING -> sent            (CTS; the device moves it)
 *             ASKED -> PUMPING -> ENDING -> sent  (DONE must go first)
 *             ENDING -> BETWEEN -> PUMPING        (there are more windows)
 *             ASKED -> sent                       (FIN)
 *   incoming: LEFT -> CONTROL(CTS) -> WAITING -> delivered
 *             WAITING -> CONTROL(CTS) -> WAITING  (DONE: the next window)
 *             LEFT -> FETCHING -> delivered, CONTROL(FIN)
 *             FETCHING -> CONTROL(CTS)            (it cannot: let it come)
 *             LEFT -> CONTROL(FIN) -> gone        (nothing is wanted)
 *
 *   X1  an id that comes back is looked up and checked against the peer, the
 *       generation and the state before it is believed
 *   -   words that find no room wait in peer->control, in the transfer itself,
 *       so that answering needs no memory and taking never waits for sending
 *   X3  a transfer has a tx, or it is incoming; done <= until <= want <= len
 *       while it is outgoing, done <= want <= len else
 *   X4  what the user has not decided on (LEFT) outlives a broken peer, and is
 *       answered at accept() or drop()
 *
 * chempi_rndv_check() looks at X3. Under the lane's lock.
 */
#ifndef CHEMPI_LIBCHEMPI_SERVICES_RNDV_H
#define CHEMPI_LIBCHEMPI_SERVICES_RNDV_H

#include "libchempi/ddi.h"
#include "libchempi/services/handle_table.h"
#include "libchempi/services/shortage.h"

enum chempi_rndv_state {
    CHEMPI_RNDV_ASKED,    /* out: the receiver has the RTS */
    CHEMPI_RNDV_PUMPING,  /* out: until `until`; in peer->pumping, or moving */
    CHEMPI_RNDV_ENDING,   /* out: in peer->control, owes DONE */
    CHEMPI_RNDV_BETWEEN,  /* out: the next window will be named */
    CHEMPI_RNDV_LEFT,     /* in: waits for accept() or drop() */
    CHEMPI_RNDV_FETCHING, /* in: the device gets the payload */
    CHEMPI_RNDV_WAITING,  /* in: payload will come */
    CHEMPI_RNDV_CONTROL   /* in: in peer->control, owes CTS or FIN */
};

enum chempi_rndv_word { CHEMPI_RNDV_CTS, CHEMPI_RNDV_DONE, CHEMPI_RNDV_FIN };

/* One transfer; a device's own begins with it. */
struct chempi_xfer {
    struct chempi_list link; /* peer->control or pumping, or the device's */
    struct chempi_rndv_peer *peer;
    uint64_t id; /* its name here, which the peer sends back */
    uint64_t peer_id;
    enum chempi_rndv_state state;
    enum chempi_rndv_word owed;
    uint32_t protocol;    /* as the RTS says */
    uint32_t took;        /* in: the one that is counted when it is delivered */
    struct chempi_tx *tx; /* out */
    struct chempi_rx *rx; /* in */
    uint64_t len;         /* payload of the message, bytes */
    uint64_t want;        /* of which the receiver takes */
    uint64_t until;       /* of these, cleared by CTS */
    uint64_t done;        /* out: handed on; in: in place */
};

/* What a device supplies. */
struct chempi_rndv_ops {
    size_t xfer_size;  /* bytes of its own transfers, which are zero at first */
    uint32_t protocol; /* of what comes, unless take_rts() says another */
    /* 0, or why nothing goes there any more: -errno, with words in the device's
     * err. */
    int (*status)(struct chempi_ep *ep);
    /* Announce it. Negative: it cannot be. */
    int (*send_rts)(struct chempi_xfer *xfer);
    /* Send the word that is owed. Negative: there is no room yet, or the device
     * sees to what follows. */
    int (*send_owed)(struct chempi_xfer *xfer);
    /* Something has been put into peer->control: see that chempi_rndv_flush()
     * is called, now or when there is room. */
    void (*owes)(struct chempi_rndv_peer *peer);
    /* Note what an RTS says beside the envelope. NULL: nothing. */
    void (*take_rts)(struct chempi_xfer *xfer, const void *rts);
    /* A receive is named, or the next window is due: owe CTS, for all from
     * `done` on or less (until), or fetch the payload. NULL: CTS for all. */
    void (*start)(struct chempi_xfer *xfer);
    /* It ends: give back what the device has for it. NULL: nothing. */
    void (*release)(struct chempi_xfer *xfer);
};

/* Of one device. */
struct chempi_rndv {
    const struct chempi_rndv_ops *ops;
    struct chempi_dev *dev;
    struct chempi_handle_table xfers;
    uint32_t outgoing;         /* transfers with a tx */
    struct chempi_xfer *spare; /* the last to end, for the next */
    struct chempi_shortage shortage;
};

/* Of one endpoint. */
struct chempi_rndv_peer {
    struct chempi_rndv *rndv;
    struct chempi_ep *ep;
    struct chempi_list control; /* owe words, first come first */
    struct chempi_list pumping;
};

void chempi_rndv_init(struct chempi_rndv *rndv,
                      const struct chempi_rndv_ops *ops,
                      struct chempi_dev *dev);
/* Forget all transfers, without a word. */
void chempi_rndv_fini(struct chempi_rndv *rndv);
void chempi_rndv_peer_init(struct chempi_rndv_peer *peer,
                           struct chempi_rndv *rndv, struct chempi_ep *ep);

/* The transfer of this id, peer and state, or NULL (X1). */
struct chempi_xfer *chempi_rndv_find(const struct chempi_rndv_peer *peer,
                                     uint64_t id, enum chempi_rndv_state state);
/* Owe this word; xfer may be gone afterwards. */
void chempi_rndv_owe(struct chempi_xfer *xfer, enum chempi_rndv_word word);
/* Send owed words while there is room. Returns events. */
int chempi_rndv_flush(struct chempi_rndv_peer *peer);
/* Copy the next len bytes of the payload, and count them as done. */
void chempi_rndv_pack(struct chempi_xfer *xfer, void *to, uint64_t len);
void chempi_rndv_unpack(struct chempi_xfer *xfer, const void *from,
                        uint64_t len);
/* It is over, and nothing is told of it: the device itself says sent(). */
void chempi_rndv_forget(struct chempi_xfer *xfer);
/* It is over: tell the sink. */
void chempi_rndv_end(struct chempi_xfer *xfer, int status);
/* The peer is broken: that is the end of all but what is LEFT. */
void chempi_rndv_fail(struct chempi_rndv_peer *peer, int status);

/* Is there memory for one more transfer (shortage.h)? False: there is no room
 * now. True after too long a shortage, and whatever the transfer is for fails.
 */
bool chempi_rndv_has_room(struct chempi_rndv *rndv);

/* There was no memory when last asked: to tell room() is no event then, so that
 * the process gives its core away and hears news while it asks. */
static inline bool chempi_rndv_is_poor(const struct chempi_rndv *rndv)
{
    return chempi_shortage_is(&rndv->shortage);
}

/* --- sender --- */

/* As the device's send(), of what is not eager. */
int chempi_rndv_send(struct chempi_rndv_peer *peer, struct chempi_tx *tx,
                     uint32_t protocol);
/* The transfer that a CTS is for, or NULL. */
struct chempi_xfer *
chempi_rndv_find_for_cts(const struct chempi_rndv_peer *peer, uint64_t id);
/* CTS has come: start pumping, from here to there. NULL, or what is wrong. */
const char *chempi_rndv_cts(struct chempi_xfer *xfer, uint64_t peer_id,
                            uint64_t want, uint64_t from, uint64_t until);
/* FIN has come; likewise. */
const char *chempi_rndv_fin(struct chempi_rndv_peer *peer, uint64_t id);

/* --- receiver --- */

/* An announcement has come; likewise, or chempi_shortage_left. */
const char *chempi_rndv_rts(struct chempi_rndv_peer *peer,
                            const struct chempi_envelope *env, uint64_t peer_id,
                            const void *rts);
/* The device's accept() and drop(). */
int chempi_rndv_accept(struct chempi_ep *ep, const uint64_t token[2],
                       struct chempi_rx *rx);
void chempi_rndv_drop(struct chempi_ep *ep, const uint64_t token[2]);
/* DONE has come for a window: go on with the next, or deliver. */
void chempi_rndv_done(struct chempi_xfer *xfer);
/* All has been fetched: FIN, and deliver. */
void chempi_rndv_fetched(struct chempi_xfer *xfer);

/* NULL, or what does not hold (invariant.h). */
const char *chempi_rndv_check(const struct chempi_rndv *rndv);

#endif
