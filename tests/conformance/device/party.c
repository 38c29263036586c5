/* SPDX-License-Identifier: BSD-3-Clause */
/* A stand-in for didl; see party.h. */
#include "tests/conformance/device/party.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libchempi/services/layout/layout.h"

#define GUARD 64u /* bytes behind a receive that must stay as they are */
#define GUARD_BYTE 0xA5
#define BLOCK 40u   /* bytes of a scattered buffer's blocks ... */
#define STRIDE 56u  /* ... and their distance */
#define SPOILT 0xEE /* a buffer that was given back */

/* Memory that holds a payload, in one piece or scattered. */
struct piece {
    unsigned char *base;
    uint64_t len; /* packed bytes */
    uint64_t room;
    struct chempi_layout layout;
    struct chempi_segment iter;
    bool is_scattered;
};

struct out {
    struct chempi_tx tx;
    struct piece piece;
};

struct in {
    struct chempi_rx rx;
    struct chempi_list link;
    struct chempi_envelope env;
    struct chempi_ep *ep;
    uint64_t token[2];
    struct piece piece;
};

static unsigned char pattern(uint32_t source, uint32_t serial, uint64_t i)
{
    return (unsigned char)(source * 101u + serial * 31u + i * 7u + (i >> 8));
}

static uint64_t place(const struct piece *piece, uint64_t i)
{
    return piece->is_scattered ? i / BLOCK * STRIDE + i % BLOCK : i;
}

static void piece_make(struct piece *piece, uint64_t len, bool is_scattered)
{
    uint64_t blocks = (len + BLOCK - 1) / BLOCK;

    piece->len = len;
    piece->is_scattered = is_scattered;
    piece->room = (is_scattered ? blocks * STRIDE : len) + GUARD;
    piece->base = malloc(piece->room);
    WORLD_CHECK(piece->base != NULL);
    memset(piece->base, GUARD_BYTE, piece->room);
    if (!is_scattered)
        return;
    piece->layout.root = chempi_layout_block(0, BLOCK);
    piece->layout.size = BLOCK;
    piece->layout.extent = STRIDE;
    chempi_segment_init(&piece->iter, piece->base, blocks, &piece->layout);
}

static void piece_drop(struct piece *piece)
{
    if (piece->is_scattered)
        chempi_layout_release(piece->layout.root);
    memset(piece->base, SPOILT, piece->room);
    free(piece->base);
}

static void piece_fill(struct piece *piece, uint32_t source, uint32_t serial)
{
    for (uint64_t i = 0; i < piece->len; i++)
        piece->base[place(piece, i)] = pattern(source, serial, i);
}

/* `len` bytes of the message are there, and nothing else was written. */
static void piece_check(const struct piece *piece, uint64_t len,
                        uint32_t source, uint32_t serial)
{
    uint64_t at = 0;

    for (uint64_t i = 0; i < len; i++) {
        uint64_t here = place(piece, i);

        while (at < here)
            WORLD_CHECK(piece->base[at++] == GUARD_BYTE);
        WORLD_CHECK(piece->base[at++] == pattern(source, serial, i));
    }
    while (at < piece->room)
        WORLD_CHECK(piece->base[at++] == GUARD_BYTE);
}

static void mark(struct party *party, const struct chempi_envelope *env)
{
    uint32_t source = (uint32_t)env->source;

    WORLD_CHECK(source < party->world->count);
    WORLD_CHECK(env->serial < PARTY_SERIALS);
    WORLD_CHECK(party->seen[source][env->serial] == 0);
    party->seen[source][env->serial] = 1;
}

static void reply(struct party *party, struct chempi_ep *ep)
{
    struct chempi_envelope env = {
        .context = 1,
        .source = (int32_t)party->world->proc,
        .serial = PARTY_SERIALS - 1 - party->replied,
        .kind = CHEMPI_KIND_MESSAGE,
    };

    if (party->reply == 0)
        return;
    party->reply--;
    if (ep->dev->ops->inject(ep, &env, NULL, 0, false) == CHEMPI_DONE)
        party->replied++;
    else
        party->reply++;
}

