/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the MPI of "Comparing MPI performance of SCI and VIA" uses a VIA card:
 * up to 4 KiB eagerly, by Send and Receive through buffers of the library, so
 * that both sides copy. Above, the sender waits until the receive operation
 * is started: the receiver registers its buffer and sends the address, the
 * sender, which has registered its own meanwhile, writes by RDMA with immediate
 * data. Completions "of send and receive descriptors" are waited for asleep
 * ("wait"), as that version did, or by polling ("poll"). So who has sent a long
 * message is waked when that is done, and can name its next receive only then:
 * the address is on the way of every long message, and is waited for asleep.
 *
 * Each call costs the library some time of its own. Published are 65 us asleep
 * and below 20 us by polling, so of what the card does not explain most is the
 * waking, and some ten us are the library.
 *
 * "eager" and "long" wait asleep and take one protocol for all sizes, to see
 * where the second overtakes the first.
 *
 * The receive descriptors posted suffice for one message under way in each
 * direction, which is all that a ping-pong asks for.
 */
#include <stdlib.h>
#include <string.h>

#include "bench/papers/papers.h"
#include "bench/papers/vi.h"

#define EAGER_MAX 4096u
#define PACKET_MAX (VI_RECEIVE_BYTES - sizeof(struct header))
#define LONG_MAX (UINT64_C(2) << 20)
#define CALL_NS UINT64_C(10000)
#define OUT_SLOTS 4u /* buffers to send from, used in turn */

/* Before the payload, or alone. */
struct header {
    uint64_t len;
    uint64_t addr; /* of the receiver's buffer */
    uint32_t handle;
    uint32_t number;
};

struct mpipro {
    struct vi *vi;
    uint32_t turn;
    uint32_t sent;
    uint32_t taken;
    size_t eager_max;
    bool does_sleep;
};

static void open(struct pair *pair, bool does_sleep, size_t eager_max)
{
    struct mpipro *m = calloc(1, sizeof(*m));

    if (!m)
        pair_die(pair, "out of memory");
    m->vi = vi_open(pair, 1, OUT_SLOTS * VI_RECEIVE_BYTES);
    m->does_sleep = does_sleep;
    m->eager_max = eager_max;
    pair->state = m;
}

static void open_wait(struct pair *pair)
{
    open(pair, true, EAGER_MAX);
}

static void open_poll(struct pair *pair)
{
    open(pair, false, EAGER_MAX);
}

static void open_eager(struct pair *pair)
{
    open(pair, true, PACKET_MAX);
}

static void open_long(struct pair *pair)
{
    open(pair, true, 0);
}

/* Send a header and what follows it from a buffer of the library. */
static void send_packet(struct pair *pair, const struct header *header,
                        const void *payload, size_t len)
{
    struct mpipro *m = pair->state;
    struct vi *vi = m->vi;
    struct chempi_via_descriptor *d = vi_descriptor(pair, vi);
    unsigned char *out = vi->out + m->turn++ % OUT_SLOTS * VI_RECEIVE_BYTES;

    memcpy(out, header, sizeof(*header));
    if (len)
        chempi_adapter_host_copy(pair->adapter, out + sizeof(*header), payload,
                                 len);
    *d = (struct chempi_via_descriptor){
        .op = CHEMPI_VIA_SEND,
        .segment_count = 1,
        .segments = {{.addr = out,
                      .handle = vi->out_handle,
                      .len = (uint32_t)(sizeof(*header) + len)}},
    };
    vi_post_descriptor(pair, vi, d);
}

static struct chempi_via_descriptor *take_packet(struct pair *pair,
                                                 struct header *header)
{
    struct mpipro *m = pair->state;
    struct chempi_via_descriptor *d = vi_take(pair, m->vi, m->does_sleep);

    memcpy(header, d->segments[0].addr, sizeof(*header));
    return d;
}

