/* SPDX-License-Identifier: BSD-3-Clause */
/* Single copy where one side or both are not contiguous. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libchempi/devices/shm/shm.h"
#include "libchempi/services/layout/layout.h"
#include "tests/unit/base/rig.h"
#include "tests/unit/shm/ends.h"

#define LEN (UINT64_C(512) << 10) /* bytes of a message */
#define GAP 48u                   /* bytes between two blocks */

/* LEN bytes in blocks; block LEN: contiguous. */
struct shape {
    uint64_t block;
    unsigned char *mem;
    struct chempi_layout layout;
    struct chempi_segment iter;
};

static unsigned char *byte_of(const struct shape *s, uint64_t i)
{
    return s->mem + i / s->block * (s->block + GAP) + i % s->block;
}

static void shape_open(struct shape *s, uint64_t block)
{
    uint64_t count = LEN / block;

    s->block = block;
    s->mem = calloc(count, block + GAP);
    cr_assert_not_null(s->mem);
    s->layout.root = chempi_layout_block(0, block);
    s->layout.size = block;
    s->layout.extent = (int64_t)(block + GAP);
    chempi_segment_init(&s->iter, s->mem, count, &s->layout);
}

static void shape_close(struct shape *s)
{
    chempi_layout_release(s->layout.root);
    free(s->mem);
}

/* Both ends of a message from 0 to 1. */
struct talk {
    struct ends ends;
    struct shape from;
    struct shape to;
    struct chempi_tx tx;
    uint32_t protocol;
};

static unsigned char value(uint64_t i)
{
    return (unsigned char)(i * 13 + (i >> 11) + 1);
}

static void talk_open(struct talk *t, uint64_t from, uint64_t to)
{
    memset(t, 0, sizeof(*t));
    ends_open(&t->ends, 2);
    shape_open(&t->from, from);
    shape_open(&t->to, to);
    for (uint64_t i = 0; i < LEN; i++)
        *byte_of(&t->from, i) = value(i);
    t->protocol = SHM_PROTOCOL_SINGLE_COPY;
    /* For the receiver a single copy is cheaper, and this is known. */
    ends_ep(&t->ends, 1, 0)->prices[SHM_PRICES - 1] = (struct shm_price){
        .in = 1u << 30, .out = 1u << 30, .copy = 1, .turns = 17};
}

static void talk_close(struct talk *t)
{
    cr_assert(chempi_shm_ops.is_drained(t->ends.end[0].dev));
    cr_assert(chempi_shm_ops.is_drained(t->ends.end[1].dev));
    cr_assert_eq(ends_ep(&t->ends, 0, 1)->shares_used, 0);
    ends_close(&t->ends);
    shape_close(&t->from);
    shape_close(&t->to);
}

static int talk_send(struct talk *t)
{
    struct end *receiver = &t->ends.end[1];
    bool is_whole = t->from.block == LEN;

    chempi_segment_seek(&t->from.iter, 0);
    chempi_segment_seek(&t->to.iter, 0);
    free(receiver->data);
    receiver->data = calloc(1, ENDS_DATA_MAX);
    receiver->into = t->to.block == LEN ? NULL : &t->to.iter;
    for (uint64_t i = 0; i < LEN; i++)
        *byte_of(&t->to, i) = 0;
    t->tx = (struct chempi_tx){
        .env = {.len = LEN, .kind = CHEMPI_KIND_MESSAGE},
        .buf = is_whole ? t->from.mem : NULL,
        .iter = is_whole ? NULL : &t->from.iter,
        .protocol = t->protocol,
    };
    return chempi_shm_ops.send(t->ends.end[0].eps[1], &t->tx);
}

/* What was wanted of the message is there, and nothing else. */
static void talk_expect(struct talk *t, uint32_t received)
{
    struct end *receiver = &t->ends.end[1];

    cr_assert_eq(receiver->received, received);
    cr_assert_eq(t->ends.end[0].sent, received);
    cr_assert_eq(t->ends.end[0].lost + receiver->lost, 0);
    for (uint64_t i = 0; i < LEN; i++) {
        unsigned char got =
            receiver->into ? *byte_of(&t->to, i) : receiver->data[i];

        cr_assert_eq(got, i < receiver->cap ? value(i) : 0, "byte %llu",
                     (unsigned long long)i);
    }
}

static void talk_once(struct talk *t, uint32_t received)
{
    cr_assert_eq(talk_send(t), CHEMPI_PENDING);
    ends_settle(&t->ends);
    talk_expect(t, received);
}

/* The receiver accepts, then stands still while the sender helps; then the
 * other way round with the second message. */
static void talk_shared(struct talk *t)
{
    struct end *receiver = &t->ends.end[1];

    for (uint32_t i = 0; i < 2; i++) {
        cr_assert_eq(talk_send(t), CHEMPI_PENDING);
        receiver->wants_later = true;
        (void)chempi_shm_ops.progress(receiver->dev);
        cr_assert_eq(ends_accept(&t->ends, 1, i), CHEMPI_PENDING);
        while (chempi_shm_ops.progress(t->ends.end[i].dev) > 0)
            ;
        ends_settle(&t->ends);
        talk_expect(t, i + 1);
    }
}

