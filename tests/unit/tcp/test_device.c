/* SPDX-License-Identifier: BSD-3-Clause */
/* The tcp device as its users see it: messages of all sizes and protocols,
 * connections, backpressure, the end. */
#define _GNU_SOURCE /* POLLRDHUP */
#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "common/base/clock.h"
#include "libchempi/devices/tcp/internal.h"
#include "libchempi/devices/tcp/tcp.h"
#include "libchempi/devices/tcp/wire.h"
#include "libchempi/services/layout/layout.h"
#include "libchempi/services/pollset.h"
#include "tests/unit/tcp/ends.h"

static struct ends ends;

static void open_two(void)
{
    cr_assert_eq(ends_open(&ends, 2, true), 0, "%s", ends.end[0].err.text);
}

static void close_all(void)
{
    ends_close(&ends);
}

TestSuite(tcp, .timeout = 60);

Test(tcp, a_small_message_arrives_whole)
{
    open_two();
    cr_assert_eq(ends_inject(&ends, 0, 1, "hello", 5, 3), CHEMPI_DONE);
    cr_assert(ends_wait_arrivals(&ends, 1, 1));
    cr_assert_eq(ends.end[1].arrivals[0]->env.len, 5u);
    cr_assert_eq(ends.end[1].arrivals[0]->env.tag, 3);
    cr_assert_eq(ends.end[1].arrivals[0]->env.context, 5u);
    cr_assert_eq(ends.end[1].arrivals[0]->from, 0u);
    cr_assert_eq(memcmp(ends.end[1].arrivals[0]->data, "hello", 5), 0);
    close_all();
}

/* Send one message of every interesting size, both ways. */
static void send_sizes(uint32_t protocol)
{
    static const size_t sizes[] = {
        0,     1,      63,     64,     4095,   4096,   4097,    65535,
        65536, 131071, 131072, 131073, 262144, 262145, 1000000, 5000001};

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(sizes); i++) {
        uint32_t from = (uint32_t)(i & 1);
        struct end *to = &ends.end[!from];
        uint8_t *data = malloc(sizes[i] + 1);
        struct chempi_tx tx = {.iter = NULL};
        int before = ends.end[from].sent;
        size_t had = to->arrival_count;
        int rc;

        fill(data, sizes[i], (unsigned)i);
        rc = ends_send(&ends, from, !from, &tx, data, sizes[i], (int)i,
                       protocol);
        cr_assert_geq(rc, 0);
        cr_assert(ends_wait_arrivals(&ends, !from, had + 1), "%zu", sizes[i]);
        cr_assert(ends_wait_sent(&ends, from, before + 1), "%zu", sizes[i]);
        cr_assert_eq(to->arrivals[had]->env.len, sizes[i]);
        cr_assert(is_filled(to->arrivals[had]->data, sizes[i], (unsigned)i));
        free(data);
    }
    cr_assert_eq(ends.end[0].lost + ends.end[1].lost, 0);
}

Test(tcp, every_size_arrives_eagerly_or_by_rendezvous)
{
    open_two();
    send_sizes(0);
    cr_assert_eq(ends.end[1].arrivals[0]->protocol, 0u);
    close_all();
}

Test(tcp, every_size_can_be_announced_first)
{
    open_two();
    send_sizes(1);
    for (size_t i = 0; i < ends.end[1].arrival_count; i++)
        cr_assert_eq(ends.end[1].arrivals[i]->protocol,
                     ends.end[1].arrivals[i]->env.len != 0);
    close_all();
}

Test(tcp, every_size_arrives_through_writes_of_a_few_bytes)
{
    open_two();
    /* Greetings go whole into an empty socket; frames need not. */
    cr_assert_eq(ends_inject(&ends, 0, 1, "hello", 5, 3), CHEMPI_DONE);
    cr_assert(ends_wait_arrivals(&ends, 1, 1));
    rig_limit(7);
    cr_assert_eq(ends_inject(&ends, 0, 1, "hello", 5, 3), CHEMPI_DONE);
    cr_assert_eq(ends_inject(&ends, 0, 1, "hello", 5, 3), CHEMPI_DONE);
    cr_assert(ends_wait_arrivals(&ends, 1, 3));
    rig_limit(1021);
    send_sizes(0);
    send_sizes(1);
    rig_reset();
    close_all();
}

enum { ROW = 40 };

/* Two devices, of which one gathers up to `bytes` for as long as it takes. */
static void open_two_patient(uint64_t bytes)
{
    static _Atomic uint64_t settings[CHEMPI_TCP_SET_COUNT];
    const uint64_t minute = UINT64_C(1000000000000);

    for (uint32_t i = 0; i < CHEMPI_TCP_SET_COUNT; i++)
        settings[i] = chempi_tcp_ops.panel->settings[i].initial;
    settings[CHEMPI_TCP_SET_KEEP] = bytes;
    settings[CHEMPI_TCP_SET_KEEP_NS] = minute;
    ends_default(&ends, 2);
    ends.settings = settings;
    cr_assert_eq(ends_open_as(&ends, 2, true), 0);
    cr_assert_eq(ends_inject(&ends, 0, 1, "hello", 5, 3), CHEMPI_DONE);
    cr_assert(ends_wait_arrivals(&ends, 1, 1)); /* connected */
}

