/* SPDX-License-Identifier: BSD-3-Clause */
/* Tiny messages, several to a line (wire.h, R4). */
#include <criterion/criterion.h>
#include <string.h>

#include "libchempi/devices/shm/shm.h"
#include "tests/unit/shm/ends.h"

static int inject_numbered(struct ends *ends, uint32_t serial, size_t len)
{
    static unsigned char data[SHM_SHORT_MAX];
    const struct chempi_envelope env = {.len = len,
                                        .context = 3,
                                        .tag = 9,
                                        .serial = serial,
                                        .kind = CHEMPI_KIND_MESSAGE};

    memset(data, (int)(serial & 255), sizeof(data));
    return chempi_shm_ops.inject(&ends_ep(ends, 0, 1)->base, &env, data, len,
                                 false);
}

/* Devices that take a message at a time. */
static void open_single(struct ends *ends)
{
    static _Atomic uint64_t settings[SHM_SET_COUNT];

    for (size_t i = 0; i < SHM_SET_COUNT; i++)
        settings[i] = chempi_shm_panel.settings[i].initial;
    settings[SHM_SET_DRAIN] = 1;
    ends_prepare(ends, 2);
    for (uint32_t i = 0; i < 2; i++) {
        ends->end[i].settings = settings;
        cr_assert_eq(ends_open_one(ends, i), 0);
    }
    cr_assert_eq(inject_numbered(ends, 0, 0), 0);
    ends_settle(ends);
    cr_assert_eq(inject_numbered(ends, 1, 100), 0); /* ends a line */
    ends_settle(ends);
    cr_assert_eq(ends->end[1].received, 2);
}

static void expect_next(struct ends *ends, uint32_t serial, size_t len)
{
    struct end *end = &ends->end[1];
    uint32_t before = end->received;

    cr_assert(chempi_shm_ops.is_ready(end->dev));
    memset(end->data, 0xee, SHM_SHORT_MAX);
    cr_assert_eq(chempi_shm_ops.progress(end->dev), 1);
    cr_assert_eq(end->received, before + 1);
    cr_assert_eq(end->last.serial, serial);
    cr_assert_eq(end->last.len, len);
    cr_assert_eq(end->last.context, 3);
    cr_assert_eq(end->last.tag, 9);
    cr_assert_eq(end->last.kind, CHEMPI_KIND_MESSAGE);
    for (size_t i = 0; i < len; i++)
        cr_assert_eq(end->data[i], (unsigned char)serial);
}

static void expect_none(struct ends *ends)
{
    cr_assert_not(chempi_shm_ops.is_ready(ends->end[1].dev));
    cr_assert_eq(chempi_shm_ops.progress(ends->end[1].dev), 0);
}

Test(shm_tiny, a_line_holds_three_tiny_messages)
{
    struct ends ends;
    uint32_t before;

    open_single(&ends);
    before = ends_ep(&ends, 0, 1)->tx_head;
    for (uint32_t i = 0; i < 9; i++)
        cr_assert_eq(inject_numbered(&ends, 2 + i, i), 0);
    /* The last one is too long, and the line has three. */
    cr_assert_eq(ends_ep(&ends, 0, 1)->tx_head, before + 3);
    cr_assert_eq(inject_numbered(&ends, 11, 9), 0);
    cr_assert_eq(ends_ep(&ends, 0, 1)->tx_head, before + 4);
    for (uint32_t i = 0; i < 10; i++)
        expect_next(&ends, 2 + i, i);
    expect_none(&ends);
    ends_close(&ends);
}

/* Whether the receiver looks before, between or after them. */
Test(shm_tiny, tiny_messages_are_found_when_they_come)
{
    struct ends ends;
    uint32_t before;

    open_single(&ends);
    before = ends_ep(&ends, 0, 1)->tx_head;
    for (uint32_t i = 0; i < 12; i++) {
        cr_assert_eq(inject_numbered(&ends, 2 + 2 * i, 1 + i % 8), 0);
        expect_next(&ends, 2 + 2 * i, 1 + i % 8);
        expect_none(&ends);
        cr_assert_eq(inject_numbered(&ends, 3 + 2 * i, 8 - i % 8), 0);
        expect_next(&ends, 3 + 2 * i, 8 - i % 8);
        expect_none(&ends);
    }
    cr_assert_eq(ends_ep(&ends, 0, 1)->tx_head, before + 8);
    ends_close(&ends);
}

