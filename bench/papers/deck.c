/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The three protocols of "Low-latency and zero-copy message passing protocols
 * for SCI-based clusters" (DECK/SCI), with as many packets and flushes as
 * there.
 *
 *   1  one full packet: 62 bytes, number, flag; the receiver stores its read
 *      position in the sender's memory after every message
 *   2  header and data back to back in a ring of bytes, flush, a control
 *      packet; the receiver copies, and stores its read position
 *   3  request (1 byte), address (8 bytes), data straight into the message
 *      buffer, flush, end (1 byte)
 *
 * Where the paper's text leaves a hole: no flag is 0, since memory starts as
 * zeros; the position in the ring counts all bytes ever put, so the sender
 * need not wait until the ring has drained before it begins again in front;
 * the address carries the request's number, so an old one is not taken for
 * it. At most 64 messages are under way, so 8 bits of number suffice.
 */
#include <stdlib.h>
#include <string.h>

#include "bench/papers/papers.h"

#define LINE PAPERS_LINE
#define SLOTS 64u
#define SLOT_MAX 62u
#define RING (UINT64_C(256) << 10)
#define MEDIUM_MAX (UINT64_C(128) << 10)
#define LARGE_MAX (UINT64_C(4) << 20)
#define END 255u

/* In the segment of each process. */
enum {
    AT_SLOTS = 0,                  /* protocol 1 */
    AT_CONTROL = SLOTS * LINE,     /* protocol 2: messages sent so far */
    AT_SIGNAL = AT_CONTROL + LINE, /* protocol 3: number, or END */
    AT_READ1 = AT_SIGNAL + LINE,   /* how far the peer has read us */
    AT_READ2 = AT_READ1 + LINE,
    AT_ADDRESS = AT_READ2 + LINE,
    AT_RING = 8192
};
#define AT_MESSAGE (AT_RING + RING)

struct deck {
    uint32_t sent; /* messages */
    uint32_t taken;
    uint64_t put; /* protocol 2: bytes ever put in the ring, and taken */
    uint64_t got;
    unsigned char *line; /* a packet under construction */
};

static void open(struct pair *pair)
{
    struct deck *deck = calloc(1, sizeof(*deck));

    if (!deck)
        pair_die(pair, "out of memory");
    deck->line = pair_memory(pair, LINE);
    pair->state = deck;
    pair_segment(pair, (size_t)(AT_MESSAGE + LARGE_MAX));
}

/* --- protocol 1 --- */

static uint8_t flag_of(uint32_t number)
{
    return (uint8_t)(1 + number / SLOTS % 255);
}

static void send1(struct pair *pair, const void *message, size_t len)
{
    struct deck *deck = pair->state;
    uint32_t looks = 0;

    while (deck->sent - pair_load32(pair, AT_READ1) >= SLOTS)
        pair_relax(&looks);
    memcpy(deck->line, message, len);
    deck->line[LINE - 2] = (uint8_t)deck->sent;
    deck->line[LINE - 1] = flag_of(deck->sent);
    pair_store(pair, AT_SLOTS + deck->sent % SLOTS * LINE, deck->line, LINE);
    deck->sent++;
}

static void recv1(struct pair *pair, void *message, size_t len)
{
    struct deck *deck = pair->state;
    size_t slot = AT_SLOTS + deck->taken % SLOTS * LINE;
    uint32_t looks = 0;

    while (pair_load8(pair, slot + LINE - 1) != flag_of(deck->taken))
        pair_relax(&looks);
    if (pair_load8(pair, slot + LINE - 2) != (uint8_t)deck->taken)
        pair_die(pair, "a message out of turn");
    chempi_adapter_host_copy(pair->adapter, message, pair->local + slot, len);
    deck->taken++;
    pair_store(pair, AT_READ1, &deck->taken, sizeof(deck->taken));
}

/* --- protocol 2 --- */

/* Where a message of `room` bytes goes that is put when `put` bytes have been:
 * not across the end of the ring. */
static uint64_t place(uint64_t put, uint64_t room)
{
    uint64_t left = RING - put % RING;

    return left < room ? put + left : put;
}

