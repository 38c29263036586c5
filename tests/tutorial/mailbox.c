/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The mailbox device: the smallest one that connects processes. Each ordered
 * pair of processes of a node has a box in shared memory with room for some
 * letters; whoever finds it full comes back later. doc/writing-a-device.md
 * walks through this file.
 *
 *   M1  the sender writes a letter into an empty place and marks it full, the
 *       receiver takes it and marks the place empty; neither touches it at
 *       other times; both go round the places of a box in the same order
 *   M2  a note (a message whose payload waits at its sender) is in exactly
 *       one list of its peer: `left` until a receive is named, `granting`
 *       until the sender was told, `granted` until all data has come
 *   M3  a tx is in `asked` until the receiver has answered, then in `sending`
 *   M4  taking a letter never waits for room to send one
 */
#include "tests/tutorial/mailbox.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"

#define PAGE 4096u
#define LETTERS 32u /* places in a box */
#define DATA_MAX (PAGE - 64u)

enum kind {
    LETTER_EAGER = 1, /* a whole message */
    LETTER_ASK,       /* the envelope of one whose payload waits */
    LETTER_GO,        /* send `len` bytes of it; 0: drop it */
    LETTER_DATA       /* the next ones */
};

struct letter {
    _Atomic uint32_t is_full; /* M1 */
    uint32_t kind;
    uint64_t id;  /* the sender's number of the message */
    uint64_t len; /* bytes of data; with GO: wanted */
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

/* M2 */
struct note {
    struct chempi_list link;
    uint64_t id;
    uint64_t len;
    uint64_t want; /* bytes */
    uint64_t got;
    struct chempi_rx *rx; /* NULL: dropped */
};

struct peer {
    struct chempi_ep ep; /* first */
    uint32_t local;      /* rank on this node */
    struct box *in;
    struct box *out; /* NULL: not connected */
    uint32_t taken;  /* letters, ever */
    uint32_t posted;
    struct chempi_list left;
    struct chempi_list granting;
    struct chempi_list granted;
    struct chempi_list asked; /* M3 */
    struct chempi_list sending;
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
    uint64_t last_id;
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
                 uint64_t id, uint64_t len)
{
    letter->kind = (uint32_t)kind;
    letter->id = id;
    letter->len = len;
    atomic_store_explicit(&letter->is_full, 1, memory_order_release); /* M1 */
    peer->posted++;
    ring(to_mailbox(peer->ep.dev), peer->local);
}

/* --- opening --- */

static void peer_init(struct mailbox *mb, uint32_t local, uint32_t proc)
{
    struct peer *peer = &mb->peers[local];

    peer->ep.dev = &mb->base;
    peer->ep.proc = proc;
    peer->local = local;
    peer->in = box_of(mb, mb->me, local);
    chempi_list_init(&peer->left);
    chempi_list_init(&peer->granting);
    chempi_list_init(&peer->granted);
    chempi_list_init(&peer->asked);
    chempi_list_init(&peer->sending);
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
    for (uint32_t i = 0; i < services->proc_count; i++)
        if (services->node_of_proc[i] == services->node)
            peer_init(mb, services->local_rank_of_proc[i], i);
    *out = &mb->base;
    return 0;
}

static int mailbox_card(struct chempi_dev *dev, void *buf, size_t *len)
{
    (void)dev;
    (void)buf;
    *len = 0; /* the region is address enough */
    return 0;
}

static int mailbox_card_arrived(struct chempi_ep *ep, const void *card,
                                size_t len, struct chempi_err *err)
{
    (void)ep;
    (void)card;
    (void)len;
    return chempi_err_set(err, -EINVAL, "the mailbox device has no addresses");
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
                          size_t len)
{
    struct peer *peer = to_peer(ep);
    struct letter *letter = empty_place(peer);

    if (!letter)
        return no_room(peer);
    letter->env = *env;
    if (len)
        memcpy(letter->data, data, len);
    post(peer, letter, LETTER_EAGER, 0, len);
    return CHEMPI_DONE;
}

/* The next len bytes of a message, from byte `at` on. */
static void pack(struct chempi_tx *tx, uint64_t at, void *to, size_t len)
{
    if (tx->iter)
        (void)chempi_iter_pack(tx->iter, to, len);
    else if (len)
        memcpy(to, (const char *)tx->buf + at, len);
}

static int mailbox_send(struct chempi_ep *ep, struct chempi_tx *tx)
{
    struct peer *peer = to_peer(ep);
    struct letter *letter = empty_place(peer);

    if (!letter)
        return no_room(peer);
    letter->env = tx->env;
    if (tx->env.len == 0 || (tx->protocol == PROTOCOL_EAGER &&
                             tx->env.len <= DATA_MAX && !tx->needs_consent)) {
        pack(tx, 0, letter->data, (size_t)tx->env.len);
        post(peer, letter, LETTER_EAGER, 0, tx->env.len);
        return CHEMPI_DONE;
    }
    tx->priv[0] = ++to_mailbox(ep->dev)->last_id;
    chempi_list_append(&peer->asked, &tx->link);
    post(peer, letter, LETTER_ASK, tx->priv[0], 0);
    return CHEMPI_PENDING;
}

static void finish_tx(struct peer *peer, struct chempi_tx *tx, int status)
{
    const struct chempi_dev_params *params = &peer->ep.dev->params;

    chempi_list_remove(&tx->link);
    params->sink->sent(params->sink_arg, tx, status);
}

/* --- receiving --- */

static void finish_note(struct peer *peer, struct note *note, int status)
{
    const struct chempi_dev_params *params = &peer->ep.dev->params;
    struct chempi_rx *rx = note->rx;

    chempi_list_remove(&note->link);
    free(note);
    if (rx)
        params->sink->delivered(params->sink_arg, rx, status);
}

/* A receive is named (or none, ever): the sender must be told. */
static void grant(struct peer *peer, struct note *note, struct chempi_rx *rx)
{
    note->rx = rx;
    note->want = rx && rx->cap < note->len ? rx->cap : rx ? note->len : 0;
    chempi_list_remove(&note->link);
    chempi_list_append(&peer->granting, &note->link);
    to_mailbox(peer->ep.dev)->has_work = true;
}

static int mailbox_accept(struct chempi_ep *ep, const uint64_t token[2],
                          struct chempi_rx *rx)
{
    if (to_peer(ep)->is_lost)
        return -ECONNRESET;
    grant(to_peer(ep), (struct note *)(uintptr_t)token[0], rx);
    return CHEMPI_PENDING;
}

static void mailbox_drop(struct chempi_ep *ep, const uint64_t token[2])
{
    grant(to_peer(ep), (struct note *)(uintptr_t)token[0], NULL);
}

/* Each returns 0, or an error: the peer has broken the rules. */

static int take_eager(struct peer *peer, const struct chempi_envelope *env,
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

    if (env->len > DATA_MAX)
        return -EPROTO;
    chempi_dev_count(peer->ep.dev, PROTOCOL_EAGER, env->len);
    (void)params->sink->arrived(params->sink_arg, &arrival, &rx); /* TAKEN */
    return 0;
}

static int take_ask(struct peer *peer, const struct chempi_envelope *env,
                    uint64_t id)
{
    const struct chempi_dev_params *params = &peer->ep.dev->params;
    struct note *note = chempi_sys->calloc(1, sizeof(*note));
    const struct chempi_arrival arrival = {
        .ep = &peer->ep,
        .env = *env,
        .token = {(uint64_t)(uintptr_t)note, 0},
        .protocol = PROTOCOL_PIECES,
    };
    struct chempi_rx *rx = NULL;

    if (!note)
        return -ENOMEM;
    note->id = id;
    note->len = env->len;
    chempi_list_append(&peer->left, &note->link);
    chempi_dev_count(peer->ep.dev, PROTOCOL_PIECES, env->len);
    if (params->sink->arrived(params->sink_arg, &arrival, &rx) == CHEMPI_ACCEPT)
        grant(peer, note, rx);
    return 0;
}

static int take_go(struct peer *peer, uint64_t id, uint64_t want)
{
    CHEMPI_LIST_FOR (node, &peer->asked) {
        struct chempi_tx *tx =
            CHEMPI_CONTAINER_OF(node, struct chempi_tx, link);

        if (tx->priv[0] != id)
            continue;
        if (want > tx->env.len)
            return -EPROTO;
        tx->priv[1] = want;
        tx->priv[2] = 0;
        chempi_list_remove(&tx->link);
        chempi_list_append(&peer->sending, &tx->link);
        if (want == 0)
            finish_tx(peer, tx, 0);
        return 0;
    }
    return -EPROTO;
}

static int take_data(struct peer *peer, uint64_t id, const void *data,
                     uint64_t len)
{
    CHEMPI_LIST_FOR (node, &peer->granted) {
        struct note *note = CHEMPI_CONTAINER_OF(node, struct note, link);

        if (note->id != id)
            continue;
        if (len == 0 || len > DATA_MAX || len > note->want - note->got)
            return -EPROTO;
        if (note->rx->iter)
            (void)chempi_iter_unpack(note->rx->iter, data, (size_t)len);
        else
            memcpy((char *)note->rx->buf + note->got, data, (size_t)len);
        note->got += len;
        if (note->got == note->want)
            finish_note(peer, note, 0);
        return 0;
    }
    return -EPROTO;
}

/* Everything pending fails, then the process is reported. */
static void lose(struct peer *peer, int status)
{
    const struct chempi_dev_params *params = &peer->ep.dev->params;
    struct chempi_list *txs[] = {&peer->asked, &peer->sending};
    struct chempi_list *notes[] = {&peer->granting, &peer->granted};

    peer->is_lost = true;
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(txs); i++) {
        while (!chempi_list_is_empty(txs[i]))
            finish_tx(peer,
                      CHEMPI_CONTAINER_OF(chempi_list_first(txs[i]),
                                          struct chempi_tx, link),
                      status);
        while (!chempi_list_is_empty(notes[i]))
            finish_note(peer,
                        CHEMPI_CONTAINER_OF(chempi_list_first(notes[i]),
                                            struct note, link),
                        status);
    }
    params->sink->lost(params->sink_arg, peer->ep.proc, status,
                       "it broke the rules of the mailbox");
}