static int post(struct chempi_tx *tx, const void *data, size_t len, int tag)
{
    tx->env = (struct chempi_envelope){
        .len = len, .tag = tag, .kind = CHEMPI_KIND_MESSAGE};
    tx->buf = tx->iter ? NULL : data;
    tx->may_keep = true;
    return chempi_tcp_ops.send(ends.end[0].eps[1], tx);
}

/* The receiver looks until nothing has come for long. */
static size_t look(void)
{
    for (int i = 0; i < 1000; i++)
        (void)end_poll(&ends.end[1]);
    return ends.end[1].arrival_count;
}

Test(tcp, messages_that_are_posted_in_a_row_leave_in_one_write)
{
    struct chempi_tx tx[ROW] = {{.iter = NULL}};

    open_two_patient(32768);
    rig_fail(RIG_SEND, 0, 0, 0);
    for (int i = 0; i < ROW; i++)
        cr_assert_eq(post(&tx[i], "number", 6, i),
                     i < 2 ? CHEMPI_DONE : CHEMPI_KEPT);
    cr_assert_eq(rig_calls(), 2);
    cr_assert_leq(look(), 3u);
    cr_assert(ends.end[0].dev->ops->is_ready(ends.end[0].dev));
    cr_assert(!ends.end[0].dev->ops->is_drained(ends.end[0].dev));
    (void)end_poll(&ends.end[0]);
    cr_assert_eq(rig_calls(), 3);
    rig_reset();
    cr_assert(ends_wait_arrivals(&ends, 1, ROW + 1));
    for (int i = 0; i < ROW; i++) {
        cr_assert_eq(ends.end[1].arrivals[i + 1]->env.tag, i);
        cr_assert_eq(memcmp(ends.end[1].arrivals[i + 1]->data, "number", 6), 0);
    }
    /* After progress a lone one is not kept, nor are the first two. */
    cr_assert_eq(post(&tx[0], "number", 6, 0), CHEMPI_DONE);
    (void)end_poll(&ends.end[0]);
    cr_assert_eq(post(&tx[0], "number", 6, 0), CHEMPI_DONE);
    cr_assert_eq(post(&tx[0], "number", 6, 0), CHEMPI_DONE);
    cr_assert(ends_wait_arrivals(&ends, 1, ROW + 4));
    close_all();
}

Test(tcp, what_is_kept_leaves_when_it_is_much)
{
    uint8_t data[1000];
    struct chempi_tx tx = {.iter = NULL};
    int kept = 0;

    open_two_patient(8192);
    fill(data, sizeof(data), 4);
    while (post(&tx, data, sizeof(data), kept) == CHEMPI_DONE)
        ;
    do
        kept++;
    while (post(&tx, data, sizeof(data), kept) == CHEMPI_KEPT);
    cr_assert_eq(kept, 7); /* and the eighth */
    while (ends.end[1].arrival_count < 11)
        (void)end_poll(&ends.end[1]);
    cr_assert(is_filled(ends.end[1].arrivals[10]->data, sizeof(data), 4));
    close_all();
}

Test(tcp, other_messages_do_not_wait_behind_what_is_kept)
{
    struct chempi_tx tx[4] = {{.iter = NULL}};
    uint8_t large[6000];

    open_two_patient(32768);
    fill(large, sizeof(large), 2);
    for (int i = 0; i < 3; i++)
        (void)post(&tx[i], "number", 6, i);
    cr_assert_eq(ends_inject(&ends, 0, 1, "hello", 5, 9), CHEMPI_DONE);
    while (ends.end[1].arrival_count < 5)
        (void)end_poll(&ends.end[1]);
    cr_assert_eq(ends.end[1].arrivals[4]->env.tag, 9);
    for (int i = 0; i < 3; i++)
        (void)post(&tx[i], "number", 6, i);
    cr_assert_eq(post(&tx[3], large, sizeof(large), 9), CHEMPI_DONE);
    while (ends.end[1].arrival_count < 9)
        (void)end_poll(&ends.end[1]);
    cr_assert(is_filled(ends.end[1].arrivals[8]->data, sizeof(large), 2));
    close_all();
}

Test(tcp, an_announced_message_waits_for_its_receive)
{
    size_t len = 300000;
    uint8_t *data = malloc(len);
    uint8_t *into = malloc(len);
    struct chempi_tx tx = {.iter = NULL};
    struct arrival *a;

    open_two();
    fill(data, len, 9);
    ends.end[1].wants_late = true;
    cr_assert_eq(ends_send(&ends, 0, 1, &tx, data, len, 1, 1), CHEMPI_PENDING);
    while (!ends.end[1].arrival_count)
        (void)ends_poll(&ends);
    a = ends.end[1].arrivals[0];
    cr_assert(a->is_late);
    cr_assert_eq(ends.end[0].sent, 0);
    a->rx.buf = into;
    a->rx.cap = len;
    cr_assert_eq(chempi_tcp_ops.accept(ends.end[1].eps[0], a->token, &a->rx),
                 CHEMPI_PENDING);
    cr_assert(ends_wait_arrivals(&ends, 1, 1));
    cr_assert(ends_wait_sent(&ends, 0, 1));
    cr_assert(is_filled(into, len, 9));
    free(data);
    free(into);
    close_all();
}

