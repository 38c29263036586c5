/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The three protocols of "MPICH for SCI-connected clusters" without the MPI
 * above them.
 *
 *   short        one full packet: 12 bytes of header, 47 of payload, a number
 *                in the last byte; the sender asks by a remote read how far
 *                the receiver is, but only when its slots are used up
 *   eager        data into a buffer at the receiver, then a control packet;
 *                the receiver copies and stores the buffer's number back
 *   rendez-vous  request, answer with the size of the transfer buffer, then
 *                blocks, each announced by a control packet while the next is
 *                on its way, so that the receiver copies meanwhile; as many
 *                parts as the buffer makes necessary
 *
 * Control packets are short messages. As in deck.c, no number is 0.
 */
#include <stdlib.h>
#include <string.h>

#include "bench/papers/papers.h"

#define LINE PAPERS_LINE
#define SLOTS 64u
#define SHORT_MAX 47u
#define EAGER_BUFFERS 4u
#define EAGER_MAX (UINT64_C(128) << 10)
#define BLOCK (UINT64_C(16) << 10)
#define PART (UINT64_C(256) << 10) /* the transfer buffer */
#define LONG_MAX (UINT64_C(2) << 20)

enum {
    AT_SLOTS = 0,
    AT_COUNT = SLOTS * LINE,    /* messages that we have taken */
    AT_FREED = AT_COUNT + LINE, /* eager buffers given back to us */
    AT_EAGER = 8192
};
#define AT_PART (AT_EAGER + EAGER_BUFFERS * EAGER_MAX)

enum kind { SHORT, EAGER, REQUEST, ANSWER, BLOCK_READY };

/* A packet but for the number in its last byte. */
struct packet {
    uint32_t kind;
    uint32_t number;
    uint32_t len;
    unsigned char payload[LINE - 12];
};

struct scimpich {
    uint32_t sent; /* packets */
    uint32_t read; /* of these, read by the other side when we asked last */
    uint32_t taken;
    uint32_t eager_sent;
    uint32_t eager_taken;
    struct packet *out;
};

static void open(struct pair *pair)
{
    struct scimpich *s = calloc(1, sizeof(*s));

    if (!s)
        pair_die(pair, "out of memory");
    s->out = pair_memory(pair, LINE);
    pair->state = s;
    pair_segment(pair, AT_PART + PART);
}

/* --- packets --- */

static uint8_t mark_of(uint32_t number)
{
    return (uint8_t)(1 + number / SLOTS % 255);
}

static void send_packet(struct pair *pair, enum kind kind, const void *payload,
                        size_t len)
{
    struct scimpich *s = pair->state;

    while (s->sent - s->read >= SLOTS)
        pair_check(pair, chempi_sci_read(pair->remote, AT_COUNT, &s->read,
                                         sizeof(s->read)));
    s->out->kind = kind;
    s->out->number = s->sent;
    s->out->len = (uint32_t)len;
    if (len)
        memcpy(s->out->payload, payload, len);
    s->out->payload[sizeof(s->out->payload) - 1] = mark_of(s->sent);
    pair_store(pair, AT_SLOTS + s->sent % SLOTS * LINE, s->out, LINE);
    s->sent++;
}

/* The next packet; it lies there until drop_packet(). */
static const struct packet *take_packet(struct pair *pair, enum kind kind)
{
    struct scimpich *s = pair->state;
    size_t slot = AT_SLOTS + s->taken % SLOTS * LINE;
    const struct packet *packet = (const void *)(pair->local + slot);
    uint32_t looks = 0;

    while (pair_load8(pair, slot + LINE - 1) != mark_of(s->taken))
        pair_relax(&looks);
    if (packet->kind != (uint32_t)kind || packet->number != s->taken)
        pair_die(pair, "a packet out of turn");
    return packet;
}

static void drop_packet(struct pair *pair)
{
    struct scimpich *s = pair->state;

    s->taken++;
    atomic_store_explicit(
        (_Atomic uint32_t *)(void *)(pair->local + AT_COUNT), s->taken,
        memory_order_release); /* ours: the other side reads it */
}