static void send2(struct pair *pair, const void *message, size_t len)
{
    struct deck *deck = pair->state;
    uint64_t room = LINE + papers_round(len);
    uint64_t at = place(deck->put, room);
    uint64_t size = len;
    uint32_t looks = 0;

    while (at + room - pair_load64(pair, AT_READ2) > RING)
        pair_relax(&looks);
    memset(deck->line, 0, LINE);
    memcpy(deck->line, &size, sizeof(size));
    pair_store(pair, AT_RING + at % RING, deck->line, LINE);
    pair_store(pair, AT_RING + at % RING + LINE, message, papers_round(len));
    chempi_sci_store_barrier(pair->remote);
    deck->put = at + room;
    deck->sent++;
    memset(deck->line, 0, LINE);
    memcpy(deck->line + LINE - sizeof(deck->sent), &deck->sent,
           sizeof(deck->sent));
    pair_store(pair, AT_CONTROL, deck->line, LINE);
}

static void recv2(struct pair *pair, void *message, size_t len)
{
    struct deck *deck = pair->state;
    uint32_t looks = 0;
    uint64_t at;
    uint64_t size;

    while (pair_load32(pair, AT_CONTROL + LINE - sizeof(uint32_t)) ==
           deck->taken)
        pair_relax(&looks);
    at = place(deck->got, LINE + papers_round(len));
    memcpy(&size, pair->local + AT_RING + at % RING, sizeof(size));
    if (size != len)
        pair_die(pair, "a message of another length");
    chempi_adapter_host_copy(pair->adapter, message,
                             pair->local + AT_RING + at % RING + LINE, len);
    deck->taken++;
    deck->got = at + LINE + papers_round(len);
    memset(deck->line, 0, LINE);
    memcpy(deck->line, &deck->got, sizeof(deck->got));
    pair_store(pair, AT_READ2, deck->line, LINE);
}

/* --- protocol 3 --- */

static void *buffer3(struct pair *pair)
{
    return pair->local + AT_MESSAGE;
}

static uint8_t request_of(uint32_t number)
{
    return (uint8_t)(1 + number % 127);
}

/* An address that answers this request and no other. */
static uint64_t answer_of(uint32_t number, uint64_t offset)
{
    return (uint64_t)(number + 1) << 32 | offset;
}

static void send3(struct pair *pair, const void *message, size_t len)
{
    struct deck *deck = pair->state;
    uint8_t request = request_of(deck->sent);
    const uint8_t end = END;
    uint32_t looks = 0;
    uint64_t answer;

    pair_store(pair, AT_SIGNAL, &request, sizeof(request));
    answer = pair_load64(pair, AT_ADDRESS);
    while (answer >> 32 != deck->sent + 1) {
        pair_relax(&looks);
        answer = pair_load64(pair, AT_ADDRESS);
    }
    pair_store(pair, (uint32_t)answer, message, papers_round(len));
    chempi_sci_store_barrier(pair->remote);
    pair_store(pair, AT_SIGNAL, &end, sizeof(end));
    deck->sent++;
}

static void recv3(struct pair *pair, void *message, size_t len)
{
    struct deck *deck = pair->state;
    uint64_t answer = answer_of(
        deck->taken, (uint64_t)((unsigned char *)message - pair->local));
    uint32_t looks = 0;

    (void)len;
    while (pair_load8(pair, AT_SIGNAL) != request_of(deck->taken))
        pair_relax(&looks);
    pair_store(pair, AT_ADDRESS, &answer, sizeof(answer));
    while (pair_load8(pair, AT_SIGNAL) != END)
        pair_relax(&looks);
    deck->taken++;
}

static const struct experiment protocol1 = {.name = "deck-1",
                                            .len_max = SLOT_MAX,
                                            .open = open,
                                            .send = send1,
                                            .recv = recv1};
static const struct experiment protocol2 = {.name = "deck-2",
                                            .len_max = MEDIUM_MAX,
                                            .open = open,
                                            .send = send2,
                                            .recv = recv2};
static const struct experiment protocol3 = {.name = "deck-3",
                                            .len_max = LARGE_MAX,
                                            .open = open,
                                            .buffer = buffer3,
                                            .send = send3,
                                            .recv = recv3};

const struct experiment *const papers_deck[] = {&protocol1, &protocol2,
                                                &protocol3, NULL};
