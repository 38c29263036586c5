/* SPDX-License-Identifier: BSD-3-Clause */
/* Order and room (T9, T10): what waits for room, and when it is told of it. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "libchempi/devices/tcp/internal.h"
#include "libchempi/devices/tcp/tcp.h"
#include "libchempi/services/layout/layout.h"
#include "libchempi/services/pollset.h"
#include "tests/unit/tcp/ends.h"

enum { COUNT = 900, LEN_MAX = 30000, SOCKET = 8192, BLOCK = 4 };
enum { READ = 8 }; /* are sent for each look at what comes: some always wait */

static struct ends ends;
static struct chempi_tx txs[COUNT];
static struct chempi_segment iters[COUNT];
static uint8_t data[2 * LEN_MAX];

static struct chempi_tcp_link *link_of(uint32_t end)
{
    return ((struct chempi_tcp_ep *)(void *)ends.end[end].eps[!end])->links[0];
}

/* What this end's listeners accept holds little, from the beginning: of a
 * window that shrinks later the kernel goes on to send segments of half as much
 * as it once was, and waits a fifth of a second for each that is more than it
 * is now. */
static void narrow(struct chempi_tcp_dev *dev)
{
    const int bytes = SOCKET;

    for (uint32_t i = 0; i < dev->listener_count; i++)
        cr_assert_eq(setsockopt(dev->listeners[i].item.fd, SOL_SOCKET,
                                SO_RCVBUF, &bytes, sizeof(bytes)),
                     0);
}

/* Two that are connected, by sockets that hold little: the first one calls. */
static void meet_with(uint64_t queue)
{
    static _Atomic uint64_t settings[CHEMPI_TCP_SET_COUNT];
    const int bytes = SOCKET;

    for (uint32_t i = 0; i < CHEMPI_TCP_SET_COUNT; i++)
        settings[i] = chempi_tcp_ops.panel->settings[i].initial;
    settings[CHEMPI_TCP_SET_QUEUE] = queue;
    ends_default(&ends, 2);
    ends.settings = settings;
    cr_assert_eq(ends_open_as(&ends, 2, true), 0);
    narrow((struct chempi_tcp_dev *)(void *)ends.end[1].dev);
    cr_assert_eq(ends_inject(&ends, 0, 1, "x", 1, 1), CHEMPI_DONE);
    cr_assert(ends_wait_arrivals(&ends, 1, 1));
    cr_assert_eq(setsockopt(link_of(0)->item.fd, SOL_SOCKET, SO_SNDBUF, &bytes,
                            sizeof(bytes)),
                 0);
    fill(data, sizeof(data), 1);
}

static void meet(void)
{
    meet_with(chempi_tcp_ops.panel->settings[CHEMPI_TCP_SET_QUEUE].initial);
}

/* Every second block; until the program ends. */
static const struct chempi_layout *strided(void)
{
    static struct chempi_layout layout = {.size = BLOCK,
                                          .extent = (int64_t)2 * BLOCK};

    if (!layout.root)
        layout.root = chempi_layout_block(0, BLOCK);
    return &layout;
}

/* Small ones, most of them in a row, long ones, announced ones. */
static void post(uint32_t i)
{
    static const uint64_t lens[] = {8, 4000, 0, 8, LEN_MAX, 8, 5000, 1200};
    struct chempi_tx *tx = &txs[i];

    *tx = (struct chempi_tx){
        .env = {.len = lens[i % CHEMPI_ARRAY_LEN(lens)],
                .tag = 1,
                .serial = i + 1,
                .kind = CHEMPI_KIND_MESSAGE},
        .buf = data,
        .protocol = CHEMPI_TCP_PROTO_EAGER,
        .needs_consent = i % 11 == 0,
        .may_keep = i % 3 != 0,
    };
    if (i % 5 == 0 && tx->env.len) {
        chempi_segment_init(&iters[i], data, tx->env.len / BLOCK, strided());
        tx->iter = &iters[i];
        tx->buf = NULL;
    }
    cr_assert_geq(end_send(&ends.end[0], 1, tx), 0);
}

static bool is_right(const struct arrival *a)
{
    const bool is_strided =
        (a->env.serial - 1) % 5 == 0 && a->env.len; /* post() */

    for (uint64_t i = 0; i < a->env.len; i++)
        if (a->data[i] !=
            data[is_strided ? i / BLOCK * 2 * BLOCK + i % BLOCK : i])
            return false;
    return a->is_complete;
}

static bool is_waiting(void)
{
    return !chempi_list_is_empty(&ends.end[0].waiting[1]);
}

TestSuite(tcp_order, .timeout = 240);

Test(tcp_order, messages_arrive_in_the_order_in_which_they_were_sent)
{
    const struct end *to = &ends.end[1];
    uint32_t next = 0;

    meet();
    while (!is_waiting() && next < COUNT / 2)
        post(next++);
    while (next < COUNT) {
        post(next++);
        (void)end_poll(&ends.end[0]);
        if (next % READ == 0)
            (void)end_poll(&ends.end[1]);
    }
    cr_assert(is_waiting());
    cr_assert(ends_wait_arrivals(&ends, 1, COUNT + 1));
    cr_assert(ends_wait_sent(&ends, 0, COUNT));
    for (uint32_t i = 1; i <= COUNT; i++) {
        cr_assert_eq(to->arrivals[i]->env.serial, i);
        cr_assert(is_right(to->arrivals[i]), "%u", i);
    }
    ends_close(&ends);
}

