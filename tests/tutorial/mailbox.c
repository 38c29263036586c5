/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The mailbox device: the smallest one that connects processes. Each ordered
 * pair of processes of a node has a box in shared memory with room for some
 * letters; whoever finds it full comes back later. What is longer than a letter
 * stays with its sender until it is asked for (services/rndv.h), and comes in
 * pieces. doc/writing-a-device.md walks through this file.
 *
 *   M1  the sender writes a letter into an empty place and marks it full, the
 *       receiver takes it and marks the place empty; neither touches it at
 *       other times; both go round the places of a box in the same order
 *   M2  taking a letter never waits for room to send one
 */
#include "tests/tutorial/mailbox.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "libchempi/services/rndv.h"

#define PAGE 4096u
#define LETTERS 32u /* places in a box */
#define DATA_MAX (PAGE - 64u)

enum kind {
    LETTER_EAGER = 1, /* a whole message */
    LETTER_RTS,       /* the envelope of one whose payload waits */
    LETTER_CTS,       /* send `len` bytes of it */
    LETTER_FIN,       /* nothing of it is wanted */
    LETTER_DATA       /* the next `len` bytes */
};

struct letter {
    _Atomic uint32_t is_full; /* M1 */
    uint32_t kind;
    uint64_t id;   /* of the transfer, at who takes the letter */
    uint64_t from; /* and at who posts it */
    uint64_t len;  /* bytes of data; with CTS: wanted */
    struct chempi_envelope env;
    _Alignas(64) unsigned char data[DATA_MAX];
};
static_assert(sizeof(struct letter) == PAGE, "a letter is a page");

struct box {
    struct letter letters[LETTERS];
};

/* Counts what has happened to a process's boxes, full or empty. */
struct bell {
    _Alignas(CHEMPI_CACHE_LINE) _Atomic uint32_t rings;
};

struct peer {
    struct chempi_ep ep; /* first */
    uint32_t local;      /* rank on this node */
    struct box *in;
    struct box *out; /* NULL: not connected */
    uint32_t taken;  /* letters, ever */
    uint32_t posted;
    struct chempi_rndv_peer rndv;
    bool wants_room;
    bool is_lost;
};

struct mailbox {
    struct chempi_dev base; /* first */
    uint32_t me;            /* rank on this node */
    uint32_t count;         /* of processes here */
    struct bell *bells;     /* [count] */
    struct box *boxes;      /* [receiver * count + sender] */
    uint32_t heard;         /* rings of our bell */
    bool has_work;          /* that no bell announces */
    struct chempi_rndv rndv;
    struct peer peers[]; /* [count], by rank on this node */
};

enum { PROTOCOL_EAGER, PROTOCOL_PIECES };
static const char *const protocol_names[] = {"eager", "pieces"};
static const uint64_t protocol_max[] = {DATA_MAX, UINT64_MAX};

static const struct chempi_dev_caps mailbox_caps = {
    .protocols = protocol_names,
    .protocol_count = CHEMPI_ARRAY_LEN(protocol_names),
    .flags = CHEMPI_DEV_SAME_NODE,
    .inject_max = DATA_MAX,
    .protocol_max = protocol_max,
    .eager_max = DATA_MAX,
};

static const struct chempi_dev_panel mailbox_panel = {
    .text = "messages between processes of one node, a letter at a time",
    .protocols = protocol_names,
    .protocol_count = CHEMPI_ARRAY_LEN(protocol_names),
};

static struct mailbox *to_mailbox(struct chempi_dev *dev)
{
    return (struct mailbox *)dev;
}

static struct peer *to_peer(struct chempi_ep *ep)
{
    return (struct peer *)ep;
}

/* --- boxes --- */

/* Tell a process that a box of its own has changed. */
static void ring(struct mailbox *mb, uint32_t local)
{
    const struct chempi_services *services = mb->base.params.services;

    (void)atomic_fetch_add_explicit(&mb->bells[local].rings, 1,
                                    memory_order_release); /* is_ready */
    chempi_wake_peer(&services->wakes[local], services->wake_fds[local],
                     services->is_wake_registered);
}

static struct box *box_of(struct mailbox *mb, uint32_t receiver,
                          uint32_t sender)
{
    return &mb->boxes[receiver * mb->count + sender];
}

static bool is_full(const struct letter *letter)
{
    return atomic_load_explicit(&letter->is_full, memory_order_acquire) != 0;
}

/* An empty place for the next letter to this peer, or NULL. */
static struct letter *empty_place(const struct peer *peer)
{
    struct letter *letter;

