/* SPDX-License-Identifier: BSD-3-Clause */
/* The shm device from inside: bells, room, what is reserved. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libchempi/devices/shm/shm.h"
#include "tests/unit/shm/ends.h"

static uint32_t mode_of(struct ends *ends, uint32_t sender, uint32_t receiver)
{
    return ends_ep(ends, sender, receiver)->tx_pair->taken.mode;
}

Test(shm, a_first_message_rings_and_the_next_is_polled)
{
    struct ends ends;

    ends_open(&ends, 2);
    cr_assert_eq(ends_inject(&ends, 0, 1, "hello", 5), 0);
    cr_assert_neq(((struct shm_dev *)ends.end[1].dev)->inbox->summary, 0);
    cr_assert(chempi_shm_ops.is_ready(ends.end[1].dev));
    ends_poll(&ends);
    cr_assert_eq(ends.end[1].received, 1);
    cr_assert_eq(memcmp(ends.end[1].data, "hello", 5), 0);
    cr_assert_eq(mode_of(&ends, 0, 1), SHM_MODE_POLLED);
    cr_assert_eq(ends_inject(&ends, 0, 1, "again", 5), 0);
    cr_assert_eq(((struct shm_dev *)ends.end[1].dev)->inbox->summary, 0);
    cr_assert(chempi_shm_ops.is_ready(ends.end[1].dev));
    ends_poll(&ends);
    cr_assert_eq(ends.end[1].received, 2);
    cr_assert_not(chempi_shm_ops.is_ready(ends.end[1].dev));
    ends_close(&ends);
}

Test(shm, a_busy_peer_takes_the_place_of_an_idle_one)
{
    struct ends ends;
    uint32_t polled = 0;

    ends_open(&ends, 8);
    for (uint32_t i = 1; i < 8; i++)
        cr_assert_eq(ends_inject(&ends, i, 0, "x", 1), 0);
    ends_settle(&ends);
    for (uint32_t i = 1; i < 8; i++)
        polled += mode_of(&ends, i, 0) == SHM_MODE_POLLED;
    cr_assert_eq(polled, SHM_HOT_MAX);
    cr_assert_eq(mode_of(&ends, 7, 0), SHM_MODE_BELL);
    for (uint32_t i = 0; i < 2000; i++) {
        cr_assert_eq(ends_inject(&ends, 7, 0, "x", 1), 0);
        ends_poll(&ends);
        cr_assert_eq(ends.end[0].received, 7 + i + 1);
    }
    cr_assert_eq(mode_of(&ends, 7, 0), SHM_MODE_POLLED);
    polled = 0;
    for (uint32_t i = 1; i < 8; i++) {
        polled += mode_of(&ends, i, 0) == SHM_MODE_POLLED;
        cr_assert_eq(ends_inject(&ends, i, 0, "x", 1), 0);
    }
    cr_assert_eq(polled, SHM_HOT_MAX);
    ends_settle(&ends);
    cr_assert_eq(ends.end[0].received, 7 + 2000 + 7);
    ends_close(&ends);
}

Test(shm, room_comes_back_after_everything_was_taken)
{
    struct ends ends;
    unsigned char *data = ends_payload(SHM_EAGER_MAX);

    ends_open(&ends, 2);
    for (uint32_t round = 0; round < 300; round++) {
        size_t len = 1 + round * 997u % SHM_EAGER_MAX;
        uint32_t before = ends.end[1].received;
        uint32_t rooms = ends.end[0].rooms;
        uint32_t n = 0;

        while (ends_inject(&ends, 0, 1, data, len) == 0)
            n++;
        cr_assert(n >= 4);
        cr_assert_eq(ends_inject(&ends, 0, 1, data, len), -EAGAIN);
        cr_assert_eq(chempi_shm_ops.progress(ends.end[0].dev), 0);
        while (ends.end[1].received < before + n)
            cr_assert(chempi_shm_ops.progress(ends.end[1].dev) > 0);
        cr_assert_eq(memcmp(ends.end[1].data, data, len), 0);
        cr_assert(chempi_shm_ops.is_ready(ends.end[0].dev));
        (void)chempi_shm_ops.progress(ends.end[0].dev);
        cr_assert_eq(ends.end[0].rooms, rooms + 1);
        cr_assert(chempi_shm_ops.is_drained(ends.end[0].dev));
    }
    ends_close(&ends);
    free(data);
}

/* Message number i of len bytes; the first of these says which. */
static const unsigned char *nth(unsigned char *data, uint32_t i, size_t len)
{
    memset(data, (int)(i % 251), len);
    return data;
}

static uint32_t inject_all(struct ends *ends, unsigned char *data, uint32_t i,
                           size_t len)
{
    while (ends_inject(ends, 0, 1, nth(data, i, len), len) == 0)
        i++;
    return i;
}