static void start(struct party *party, struct in *in)
{
    uint64_t len = in->env.len < party->cap ? in->env.len : party->cap;

    piece_make(&in->piece, len, party->is_scattered && len > 0);
    in->rx.buf = in->piece.is_scattered ? NULL : in->piece.base;
    in->rx.iter = in->piece.is_scattered ? &in->piece.iter : NULL;
    in->rx.cap = party->cap == UINT64_MAX ? len + GUARD : party->cap;
    if (in->rx.iter || party->cap != UINT64_MAX)
        in->rx.cap = len;
}

static void finish(struct party *party, struct in *in, int status)
{
    if (status == 0) {
        piece_check(&in->piece, in->piece.len, (uint32_t)in->env.source,
                    in->env.serial);
        party->received++;
    } else {
        party->failed++;
    }
    piece_drop(&in->piece);
    free(in);
}

static enum chempi_verdict
arrived(void *arg, const struct chempi_arrival *arrival, struct chempi_rx **rx)
{
    struct party *party = arg;
    const struct chempi_envelope *env = &arrival->env;
    struct in *in;

    if (party->refused < party->refusals) {
        party->refused++;
        return CHEMPI_NO_ROOM;
    }
    party->refused = 0;
    mark(party, env);
    WORLD_CHECK(env->context == 1 && env->kind == CHEMPI_KIND_MESSAGE);
    WORLD_CHECK(arrival->ep->proc == (uint32_t)env->source);
    WORLD_CHECK(arrival->protocol < party->world->dev->caps->protocol_count);
    WORLD_CHECK(arrival->avail == 0 || arrival->avail == env->len);
    reply(party, arrival->ep);
    if (arrival->avail == env->len) {
        const unsigned char *data = arrival->data;

        for (uint64_t i = 0; i < env->len; i++)
            WORLD_CHECK(data[i] ==
                        pattern((uint32_t)env->source, env->serial, i));
        party->received++;
        return CHEMPI_TAKEN;
    }
    in = calloc(1, sizeof(*in));
    WORLD_CHECK(in != NULL);
    in->env = *env;
    in->ep = arrival->ep;
    memcpy(in->token, arrival->token, sizeof(in->token));
    if (party->policy == PARTY_LEAVE &&
        !(arrival->flags & CHEMPI_ARRIVAL_STREAMED)) {
        party->announced++;
        chempi_list_append(&party->left, &in->link);
        return CHEMPI_LATER;
    }
    start(party, in);
    *rx = &in->rx;
    return CHEMPI_ACCEPT;
}

static void complain(const struct party *party, const char *what, int status)
{
    if (status == 0 || party->expects_loss)
        return;
    (void)fprintf(stderr, "%s: %d (%s)\n", what, status,
                  party->world->dev->err.text);
    WORLD_CHECK(status == 0);
}

static void delivered(void *arg, struct chempi_rx *rx, int status)
{
    struct party *party = arg;

    complain(party, "delivered", status);
    finish(party, CHEMPI_CONTAINER_OF(rx, struct in, rx), status);
}

static void out_drop(struct out *out)
{
    piece_drop(&out->piece);
    free(out);
}

static void sent(void *arg, struct chempi_tx *tx, int status)
{
    struct party *party = arg;

    complain(party, "sent", status);
    party->failed += status != 0;
    party->sent++;
    out_drop(CHEMPI_CONTAINER_OF(tx, struct out, tx));
}

static void room(void *arg, struct chempi_ep *ep)
{
    struct party *party = arg;

    (void)ep;
    party->rooms++;
}

static void lost(void *arg, uint32_t proc, int status, const char *why)
{
    struct party *party = arg;

    if (!party->expects_loss)
        (void)fprintf(stderr, "lost %u: %s\n", (unsigned)proc, why);
    WORLD_CHECK(party->expects_loss && status < 0 && why[0] != '\0');
    party->lost++;
}

static const struct chempi_sink sink = {
    .arrived = arrived,
    .delivered = delivered,
    .sent = sent,
    .room = room,
    .lost = lost,
};

