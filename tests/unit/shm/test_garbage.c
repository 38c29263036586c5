/* SPDX-License-Identifier: BSD-3-Clause */
/* The shm device when a peer writes what it should not. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libchempi/devices/shm/shm.h"
#include "tests/unit/shm/ends.h"

/* The next line of 0's ring to 1, after contact was made. */
static struct shm_line *contact(struct ends *ends)
{
    ends_open(ends, 3);
    cr_assert_eq(ends_inject(ends, 0, 1, "x", 1), 0);
    cr_assert_eq(ends_inject(ends, 2, 1, "x", 1), 0);
    ends_settle(ends);
    cr_assert_eq(ends->end[1].received, 2);
    return shm_next_line(ends_ep(ends, 0, 1));
}

static void publish(struct ends *ends, struct shm_line *line)
{
    shm_publish(ends_ep(ends, 0, 1), line, false);
    ends_settle(ends);
}

/* The line was believed to be damage, and the others still work. */
static void expect_lost(struct ends *ends)
{
    cr_assert_eq(ends->end[1].lost, 1);
    cr_assert_eq(ends->end[1].lost_status, -EPROTO);
    cr_assert_neq(ends->end[1].lost_why[0], '\0');
    cr_assert_eq(ends_inject(ends, 1, 0, "x", 1), -ECONNRESET);
    cr_assert_eq(ends_inject(ends, 2, 1, "y", 1), 0);
    ends_settle(ends);
    cr_assert_eq(ends->end[1].received, 3);
    ends_close(ends);
}

static void put_short(struct shm_line *line, uint16_t len, uint8_t kind)
{
    const struct chempi_envelope env = {.kind = kind};

    line->kind = SHM_KIND_SHORT;
    line->len = len;
    memcpy(line->body.brief.tail, (const char *)&env + SHM_ENVELOPE_TAIL,
           sizeof(line->body.brief.tail));
}

Test(shm_garbage, a_short_message_that_is_too_long)
{
    struct ends ends;
    struct shm_line *line = contact(&ends);

    put_short(line, SHM_SHORT_MAX + 1, CHEMPI_KIND_MESSAGE);
    publish(&ends, line);
    expect_lost(&ends);
}

Test(shm_garbage, a_tiny_message_that_is_too_long)
{
    static const uint32_t marks[] = {SHM_TINY_MAX + 2, UINT32_MAX};

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(marks); i++) {
        for (size_t at = 0; at < SHM_TINY_MORE; at++) {
            struct ends ends;
            struct shm_line *line = contact(&ends) - 1;

            for (size_t k = 0; k < at; k++)
                line->body.brief.u.tiny.more[k].mark = 1;
            line->body.brief.u.tiny.more[at].mark = marks[i];
            ends_settle(&ends);
            cr_assert_eq(ends.end[1].received, 2 + at);
            ends.end[1].received = 2; /* as after contact() */
            expect_lost(&ends);
        }
    }
}

Test(shm_garbage, a_short_message_that_runs_over_the_end_of_the_ring)
{
    struct shm_line *line;
    struct shm_ep *ep;
    struct ends ends;

    (void)contact(&ends);
    ep = ends_ep(&ends, 0, 1);
    while ((ep->tx_head & ep->line_mask) != ep->line_mask) {
        cr_assert_eq(ends_inject(&ends, 0, 1, "x", 1), 0);
        ends_settle(&ends);
    }
    ends.end[1].received = 2; /* as after contact() */
    line = shm_next_line(ep);
    put_short(line, SHM_INLINE_MAX + 1, CHEMPI_KIND_MESSAGE);
    publish(&ends, line);
    expect_lost(&ends);
}

Test(shm_garbage, messages_and_lines_of_unknown_kind)
{
    struct ends ends;
    struct shm_line *line = contact(&ends);

    put_short(line, 1, 77);
    publish(&ends, line);
    expect_lost(&ends);
    line = contact(&ends);
    line->kind = UINT16_MAX;
    publish(&ends, line);
    expect_lost(&ends);
    line = contact(&ends);
    line->kind = 0;
    publish(&ends, line);
    expect_lost(&ends);
}