/* Take the next letter, if there is one. What the other side wrote is copied
 * before it is looked at: it may change under our eyes. */
static int take(struct mailbox *mb, struct peer *peer)
{
    struct letter *letter = &peer->in->letters[peer->taken % LETTERS];
    struct chempi_envelope env;
    uint32_t kind;
    uint64_t id;
    uint64_t len;
    int rc = -EPROTO;

    if (peer->is_lost || !is_full(letter))
        return 0;
    peer->out = box_of(mb, peer->local, mb->me); /* it has reserved that */
    env = letter->env;
    kind = letter->kind;
    id = letter->id;
    len = letter->len;
    atomic_signal_fence(memory_order_seq_cst); /* read once */
    if (kind == LETTER_EAGER)
        rc = take_eager(peer, &env, letter->data);
    else if (kind == LETTER_ASK)
        rc = take_ask(peer, &env, id);
    else if (kind == LETTER_GO)
        rc = take_go(peer, id, len);
    else if (kind == LETTER_DATA)
        rc = take_data(peer, id, letter->data, len);
    if (rc < 0) {
        lose(peer, rc);
        return 1;
    }
    atomic_store_explicit(&letter->is_full, 0, memory_order_release); /* M1 */
    peer->taken++;
    ring(mb, peer->local);
    return 1;
}

