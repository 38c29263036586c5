/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include <criterion/criterion.h>

#include "libchempi/neighbors/frame.h"

static struct chempi_neighbor_frame sample(uint8_t kind)
{
    return (struct chempi_neighbor_frame){
        .kind = kind,
        .gateway_count = 2,
        .at = 1,
        .flags = CHEMPI_NEIGHBOR_HURRY,
        .src = 3,
        .dst = 4,
        .seq = UINT32_MAX,
        .ack = 7,
        .gateways = {8, 9},
        .env = {.len = kind == CHEMPI_NEIGHBOR_PART ? 12 : 5,
                .context = 6,
                .source = 1,
                .tag = -3,
                .serial = 2,
                .credit = 1,
                .kind = CHEMPI_KIND_MESSAGE,
                .flags = 1},
        .sender = UINT64_C(1) << 40,
        .receiver = 12,
        .number = kind == CHEMPI_NEIGHBOR_PART ? 7 : 5,
    };
}

static size_t write_frame(uint8_t *out, uint8_t kind)
{
    const struct chempi_neighbor_frame f = sample(kind);
    size_t len = chempi_neighbor_frame_put(out, &f);

    if (kind != CHEMPI_NEIGHBOR_EAGER && kind != CHEMPI_NEIGHBOR_DATA &&
        kind != CHEMPI_NEIGHBOR_PART)
        return len;
    memcpy(out + len, "hello", 5);
    return len + 5;
}

static int read_frame(const uint8_t *bytes, size_t len,
                      struct chempi_neighbor_frame *f)
{
    const char *why;

    return chempi_neighbor_frame_get(bytes, len, f, &why);
}

Test(routed_frame, every_kind_survives_the_wire)
{
    for (uint8_t k = CHEMPI_NEIGHBOR_EAGER; k <= CHEMPI_NEIGHBOR_FLUSHED; k++) {
        uint8_t bytes[CHEMPI_NEIGHBOR_FIXED_MAX + 5];
        const struct chempi_neighbor_frame want = sample(k);
        struct chempi_neighbor_frame f;
        size_t len = write_frame(bytes, k);

        cr_assert_eq(read_frame(bytes, len, &f), 0, "kind %u", k);
        cr_assert_eq(f.kind, k);
        cr_assert_eq(f.seq, want.seq);
        cr_assert_eq(f.ack, want.ack);
        cr_assert_eq(f.gateways[1], want.gateways[1]);
        if (k <= CHEMPI_NEIGHBOR_RTS || k == CHEMPI_NEIGHBOR_PART)
            cr_assert_eq(memcmp(&f.env, &want.env, sizeof(f.env)), 0);
        if (k == CHEMPI_NEIGHBOR_FLUSHED)
            cr_assert_eq(f.number, want.number);
        if (k == CHEMPI_NEIGHBOR_DATA || k == CHEMPI_NEIGHBOR_PART) {
            cr_assert_eq(memcmp(f.data, "hello", f.len), 0);
            cr_assert_eq(f.number, want.number);
        }
    }
}

Test(routed_frame, a_part_lies_inside_its_message)
{
    static const uint64_t bad[][2] = {
        /* the message's bytes, the part's offset; it has 5 bytes itself */
        {11, 7},
        {4, 0},
        {12, 13},
        {12, UINT64_MAX - 1},
        {CHEMPI_NEIGHBOR_CHUNK_MAX + 1, 0},
        {UINT64_MAX, 0},
    };
    uint8_t bytes[CHEMPI_NEIGHBOR_FIXED_MAX + 5];

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct chempi_neighbor_frame f = sample(CHEMPI_NEIGHBOR_PART);
        size_t len;

        f.env.len = bad[i][0];
        f.number = bad[i][1];
        len = chempi_neighbor_frame_put(bytes, &f);
        memcpy(bytes + len, "hello", 5);
        cr_expect_eq(read_frame(bytes, len + 5, &f), -EPROTO, "case %zu", i);
        cr_expect_eq(read_frame(bytes, len, &f), -EPROTO, "case %zu", i);
    }
}

Test(routed_frame, a_frame_that_is_cut_is_refused)
{
    uint8_t bytes[CHEMPI_NEIGHBOR_FIXED_MAX + 5];
    struct chempi_neighbor_frame f;
    size_t len = write_frame(bytes, CHEMPI_NEIGHBOR_EAGER);

    for (size_t n = 0; n < len; n++)
        cr_assert_eq(read_frame(bytes, n, &f), -EPROTO, "%zu bytes", n);
}

Test(routed_frame, impossible_ways_are_refused)
{
    uint8_t bytes[CHEMPI_NEIGHBOR_FIXED_MAX];
    struct chempi_neighbor_frame f;
    size_t len = write_frame(bytes, CHEMPI_NEIGHBOR_ACK);
    uint8_t *gateway_count =
        bytes + offsetof(struct chempi_neighbor_wire, gateway_count);

    *gateway_count = 0;
    cr_assert_eq(read_frame(bytes, len, &f), -EPROTO);
    *gateway_count = CHEMPI_NEIGHBOR_GATEWAYS_MAX + 1;
    cr_assert_eq(read_frame(bytes, len, &f), -EPROTO);
    *gateway_count = 2;
    chempi_neighbor_frame_set_at(bytes, 3);
    cr_assert_eq(read_frame(bytes, len, &f), -EPROTO);
    chempi_neighbor_frame_set_at(bytes, 2);
    cr_assert_eq(read_frame(bytes, len, &f), 0);
    bytes[0]++;
    cr_assert_eq(read_frame(bytes, len, &f), -EPROTO);
}

Test(routed_frame, numbers_can_be_set_afterwards)
{
    uint8_t bytes[CHEMPI_NEIGHBOR_FIXED_MAX];
    struct chempi_neighbor_frame f;
    size_t len = write_frame(bytes, CHEMPI_NEIGHBOR_DROP);

    chempi_neighbor_frame_set_seq(bytes, 41);
    chempi_neighbor_frame_set_ack(bytes, 42);
    cr_assert_eq(read_frame(bytes, len, &f), 0);
    cr_assert_eq(f.seq, 41);
    cr_assert_eq(f.ack, 42);
}