    if (!peer->out || peer->is_lost)
        return NULL;
    letter = &peer->out->letters[peer->posted % LETTERS];
    return is_full(letter) ? NULL : letter;
}

static void post(struct peer *peer, struct letter *letter, enum kind kind,
                 uint64_t len)
{
    letter->kind = (uint32_t)kind;
    letter->len = len;
    atomic_store_explicit(&letter->is_full, 1, memory_order_release); /* M1 */
    peer->posted++;
    ring(to_mailbox(peer->ep.dev), peer->local);
}

/* --- sending --- */

static int no_room(struct peer *peer)
{
    if (peer->is_lost)
        return -ECONNRESET;
    peer->wants_room = true;
    return -EAGAIN;
}

static int mailbox_inject(struct chempi_ep *ep,
                          const struct chempi_envelope *env, const void *data,
                          size_t len, bool may_keep)
{
    struct peer *peer = to_peer(ep);
    struct letter *letter = empty_place(peer);

    (void)may_keep; /* it leaves at once */
    if (!letter)
        return no_room(peer);
    letter->env = *env;
    if (len)
        memcpy(letter->data, data, len);
    post(peer, letter, LETTER_EAGER, len);
    return CHEMPI_DONE;
}

static int mailbox_send(struct chempi_ep *ep, struct chempi_tx *tx)
{
    struct peer *peer = to_peer(ep);
    struct letter *letter = empty_place(peer);

    if (!letter)
        return no_room(peer);
    if (tx->env.len && (tx->protocol != PROTOCOL_EAGER ||
                        tx->env.len > DATA_MAX || tx->needs_consent))
        return chempi_rndv_send(&peer->rndv, tx, PROTOCOL_PIECES);
    letter->env = tx->env;
    if (tx->iter)
        (void)chempi_segment_pack(tx->iter, letter->data, (size_t)tx->env.len);
    else if (tx->env.len)
        memcpy(letter->data, tx->buf, (size_t)tx->env.len);
    post(peer, letter, LETTER_EAGER, tx->env.len);
    return CHEMPI_DONE;
}

/* --- what the rendezvous engine asks for --- */

static int rndv_status(struct chempi_ep *ep)
{
    return to_peer(ep)->is_lost ? -ECONNRESET : 0;
}

/* mailbox_send() has seen that there is a place. */
static int rndv_send_rts(struct chempi_xfer *xfer)
{
    struct peer *peer = to_peer(xfer->peer->ep);
    struct letter *letter = empty_place(peer);

    letter->env = xfer->tx->env;
    letter->from = xfer->id;
    post(peer, letter, LETTER_RTS, 0);
    return 0;
}

static int rndv_send_owed(struct chempi_xfer *xfer)
{
    struct peer *peer = to_peer(xfer->peer->ep);
    struct letter *letter = empty_place(peer);

    if (!letter)
        return -EAGAIN;
    letter->id = xfer->peer_id;
    letter->from = xfer->id;
    post(peer, letter, xfer->owed == CHEMPI_RNDV_CTS ? LETTER_CTS : LETTER_FIN,
         xfer->want);
    return 0;
}

static void rndv_owes(struct chempi_rndv_peer *peer)
{
    to_mailbox(peer->ep->dev)->has_work = true; /* progress() answers: M2 */
}

static const struct chempi_rndv_ops rndv_ops = {
    .xfer_size = sizeof(struct chempi_xfer),
    .protocol = PROTOCOL_PIECES,
    .status = rndv_status,
    .send_rts = rndv_send_rts,
    .send_owed = rndv_send_owed,
    .owes = rndv_owes,
};

/* --- receiving: each returns NULL, or which rule the peer has broken --- */

static const char *take_eager(struct peer *peer,
                              const struct chempi_envelope *env,
                              const void *data)
{
    const struct chempi_dev_params *params = &peer->ep.dev->params;
    const struct chempi_arrival arrival = {
        .ep = &peer->ep,
        .env = *env,
        .data = data,
        .avail = env->len,
        .protocol = PROTOCOL_EAGER,
    };
    struct chempi_rx *rx = NULL;

    if (env->len > DATA_MAX || !chempi_envelope_is_known(env))
        return "a message that is none";
    chempi_dev_count(peer->ep.dev, PROTOCOL_EAGER, env->len);
    if (params->sink->arrived(params->sink_arg, &arrival, &rx) ==
        CHEMPI_NO_ROOM) {
        chempi_dev_uncount(peer->ep.dev, PROTOCOL_EAGER, env->len);
        return chempi_shortage_left;
    }
    return NULL; /* TAKEN */
}