Test(tcp, a_dropped_message_is_sent_as_far_as_its_sender_knows)
{
    struct chempi_tx tx = {.iter = NULL};
    uint8_t data[10] = {0};

    open_two();
    ends.end[1].wants_late = true;
    cr_assert_eq(ends_send(&ends, 0, 1, &tx, data, sizeof(data), 1, 1),
                 CHEMPI_PENDING);
    while (!ends.end[1].arrival_count)
        (void)ends_poll(&ends);
    chempi_tcp_ops.drop(ends.end[1].eps[0], ends.end[1].arrivals[0]->token);
    cr_assert(ends_wait_sent(&ends, 0, 1));
    close_all();
}

Test(tcp, a_receive_that_is_too_short_gets_the_beginning)
{
    static const size_t sizes[] = {100000, 131072, 3000000};
    size_t cap = 70001;

    open_two();
    ends.end[1].cap = cap;
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(sizes); i++) {
        uint8_t *data = malloc(sizes[i]);
        struct chempi_tx tx = {.iter = NULL};

        fill(data, sizes[i], 4);
        cr_assert_geq(ends_send(&ends, 0, 1, &tx, data, sizes[i], 1, i == 1),
                      0);
        cr_assert(ends_wait_arrivals(&ends, 1, i + 1));
        cr_assert(ends_wait_sent(&ends, 0, (int)i + 1));
        cr_assert(is_filled(ends.end[1].arrivals[i]->data, cap, 4));
        free(data);
    }
    close_all();
}

Test(tcp, a_receive_of_no_bytes_takes_an_announced_message)
{
    struct chempi_tx tx = {.iter = NULL};
    uint8_t data[1000] = {0};

    open_two();
    ends.end[1].cap = 0;
    cr_assert_eq(ends_send(&ends, 0, 1, &tx, data, sizeof(data), 1, 1),
                 CHEMPI_PENDING);
    cr_assert(ends_wait_arrivals(&ends, 1, 1));
    cr_assert(ends_wait_sent(&ends, 0, 1));
    close_all();
}

/* `count` elements of `block` bytes, `stride` apart, at both ends. */
static void send_strided(size_t block, size_t stride, size_t count,
                         uint32_t protocol)
{
    struct chempi_layout layout = {.size = block,
                                   .extent = (int64_t)stride,
                                   .root = chempi_layout_block(0, block)};
    uint8_t *from = malloc(stride * count);
    uint8_t *to = calloc(stride, count);
    struct chempi_segment iter;
    struct chempi_tx tx = {.iter = &iter};
    int before = ends.end[0].sent;
    size_t had = ends.end[1].arrival_count;

    fill(from, stride * count, 3);
    chempi_segment_init(&iter, from, count, &layout);
    ends.end[1].layout = &layout;
    ends.end[1].area = to;
    cr_assert_geq(ends_send(&ends, 0, 1, &tx, NULL, block * count, 1, protocol),
                  0);
    cr_assert(ends_wait_arrivals(&ends, 1, had + 1));
    cr_assert(ends_wait_sent(&ends, 0, before + 1));
    for (size_t i = 0; i < count; i++) {
        cr_assert_eq(memcmp(from + i * stride, to + i * stride, block), 0);
        cr_assert(stride == block || to[i * stride + block] == 0);
    }
    chempi_layout_release(layout.root);
    free(from);
    free(to);
}

Test(tcp, non_contiguous_messages_arrive_in_non_contiguous_memory)
{
    open_two();
    for (uint32_t protocol = 0; protocol < 2; protocol++) {
        send_strided(8, 24, 100, protocol);
        send_strided(8, 24, 10000, protocol);
        send_strided(4096, 5000, 30, protocol);
        send_strided(40000, 50000, 3, protocol);
        send_strided(16, 48, 200000, protocol);
        send_strided(300000, 400000, 5, protocol);
        rig_limit(1021);
        send_strided(8, 24, 10000, protocol);
        send_strided(40000, 50000, 3, protocol);
        rig_reset();
    }
    close_all();
}