Test(shm_tiny, a_tiny_message_unlike_the_one_before_has_a_line_of_its_own)
{
    const struct chempi_envelope like = {.len = 3,
                                         .context = 3,
                                         .source = 1,
                                         .tag = 9,
                                         .serial = 50,
                                         .credit = 4,
                                         .kind = CHEMPI_KIND_MESSAGE,
                                         .lane = 1,
                                         .flags = 2};
    struct ends ends;
    struct shm_ep *ep;

    open_single(&ends);
    ep = ends_ep(&ends, 0, 1);
    for (uint32_t i = 0; i <= 8; i++) {
        struct chempi_envelope env = like;
        uint32_t before = ep->tx_head;

        env.context += i == 1;
        env.source += i == 2;
        env.tag += i == 3;
        env.serial += i == 4 ? 2 : 1;
        env.credit += i == 5;
        env.kind = i == 6 ? CHEMPI_KIND_SYNC : like.kind;
        env.lane = i == 7 ? 2 : like.lane;
        env.flags = i == 8 ? 1 : like.flags;
        cr_assert_eq(chempi_shm_ops.inject(&ep->base, &like, "abc", 3, false),
                     0);
        cr_assert_eq(ep->tx_head, before + 1);
        cr_assert_eq(chempi_shm_ops.inject(&ep->base, &env, "def", 3, false),
                     0);
        cr_assert_eq(ep->tx_head, before + 1 + (i > 0), "%u", i);
        ends_settle(&ends);
        cr_assert_eq(memcmp(&ends.end[1].last, &env, sizeof(env)), 0, "%u", i);
        cr_assert_eq(memcmp(ends.end[1].data, "def", 3), 0);
    }
    ends_close(&ends);
}

/* W3 */
Test(shm_tiny, a_tiny_message_after_an_answer_has_a_line_of_its_own)
{
    struct ends ends;
    struct shm_ep *ep;

    open_single(&ends);
    ep = ends_ep(&ends, 0, 1);
    for (uint32_t i = 0; i < 10; i++) {
        uint32_t before = ep->tx_head;

        cr_assert_eq(inject_numbered(&ends, 2 + i, 1), 0);
        cr_assert_eq(ep->tx_head, before + 1);
        expect_next(&ends, 2 + i, 1);
        cr_assert_eq(ends_inject(&ends, 1, 0, "x", 1), 0);
        ends_settle(&ends);
    }
    ends_close(&ends);
}

/* All that the ring holds, from each of its lines on, after the receiver has
 * said that it has taken all: it looks once more at the line that it took last,
 * which must not hold another message by then (R4). */
Test(shm_tiny, a_full_ring_keeps_the_line_that_was_taken_last)
{
    struct ends ends;
    struct shm_ep *ep;
    uint32_t serial = 2;
    uint32_t taken = 2;
    uint32_t lines;

    open_single(&ends);
    ep = ends_ep(&ends, 0, 1);
    lines = ep->line_mask + 1;
    for (uint32_t round = 0; round < lines; round++) {
        uint32_t count = 0;

        cr_assert_eq(inject_numbered(&ends, serial++, 1), 0);
        expect_next(&ends, taken++, 1);
        ep->tx_pair->taken.lines = ep->tx_head;
        ep->tx_tiny = NULL;
        while (inject_numbered(&ends, serial, 1) == 0) {
            serial++;
            count++;
        }
        cr_assert_eq(count, (lines - 1) * (1 + SHM_TINY_MORE));
        cr_assert_null(chempi_shm_eager_check(ep));
        while (taken < serial)
            expect_next(&ends, taken++, 1);
        ends_settle(&ends); /* room() */
    }
    ends_close(&ends);
}

Test(shm_tiny, a_tiny_message_without_room_is_announced_again)
{
    struct ends ends;
    struct end *to = &ends.end[1];

    open_single(&ends);
    for (uint32_t i = 0; i < 3; i++)
        cr_assert_eq(inject_numbered(&ends, 2 + i, 4), 0);
    cr_assert_eq(inject_numbered(&ends, 5, 20), 0);
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t before = to->received;

        to->refusals = 2;
        (void)chempi_shm_ops.progress(to->dev);
        (void)chempi_shm_ops.progress(to->dev);
        cr_assert_eq(to->refusals, 0);
        cr_assert_eq(to->received, before);
        expect_next(&ends, 2 + i, i < 3 ? 4 : 20);
    }
    expect_none(&ends);
    ends_close(&ends);
}

/* Of all lengths, taken at any time, through many laps. */
Test(shm_tiny, short_messages_of_any_length_stay_in_order)
{
    enum { COUNT = 40000 };
    static uint16_t lens[COUNT];
    struct ends ends;
    uint32_t random = 1;
    uint32_t sent = 2;
    uint32_t taken = 2;

    open_single(&ends);
    while (taken < COUNT) {
        random = random * 1664525u + 1013904223u;
        if (sent < COUNT && random >> 16 & 1) {
            lens[sent] = (uint16_t)((random >> 17) % (random >> 28 ? 12 : 280));
            if (inject_numbered(&ends, sent, lens[sent]) == 0) {
                sent++;
                continue;
            }
        }
        if (taken < sent)
            expect_next(&ends, taken, lens[taken]);
        else
            expect_none(&ends);
        taken += taken < sent;
        if (random >> 30 == 0)
            (void)chempi_shm_ops.progress(ends.end[0].dev);
        cr_assert_null(chempi_shm_eager_check(ends_ep(&ends, 0, 1)));
    }
    ends_close(&ends);
}