Test(shm_garbage, spans_that_leave_the_data)
{
    static const struct shm_span spans[] = {
        {.pos = 0, .len = 0},          {.pos = 0, .len = 1u << 31},
        {.pos = 0, .len = UINT32_MAX}, {.pos = 256 * 1024 - 64, .len = 65},
        {.pos = UINT32_MAX, .len = 2}, {.pos = 0, .len = 65 * 1024},
    };

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(spans); i++) {
        struct ends ends;
        struct shm_line *line = contact(&ends);

        line->kind = SHM_KIND_EAGER;
        line->body.msg.env = (struct chempi_envelope){
            .len = spans[i].len, .kind = CHEMPI_KIND_MESSAGE};
        line->body.msg.u.span = spans[i];
        publish(&ends, line);
        expect_lost(&ends);
    }
}

Test(shm_garbage, an_eager_length_that_differs_from_its_envelope)
{
    struct ends ends;
    struct shm_line *line = contact(&ends);

    line->kind = SHM_KIND_EAGER;
    line->body.msg.env =
        (struct chempi_envelope){.len = 1u << 30, .kind = CHEMPI_KIND_MESSAGE};
    line->body.msg.u.span = (struct shm_span){.pos = 0, .len = 100};
    publish(&ends, line);
    expect_lost(&ends);
}

static void put_first(struct shm_line *line, uint64_t len, uint32_t piece)
{
    line->kind = SHM_KIND_EAGER;
    line->body.msg.env =
        (struct chempi_envelope){.len = len, .kind = CHEMPI_KIND_MESSAGE};
    line->body.msg.u.span = (struct shm_span){.pos = 0, .len = piece};
}

static struct shm_line *next_line(struct ends *ends)
{
    return shm_next_line(ends_ep(ends, 0, 1));
}

Test(shm_garbage, pieces_of_no_message)
{
    static const uint32_t lens[] = {0, 201, UINT32_MAX};
    struct ends ends;
    struct shm_line *line = contact(&ends);

    line->kind = SHM_KIND_MORE;
    line->body.more = (struct shm_span){.pos = 0, .len = 1};
    publish(&ends, line);
    expect_lost(&ends);
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(lens); i++) {
        line = contact(&ends);
        put_first(line, 300, 100);
        publish(&ends, line);
        cr_assert_eq(ends.end[1].lost, 0);
        line = next_line(&ends);
        line->kind = SHM_KIND_MORE;
        line->body.more = (struct shm_span){.pos = 128, .len = lens[i]};
        publish(&ends, line);
        cr_assert_eq(ends.end[1].failed, 1);
        expect_lost(&ends);
    }
}

Test(shm_garbage, a_message_that_begins_between_the_pieces_of_another)
{
    struct ends ends;

    put_first(contact(&ends), 300, 100);
    publish(&ends, next_line(&ends));
    put_first(next_line(&ends), 300, 100);
    publish(&ends, next_line(&ends));
    cr_assert_eq(ends.end[1].failed, 1);
    expect_lost(&ends);
}

/* It has said that there is room, and then says that there never was. */
Test(shm_garbage, a_receiver_that_takes_back_room_between_pieces)
{
    unsigned char *data = ends_payload(SHM_EAGER_MAX);
    struct ends ends;
    struct shm_ep *ep;

    ends_open(&ends, 2);
    ep = ends_ep(&ends, 0, 1);
    atomic_store(&ep->wake->order, CHEMPI_WAKE_ORDER_NONE);
    cr_assert_eq(ends_inject(&ends, 0, 1, data, SHM_EAGER_MAX), 0);
    ends_settle(&ends);
    atomic_store(&ep->tx_pair->taken.data,
                 ep->data_head - 2 * shm_dev_of(ep)->data_size);
    cr_assert_eq(ends_inject(&ends, 0, 1, data, SHM_EAGER_MAX), -ECONNRESET);
    ends_settle(&ends);
    cr_assert_eq(ends.end[0].lost, 1);
    cr_assert_not_null(strstr(ends.end[0].lost_why, "took less"));
    cr_assert_null(chempi_shm_eager_check(ep));
    ends_close(&ends);
    free(data);
}

/* It has taken less than there was room for, or goes back on its word. */
Test(shm_garbage, less_taken_than_leaves_room_for_what_was_sent)
{
    for (int i = 0; i < 2; i++) {
        struct ends ends;
        struct shm_ep *ep;
        uint32_t size;

        (void)contact(&ends);
        ep = ends_ep(&ends, 0, 1);
        size = shm_dev_of(ep)->data_size;
        atomic_store(&ep->tx_pair->taken.data,
                     ep->data_head - (i == 0 ? size + 1 : 2 * size));
        chempi_shm_eager_refresh(ep);
        cr_assert_null(chempi_shm_eager_check(ep));
        ends_settle(&ends);
        cr_assert_eq(ends.end[0].lost, 1);
        cr_assert_not_null(strstr(ends.end[0].lost_why, "took less"));
        ends_close(&ends);
    }
}