Test(tcp, both_sides_may_connect_at_once)
{
    open_two();
    cr_assert_eq(ends_inject(&ends, 0, 1, "a", 1, 1), CHEMPI_DONE);
    cr_assert_eq(ends_inject(&ends, 1, 0, "b", 1, 1), CHEMPI_DONE);
    cr_assert(ends_wait_arrivals(&ends, 0, 1));
    cr_assert(ends_wait_arrivals(&ends, 1, 1));
    cr_assert_eq(ends_inject(&ends, 0, 1, "c", 1, 1), CHEMPI_DONE);
    cr_assert_eq(ends_inject(&ends, 1, 0, "d", 1, 1), CHEMPI_DONE);
    cr_assert(ends_wait_arrivals(&ends, 0, 2));
    cr_assert(ends_wait_arrivals(&ends, 1, 2));
    cr_assert_eq(ends.end[0].lost + ends.end[1].lost, 0);
    close_all();
}

/* The two sides take steps in an order given by the bits of `order`. */
static void cross(unsigned order, uint32_t first)
{
    open_two();
    cr_assert_eq(ends_inject(&ends, first, !first, "a", 1, 1), CHEMPI_DONE);
    for (int i = 0; i < 6; i++)
        (void)end_poll(&ends.end[order >> i & 1]);
    cr_assert_eq(ends_inject(&ends, !first, first, "b", 1, 1), CHEMPI_DONE);
    for (int i = 6; i < 12; i++)
        (void)end_poll(&ends.end[order >> i & 1]);
    cr_assert(ends_wait_arrivals(&ends, first, 1), "order %x", order);
    cr_assert(ends_wait_arrivals(&ends, !first, 1), "order %x", order);
    cr_assert_eq(ends.end[0].lost + ends.end[1].lost, 0, "order %x", order);
    close_all();
}

Test(tcp, crossing_connections_end_as_one_in_every_order_of_steps)
{
    for (unsigned order = 0; order < 4096; order += 5) {
        cross(order, 0);
        cross(order, 1);
    }
}

Test(tcp, four_processes_talk_to_each_other)
{
    cr_assert_eq(ends_open(&ends, 4, true), 0);
    for (uint32_t i = 0; i < 4; i++) {
        for (uint32_t j = 0; j < 4; j++) {
            if (i != j)
                cr_assert_eq(ends_inject(&ends, i, j, &i, sizeof(i), 1),
                             CHEMPI_DONE);
        }
    }
    for (uint32_t i = 0; i < 4; i++)
        cr_assert(ends_wait_arrivals(&ends, i, 3));
    close_all();
}

Test(tcp, without_the_peers_card_there_is_no_room_until_it_comes)
{
    struct chempi_envelope env = {.kind = CHEMPI_KIND_MESSAGE};
    struct end *end = &ends.end[0];
    uint8_t card[4096];
    size_t len = sizeof(card);

    cr_assert_eq(ends_open(&ends, 2, false), 0);
    cr_assert_eq(chempi_tcp_ops.connect(end->dev, 1, &end->eps[1], &end->err),
                 0);
    cr_assert_eq(chempi_tcp_ops.inject(end->eps[1], &env, NULL, 0, false),
                 -EAGAIN);
    (void)ends_poll(&ends);
    cr_assert_eq(end->rooms, 0);
    cr_assert_eq(chempi_tcp_ops.card(ends.end[1].dev, card, &len), 0);
    cr_assert_eq(chempi_tcp_ops.card_arrived(end->eps[1], card, len, &end->err),
                 0);
    cr_assert(chempi_tcp_ops.is_ready(end->dev));
    (void)ends_poll(&ends);
    cr_assert_eq(end->rooms, 1);
    cr_assert_eq(chempi_tcp_ops.inject(end->eps[1], &env, NULL, 0, false),
                 CHEMPI_DONE);
    cr_assert(ends_wait_arrivals(&ends, 1, 1));
    close_all();
}

Test(tcp, a_peer_that_connected_can_be_answered_without_its_card)
{
    struct chempi_ep *ep;
    struct chempi_err err;

    open_two();
    ends_close(&ends);
    cr_assert_eq(ends_open(&ends, 2, false), 0);
    for (uint32_t i = 0; i < 2; i++)
        cr_assert_eq(chempi_tcp_ops.connect(ends.end[i].dev, !i,
                                            &ends.end[i].eps[!i], &err),
                     0);
    {
        uint8_t card[4096];
        size_t len = sizeof(card);

        cr_assert_eq(chempi_tcp_ops.card(ends.end[1].dev, card, &len), 0);
        cr_assert_eq(
            chempi_tcp_ops.card_arrived(ends.end[0].eps[1], card, len, &err),
            0);
    }
    cr_assert_eq(ends_inject(&ends, 0, 1, "a", 1, 1), CHEMPI_DONE);
    cr_assert(ends_wait_arrivals(&ends, 1, 1));
    cr_assert_eq(chempi_tcp_ops.connect(ends.end[1].dev, 0, &ep, &err), 0);
    cr_assert_eq(ep, ends.end[1].eps[0]);
    cr_assert_eq(ends_inject(&ends, 1, 0, "b", 1, 1), CHEMPI_DONE);
    cr_assert(ends_wait_arrivals(&ends, 0, 1));
    close_all();
}

