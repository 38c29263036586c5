/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames sealed between ranks: what gateways can do to them. */
#define _GNU_SOURCE /* memmem */
#include <errno.h>
#include <string.h>

#include <criterion/criterion.h>

#include "libchempi/neighbors/seal.h"

#define TEXT "open-sesame-4711"
#define ROOM (CHEMPI_NEIGHBOR_FIXED_MAX + 64 + CHEMPI_NEIGHBOR_SEAL_BYTES)

static const uint8_t job_key[CHEMPI_NEIGHBOR_SEAL_KEY] = {1, 2, 3};
static struct chempi_neighbor_seal a; /* rank 3 */
static struct chempi_neighbor_seal b; /* rank 4 */
static uint8_t opened[ROOM];
static const char *why;

static void set_up(void)
{
    chempi_neighbor_seal_init(&a, job_key, 3, 4);
    chempi_neighbor_seal_init(&b, job_key, 4, 3);
}

TestSuite(routed_seal, .init = set_up);

/* What 3 writes for 4, as it is before it is sealed. */
static size_t write_frame(uint8_t out[ROOM], uint8_t kind, uint64_t seq,
                          uint64_t ack)
{
    const struct chempi_neighbor_frame f = {
        .kind = kind,
        .gateway_count = 2,
        .src = 3,
        .dst = 4,
        .seq = (uint32_t)seq,
        .ack = (uint32_t)ack,
        .gateways = {8, 9},
        .env = {.len = sizeof(TEXT), .tag = 77, .kind = CHEMPI_KIND_MESSAGE},
    };
    size_t len = chempi_neighbor_frame_put(out, &f);

    if (kind != CHEMPI_NEIGHBOR_EAGER)
        return len;
    memcpy(out + len, TEXT, sizeof(TEXT));
    return len + sizeof(TEXT);
}

static size_t seal(uint8_t out[ROOM], uint8_t kind, uint64_t seq, uint64_t ack)
{
    const size_t len = write_frame(out, kind, seq, ack);

    chempi_neighbor_seal_put(&a, out, len, seq, ack);
    return len + CHEMPI_NEIGHBOR_SEAL_BYTES;
}

static int get(const uint8_t *frame, size_t len)
{
    return chempi_neighbor_seal_get(&b, frame, len, 0, 0, opened, &why);
}

Test(routed_seal, what_is_sealed_opens_at_its_receiver_as_it_was)
{
    for (uint8_t kind = CHEMPI_NEIGHBOR_EAGER; kind <= CHEMPI_NEIGHBOR_ACK;
         kind++) {
        const uint64_t seq = chempi_neighbor_is_numbered(kind) ? 5 : 0;
        uint8_t plain[ROOM];
        uint8_t frame[ROOM];
        const size_t plain_len = write_frame(plain, kind, seq, 6);
        const size_t len = seal(frame, kind, seq, 6);

        chempi_neighbor_frame_set_at(frame, 2); /* as gateways do */
        chempi_neighbor_frame_set_at(plain, 2);
        cr_assert_eq(get(frame, len), (int)plain_len, "kind %d", kind);
        cr_assert_eq(memcmp(opened, plain, plain_len), 0, "kind %d", kind);
    }
}

Test(routed_seal, gateways_read_the_way_and_nothing_else)
{
    const struct chempi_envelope env = {.tag = 77};
    uint8_t frame[ROOM];
    const size_t len = seal(frame, CHEMPI_NEIGHBOR_EAGER, 5, 6);
    struct chempi_neighbor_frame f;

    cr_assert_gt(chempi_neighbor_frame_head(frame, len, &f, &why), 0);
    cr_assert_eq(f.gateways[1], 9);
    cr_assert_eq(f.dst, 4);
    cr_assert_eq(chempi_neighbor_frame_get(frame, len, &f, &why), -EPROTO);
    cr_assert_null(memmem(frame, len, TEXT, sizeof(TEXT) - 1));
    cr_assert_null(memmem(frame, len, &env.tag, sizeof(env.tag)));
}