/* One by one, up to number i. */
static void take_all(struct ends *ends, unsigned char *data, uint32_t i,
                     size_t len)
{
    struct end *to = &ends->end[1];

    ((struct shm_dev *)to->dev)->drain_budget = 1;
    while (to->received < i) {
        uint32_t at = to->received;

        (void)chempi_shm_ops.progress(to->dev);
        if (to->received > at)
            cr_assert_eq(memcmp(to->data, nth(data, at, len), len), 0);
    }
}

/* Messages go in pieces (W5) unless ranks share cores. */
static void set_order(struct ends *ends, enum chempi_wake_order order)
{
    atomic_store(&ends_ep(ends, 0, 1)->wake->order, order);
}

/* W4: as long as all is taken, data below a quarter of a lap stays in it; when
 * nothing is taken any more, there is as much room as ever. */
Test(shm, data_turns_early_only_while_it_is_taken)
{
    for (size_t len = 300; len <= SHM_LAP / 4; len += 97) {
        unsigned char *data = ends_payload(len);
        const struct shm_ep *ep;
        struct ends ends;
        uint32_t i = 0;

        ends_open(&ends, 2);
        ep = ends_ep(&ends, 0, 1);
        for (; i < 100 + len / 97; i++) {
            cr_assert_eq(ends_inject(&ends, 0, 1, nth(data, i, len), len), 0);
            cr_assert(shm_data_at(ep) <= SHM_LAP);
            take_all(&ends, data, i + 1, len);
        }
        for (uint32_t lap = 0; lap < 3; lap++) {
            uint32_t from = i;

            i = inject_all(&ends, data, i, len);
            cr_assert((i - from) * shm_round((uint32_t)len) >=
                          shm_dev_of(ep)->data_size / 2 ||
                      i - from > ep->line_mask / 2);
            take_all(&ends, data, i, len);
            (void)chempi_shm_ops.progress(ends.end[0].dev);
        }
        cr_assert_null(chempi_shm_eager_check(ep));
        ends_close(&ends);
        free(data);
    }
}

/* Those that are longer than that find room behind the lap as well. */
Test(shm, long_data_goes_on_behind_a_lap_that_turned_early)
{
    unsigned char *data = ends_payload(SHM_EAGER_MAX);
    struct ends ends;
    uint32_t behind;
    uint32_t i = 0;

    ends_open(&ends, 2);
    behind = (shm_dev_of(ends_ep(&ends, 0, 1))->data_size - SHM_LAP - 1) /
             SHM_EAGER_MAX;
    set_order(&ends, CHEMPI_WAKE_ORDER_FENCE);
    for (; i < 4; i++) {
        cr_assert_eq(ends_inject(&ends, 0, 1, nth(data, i, 1900), 1900), 0);
        take_all(&ends, data, i + 1, 1900);
    }
    cr_assert_eq(ends_inject(&ends, 0, 1, nth(data, i, 1900), 1900), 0);
    cr_assert_eq(inject_all(&ends, data, i + 1, SHM_EAGER_MAX), 5 + behind);
    take_all(&ends, data, 5, 1900);
    take_all(&ends, data, 5 + behind, SHM_EAGER_MAX);
    ends_close(&ends);
    free(data);
}

/* All of it is reserved with the first message that needs it. */
static void open_data(struct ends *ends)
{
    unsigned char *data = ends_payload(SHM_EAGER_MAX);

    cr_assert_eq(ends_inject(ends, 0, 1, data, SHM_EAGER_MAX), 0);
    ends_settle(ends);
    cr_assert_eq(ends->end[1].received, 1);
    cr_assert_eq(ends->end[1].rx_count, 0);
    memset(ends->end[1].data, 0, SHM_EAGER_MAX);
    free(data);
}

/* W5 */
Test(shm, a_piece_is_in_place_before_the_next_one_comes)
{
    for (size_t len = SHM_PIECE + 1; len <= SHM_EAGER_MAX; len += 61) {
        unsigned char *data = ends_payload(len);
        struct end *to;
        struct ends ends;
        size_t at = 0;

        ends_open(&ends, 2);
        to = &ends.end[1];
        set_order(&ends, CHEMPI_WAKE_ORDER_NONE);
        open_data(&ends);
        cr_assert_eq(ends_inject(&ends, 0, 1, data, len), 0);
        ((struct shm_dev *)to->dev)->drain_budget = 1;
        while (at < len) {
            cr_assert_eq(to->received, 1);
            cr_assert_eq(chempi_shm_ops.progress(to->dev), 1);
            at = len - at < SHM_PIECE ? len : at + SHM_PIECE;
            cr_assert_eq(memcmp(to->data, data, at), 0);
            cr_assert_eq(to->data[at], 0);
        }
        cr_assert_eq(to->received, 2);
        cr_assert_eq(to->last.len, len);
        cr_assert_eq(to->dev->received[SHM_PROTOCOL_EAGER].messages, 2);
        ends_close(&ends);
        free(data);
    }
}