/* --- progress --- */

static void send_go(struct peer *peer, struct letter *letter)
{
    struct note *note = CHEMPI_CONTAINER_OF(chempi_list_first(&peer->granting),
                                            struct note, link);

    post(peer, letter, LETTER_GO, note->id, note->want);
    chempi_list_remove(&note->link);
    chempi_list_append(&peer->granted, &note->link);
    if (note->want == 0)
        finish_note(peer, note, 0);
}

static void send_data(struct peer *peer, struct letter *letter)
{
    struct chempi_tx *tx = CHEMPI_CONTAINER_OF(
        chempi_list_first(&peer->sending), struct chempi_tx, link);
    uint64_t left = tx->priv[1] - tx->priv[2];
    size_t len = left < DATA_MAX ? (size_t)left : DATA_MAX;

    pack(tx, tx->priv[2], letter->data, len);
    tx->priv[2] += len;
    post(peer, letter, LETTER_DATA, tx->priv[0], len);
    if (len == left)
        finish_tx(peer, tx, 0);
}

/* Put the most urgent letter into an empty place. */
static int pump(struct peer *peer)
{
    const struct chempi_dev_params *params = &peer->ep.dev->params;
    struct letter *letter = empty_place(peer);

    if (!letter)
        return 0;
    if (!chempi_list_is_empty(&peer->granting)) {
        send_go(peer, letter);
    } else if (!chempi_list_is_empty(&peer->sending)) {
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
            events += take(mb, &mb->peers[i]) + pump(&mb->peers[i]); /* M4 */
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

    for (uint32_t i = 0; i < mb->count; i++) {
        const struct peer *peer = &mb->peers[i];

        if (i != mb->me && !(chempi_list_is_empty(&peer->asked) &&
                             chempi_list_is_empty(&peer->sending) &&
                             chempi_list_is_empty(&peer->granting)))
            return false;
    }
    return true;
}

static void free_notes(struct chempi_list *list)
{
    CHEMPI_LIST_FOR_SAFE (node, list)
        free(CHEMPI_CONTAINER_OF(node, struct note, link));
}

static void mailbox_close(struct chempi_dev *dev)
{
    struct mailbox *mb = to_mailbox(dev);

    if (!dev)
        return;
    for (uint32_t i = 0; i < mb->count; i++) {
        free_notes(&mb->peers[i].left);
        free_notes(&mb->peers[i].granting);
        free_notes(&mb->peers[i].granted);
    }
    free(mb); /* the region is the job's */
}

const struct chempi_dev_ops chempi_mailbox_ops = {
    .abi = CHEMPI_DEV_ABI,
    .name = "mailbox",
    .panel = &mailbox_panel,
    .open = mailbox_open,
    .card = mailbox_card,
    .connect = mailbox_connect,
    .card_arrived = mailbox_card_arrived,
    .inject = mailbox_inject,
    .send = mailbox_send,
    .accept = mailbox_accept,
    .drop = mailbox_drop,
    .progress = mailbox_progress,
    .is_ready = mailbox_is_ready,
    .is_drained = mailbox_is_drained,
    .close = mailbox_close,
};