Test(routed_seal, a_changed_bit_does_not_open_wherever_it_is)
{
    uint8_t frame[ROOM];
    const size_t len = seal(frame, CHEMPI_NEIGHBOR_EAGER, 5, 6);
    const size_t at = offsetof(struct chempi_neighbor_wire, at);

    for (size_t i = 0; i < len; i++)
        for (int bit = 0; bit < 8; bit++) {
            frame[i] ^= (uint8_t)(1u << bit);
            if (i != at)
                cr_assert_eq(get(frame, len), -EBADMSG, "%zu.%d", i, bit);
            frame[i] ^= (uint8_t)(1u << bit);
        }
    cr_assert_gt(get(frame, len), 0);
}

Test(routed_seal, a_frame_that_is_cut_does_not_open)
{
    uint8_t frame[ROOM];
    const size_t len = seal(frame, CHEMPI_NEIGHBOR_EAGER, 5, 6);

    for (size_t n = 0; n < len; n++)
        cr_assert_eq(get(frame, n), -EBADMSG, "%zu bytes", n);
}

Test(routed_seal, a_frame_in_clear_does_not_open)
{
    uint8_t frame[ROOM];
    const size_t len = write_frame(frame, CHEMPI_NEIGHBOR_EAGER, 5, 6);

    cr_assert_eq(get(frame, len), -EBADMSG);
    cr_assert_eq(get(frame, len + CHEMPI_NEIGHBOR_SEAL_BYTES), -EBADMSG);
}

Test(routed_seal, a_frame_opens_once)
{
    uint8_t first[ROOM];
    uint8_t second[ROOM];
    const size_t len = seal(first, CHEMPI_NEIGHBOR_EAGER, 5, 6);

    (void)seal(second, CHEMPI_NEIGHBOR_EAGER, 6, 6);
    cr_assert_gt(get(second, len), 0); /* in any order */
    cr_assert_gt(get(first, len), 0);
    cr_assert_eq(get(first, len), -EALREADY);
    cr_assert_eq(get(second, len), -EALREADY);
}

Test(routed_seal, a_frame_that_is_left_opens_again)
{
    static uint8_t frames[CHEMPI_NEIGHBOR_SEAL_SEEN + 2][ROOM];
    const uint32_t n = CHEMPI_NEIGHBOR_SEAL_SEEN;
    size_t len = 0;

    for (uint32_t i = 0; i < n + 2; i++)
        len = seal(frames[i], CHEMPI_NEIGHBOR_ACK, 0, 0);
    cr_assert_gt(get(frames[1], len), 0);
    cr_assert_gt(get(frames[0], len), 0);
    chempi_neighbor_seal_unget(&b, frames[0], len);
    cr_assert_eq(get(frames[1], len), -EALREADY);
    cr_assert_gt(get(frames[0], len), 0);
    cr_assert_eq(get(frames[0], len), -EALREADY);
    cr_assert_gt(get(frames[n + 1], len), 0);
    cr_assert_gt(get(frames[n], len), 0);
    chempi_neighbor_seal_unget(&b, frames[0], len); /* one too old to tell */
    cr_assert_eq(get(frames[n], len), -EALREADY);
}

Test(routed_seal, counts_are_remembered_for_as_long_as_it_says)
{
    static uint8_t frames[3 * CHEMPI_NEIGHBOR_SEAL_SEEN][ROOM];
    const uint32_t n = CHEMPI_NEIGHBOR_SEAL_SEEN;
    size_t len = 0;

    for (uint32_t i = 0; i < 3 * n; i++)
        len = seal(frames[i], CHEMPI_NEIGHBOR_ACK, 0, 0);
    for (uint32_t i = 0; i < n; i += 2)
        cr_assert_gt(get(frames[i], len), 0);
    for (uint32_t i = 1; i < n; i += 2)
        cr_assert_gt(get(frames[i], len), 0, "late %u", i);
    for (uint32_t i = 0; i < n; i++)
        cr_assert_eq(get(frames[i], len), -EALREADY, "%u", i);
    cr_assert_gt(get(frames[2 * n - 1], len), 0); /* a jump */
    for (uint32_t i = n; i < 2 * n - 1; i++)
        cr_assert_gt(get(frames[i], len), 0, "late %u", i);
    for (uint32_t i = n; i < 2 * n; i++)
        cr_assert_eq(get(frames[i], len), -EALREADY, "%u", i);
    cr_assert_gt(get(frames[3 * n - 1], len), 0);
    cr_assert_eq(get(frames[3 * n - 1], len), -EALREADY);
}