Test(shm, of_pieces_no_more_is_stored_than_a_receive_takes)
{
    unsigned char *data = ends_payload(SHM_EAGER_MAX);

    for (uint64_t cap = 0; cap <= SHM_EAGER_MAX; cap += SHM_PIECE / 2) {
        struct ends ends;

        ends_open(&ends, 2);
        set_order(&ends, CHEMPI_WAKE_ORDER_NONE);
        open_data(&ends);
        ends.end[1].cap = cap;
        cr_assert_eq(ends_inject(&ends, 0, 1, data, SHM_EAGER_MAX), 0);
        ends_settle(&ends);
        cr_assert_eq(ends.end[1].rx_count, 1);
        cr_assert_eq(ends.end[1].received, 2);
        cr_assert_eq(memcmp(ends.end[1].data, data, cap), 0);
        for (uint64_t at = cap; at < SHM_EAGER_MAX; at++)
            cr_assert_eq(ends.end[1].data[at], 0);
        ends_close(&ends);
    }
    free(data);
}

/* Messages of all lengths, some of them taken now and then: each that is begun
 * finds room for all of its pieces, also if they turn early now and now not. */
static void put_pieces(uint64_t all, bool is_moving)
{
    unsigned char *data = ends_payload(SHM_EAGER_MAX);
    const uint32_t seed = 12345;
    uint32_t random_in = seed;
    uint32_t random = seed;
    uint32_t way = 1;
    uint32_t sent = 0;
    uint64_t put = 0;
    struct ends ends;
    struct end *to;
    struct shm_ep *ep;

    ends_open(&ends, 2);
    ep = ends_ep(&ends, 0, 1);
    to = &ends.end[1];
    set_order(&ends, CHEMPI_WAKE_ORDER_NONE);
    open_data(&ends);
    ((struct shm_dev *)to->dev)->drain_budget = 1;
    while (put < all) {
        uint32_t before = ep->data_head;
        uint32_t next = random * 1664525u + 1013904223u;
        size_t len = 1 + (next >> 8) % SHM_EAGER_MAX;

        if (is_moving)
            ep->put_points = (way >> 12 & 31) != 0
                                 ? ep->put_points
                                 : (way >> 18 & 1) * SHM_PUT_FAR;
        if (is_moving && (way >> 7 & 31) == 0)
            ep->laps.is_wide = !ep->laps.is_wide;
        if (ends_inject(&ends, 0, 1, data + SHM_EAGER_MAX - len, len) == 0) {
            random = next;
            sent++;
            put += ep->data_head - before;
        } else {
            cr_assert(!ep->is_broken, "%s", ep->broken_why);
            way |= 1; /* make room */
        }
        cr_assert_null(chempi_shm_eager_check(ep));
        way = way * 1664525u + 1013904223u;
        for (uint32_t n = (way >> 20) % 8; n > 0; n--) {
            uint32_t had = to->received;

            (void)chempi_shm_ops.progress(to->dev);
            if (to->received == had)
                continue;
            random_in = random_in * 1664525u + 1013904223u;
            len = 1 + (random_in >> 8) % SHM_EAGER_MAX;
            cr_assert_eq(to->last.len, len);
            cr_assert_eq(memcmp(to->data, data + SHM_EAGER_MAX - len, len), 0);
        }
    }
    cr_assert(to->received > sent / 2);
    cr_assert_eq(to->lost + ends.end[0].lost, 0);
    cr_assert_eq(((struct shm_dev *)ends.end[0].dev)->past > 0, is_moving);
    ends_close(&ends);
    free(data);
}

/* Until positions come again. */
Test(shm, pieces_find_room_wherever_they_turn, .timeout = 100)
{
    put_pieces(UINT64_C(1) << 33, false);
}

Test(shm, pieces_find_room_while_cores_move, .timeout = 100)
{
    put_pieces(UINT64_C(1) << 30, true);
}

/* A lap whose predecessor did not turn early, of which the peer has told
 * little: what the pieces would skip is counted, too, and the gaps of the last
 * one and of what that one skips. */
static const struct skips {
    size_t before[4]; /* messages, from the lap's begin */
    uint32_t at;      /* where in the lap they end */
    uint32_t taken;   /* the peer tells */
    size_t len;
} skips[] = {
    {{2048, 2048, 1536, 300}, 6208, 16384, SHM_EAGER_MAX},
    {{2048, 2048, 1536, 300}, 6208, 16384, SHM_EAGER_MAX - 64},
    {{0}, 0, 10368, SHM_EAGER_MAX - 1},
    {{0}, 0, 10304, SHM_EAGER_MAX - 64},
};