static void send_long(struct pair *pair, const void *message, size_t len)
{
    struct mpipro *m = pair->state;
    struct vi *vi = m->vi;
    /* It is read from; VIPL's descriptors take plain pointers. */
    void *start = (void *)(uintptr_t)message;
    uint32_t handle = vi_register(pair, vi, start, len);
    struct header answer;
    struct chempi_via_descriptor *d = take_packet(pair, &answer);

    if (answer.len != len || answer.number != m->sent)
        pair_die(pair, "an address for another message");
    vi_repost(pair, vi, d);
    d = vi_descriptor(pair, vi);
    *d = (struct chempi_via_descriptor){
        .op = CHEMPI_VIA_RDMA_WRITE,
        .segment_count = 1,
        .segments = {{.addr = start, .handle = handle, .len = (uint32_t)len}},
        .remote_addr = answer.addr,
        .remote_handle = answer.handle,
        .has_immediate = true,
        .immediate = m->sent,
    };
    vi_post_descriptor(pair, vi, d);
    vi_finish(pair, vi, m->does_sleep);
    pair_check(pair, chempi_via_deregister(pair->adapter, handle));
}

static void send(struct pair *pair, const void *message, size_t len)
{
    struct mpipro *m = pair->state;
    const struct header header = {.len = len, .number = m->sent};

    pair_work(pair, CALL_NS);
    if (len <= m->eager_max)
        send_packet(pair, &header, message, len);
    else
        send_long(pair, message, len);
    m->sent++;
}

static void recv_long(struct pair *pair, void *message, size_t len)
{
    struct mpipro *m = pair->state;
    const struct header header = {
        .len = len,
        .number = m->taken,
        .addr = (uint64_t)(uintptr_t)message,
        .handle = vi_register(pair, m->vi, message, len),
    };
    struct chempi_via_descriptor *d;

    send_packet(pair, &header, NULL, 0);
    d = vi_take(pair, m->vi, m->does_sleep);
    if (!d->has_immediate || d->immediate != m->taken)
        pair_die(pair, "another message than the one expected");
    vi_repost(pair, m->vi, d);
    pair_check(pair, chempi_via_deregister(pair->adapter, header.handle));
}

static void recv_eager(struct pair *pair, void *message, size_t len)
{
    struct mpipro *m = pair->state;
    struct header header;
    struct chempi_via_descriptor *d = take_packet(pair, &header);

    if (header.len != len || header.number != m->taken)
        pair_die(pair, "a message out of turn");
    chempi_adapter_host_copy(
        pair->adapter, message,
        (unsigned char *)d->segments[0].addr + sizeof(header), len);
    vi_repost(pair, m->vi, d);
}

static void recv(struct pair *pair, void *message, size_t len)
{
    struct mpipro *m = pair->state;

    pair_work(pair, CALL_NS);
    if (len <= m->eager_max)
        recv_eager(pair, message, len);
    else
        recv_long(pair, message, len);
    m->taken++;
}

static const struct experiment waiting = {.name = "mpipro-wait",
                                          .does_sleep = true,
                                          .len_max = LONG_MAX,
                                          .open = open_wait,
                                          .send = send,
                                          .recv = recv};
static const struct experiment polling = {.name = "mpipro-poll",
                                          .len_max = LONG_MAX,
                                          .open = open_poll,
                                          .send = send,
                                          .recv = recv};

static const struct experiment eager = {.name = "mpipro-eager",
                                        .does_sleep = true,
                                        .len_max = PACKET_MAX,
                                        .open = open_eager,
                                        .send = send,
                                        .recv = recv};
static const struct experiment longs = {.name = "mpipro-long",
                                        .does_sleep = true,
                                        .len_max = LONG_MAX,
                                        .open = open_long,
                                        .send = send,
                                        .recv = recv};

const struct experiment *const papers_mpipro[] = {&waiting, &polling, &eager,
                                                  &longs, NULL};