Test(routed_seal, a_frame_is_no_use_for_others)
{
    struct chempi_neighbor_seal other;
    uint8_t other_key[CHEMPI_NEIGHBOR_SEAL_KEY] = {1, 2, 4};
    uint8_t frame[ROOM];
    const size_t len = seal(frame, CHEMPI_NEIGHBOR_EAGER, 5, 6);

    /* Its sender, to whom it is sent back. */
    cr_assert_eq(chempi_neighbor_seal_get(&a, frame, len, 0, 0, opened, &why),
                 -EBADMSG);
    /* Another receiver, another sender, another job. */
    chempi_neighbor_seal_init(&other, job_key, 5, 3);
    cr_assert_eq(
        chempi_neighbor_seal_get(&other, frame, len, 0, 0, opened, &why),
        -EBADMSG);
    chempi_neighbor_seal_init(&other, job_key, 4, 5);
    cr_assert_eq(
        chempi_neighbor_seal_get(&other, frame, len, 0, 0, opened, &why),
        -EBADMSG);
    chempi_neighbor_seal_init(&other, other_key, 4, 3);
    cr_assert_eq(
        chempi_neighbor_seal_get(&other, frame, len, 0, 0, opened, &why),
        -EBADMSG);
    cr_assert_gt(get(frame, len), 0);
}

/* Numbers begin anew after 2^32 frames, what is authenticated does not. */
Test(routed_seal, a_frame_of_the_last_round_does_not_open_in_this_one)
{
    const uint64_t round = UINT64_C(1) << 32;
    uint8_t frame[ROOM];
    size_t len = seal(frame, CHEMPI_NEIGHBOR_EAGER, 5, 6);

    cr_assert_eq(
        chempi_neighbor_seal_get(&b, frame, len, round + 3, 6, opened, &why),
        -EBADMSG);
    cr_assert_eq(
        chempi_neighbor_seal_get(&b, frame, len, 3, round + 6, opened, &why),
        -EBADMSG);
    cr_assert_gt(get(frame, len), 0);
    len = seal(frame, CHEMPI_NEIGHBOR_EAGER, round - 1, round + 1);
    cr_assert_gt(chempi_neighbor_seal_get(&b, frame, len, round + 1, round - 1,
                                          opened, &why),
                 0);
}

/* As after the loss of a gateway. */
Test(routed_seal, what_is_sent_again_has_another_nonce)
{
    uint8_t frame[ROOM];
    uint8_t again[ROOM];
    const size_t len = seal(frame, CHEMPI_NEIGHBOR_EAGER, 5, 6);
    const int n = chempi_neighbor_seal_undo(&a, frame, len, 9, 8, again);

    cr_assert_eq(n, (int)(len - CHEMPI_NEIGHBOR_SEAL_BYTES));
    cr_assert_not_null(memmem(again, (size_t)n, TEXT, sizeof(TEXT) - 1));
    chempi_neighbor_seal_put(&a, again, (size_t)n, 5, 6);
    cr_assert_neq(memcmp(again + len - 8, frame + len - 8, 8), 0);
    cr_assert_neq(memcmp(again, frame, len - 8), 0);
    cr_assert_gt(get(again, len), 0);
    cr_assert_gt(get(frame, len), 0); /* its number tells that it has come */
}