Test(shm, pieces_count_what_they_skip)
{
    unsigned char *data = ends_payload(SHM_EAGER_MAX);

    for (size_t k = 0; k < CHEMPI_ARRAY_LEN(skips); k++) {
        const struct skips *c = &skips[k];
        struct ends ends;
        struct shm_ep *ep;

        ends_open(&ends, 2);
        ep = ends_ep(&ends, 0, 1);
        open_data(&ends);
        set_order(&ends, CHEMPI_WAKE_ORDER_FENCE);
        for (uint32_t i = 0; i < 7; i++)
            cr_assert_eq(ends_inject(&ends, 0, 1, data, SHM_EAGER_MAX), 0);
        cr_assert_eq(ep->data_head, 65536);
        for (uint32_t i = 0; i < 4 && c->before[i]; i++)
            cr_assert_eq(ends_inject(&ends, 0, 1, data, c->before[i]), 0);
        cr_assert_eq(ep->data_head, 65536 + c->at);
        atomic_store(&ep->tx_pair->taken.data, c->taken);
        set_order(&ends, CHEMPI_WAKE_ORDER_NONE);
        cr_assert_eq(ends_inject(&ends, 0, 1, data, c->len), 0);
        cr_assert(!ep->is_broken, "%zu: %s", k, ep->broken_why);
        ends_close(&ends);
    }
    free(data);
}

/* W4: nor does it come in pieces then. */
Test(shm, data_goes_on_to_its_end_where_that_is_cheaper)
{
    unsigned char *data = ends_payload(SHM_EAGER_MAX);
    struct ends ends;
    struct shm_ep *ep;
    uint32_t size;

    ends_open(&ends, 2);
    set_order(&ends, CHEMPI_WAKE_ORDER_NONE);
    open_data(&ends);
    ep = ends_ep(&ends, 0, 1);
    size = shm_dev_of(ep)->data_size;
    cr_assert_eq(size, 256 * 1024);
    ep->laps.is_wide = true;
    for (uint32_t at = SHM_EAGER_MAX; at < 2 * size; at += SHM_PIECE) {
        cr_assert_eq(ep->data_head, at);
        cr_assert_eq(ends_inject(&ends, 0, 1, data, SHM_PIECE), 0);
        ends_settle(&ends);
    }
    for (uint32_t i = 1; i <= 100; i++) {
        uint32_t lines = ep->tx_head;

        cr_assert_eq(ends_inject(&ends, 0, 1, data, SHM_EAGER_MAX), 0);
        cr_assert_eq(ep->tx_head, lines + 1);
        cr_assert_eq(ep->data_head, 2 * size + i * SHM_EAGER_MAX);
        ends_settle(&ends);
    }
    ends_close(&ends);
    free(data);
}

/* W6: where the next message is written the reader of this one, which asks for
 * lines behind it, finds none. */
Test(shm, a_gap_is_left_behind_a_short_span)
{
    unsigned char *data = ends_payload(SHM_PIECE);
    const struct shm_ep *ep;
    struct ends ends;

    ends_open(&ends, 2);
    ep = ends_ep(&ends, 0, 1);
    cr_assert_eq(ends_inject(&ends, 0, 1, data, 1000), 0);
    cr_assert_eq(ep->data_head, 1024 + SHM_GAP);
    cr_assert_eq(ends_inject(&ends, 0, 1, data, SHM_PIECE), 0);
    cr_assert_eq(ep->data_head, 1024 + SHM_GAP + SHM_PIECE);
    ends_close(&ends);
    free(data);
}

/* Laps that end exactly, until positions come again: none of them has turned
 * early. */
Test(shm, data_turns_early_in_the_lap_that_says_so)
{
    const uint32_t n = (uint32_t)((UINT64_C(1) << 32) / SHM_EAGER_MAX) - 1;
    unsigned char *data = ends_payload(SHM_EAGER_MAX);
    uint32_t size;
    struct ends ends;
    uint32_t i = 0;

    ends_open(&ends, 2);
    set_order(&ends, CHEMPI_WAKE_ORDER_FENCE);
    for (; i < n; i++) {
        cr_assert_eq(ends_inject(&ends, 0, 1, data, SHM_EAGER_MAX), 0);
        while (ends.end[1].received <= i)
            (void)chempi_shm_ops.progress(ends.end[1].dev);
    }
    i = inject_all(&ends, data, i, SHM_EAGER_MAX);
    size = shm_dev_of(ends_ep(&ends, 0, 1))->data_size;
    cr_assert(i - n <= size / SHM_EAGER_MAX);
    take_all(&ends, data, i, SHM_EAGER_MAX);
    ends_close(&ends);
    free(data);
}

Test(shm, data_may_end_with_a_lap_behind_one_that_turned_early)
{
    for (size_t len = SHM_SHORT_MAX + 1; len <= SHM_LAP / 4; len++) {
        unsigned char *data = ends_payload(len);
        struct ends ends;
        uint32_t i = 0;

        ends_open(&ends, 2);
        for (; i < 40; i++) {
            cr_assert_eq(ends_inject(&ends, 0, 1, nth(data, i, len), len), 0);
            take_all(&ends, data, i + 1, len);
        }
        i = inject_all(&ends, data, i, len);
        (void)chempi_shm_ops.progress(ends.end[0].dev);
        cr_assert_null(chempi_shm_eager_check(ends_ep(&ends, 0, 1)));
        take_all(&ends, data, i, len);
        ends_close(&ends);
        free(data);
    }
}