/* Before there is a connection, too. */
Test(tcp_order, messages_that_wait_for_a_connection_keep_their_order)
{
    cr_assert_eq(ends_open(&ends, 2, true), 0);
    fill(data, sizeof(data), 1);
    for (uint32_t i = 0; i < COUNT; i++)
        post(i);
    cr_assert(is_waiting());
    cr_assert(ends_wait_arrivals(&ends, 1, COUNT));
    for (uint32_t i = 0; i < COUNT; i++)
        cr_assert_eq(ends.end[1].arrivals[i]->env.serial, i + 1);
    ends_close(&ends);
}

/* Many that wait are asked for once when there is room for many, and leave in
 * few writes. */
Test(tcp_order, who_waits_for_room_is_not_asked_for_in_vain)
{
    struct end *from = &ends.end[0];
    int rooms;

    meet();
    for (uint32_t i = 0; i < COUNT; i++) {
        txs[i] = (struct chempi_tx){
            .env = {.len = 1000, .serial = i + 1, .kind = CHEMPI_KIND_MESSAGE},
            .buf = data,
            .may_keep = true};
        cr_assert_geq(end_send(from, 1, &txs[i]), 0);
    }
    for (int i = 0; i < 1000; i++)
        (void)end_poll(from);
    cr_assert(is_waiting());
    cr_assert_leq(from->rooms, 4);
    rooms = from->rooms;
    for (int i = 0; i < 1000; i++)
        (void)end_poll(from);
    cr_assert_leq(from->rooms, rooms + 1); /* the socket may have some */
    cr_assert_leq(from->asked, from->rooms + COUNT);
    rig_fail(RIG_SEND, 0, 0, 0);
    cr_assert(ends_wait_arrivals(&ends, 1, COUNT + 1));
    cr_assert_leq(from->asked, from->rooms + COUNT);
    cr_assert_leq(from->rooms, COUNT / 16);
    rig_reset();
    ends_close(&ends);
}

/* A queue that is half empty need not have room for the next. */
Test(tcp_order, who_waits_for_all_of_a_short_queue_is_not_asked_for_in_vain)
{
    const struct chempi_tcp_out *out;
    uint32_t i = 0;

    meet_with(chempi_tcp_ops.panel->settings[CHEMPI_TCP_SET_QUEUE].min);
    out = &link_of(0)->out;
    while (i < COUNT - 1 && out->head == out->tail) {
        txs[i] = (struct chempi_tx){
            .env = {.len = 1000, .serial = i + 1, .kind = CHEMPI_KIND_MESSAGE},
            .buf = data};
        cr_assert_geq(end_send(&ends.end[0], 1, &txs[i]), 0);
        i++;
    }
    txs[i] = (struct chempi_tx){.env = {.len = CHEMPI_TCP_INJECT_MAX,
                                        .serial = i + 1,
                                        .kind = CHEMPI_KIND_MESSAGE},
                                .buf = data};
    cr_assert_geq(end_send(&ends.end[0], 1, &txs[i]), 0);
    cr_assert(is_waiting());
    for (int k = 0; k < 1000; k++)
        (void)end_poll(&ends.end[0]);
    cr_assert_leq(ends.end[0].rooms, 2);
    cr_assert(ends_wait_arrivals(&ends, 1, i + 2));
    ends_close(&ends);
}

Test(tcp_order, who_waits_for_room_hears_of_the_end)
{
    struct end *from = &ends.end[0];
    uint32_t count = 0;
    uint32_t pending = 0;

    meet();
    while (!is_waiting() && count < COUNT - 50)
        post(count++);
    cr_assert(is_waiting());
    for (uint32_t i = 0; i < 50; i++)
        post(count++);
    pending = count - (uint32_t)from->sent;
    chempi_tcp_ops.close(ends.end[1].dev);
    ends.end[1].dev = NULL;
    for (int i = 0; i < 1000000 && is_waiting(); i++)
        (void)end_poll(from);
    cr_assert(!is_waiting());
    cr_assert_geq(from->sent_failed, 50);
    cr_assert_leq((uint32_t)from->sent_failed, pending);
    ends_close(&ends);
}

/* All that is announced has an answer to wait for, and no more memory than
 * others. */
Test(tcp_order, announcements_that_find_no_room_wait_as_others_do)
{
    struct end *from = &ends.end[0];
    const size_t queue =
        chempi_tcp_ops.panel->settings[CHEMPI_TCP_SET_QUEUE].initial;
    static struct chempi_tx many[20000];
    uint32_t i = 0;

    meet();
    for (; i < CHEMPI_ARRAY_LEN(many) && !is_waiting(); i++) {
        many[i] = (struct chempi_tx){
            .env = {.len = 8, .serial = i + 1, .kind = CHEMPI_KIND_MESSAGE},
            .buf = data,
            .needs_consent = true};
        cr_assert_geq(end_send(from, 1, &many[i]), 0);
    }
    cr_assert(is_waiting());
    cr_assert_leq(link_of(0)->out.tail - link_of(0)->out.head, queue);
    ends_close(&ends);
}