Test(shm_garbage, answers_to_nothing)
{
    static const uint16_t kinds[] = {SHM_KIND_CTS, SHM_KIND_HELP, SHM_KIND_DATA,
                                     SHM_KIND_FIN};

    for (size_t k = 0; k < CHEMPI_ARRAY_LEN(kinds); k++) {
        for (uint64_t id = 0; id < 3; id++) {
            struct ends ends;
            struct shm_line *line = contact(&ends);

            memset(&line->body, 0x11, sizeof(line->body));
            line->kind = kinds[k];
            line->body.fin.id = id == 2 ? UINT64_MAX : id << 32;
            publish(&ends, line);
            expect_lost(&ends);
        }
    }
}

/* 1 has an outgoing transfer to 0, which answers it with nonsense. */
static void answer(uint16_t kind, struct shm_cts cts, struct shm_help help)
{
    struct ends ends;
    struct chempi_tx tx;
    unsigned char *data = ends_payload(200000);
    struct shm_line *line;

    (void)contact(&ends);
    ends.end[0].wants_later = true;
    cr_assert_eq(
        ends_send(&ends, 1, 0, &tx, data, 200000, SHM_PROTOCOL_SINGLE_COPY),
        CHEMPI_PENDING);
    ends_settle(&ends);
    line = shm_next_line(ends_ep(&ends, 0, 1));
    line->kind = kind;
    cts.id = help.id = (uint64_t)1 << 32; /* the first transfer */
    if (kind == SHM_KIND_CTS)
        line->body.cts = cts;
    else
        line->body.help = help;
    publish(&ends, line);
    cr_assert_eq(ends.end[1].sent_failed, 1);
    expect_lost(&ends);
    free(data);
}

Test(shm_garbage, requests_for_data_beyond_the_message)
{
    static const struct shm_help none;

    answer(SHM_KIND_CTS, (struct shm_cts){.want = 200001}, none);
    answer(SHM_KIND_CTS, (struct shm_cts){.want = UINT64_MAX}, none);
    answer(SHM_KIND_CTS, (struct shm_cts){.want = 0}, none);
    answer(SHM_KIND_CTS, (struct shm_cts){.from = 5, .want = 5}, none);
    answer(SHM_KIND_CTS, (struct shm_cts){.from = 9, .want = 5}, none);
}

Test(shm_garbage, requests_for_help_beyond_the_message)
{
    static const struct shm_cts none;

    answer(SHM_KIND_HELP, none, (struct shm_help){.addr = 16, .want = 0});
    answer(SHM_KIND_HELP, none,
           (struct shm_help){.addr = 16, .want = UINT64_MAX});
}

Test(shm_garbage, more_taken_than_was_sent)
{
    struct ends ends;
    struct shm_ep *ep;
    int rc;

    (void)contact(&ends);
    ep = ends_ep(&ends, 1, 0);
    cr_assert_eq(ends_inject(&ends, 1, 0, "x", 1), 0);
    ep->tx_pair->taken.lines = 500; /* 1 trusts 0 with this */
    while ((rc = ends_inject(&ends, 1, 0, "x", 1)) == 0)
        ;
    cr_assert(rc == -EAGAIN || rc == -ECONNRESET);
    ends_settle(&ends);
    cr_assert_eq(ends.end[1].lost, 1);
    cr_assert_eq(ends.end[1].lost_status, -EPROTO);
    ends_close(&ends);
}

/* As if it had not taken the line that is never in use (R4). */
Test(shm_garbage, less_taken_than_was_said)
{
    struct ends ends;
    struct shm_ep *ep;

    (void)contact(&ends);
    ep = ends_ep(&ends, 1, 0);
    while (ends_inject(&ends, 1, 0, "x", 1) == 0)
        ;
    ep->tx_pair->taken.lines = ep->tx_head - (ep->line_mask + 1);
    (void)chempi_shm_ops.progress(ends.end[1].dev);
    cr_assert_eq(ends.end[1].lost, 1);
    cr_assert_eq(ends.end[1].lost_status, -EPROTO);
    ends_close(&ends);
}