Test(tcp, a_receiver_that_does_not_read_makes_the_sender_wait)
{
    struct chempi_envelope env = {.len = 4096, .kind = CHEMPI_KIND_MESSAGE};
    struct end *from = &ends.end[0];
    uint8_t data[4096];
    size_t taken = 0;
    int rc;

    open_two();
    fill(data, sizeof(data), 1);
    cr_assert_eq(ends_inject(&ends, 0, 1, data, sizeof(data), 1), 0);
    cr_assert(ends_wait_arrivals(&ends, 1, 1));
    ends.end[1].dev->params.sink_arg = &ends.end[1];
    /* Only the sender makes progress: buffers fill up. */
    while ((rc = chempi_tcp_ops.inject(from->eps[1], &env, data, sizeof(data),
                                       false)) == CHEMPI_DONE &&
           taken < 100000) {
        taken++;
        (void)end_poll(from);
    }
    cr_assert_eq(rc, -EAGAIN, "%zu", taken);
    cr_assert_eq(from->rooms, 0);
    cr_assert_not(chempi_tcp_ops.is_drained(from->dev));
    for (int i = 0; i < 1000000 && !from->rooms; i++) {
        (void)ends_poll(&ends);
        for (size_t a = 1; a < ends.end[1].arrival_count; a++) {
            free(ends.end[1].arrivals[a]->data);
            free(ends.end[1].arrivals[a]);
        }
        ends.end[1].arrival_count = 1;
    }
    cr_assert_eq(from->rooms, 1);
    close_all();
}

Test(tcp, a_small_message_overtakes_a_long_one)
{
    size_t len = 64u << 20;
    uint8_t *data = calloc(1, len);
    struct chempi_tx tx = {.iter = NULL};

    open_two();
    cr_assert_eq(ends_send(&ends, 0, 1, &tx, data, len, 1, 1), CHEMPI_PENDING);
    while (ends.end[1].arrival_count < 1)
        (void)ends_poll(&ends);
    (void)ends_poll(&ends);
    cr_assert_eq(ends_inject(&ends, 0, 1, "x", 1, 2), CHEMPI_DONE);
    while (ends.end[1].arrival_count < 2)
        (void)ends_poll(&ends);
    cr_assert(ends.end[1].arrivals[1]->is_complete);
    cr_assert_not(ends.end[1].arrivals[0]->is_complete);
    cr_assert(ends_wait_arrivals(&ends, 1, 2));
    free(data);
    close_all();
}

/* Whoever waited for it may post the next receive first. */
Test(tcp, a_poll_ends_where_a_long_message_ends)
{
    enum { MESSAGES = 30, LEN = 100 * 1000 };
    static struct chempi_tx txs[MESSAGES];
    static uint8_t data[LEN];
    const struct end *to = &ends.end[1];

    open_two();
    fill(data, LEN, 3);
    for (int i = 0; i < MESSAGES; i++)
        cr_assert_geq(ends_send(&ends, 0, 1, &txs[i], data, LEN, i, 0), 0);
    cr_assert(ends_wait_arrivals(&ends, 1, 1));
    for (size_t before = end_complete(to); before < MESSAGES;
         before = end_complete(to)) {
        (void)end_poll(&ends.end[0]);
        (void)chempi_tcp_ops.progress(to->dev); /* and no look at epoll */
        if (end_complete(to) == before)
            continue;
        cr_assert_eq(end_complete(to), before + 1);
        cr_assert_eq(to->arrival_count, before + 1, "the next has come, too");
    }
    cr_assert(is_filled(to->arrivals[MESSAGES - 1]->data, LEN, 3));
    cr_assert(ends_wait_sent(&ends, 0, MESSAGES));
    close_all();
}

Test(tcp, many_messages_both_ways_at_once_keep_their_bytes)
{
    static struct chempi_tx txs[2][40];
    static uint8_t *data[2][40];

    open_two();
    for (unsigned i = 0; i < 40; i++) {
        for (uint32_t from = 0; from < 2; from++) {
            size_t len = (size_t)1 << i % 22;

            data[from][i] = malloc(len);
            fill(data[from][i], len, i);
            cr_assert_geq(ends_send(&ends, from, !from, &txs[from][i],
                                    data[from][i], len, (int)i, i & 1),
                          0);
        }
    }
    for (uint32_t to = 0; to < 2; to++) {
        cr_assert(ends_wait_arrivals(&ends, to, 40));
        cr_assert(ends_wait_sent(&ends, to, 40));
        for (size_t i = 0; i < 40; i++) {
            struct arrival *a = ends.end[to].arrivals[i];

            cr_assert(
                is_filled(a->data, (size_t)a->env.len, (unsigned)a->env.tag));
            free(data[to][i]);
        }
    }
    close_all();
}