/* A row of lines, whole payload in the data, a first piece, an announcement:
 * what there is no memory for stays the next one, and nothing of it is told or
 * counted before it is taken. */
Test(shm, what_there_is_no_memory_for_is_left_as_it_was)
{
    static const size_t lens[] = {5, SHM_SHORT_MAX, SHM_PIECE, SHM_EAGER_MAX,
                                  SHM_EAGER_MAX + 1};
    unsigned char *data = ends_payload(SHM_EAGER_MAX + 1);
    struct shm_dev *dev;
    struct chempi_tx tx;
    struct ends ends;
    struct end *to;

    ends_open(&ends, 2);
    to = &ends.end[1];
    dev = (struct shm_dev *)to->dev;
    set_order(&ends, CHEMPI_WAKE_ORDER_NONE);
    open_data(&ends);
    for (uint32_t i = 0; i < CHEMPI_ARRAY_LEN(lens) * 100; i++) {
        const struct shm_taken *taken = &ends_ep(&ends, 0, 1)->tx_pair->taken;
        size_t len = lens[i % CHEMPI_ARRAY_LEN(lens)];
        uint32_t lines = atomic_load(&taken->lines);
        uint32_t told = atomic_load(&taken->data);
        uint32_t received = to->received;
        uint64_t counted =
            dev->base.received[0].messages + dev->base.received[1].messages;

        memset(to->data, 0, SHM_EAGER_MAX + 1);
        if (len <= SHM_EAGER_MAX)
            cr_assert_eq(ends_inject(&ends, 0, 1, data, len), 0);
        else
            (void)ends_send(&ends, 0, 1, &tx, data, len, SHM_PROTOCOL_PIPELINE);
        to->refusals = 3;
        for (uint32_t left = 3; left > 0; left--) {
            cr_assert_eq(to->refusals, left);
            cr_assert_eq(chempi_shm_ops.progress(to->dev), 0);
            cr_assert(chempi_shm_ops.is_ready(to->dev));
        }
        cr_assert_eq(to->refusals, 0);
        cr_assert_eq(to->received, received);
        cr_assert_eq(atomic_load(&taken->lines), lines);
        cr_assert_eq(atomic_load(&taken->data), told);
        ends_settle(&ends);
        cr_assert_eq(to->received, received + 1);
        cr_assert_eq(to->last.len, len);
        cr_assert_eq(memcmp(to->data, data, len), 0);
        cr_assert_eq(dev->base.received[0].messages +
                         dev->base.received[1].messages,
                     counted + (len <= SHM_EAGER_MAX));
    }
    cr_assert_eq(to->lost + ends.end[0].lost, 0);
    ends_close(&ends);
    free(data);
}

/* The page at which a sender finds out whether its peer sends as well: when it
 * looks there first, the peer has taken everything. */
static struct {
    void *page;
    size_t len;
    _Atomic uint32_t *taken;
    uint32_t all;
} look;

static void on_look(int number)
{
    (void)number;
    (void)mprotect(look.page, look.len, PROT_READ);
    atomic_store(look.taken, look.all);
}