Test(shm_garbage, bells_of_nobody_are_ignored)
{
    struct ends ends;
    struct shm_dev *dev;

    (void)contact(&ends);
    dev = (struct shm_dev *)ends.end[1].dev;
    for (uint32_t w = 0; w < SHM_BELL_WORDS; w++)
        dev->inbox->words[w] = UINT64_MAX;
    dev->inbox->summary = UINT64_MAX;
    ends_settle(&ends);
    cr_assert_eq(ends.end[1].lost, 0);
    cr_assert_eq(ends_inject(&ends, 0, 1, "x", 1), 0);
    ends_settle(&ends);
    cr_assert_eq(ends.end[1].received, 3);
    ends_close(&ends);
}

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Lines of plausible kinds with arbitrary contents never do harm. */
Test(shm_garbage, arbitrary_lines, .timeout = 100)
{
    uint32_t random = 7;

    for (int round = 0; round < 300; round++) {
        struct ends ends;
        struct chempi_tx tx;
        unsigned char *data = ends_payload(100000);

        (void)contact(&ends);
        ends.end[0].wants_later = true;
        cr_assert_eq(
            ends_send(&ends, 1, 0, &tx, data, 100000, SHM_PROTOCOL_PIPELINE),
            CHEMPI_PENDING);
        for (int i = 0; i < 20 && ends.end[1].lost == 0; i++) {
            struct shm_line *line = shm_next_line(ends_ep(&ends, 0, 1));
            unsigned char *bytes = (unsigned char *)&line->body;

            for (size_t b = 0; b < sizeof(line->body); b++)
                bytes[b] = (unsigned char)(next_random(&random) % 4
                                               ? 0
                                               : next_random(&random));
            line->kind = (uint16_t)(1 + next_random(&random) % SHM_KIND_FIN);
            line->len = (uint16_t)next_random(&random);
            if (line->kind == SHM_KIND_RTS)
                line->body.msg.u.rts.addr = 0;
            publish(&ends, line);
        }
        ends_close(&ends);
        free(data);
    }
}

/* A copy of eight chunks that both sides share, of which the receiver has had
 * two, and the sender none: then the word of its claims is written over. */
static void damage_claims(uint32_t claimed, bool can_help)
{
    struct ends ends;
    struct chempi_tx tx;
    struct shm_share *share;
    _Atomic uint64_t settings[SHM_SET_COUNT];
    unsigned char *data = ends_payload(ENDS_DATA_MAX);

    for (size_t i = 0; i < SHM_SET_COUNT; i++)
        settings[i] = chempi_shm_panel.settings[i].initial;
    settings[SHM_SET_SLICE] = ENDS_DATA_MAX / 4;
    (void)contact(&ends);
    ends.end[1].dev->params.settings = settings;
    cr_assert_eq(ends_send(&ends, 0, 1, &tx, data, ENDS_DATA_MAX,
                           SHM_PROTOCOL_SINGLE_COPY),
                 CHEMPI_PENDING);
    ends.end[1].wants_later = true;
    (void)chempi_shm_ops.progress(ends.end[1].dev);
    cr_assert_eq(ends_accept(&ends, 1, 0), CHEMPI_PENDING);
    (void)chempi_shm_ops.progress(ends.end[1].dev);
    if (!can_help)
        ends_ep(&ends, 0, 1)->cma = SHM_CMA_REFUSED;
    share = &ends_ep(&ends, 0, 1)->tx_pair->shares[0];
    cr_assert_eq(atomic_exchange(&share->claimed, claimed), 2);
    (void)chempi_shm_ops.progress(ends.end[1].dev);
    ends_settle(&ends);
    cr_assert_eq(ends.end[1].lost, 1);
    cr_assert_eq(ends.end[1].lost_status, -EPROTO);
    ends_close(&ends);
    free(data);
}

Test(shm_garbage, a_count_of_claimed_chunks_that_shrinks)
{
    damage_claims(0, true);
}

Test(shm_garbage, a_count_of_claimed_chunks_that_leaps_ahead)
{
    damage_claims(5, true);
    damage_claims(5, false);
    damage_claims(1u << 20, true);
    damage_claims(1u << 20, false);
    damage_claims(UINT32_MAX - 1000, true);
}