Test(tcp, a_drained_device_may_be_closed_and_nothing_is_lost)
{
    size_t len = 100000;
    uint8_t *data = malloc(len);
    struct chempi_tx tx = {.iter = NULL};

    open_two();
    fill(data, len, 2);
    cr_assert_eq(ends_inject(&ends, 1, 0, "up", 2, 1), CHEMPI_DONE);
    cr_assert(ends_wait_arrivals(&ends, 0, 1));
    /* Unread bytes at the side that leaves would make its kernel reset. */
    cr_assert_eq(ends_inject(&ends, 1, 0, "unread", 6, 1), CHEMPI_DONE);
    cr_assert_geq(ends_send(&ends, 0, 1, &tx, data, len, 1, 0), 0);
    for (int i = 0; i < 1000000 && !chempi_tcp_ops.is_drained(ends.end[0].dev);
         i++) {
        (void)chempi_tcp_ops.progress(ends.end[0].dev);
        (void)chempi_tcp_ops.is_drained(ends.end[1].dev);
    }
    cr_assert(chempi_tcp_ops.is_drained(ends.end[0].dev));
    chempi_tcp_ops.close(ends.end[0].dev);
    ends.end[0].dev = NULL;
    cr_assert(ends_wait_arrivals(&ends, 1, 1));
    cr_assert(is_filled(ends.end[1].arrivals[0]->data, len, 2));
    for (int i = 0; i < 100; i++)
        (void)ends_poll(&ends);
    cr_assert_eq(ends.end[1].lost, 0, "%s", ends.end[1].lost_why);
    cr_assert_eq(ends_inject(&ends, 1, 0, "late", 4, 1), -EPIPE);
    free(data);
    close_all();
}

Test(tcp, draining_does_not_need_the_peer_to_read)
{
    open_two();
    cr_assert_eq(ends_inject(&ends, 0, 1, "a", 1, 1), CHEMPI_DONE);
    cr_assert(ends_wait_arrivals(&ends, 1, 1));
    cr_assert_eq(ends_inject(&ends, 0, 1, "b", 1, 1), CHEMPI_DONE);
    cr_assert(ends_wait_drained(&ends, 0));
    close_all();
}

static struct chempi_tcp_link *link_of(uint32_t end)
{
    return ((struct chempi_tcp_ep *)(void *)ends.end[end].eps[!end])->links[0];
}

/* Process 0 is gone, and process 1 has all that it had sent. */
static void die(void)
{
    struct pollfd fd = {.fd = link_of(1)->item.fd, .events = POLLRDHUP};

    cr_assert_eq(shutdown(link_of(0)->item.fd, SHUT_WR), 0);
    cr_assert_eq(poll(&fd, 1, -1), 1);
}

static void meet(void)
{
    open_two();
    cr_assert_eq(ends_inject(&ends, 0, 1, "x", 1, 1), CHEMPI_DONE);
    cr_assert(ends_wait_arrivals(&ends, 1, 1));
}

/* By reads of up to `max` bytes (0: any number), so in more than one poll. */
static void read_after_the_end(size_t max)
{
    static uint8_t data[16000];
    struct chempi_tx tx = {.iter = NULL};
    const size_t count = 1 + 10 + 1;

    meet();
    fill(data, sizeof(data), 3);
    for (size_t i = 0; i < 10; i++)
        cr_assert_eq(ends_inject(&ends, 0, 1, data, 3000, 2), CHEMPI_DONE);
    cr_assert_eq(ends_send(&ends, 0, 1, &tx, data, sizeof(data), 3, 0),
                 CHEMPI_DONE);
    die();
    if (max)
        rig_limit(max);
    chempi_tcp_ops.ended(ends.end[1].dev, 0);
    rig_reset();
    cr_assert_eq(end_complete(&ends.end[1]), count);
    for (size_t i = 1; i < count; i++)
        cr_assert(is_filled(ends.end[1].arrivals[i]->data,
                            (size_t)ends.end[1].arrivals[i]->env.len, 3));
    cr_assert_eq(ends.end[1].lost, 0, "not before progress");
    cr_assert(ends_wait_lost(&ends, 1));
    cr_assert_eq(ends.end[1].lost, 1);
    close_all();
}

Test(tcp, a_link_on_which_nothing_waits_has_no_memory_for_that)
{
    const struct chempi_tcp_dev *dev;
    struct chempi_envelope env = {.len = 100, .kind = CHEMPI_KIND_MESSAGE};
    const uint8_t data[100] = {0};

    meet();
    dev = (struct chempi_tcp_dev *)(void *)ends.end[0].dev;
    cr_assert_null(link_of(0)->out.data);
    cr_assert_null(link_of(1)->out.data);
    rig_limit(7);
    cr_assert_eq(chempi_tcp_ops.inject(ends.end[0].eps[1], &env, data,
                                       sizeof(data), false),
                 CHEMPI_DONE);
    cr_assert_not_null(link_of(0)->out.data);
    cr_assert_null(dev->spare.data);
    cr_assert(ends_wait_arrivals(&ends, 1, 2));
    rig_reset();
    cr_assert_null(link_of(0)->out.data);
    cr_assert_not_null(dev->spare.data);
    close_all();
}

Test(tcp, what_a_process_had_sent_is_read_when_its_end_is_told)
{
    read_after_the_end(0);
    read_after_the_end(700);
}