static const char *take_data(struct peer *peer, uint64_t id, const void *data,
                             uint64_t len)
{
    struct chempi_xfer *xfer =
        chempi_rndv_find(&peer->rndv, id, CHEMPI_RNDV_WAITING);

    if (!xfer || len == 0 || len > DATA_MAX || len > xfer->want - xfer->done)
        return "data that nobody asked for";
    chempi_rndv_unpack(xfer, data, len);
    if (xfer->done == xfer->want)
        chempi_rndv_end(xfer, 0);
    return NULL;
}

/* Everything pending fails, then the process is reported. */
static void lose(struct peer *peer, const char *why)
{
    const struct chempi_dev_params *params = &peer->ep.dev->params;

    peer->is_lost = true;
    chempi_rndv_fail(&peer->rndv, -EPROTO);
    params->sink->lost(params->sink_arg, peer->ep.proc, -EPROTO, why);
}

/* Take the next letter, if there is one. What the other side wrote is copied
 * before it is looked at: it may change under our eyes. */
static int take(struct mailbox *mb, struct peer *peer)
{
    struct letter *letter = &peer->in->letters[peer->taken % LETTERS];
    const char *why = "a letter of no kind";
    struct chempi_envelope env;
    uint64_t id;
    uint64_t from;
    uint64_t len;
    uint32_t kind;

    if (peer->is_lost || !is_full(letter))
        return 0;
    peer->out = box_of(mb, peer->local, mb->me); /* it has reserved that */
    env = letter->env;
    kind = letter->kind;
    id = letter->id;
    from = letter->from;
    len = letter->len;
    atomic_signal_fence(memory_order_seq_cst); /* read once */
    if (kind == LETTER_EAGER)
        why = take_eager(peer, &env, letter->data);
    else if (kind == LETTER_RTS)
        why = chempi_rndv_rts(&peer->rndv, &env, from, NULL);
    else if (kind == LETTER_CTS)
        why = chempi_rndv_cts(chempi_rndv_find_for_cts(&peer->rndv, id), from,
                              len, 0, len);
    else if (kind == LETTER_FIN)
        why = chempi_rndv_fin(&peer->rndv, id);
    else if (kind == LETTER_DATA)
        why = take_data(peer, id, letter->data, len);
    if (why == chempi_shortage_left) {
        mb->has_work = true; /* it is taken in a later progress() */
        return 0;
    }
    if (why) {
        lose(peer, why);
        return 1;
    }
    atomic_store_explicit(&letter->is_full, 0, memory_order_release); /* M1 */
    peer->taken++;
    ring(mb, peer->local);
    return 1;
}

/* --- progress --- */

static void send_data(struct peer *peer, struct letter *letter)
{
    struct chempi_xfer *xfer = CHEMPI_CONTAINER_OF(
        chempi_list_first(&peer->rndv.pumping), struct chempi_xfer, link);
    uint64_t left = xfer->want - xfer->done;
    uint64_t len = left < DATA_MAX ? left : DATA_MAX;

    chempi_rndv_pack(xfer, letter->data, len);
    letter->id = xfer->peer_id;
    post(peer, letter, LETTER_DATA, len);
    if (len == left)
        chempi_rndv_end(xfer, 0);
}

/* Put the most urgent letter into an empty place. */
static int pump(struct peer *peer)
{
    const struct chempi_dev_params *params = &peer->ep.dev->params;
    struct letter *letter = empty_place(peer);

    if (!letter)
        return 0;
    if (!chempi_list_is_empty(&peer->rndv.control)) {
        (void)chempi_rndv_flush(&peer->rndv);
    } else if (!chempi_list_is_empty(&peer->rndv.pumping)) {
        send_data(peer, letter);
    } else if (peer->wants_room) {
        peer->wants_room = false;
        params->sink->room(params->sink_arg, &peer->ep);
    } else {
        return 0;
    }
    return 1;
}

static int mailbox_progress(struct chempi_dev *dev)
{
    struct mailbox *mb = to_mailbox(dev);
    uint32_t now = atomic_load_explicit(&mb->bells[mb->me].rings,
                                        memory_order_acquire); /* ring */
    int events = 0;

    if (now == mb->heard && !mb->has_work)
        return 0;
    mb->heard = now;
    mb->has_work = false;
    for (uint32_t i = 0; i < mb->count; i++) {
        if (i == mb->me)
            continue;
        for (uint32_t n = 0; n < LETTERS; n++)
            events += take(mb, &mb->peers[i]) + pump(&mb->peers[i]); /* M2 */
    }
    mb->has_work |= events > 0; /* there may be more */
    return events;
}