void party_open(struct party *party, struct world *world)
{
    memset(party, 0, sizeof(*party));
    party->world = world;
    party->cap = UINT64_MAX;
    chempi_list_init(&party->left);
    for (uint32_t i = 0; i < world->count; i++) {
        party->seen[i] = calloc(PARTY_SERIALS, 1);
        WORLD_CHECK(party->seen[i] != NULL);
    }
    world_open(world, &sink, party);
}

void party_close(struct party *party)
{
    world_close(party->world);
    for (uint32_t i = 0; i < party->world->count; i++)
        free(party->seen[i]);
}

int party_send(struct party *party, uint32_t to, uint32_t serial, uint64_t len,
               uint32_t protocol, enum party_how how)
{
    struct chempi_ep *ep = party->world->eps[to];
    struct out *out = calloc(1, sizeof(*out));
    int rc;

    WORLD_CHECK(out != NULL);
    piece_make(&out->piece, len, how == PARTY_SEND_ITER && len > 0);
    piece_fill(&out->piece, party->world->proc, serial);
    out->tx.env = (struct chempi_envelope){
        .len = len,
        .context = 1,
        .source = (int32_t)party->world->proc,
        .tag = 3,
        .serial = serial,
        .kind = CHEMPI_KIND_MESSAGE,
    };
    out->tx.buf = out->piece.is_scattered ? NULL : out->piece.base;
    out->tx.iter = out->piece.is_scattered ? &out->piece.iter : NULL;
    out->tx.protocol = protocol;
    out->tx.needs_consent = how == PARTY_SEND_CONSENT;
    if (how == PARTY_INJECT)
        rc = ep->dev->ops->inject(ep, &out->tx.env, out->piece.base,
                                  (size_t)len, false);
    else
        rc = ep->dev->ops->send(ep, &out->tx);
    WORLD_CHECK(how != PARTY_INJECT || rc != CHEMPI_PENDING);
    if (rc == CHEMPI_DONE)
        party->sent++;
    if (rc >= 0)
        party->started++;
    if (rc != CHEMPI_PENDING)
        out_drop(out);
    return rc;
}

void party_send_surely(struct party *party, uint32_t to, uint32_t serial,
                       uint64_t len, uint32_t protocol, enum party_how how)
{
    int rc;

    while ((rc = party_send(party, to, serial, len, protocol, how)) ==
           -EAGAIN) {
        uint32_t rooms = party->rooms + 1;

        party_wait(party, &party->rooms, rooms);
    }
    if (rc < 0)
        (void)fprintf(stderr, "send: %d: %s\n", rc,
                      party->world->dev->err.text);
    WORLD_CHECK(rc >= 0);
}

uint32_t party_settle(struct party *party, uint32_t drop_every,
                      bool is_reversed)
{
    uint32_t dropped = 0;
    uint32_t n = 0;

    while (!chempi_list_is_empty(&party->left)) {
        struct chempi_list *node =
            is_reversed ? party->left.prev : party->left.next;
        struct in *in = CHEMPI_CONTAINER_OF(node, struct in, link);
        const struct chempi_dev_ops *ops = in->ep->dev->ops;
        int rc;

        chempi_list_remove(&in->link);
        if (drop_every && ++n % drop_every == 0) {
            ops->drop(in->ep, in->token);
            free(in);
            dropped++;
            continue;
        }
        start(party, in);
        rc = ops->accept(in->ep, in->token, &in->rx);
        WORLD_CHECK(rc >= 0 || party->expects_loss);
        if (rc != CHEMPI_PENDING)
            finish(party, in, rc);
    }
    return dropped;
}

bool party_has_all(const struct party *party, uint32_t source, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!party->seen[source][i])
            return false;
    }
    return true;
}

void party_wait(struct party *party, const uint32_t *counter, uint32_t value)
{
    while (*counter < value)
        world_sleep(party->world);
}

void party_finish(struct party *party)
{
    struct chempi_dev *dev = party->world->dev;

    party_wait(party, &party->sent, party->started);
    while (!dev->ops->is_drained(dev))
        world_sleep(party->world);
    world_barrier(party->world);
}

bool party_is_self(const struct party *party)
{
    return (party->world->dev->caps->flags & CHEMPI_DEV_SELF) != 0;
}