Test(tcp, half_a_message_of_a_process_that_ended_is_none)
{
    static uint8_t data[40000];
    struct chempi_tx tx = {.iter = NULL};

    meet();
    rig_limit(20000);
    cr_assert_eq(ends_send(&ends, 0, 1, &tx, data, sizeof(data), 3, 0),
                 CHEMPI_PENDING);
    rig_reset();
    die();
    chempi_tcp_ops.ended(ends.end[1].dev, 0);
    cr_assert_eq(ends.end[1].arrival_count, 2);
    cr_assert_eq(end_complete(&ends.end[1]), 1);
    cr_assert(ends_wait_lost(&ends, 1));
    cr_assert_eq(ends.end[1].failed, 1);
    close_all();
}

Test(tcp, a_process_that_ended_right_after_its_welcome_is_read)
{
    open_two();
    cr_assert_eq(ends_inject(&ends, 1, 0, "x", 1, 1), CHEMPI_DONE);
    while (link_of(1)->attempt->step != CHEMPI_TCP_STEP_VERDICT)
        (void)ends_poll(&ends);
    while (link_of(0)->state != CHEMPI_TCP_UP)
        (void)end_poll(&ends.end[0]);
    cr_assert_eq(ends_inject(&ends, 0, 1, "y", 1, 2), CHEMPI_DONE);
    die();
    cr_assert_eq(link_of(1)->state, CHEMPI_TCP_DIALING);
    chempi_tcp_ops.ended(ends.end[1].dev, 0);
    cr_assert_eq(end_complete(&ends.end[1]), 1);
    cr_assert_eq(ends.end[1].arrivals[0]->env.tag, 2);
    cr_assert(ends_wait_lost(&ends, 1));
    close_all();
}

static bool has_two(struct ends *all, const void *arg)
{
    (void)arg;
    return all->end[1].arrival_count == 2;
}

static enum chempi_remains tell_end(void)
{
    return chempi_tcp_ops.ended(ends.end[1].dev, 0);
}

/* Its connection ends behind what it had sent, which may take its time. */
Test(tcp, what_comes_after_the_word_of_an_end_is_read)
{
    struct end *end = &ends.end[1];

    meet();
    cr_assert_eq(tell_end(), CHEMPI_REMAINS_COMING);
    cr_assert_not(chempi_tcp_ops.is_ready(end->dev));
    cr_assert_eq(ends_inject(&ends, 0, 1, "y", 1, 2), CHEMPI_DONE);
    cr_assert(ends_wait_arrivals(&ends, 1, 2));
    cr_assert_eq(tell_end(), CHEMPI_REMAINS_COMING);
    cr_assert_eq(ends_inject(&ends, 0, 1, "z", 1, 3), CHEMPI_DONE);
    die();
    cr_assert_eq(tell_end(), CHEMPI_REMAINS_NONE);
    cr_assert_eq(end_complete(end), 3);
    cr_assert_eq(end->arrivals[2]->env.tag, 3);
    cr_assert(ends_wait_lost(&ends, 1));
    close_all();
}

/* An end is waited for as long as something has come in so many ms. */
static void meet_waiting(uint64_t ms)
{
    static _Atomic uint64_t settings[CHEMPI_TCP_SET_COUNT];

    for (uint32_t i = 0; i < CHEMPI_TCP_SET_COUNT; i++)
        settings[i] = chempi_tcp_ops.panel->settings[i].initial;
    settings[CHEMPI_TCP_SET_ENDED] = ms;
    ends_default(&ends, 2);
    ends.settings = settings;
    cr_assert_eq(ends_open_as(&ends, 2, true), 0);
    cr_assert_eq(ends_inject(&ends, 0, 1, "x", 1, 1), 0);
    cr_assert(ends_wait_arrivals(&ends, 1, 1));
}

/* Who waits for that sleeps, and is woken when it has been quiet for long. */
Test(tcp, an_end_that_never_comes_is_not_waited_for_for_ever)
{
    struct end *end = &ends.end[1];

    meet_waiting(120);
    for (int i = 0; tell_end() == CHEMPI_REMAINS_COMING; i++) {
        cr_assert_lt(i, 100);
        cr_assert_not(chempi_tcp_ops.is_ready(end->dev));
        (void)chempi_pollset_collect(end->services.pollset, -1);
        (void)chempi_pollset_dispatch(end->services.pollset);
        (void)chempi_tcp_ops.progress(end->dev);
    }
    cr_assert_eq(tell_end(), CHEMPI_REMAINS_NONE);
    cr_assert(ends_wait_lost(&ends, 1));
    cr_assert_lt(ends_inject(&ends, 1, 0, "x", 1, 1), 0);
    close_all();
}