static bool mailbox_is_ready(struct chempi_dev *dev)
{
    struct mailbox *mb = to_mailbox(dev);

    return mb->has_work ||
           atomic_load_explicit(&mb->bells[mb->me].rings,
                                memory_order_acquire) != mb->heard;
}

static bool mailbox_is_drained(struct chempi_dev *dev)
{
    struct mailbox *mb = to_mailbox(dev);

    for (uint32_t i = 0; i < mb->count; i++)
        if (i != mb->me && !chempi_list_is_empty(&mb->peers[i].rndv.control))
            return false;
    return mb->rndv.outgoing == 0;
}

/* --- opening and closing --- */

static void peer_init(struct mailbox *mb, uint32_t local, uint32_t proc)
{
    struct peer *peer = &mb->peers[local];

    peer->ep.dev = &mb->base;
    peer->ep.proc = proc;
    peer->local = local;
    peer->in = box_of(mb, mb->me, local);
    chempi_rndv_peer_init(&peer->rndv, &mb->rndv, &peer->ep);
}

/* Lay out bells and boxes; reserve what others will write for us. */
static int lay_out(struct mailbox *mb, struct chempi_err *err)
{
    struct chempi_region *region = mb->base.params.services->region;
    size_t bells = sizeof(struct bell) * mb->count;
    size_t boxes = sizeof(struct box) * mb->count;
    void *area;
    int rc;

    bells = (bells + PAGE - 1) / PAGE * PAGE;
    rc = chempi_region_extend(region, bells + boxes * mb->count, &area, err);
    if (rc < 0)
        return rc;
    mb->bells = area;
    mb->boxes = (struct box *)(void *)((char *)area + bells);
    rc = chempi_region_reserve(region, mb->bells, bells, err);
    if (rc == 0)
        rc = chempi_region_reserve(region, box_of(mb, mb->me, 0), boxes, err);
    return rc;
}

static int mailbox_open(const struct chempi_dev_params *params,
                        struct chempi_dev **out, struct chempi_err *err)
{
    const struct chempi_services *services = params->services;
    uint32_t count = services->local_size;
    struct mailbox *mb =
        chempi_sys->calloc(1, sizeof(*mb) + count * sizeof(struct peer));
    int rc;

    if (!mb)
        return chempi_err_set(err, -ENOMEM, "out of memory");
    mb->base.ops = &chempi_mailbox_ops;
    mb->base.caps = &mailbox_caps;
    mb->base.params = *params;
    mb->me = services->local_rank;
    mb->count = count;
    rc = lay_out(mb, err);
    if (rc < 0) {
        free(mb);
        return rc;
    }
    chempi_rndv_init(&mb->rndv, &rndv_ops, &mb->base);
    for (uint32_t i = 0; i < services->proc_count; i++)
        if (services->node_of_proc[i] == services->node)
            peer_init(mb, services->local_rank_of_proc[i], i);
    *out = &mb->base;
    return 0;
}

static int mailbox_connect(struct chempi_dev *dev, uint32_t proc,
                           struct chempi_ep **out, struct chempi_err *err)
{
    const struct chempi_services *services = dev->params.services;
    struct mailbox *mb = to_mailbox(dev);
    struct box *box;
    struct peer *peer;
    int rc;

    if (proc >= services->proc_count || proc == services->proc ||
        services->node_of_proc[proc] != services->node)
        return chempi_err_set(err, -EHOSTUNREACH,
                              "process %u is not on this node", (unsigned)proc);
    peer = &mb->peers[services->local_rank_of_proc[proc]];
    box = box_of(mb, peer->local, mb->me);
    rc = chempi_region_reserve(services->region, box, sizeof(*box), err);
    if (rc < 0)
        return rc;
    peer->out = box;
    *out = &peer->ep;
    return 0;
}

static void mailbox_close(struct chempi_dev *dev)
{
    struct mailbox *mb = to_mailbox(dev);

    if (!dev)
        return;
    chempi_rndv_fini(&mb->rndv);
    free(mb); /* the region is the job's */
}

const struct chempi_dev_ops chempi_mailbox_ops = {
    .abi = CHEMPI_DEV_ABI,
    .name = "mailbox",
    .panel = &mailbox_panel,
    .open = mailbox_open,
    .card = chempi_dev_no_card,
    .connect = mailbox_connect,
    .card_arrived = chempi_dev_no_card_arrived,
    .inject = mailbox_inject,
    .send = mailbox_send,
    .accept = chempi_rndv_accept,
    .drop = chempi_rndv_drop,
    .progress = mailbox_progress,
    .is_ready = mailbox_is_ready,
    .is_drained = mailbox_is_drained,
    .close = mailbox_close,
};