/* --- short --- */

static void send_short(struct pair *pair, const void *message, size_t len)
{
    send_packet(pair, SHORT, message, len);
}

static void recv_short(struct pair *pair, void *message, size_t len)
{
    const struct packet *packet = take_packet(pair, SHORT);

    if (packet->len != len)
        pair_die(pair, "a message of another length");
    chempi_adapter_host_copy(pair->adapter, message, packet->payload, len);
    drop_packet(pair);
}

/* --- eager --- */

static void send_eager(struct pair *pair, const void *message, size_t len)
{
    struct scimpich *s = pair->state;
    uint32_t looks = 0;
    uint32_t buffer = s->eager_sent % EAGER_BUFFERS;

    while (s->eager_sent - pair_load32(pair, AT_FREED) >= EAGER_BUFFERS)
        pair_relax(&looks);
    pair_store(pair, AT_EAGER + buffer * EAGER_MAX, message, papers_round(len));
    chempi_sci_store_barrier(pair->remote);
    s->eager_sent++;
    send_packet(pair, EAGER, &buffer, sizeof(buffer));
}

static void recv_eager(struct pair *pair, void *message, size_t len)
{
    struct scimpich *s = pair->state;
    const struct packet *packet = take_packet(pair, EAGER);
    uint32_t buffer;

    memcpy(&buffer, packet->payload, sizeof(buffer));
    drop_packet(pair);
    if (buffer != s->eager_taken % EAGER_BUFFERS)
        pair_die(pair, "an eager buffer out of turn");
    chempi_adapter_host_copy(pair->adapter, message,
                             pair->local + AT_EAGER + buffer * EAGER_MAX, len);
    s->eager_taken++;
    pair_store(pair, AT_FREED, &s->eager_taken, sizeof(s->eager_taken));
}

/* --- rendez-vous --- */

static void send_long(struct pair *pair, const void *message, size_t len)
{
    const unsigned char *from = message;
    uint64_t words[2] = {len, 0};
    size_t done = 0;

    send_packet(pair, REQUEST, words, sizeof(words));
    while (done < len) { /* a part */
        size_t part = len - done < PART ? len - done : PART;

        (void)take_packet(pair, ANSWER);
        drop_packet(pair);
        for (size_t at = 0; at < part; at += BLOCK) {
            size_t size = part - at < BLOCK ? part - at : BLOCK;

            pair_store(pair, AT_PART + at, from + done + at,
                       papers_round(size));
            chempi_sci_store_barrier(pair->remote);
            words[1] = at + size;
            send_packet(pair, BLOCK_READY, words, sizeof(words));
        }
        done += part;
    }
}

static void recv_long(struct pair *pair, void *message, size_t len)
{
    unsigned char *to = message;
    uint64_t words[2];
    size_t done = 0;

    memcpy(words, take_packet(pair, REQUEST)->payload, sizeof(words));
    drop_packet(pair);
    if (words[0] != len)
        pair_die(pair, "a message of another length");
    while (done < len) {
        size_t part = len - done < PART ? len - done : PART;

        words[1] = PART;
        send_packet(pair, ANSWER, words, sizeof(words));
        for (size_t at = 0; at < part; at += BLOCK) {
            size_t size = part - at < BLOCK ? part - at : BLOCK;

            (void)take_packet(pair, BLOCK_READY);
            drop_packet(pair);
            chempi_adapter_host_copy(pair->adapter, to + done + at,
                                     pair->local + AT_PART + at, size);
        }
        done += part;
    }
}

#define PROTOCOL(tag, text, most)                                              \
    static const struct experiment protocol_##tag = {.name = "scimpich-" text, \
                                                     .len_max = (most),        \
                                                     .open = open,             \
                                                     .send = send_##tag,       \
                                                     .recv = recv_##tag}
PROTOCOL(short, "short", SHORT_MAX);
PROTOCOL(eager, "eager", EAGER_MAX);
PROTOCOL(long, "rdv", LONG_MAX);

const struct experiment *const papers_scimpich[] = {
    &protocol_short, &protocol_eager, &protocol_long, NULL};