/* As a child of the dead one may, which has the connection, too. */
Test(tcp, who_sends_on_is_not_waited_for_for_ever)
{
    size_t count = 1;

    meet_waiting(120);
    while (tell_end() == CHEMPI_REMAINS_COMING) {
        cr_assert_eq(ends_inject(&ends, 0, 1, "x", 1, 1), 0);
        cr_assert(ends_wait_arrivals(&ends, 1, ++count));
        (void)chempi_pollset_collect(ends.end[1].services.pollset, -1);
        (void)chempi_pollset_dispatch(ends.end[1].services.pollset);
    }
    cr_assert(ends_wait_lost(&ends, 1));
    close_all();
}

/* Who computes for longer does not look, and what is under way may stand in
 * front of buffers that are full. */
Test(tcp, who_does_not_look_does_not_wait)
{
    const uint64_t limit_ms = 250; /* more than two looks can take */
    uint64_t before_ns;

    meet_waiting(limit_ms);
    cr_assert_eq(tell_end(), CHEMPI_REMAINS_COMING);
    before_ns = chempi_clock_ns();
    while (chempi_clock_ns() - before_ns < 2 * limit_ms * CHEMPI_NS_PER_MS)
        ;
    cr_assert_eq(tell_end(), CHEMPI_REMAINS_COMING);
    cr_assert_eq(ends_inject(&ends, 0, 1, "y", 1, 2), CHEMPI_DONE);
    die();
    cr_assert_eq(tell_end(), CHEMPI_REMAINS_NONE);
    cr_assert_eq(end_complete(&ends.end[1]), 2);
    close_all();
}

/* An answer would make the dead one's system forget what it still sends. */
Test(tcp, a_process_that_ended_is_told_nothing)
{
    static uint8_t data[5000];
    struct chempi_tx tx = {.iter = NULL};
    struct end *end = &ends.end[1];
    struct chempi_rx rx = {.buf = data, .cap = sizeof(data)};
    int unread = -1;

    meet();
    end->wants_late = true;
    cr_assert_eq(ends_send(&ends, 0, 1, &tx, data, sizeof(data), 2, 1),
                 CHEMPI_PENDING);
    cr_assert(ends_wait(&ends, has_two, NULL));
    cr_assert_eq(tell_end(), CHEMPI_REMAINS_COMING);
    cr_assert_eq(ends_inject(&ends, 1, 0, "q", 1, 7), -ECONNRESET);
    end->arrivals[1]->rx = rx;
    cr_assert_eq(chempi_tcp_ops.accept(end->eps[0], end->arrivals[1]->token,
                                       &end->arrivals[1]->rx),
                 -ECONNRESET);
    for (int i = 0; i < 10; i++)
        (void)end_poll(end);
    cr_assert_eq(ioctl(link_of(0)->item.fd, FIONREAD, &unread), 0);
    cr_assert_eq(unread, 0);
    die();
    cr_assert_eq(tell_end(), CHEMPI_REMAINS_NONE);
    cr_assert(ends_wait_lost(&ends, 1));
    close_all();
}

Test(tcp, who_ends_at_any_step_of_connecting_is_gone)
{
    for (int polls = 0; polls < 8; polls++) {
        open_two();
        cr_assert_eq(ends_inject(&ends, 1, 0, "x", 1, 1), CHEMPI_DONE);
        for (int i = 0; i < polls; i++)
            (void)end_poll(&ends.end[i & 1]);
        chempi_tcp_ops.close(ends.end[0].dev);
        ends.end[0].dev = NULL;
        chempi_tcp_ops.ended(ends.end[1].dev, 0);
        for (int i = 0; i < 8; i++)
            (void)ends_poll(&ends);
        cr_assert_geq(link_of(1)->state, CHEMPI_TCP_ENDED, "%d", polls);
        cr_assert_lt(ends_inject(&ends, 1, 0, "x", 1, 1), 0, "%d", polls);
        close_all();
    }
}

Test(tcp, a_connection_that_closes_without_farewell_is_a_lost_process)
{
    struct chempi_tx tx = {.iter = NULL};
    uint8_t data[1000] = {0};

    open_two();
    ends.end[1].wants_late = true;
    cr_assert_eq(ends_send(&ends, 0, 1, &tx, data, sizeof(data), 1, 1),
                 CHEMPI_PENDING);
    while (!ends.end[1].arrival_count)
        (void)ends_poll(&ends);
    /* Output that waits keeps close() from saying farewell. */
    rig_fail(RIG_SEND, 1, EPIPE, 0);
    (void)ends_inject(&ends, 1, 0, "x", 1, 1);
    rig_reset();
    cr_assert(ends_wait_lost(&ends, 1));
    cr_assert(ends_wait_lost(&ends, 0));
    cr_assert_eq(ends.end[0].sent_failed, 1);
    cr_assert_neq(strstr(ends.end[0].lost_why, "process 1"), NULL);
    cr_assert_neq(strstr(ends.end[0].lost_why, "127.0.0.1:"), NULL);
    cr_assert_lt(ends_inject(&ends, 0, 1, "x", 1, 1), 0);
    cr_assert_neq(ends.end[0].dev->err.text[0], '\0');
    cr_assert_eq(ends.end[0].lost, 1);
    close_all();
}