static uint64_t gauge_shared(struct talk *t)
{
    return ((struct shm_dev *)t->ends.end[1].dev)->shared;
}

Test(shm_form, both_sides_copy_any_long_blocks)
{
    static const uint64_t blocks[] = {LEN, 4096, 8192, LEN / 2};

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(blocks); i++) {
        for (size_t k = 0; k < CHEMPI_ARRAY_LEN(blocks); k++) {
            struct talk t;

            talk_open(&t, blocks[i], blocks[k]);
            rig_fail(RIG_WRITEV, 0, 0, 0);
            talk_shared(&t);
            cr_assert(rig_calls() > 0);
            rig_reset();
            cr_assert_eq(
                t.ends.end[1].dev->received[SHM_PROTOCOL_SINGLE_COPY].messages,
                2);
            cr_assert_eq(gauge_shared(&t), 2);
            talk_close(&t);
        }
    }
}

Test(shm_form, short_blocks_of_the_sender_take_the_ring)
{
    struct talk t;

    talk_open(&t, 1024, 8192);
    talk_once(&t, 1);
    cr_assert_eq(t.ends.end[1].last_protocol, SHM_PROTOCOL_PIPELINE);
    talk_close(&t);
}

Test(shm_form, short_blocks_of_the_receiver_are_filled_by_it_alone)
{
    struct talk t;

    talk_open(&t, 4096, 64);
    talk_shared(&t);
    cr_assert_eq(t.ends.end[1].last_protocol, SHM_PROTOCOL_SINGLE_COPY);
    cr_assert_eq(gauge_shared(&t), 0);
    talk_close(&t);
}

Test(shm_form, a_connection_table_that_says_pipeline_is_followed)
{
    struct talk t;

    talk_open(&t, 8192, 8192);
    t.protocol = SHM_PROTOCOL_PIPELINE;
    for (int i = 0; i < 2; i++)
        ((struct shm_dev *)t.ends.end[i].dev)->is_fixed = true;
    talk_once(&t, 1);
    cr_assert_eq(t.ends.end[1].last_protocol, SHM_PROTOCOL_PIPELINE);
    talk_close(&t);
}

Test(shm_form, no_more_is_written_than_the_receiver_takes)
{
    static const uint64_t caps[] = {100, 70000, LEN - 1};

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(caps); i++) {
        struct talk t;

        talk_open(&t, 4096, 8192);
        t.ends.end[1].cap = caps[i];
        talk_shared(&t);
        talk_close(&t);
    }
}

/* Two messages arrive while a call fails, or that and all later ones. */
static void talk_while(enum rig_call call, unsigned nth, int error,
                       bool is_lasting)
{
    struct talk t;

    talk_open(&t, 4096, 8192);
    for (uint32_t i = 0; i < 2; i++) {
        rig_fail(call, nth, error, is_lasting);
        talk_once(&t, i + 1);
    }
    rig_reset();
    talk_close(&t);
}

Test(shm_form, single_copy_refused_at_any_time_goes_through_the_ring)
{
    for (unsigned nth = 1; nth <= 10; nth++) {
        talk_while(RIG_READV, nth, EPERM, true);
        talk_while(RIG_READV, nth, EPERM, false);
        talk_while(RIG_READV, nth, EFAULT, false);
        talk_while(RIG_WRITEV, nth, EPERM, true);
    }
}

/* The transfers of both sides take three of the calls. */
Test(shm_form, without_memory_for_descriptions_the_ring_is_taken)
{
    for (unsigned nth = 1; nth <= 12; nth++) {
        struct talk t;
        int rc;

        talk_open(&t, 4096, 8192);
        talk_once(&t, 1);
        rig_fail(RIG_MALLOC, nth, ENOMEM, 0);
        rc = talk_send(&t);
        ends_settle(&t.ends);
        rig_reset();
        if (rc == CHEMPI_PENDING && t.ends.end[1].lost == 0)
            talk_expect(&t, 2);
        else
            cr_assert(nth <= 6, "call %u is one of a description", nth);
        ends_close(&t.ends);
        shape_close(&t.from);
        shape_close(&t.to);
    }
}

/* The words that the peer reads are nonsense, or say that the payload lies
 * elsewhere: a message arrives all the same, its contents are the sender's. */
Test(shm_form, descriptions_of_anything_do_no_harm)
{
    static const uint64_t words[] = {0, 5, 77, LEN / 2, UINT64_MAX};

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(words); i++) {
        for (size_t at = 1; at <= 7; at++) {
            struct talk t;
            uint32_t place = 0;
            struct shm_xfer *xfer;

            talk_open(&t, 8192, 4096);
            cr_assert_eq(talk_send(&t), CHEMPI_PENDING);
            xfer = chempi_handle_table_next(
                &((struct shm_dev *)t.ends.end[0].dev)->rndv.xfers, &place);
            cr_assert_not_null(xfer);
            cr_assert_not_null(xfer->own_form);
            xfer->own_form[at] = words[i];
            ends_settle(&t.ends);
            cr_assert_eq(t.ends.end[1].received, 1);
            talk_close(&t);
        }
    }
}