static void catch_look(struct shm_ep *ep, uint32_t all)
{
    struct sigaction action = {.sa_handler = on_look};

    look.len = (size_t)sysconf(_SC_PAGESIZE);
    look.page =
        mmap(NULL, look.len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(look.page, MAP_FAILED);
    look.taken = &ep->tx_pair->taken.data;
    look.all = all;
    ep->rx_lines = look.page;
    ep->is_hot = true;
    cr_assert_eq(sigaction(SIGSEGV, &action, NULL), 0);
}

/* W4: wherever in its lap it finds no room, and then stays in it. */
Test(shm, a_sender_looks_for_room_in_its_lap_before_it_goes_on_behind)
{
    const uint32_t step = SHM_LAP / 8;
    const uint32_t len = step - SHM_GAP; /* W6 */
    unsigned char *data = ends_payload(len);

    for (uint32_t taken = 0; taken < 8; taken++) {
        _Atomic uint32_t *told;
        struct shm_ep *ep;
        struct ends ends;
        uint32_t lap;

        ends_open(&ends, 2);
        ep = ends_ep(&ends, 0, 1);
        set_order(&ends, CHEMPI_WAKE_ORDER_NONE);
        open_data(&ends);
        lap = shm_dev_of(ep)->data_size;
        told = &ep->tx_pair->taken.data;
        for (uint32_t i = 0; i < 8 + taken; i++) {
            if (i == 8)
                atomic_store(told, lap + taken * step);
            cr_assert_eq(ends_inject(&ends, 0, 1, data, len), 0);
        }
        cr_assert_eq(ep->data_head,
                     taken ? 2 * lap + taken * step : lap + 8 * step);
        catch_look(ep, lap + 8 * step);
        cr_assert_eq(ends_inject(&ends, 0, 1, data, len), 0);
        cr_assert_eq(atomic_load(told), lap + 8 * step);
        cr_assert_eq(ep->data_head, 2 * lap + (taken + 1) * step);
        ends_close(&ends);
        (void)munmap(look.page, look.len);
    }
    free(data);
}

struct toggling {
    struct shm_taken *taken;
    _Atomic bool is_over;
};

/* Says that more was taken than sent, then the truth, over and over. */
static void *toggle(void *arg)
{
    struct toggling *toggling = arg;
    uint32_t truth = atomic_load(&toggling->taken->lines);

    while (!atomic_load(&toggling->is_over)) {
        atomic_store(&toggling->taken->lines, truth + 100000);
        atomic_store(&toggling->taken->lines, truth);
    }
    return NULL;
}

/* The looks for an early turn meet first a bad counter, then a good one. */
Test(shm, a_broken_endpoint_stays_closed_while_it_looks_for_an_early_turn)
{
    const size_t len = SHM_LAP / 4;
    unsigned char *data = ends_payload(len);

    for (uint32_t round = 0; round < 1000; round++) {
        struct toggling toggling = {.is_over = false};
        struct shm_ep *ep;
        struct ends ends;
        pthread_t thread;

        ends_open(&ends, 2);
        ep = ends_ep(&ends, 0, 1);
        atomic_store(&ep->wake->order, CHEMPI_WAKE_ORDER_NONE);
        for (uint32_t i = 0; i < 4; i++)
            cr_assert_eq(ends_inject(&ends, 0, 1, data, len), 0);
        toggling.taken = &ep->tx_pair->taken;
        cr_assert_eq(pthread_create(&thread, NULL, toggle, &toggling), 0);
        while (atomic_load(&toggling.taken->lines) == 0)
            (void)sched_yield(); /* the thread may have no core yet */
        (void)ends_inject(&ends, 0, 1, data, len);
        atomic_store(&toggling.is_over, true);
        (void)pthread_join(thread, NULL);
        cr_assert_null(chempi_shm_eager_check(ep));
        ends_close(&ends);
    }
    free(data);
}

Test(shm, nothing_is_reserved_before_the_first_message)
{
    unsigned char *data = ends_payload(SHM_EAGER_MAX);
    const struct shm_dev *dev;
    struct ends ends;
    struct stat before;
    struct stat after;

    ends_open(&ends, 4);
    dev = (struct shm_dev *)ends.end[0].dev;
    cr_assert_eq(fstat(ends.fd, &before), 0);
    cr_assert(before.st_blocks * 512 <= 16 * 4096);
    cr_assert_eq(ends_inject(&ends, 0, 3, "x", 1), 0);
    cr_assert_eq(fstat(ends.fd, &after), 0);
    cr_assert_eq((uint64_t)(after.st_blocks - before.st_blocks) * 512,
                 (dev->pair_lines + 4095) & ~UINT64_C(4095));
    ends_settle(&ends);
    cr_assert_eq(ends.end[3].received, 1);
    /* What does not fit the lines' last page needs all of the data. */
    cr_assert_eq(ends_inject(&ends, 0, 3, data, SHM_EAGER_MAX), 0);
    ends_settle(&ends);
    cr_assert_eq(fstat(ends.fd, &after), 0);
    cr_assert_eq((uint64_t)(after.st_blocks - before.st_blocks) * 512,
                 dev->pair_stride);
    cr_assert_eq(memcmp(ends.end[3].data, data, SHM_EAGER_MAX), 0);
    ends_close(&ends);
    free(data);
}

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

/* Is there a page at this address, for this process? What faults would tell,
 * sanitizers' shadows change. */
static bool is_touched(int map, const void *at)
{
    const uintptr_t page = (uintptr_t)at / (uintptr_t)sysconf(_SC_PAGESIZE);
    uint64_t entry = 0;

    cr_assert_eq(
        pread(map, &entry, sizeof(entry), (off_t)(page * sizeof(entry))),
        (ssize_t)sizeof(entry));
    return entry >> 63; /* present */
}

static bool can_touch_at_once(void)
{
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const bool can =
        page != MAP_FAILED && madvise(page, 4096, MADV_POPULATE_WRITE) == 0;

    if (page != MAP_FAILED)
        (void)munmap(page, 4096);
    return can;
}

/* Else what the first messages cost would be told of the ring. */
Test(shm, all_pages_of_the_data_are_touched_with_the_first)
{
    const int map = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    unsigned char *data = ends_payload(SHM_EAGER_MAX);
    const struct shm_ep *ep;
    struct ends ends;

    if (map < 0 || !can_touch_at_once())
        cr_skip_test("the kernel does not touch pages, or does not tell");
    ends_open(&ends, 2);
    cr_assert_eq(ends_inject(&ends, 0, 1, data, SHM_EAGER_MAX), 0);
    ends_settle(&ends);
    ep = ends_ep(&ends, 0, 1);
    for (uint32_t at = 0; at < shm_dev_of(ep)->data_size; at += 4096)
        cr_assert(is_touched(map, ep->tx_data + at), "byte %u", at);
    ends_close(&ends);
    (void)close(map);
    free(data);
}

/* Short messages, and longer ones until no more fit: each size, from the first
 * one on. */
Test(shm, data_of_any_length_may_be_the_first)
{
    for (uint32_t len = SHM_INLINE_MAX + 1; len <= SHM_EAGER_MAX; len += 611) {
        unsigned char *data = ends_payload(len);
        struct ends ends;
        uint32_t n = 0;

        ends_open(&ends, 2);
        while (ends_inject(&ends, 0, 1, data, len) == 0)
            n++;
        cr_assert_geq(n, 4);
        ends_settle(&ends);
        cr_assert_eq(ends.end[1].received, n);
        cr_assert_eq(memcmp(ends.end[1].data, data, len), 0);
        cr_assert_eq(ends.end[0].rooms, 1);
        ends_close(&ends);
        free(data);
    }
}

Test(shm, a_message_of_up_to_32_bytes_moves_one_cache_line)
{
    unsigned char *data = ends_payload(SHM_INLINE_MAX);
    struct ends ends;

    ends_open(&ends, 2);
    for (uint32_t len = 0; len <= 32; len++) {
        memset(ends.end[1].data, 0, 64);
        cr_assert_eq(ends_inject(&ends, 0, 1, data, len), 0);
        ends_settle(&ends);
        cr_assert_eq(ends.end[1].last.len, len);
        cr_assert_eq(ends.end[1].last_protocol, SHM_PROTOCOL_SHORT);
        cr_assert_eq(memcmp(ends.end[1].data, data, len), 0, "%u", len);
        cr_assert_eq(ends.end[1].data[len], 0, "%u", len);
        cr_assert_eq(ends_ep(&ends, 0, 1)->tx_head, len + 1);
        cr_assert_eq(ends_ep(&ends, 0, 1)->data_head, 0);
    }
    ends_close(&ends);
    free(data);
}

/* Through several laps, so that messages of more lines than one come to the end
 * of the ring at all places. */
Test(shm, a_message_of_up_to_288_bytes_moves_a_row_of_lines)
{
    unsigned char *data = ends_payload(SHM_SHORT_MAX + 1);
    struct shm_ep *ep;
    struct ends ends;
    uint32_t rows = 0;

    ends_open(&ends, 2);
    ep = ends_ep(&ends, 0, 1);
    for (uint32_t len = 33; len <= 288; len++) {
        uint32_t lines = 1 + (len - 32 + 63) / 64;
        uint32_t before = ep->tx_head;
        bool is_row = (before & ep->line_mask) + lines <= ep->line_mask + 1;

        /* Nothing is open before the first message. */
        if (before == 0)
            cr_assert_eq(ends_inject(&ends, 0, 1, "x", 1), 0);
        before += before == 0;
        memset(ends.end[1].data, 0, 512);
        cr_assert_eq(ends_inject(&ends, 0, 1, data, len), 0);
        ends_settle(&ends);
        cr_assert_eq(ends.end[1].last.len, len);
        cr_assert_eq(memcmp(ends.end[1].data, data, len), 0, "%u", len);
        cr_assert_eq(ends.end[1].data[len], 0, "%u", len);
        cr_assert_eq(ends.end[1].last_protocol,
                     is_row ? SHM_PROTOCOL_SHORT : SHM_PROTOCOL_EAGER);
        cr_assert_eq(ep->tx_head, before + (is_row ? lines : 1));
        rows += is_row;
    }
    cr_assert_geq(rows, 240);
    cr_assert_eq(ends_inject(&ends, 0, 1, data, 289), 0);
    ends_settle(&ends);
    cr_assert_eq(ends.end[1].last_protocol, SHM_PROTOCOL_EAGER);
    ends_close(&ends);
    free(data);
}

/* Payload that reads as the seq of a line in this lap and in the next (R3). */
Test(shm, payload_is_never_taken_for_a_line)
{
    unsigned char data[SHM_SHORT_MAX];
    struct shm_ep *ep;
    struct ends ends;
    uint32_t sent = 1;

    ends_open(&ends, 2);
    ep = ends_ep(&ends, 0, 1);
    cr_assert_eq(ends_inject(&ends, 0, 1, "x", 1), 0);
    ends_settle(&ends);
    for (uint32_t round = 0; round < 2000; round++) {
        for (uint32_t i = 0; i < sizeof(data) / 4; i++) {
            uint32_t line = 1 + (i * 4 - SHM_INLINE_MAX) / CHEMPI_CACHE_LINE;
            uint32_t lap = (round + line) % 3 * (ep->line_mask + 1);
            uint32_t word = ep->tx_head + line + lap + 1;

            memcpy(data + i * (size_t)4, &word, 4);
        }
        cr_assert_eq(
            ends_inject(&ends, 0, 1, data, 36 + round * 7 % (288 - 36)), 0);
        sent++;
        if (round % 5 == 0) {
            cr_assert_eq(ends_inject(&ends, 0, 1, "x", 1), 0);
            sent++;
        }
        ends_settle(&ends);
        cr_assert_eq(ends.end[1].received, sent);
        cr_assert_eq(ends.end[1].lost, 0);
    }
    ends_close(&ends);
}

/* What a short message tells is all of its envelope. */
Test(shm, a_short_message_keeps_its_envelope)
{
    const struct chempi_envelope env = {
        .len = 5,
        .context = 0x01020304,
        .source = 7,
        .tag = 0x11121314,
        .serial = 0x21222324,
        .credit = 0x31323334,
        .kind = CHEMPI_KIND_SYNC,
        .lane = 3,
        .flags = 0x4142,
    };
    struct ends ends;

    ends_open(&ends, 2);
    cr_assert_eq(chempi_shm_ops.inject(&ends_ep(&ends, 0, 1)->base, &env,
                                       "hello", env.len, false),
                 0);
    ends_settle(&ends);
    cr_assert_eq(memcmp(&ends.end[1].last, &env, sizeof(env)), 0);
    ends_close(&ends);
}

/* What a process maps is quadratic in nothing. */
Test(shm, addresses_are_for_those_that_are_spoken_to)
{
    enum { COUNT = 8 };
    struct ends ends;
    const struct shm_dev *dev;

    ends_open(&ends, COUNT);
    dev = (struct shm_dev *)ends.end[0].dev;
    cr_assert_null(dev->open);
    cr_assert_eq(ends_inject(&ends, 0, 5, "x", 1), 0);
    cr_assert_eq(dev->open, ends_ep(&ends, 0, 5));
    cr_assert_null(dev->open->next_open);
    ends_settle(&ends);
    cr_assert_null(((struct shm_dev *)ends.end[5].dev)->open);
    ends_close(&ends);
}

/* Lines that one message through the ring takes its sender. */
static uint32_t lines_of(struct ends *ends, uint64_t len)
{
    unsigned char *data = ends_payload(len);
    struct chempi_tx tx;
    uint32_t before = ends_ep(ends, 0, 1)->tx_head;

    ends_send(ends, 0, 1, &tx, data, len, SHM_PROTOCOL_PIPELINE);
    ends_settle(ends);
    cr_assert_eq(ends->end[1].last_protocol, SHM_PROTOCOL_PIPELINE);
    cr_assert_eq(memcmp(ends->end[1].data, data, len), 0);
    free(data);
    return ends_ep(ends, 0, 1)->tx_head - before;
}

Test(shm, a_chunk_is_a_quarter_of_the_data)
{
    struct ends ends;

    ends_open(&ends, 2);
    cr_assert_eq(lines_of(&ends, 16 << 10), 1 + 1);
    cr_assert_eq(lines_of(&ends, 32 << 10), 1 + 2);
    cr_assert_eq(lines_of(&ends, 64 << 10), 1 + 4);
    ends_close(&ends);
}

Test(shm, a_message_too_long_to_inject_is_refused)
{
    struct ends ends;
    unsigned char *data = ends_payload(SHM_EAGER_MAX + 1);

    ends_open(&ends, 2);
    cr_assert_eq(ends_inject(&ends, 0, 1, data, SHM_EAGER_MAX + 1), -EMSGSIZE);
    ends_close(&ends);
    free(data);
}

Test(shm, an_unknown_token_is_not_believed)
{
    struct ends ends;
    struct chempi_tx tx;
    unsigned char *data = ends_payload(50000);

    ends_open(&ends, 2);
    ends.end[1].wants_later = true;
    cr_assert_eq(
        ends_send(&ends, 0, 1, &tx, data, 50000, SHM_PROTOCOL_PIPELINE),
        CHEMPI_PENDING);
    ends_settle(&ends);
    cr_assert_eq(ends.end[1].later, 1);
    cr_assert_not(chempi_shm_ops.is_drained(ends.end[0].dev));
    cr_assert_eq(ends_accept(&ends, 1, 0), CHEMPI_PENDING);
    cr_assert_eq(ends_accept(&ends, 1, 0), -EINVAL);
    ends_settle(&ends);
    cr_assert_eq(ends_accept(&ends, 1, 0), -EINVAL);
    cr_assert_eq(ends.end[1].received, 1);
    cr_assert_eq(ends.end[0].sent, 1);
    cr_assert_eq(memcmp(ends.end[1].data, data, 50000), 0);
    cr_assert(chempi_shm_ops.is_drained(ends.end[0].dev));
    ends_close(&ends);
    free(data);
}
