/* SPDX-License-Identifier: BSD-3-Clause */
/* Sealed channels: whole, in pieces, full, and tampered with. */
#define _GNU_SOURCE /* SOCK_NONBLOCK */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/auth/seal.h"
#include "common/control/channel.h"

#define IN_MAX (8u << 20)
#define QUEUE_MAX (16u << 20)

static struct chempi_channel a, b;
static const struct chempi_noise_cipher to_b = {.key = {1}, .has_key = true};
static const struct chempi_noise_cipher to_a = {.key = {2}, .has_key = true};

static void set_up(void)
{
    int fds[2];

    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    chempi_channel_init(&a, fds[0], IN_MAX, QUEUE_MAX);
    chempi_channel_init(&b, fds[1], IN_MAX, QUEUE_MAX);
    cr_assert_eq(chempi_channel_seal(&a, &to_b, &to_a), 0);
    cr_assert_eq(chempi_channel_seal(&b, &to_a, &to_b), 0);
}

static void tear_down(void)
{
    chempi_channel_fini(&a);
    chempi_channel_fini(&b);
}

TestSuite(seal, .init = set_up, .fini = tear_down);

static void expect_frame(struct chempi_channel *ch, uint16_t type,
                         const char *text)
{
    struct chempi_frame f;

    cr_assert_eq(chempi_channel_next(ch, &f), 1);
    cr_assert_eq(f.type, type);
    cr_assert_eq(f.len, strlen(text));
    cr_assert_eq(memcmp(f.data, text, f.len), 0);
}

static void say(const char *text)
{
    cr_assert_eq(chempi_channel_send(&a, 7, 0, text, strlen(text)), 0);
    cr_assert_eq(chempi_channel_flush(&a), 0);
}

/* What a has written, taken off the way. */
static size_t intercept(uint8_t *data, size_t max)
{
    const ssize_t n = read(b.fd, data, max);

    cr_assert_gt(n, 0);
    return (size_t)n;
}

static void inject(const void *data, size_t len)
{
    cr_assert_eq(write(a.fd, data, len), (ssize_t)len);
}

Test(seal, frames_arrive_and_show_nothing_on_the_way)
{
    uint8_t wire[512];
    size_t len;

    say("a secret of the environment");
    len = intercept(wire, sizeof(wire));
    cr_assert_null(memmem(wire, len, "secret", 6));
    inject(wire, len);
    cr_assert_eq(chempi_channel_fill(&b), 1);
    expect_frame(&b, 7, "a secret of the environment");
    cr_assert_eq(chempi_channel_fill(&b), 0);
}

Test(seal, what_was_queued_before_is_sealed_too)
{
    struct chempi_channel c;
    uint8_t wire[512];
    int fds[2];

    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    chempi_channel_init(&c, fds[0], IN_MAX, QUEUE_MAX);
    cr_assert_eq(chempi_channel_send(&c, 7, 0, "early", 5), 0);
    cr_assert_eq(chempi_channel_seal(&c, &to_b, &to_a), 0);
    cr_assert_eq(chempi_channel_flush(&c), 0);
    cr_assert_eq(read(fds[1], wire, sizeof(wire)), 2 + 16 + 5 + 16);
    inject(wire, 2 + 16 + 5 + 16);
    cr_assert_eq(chempi_channel_fill(&b), 1);
    expect_frame(&b, 7, "early");
    chempi_channel_fini(&c);
    (void)close(fds[1]);
}

Test(seal, records_may_come_byte_by_byte)
{
    struct chempi_frame f;
    uint8_t wire[512];
    size_t len;

    say("slowly");
    len = intercept(wire, sizeof(wire));
    for (size_t i = 0; i < len; i++) {
        cr_assert_eq(chempi_channel_next(&b, &f), 0);
        inject(&wire[i], 1);
        cr_assert_eq(chempi_channel_fill(&b), 1);
    }
    expect_frame(&b, 7, "slowly");
}

Test(seal, large_frames_go_through_a_full_socket)
{
    const size_t len = 5u << 20;
    uint8_t *data = malloc(len);
    struct chempi_frame f;
    int rc = 0;

    cr_assert(data);
    for (size_t i = 0; i < len; i++)
        data[i] = (uint8_t)(i * 7 + (i >> 12));
    for (int i = 0; i < 3; i++)
        cr_assert_eq(chempi_channel_send(&a, 9, 5, data, len), 0);
    for (int got = 0; got < 3;) {
        rc = chempi_channel_flush(&a);
        cr_assert_geq(rc, 0);
        cr_assert_leq(a.seal->out.cap, CHEMPI_SEAL_BUFFER);
        cr_assert_geq(chempi_channel_fill(&b), 0);
        cr_assert_leq(b.seal->in.cap, CHEMPI_SEAL_BUFFER);
        while ((rc = chempi_channel_next(&b, &f)) == 1) {
            cr_assert_eq(f.len, len);
            cr_assert_eq(memcmp(f.data, data, len), 0);
            got++;
        }
        cr_assert_eq(rc, 0);
    }
    cr_assert_not(chempi_channel_has_output(&a));
    cr_assert_null(a.seal->out.data, "an idle link holds no buffer");
    cr_assert_null(b.seal->in.data);
    free(data);
}

/* After each of these the channel hands out nothing more. */
static void expect_refusal(int code)
{
    struct chempi_frame f;

    cr_assert_eq(chempi_channel_fill(&b), code);
    cr_assert_eq(chempi_channel_next(&b, &f), 0);
}

Test(seal, a_bit_flipped_anywhere_is_noticed)
{
    uint8_t wire[512];
    size_t len;

    say("true");
    len = intercept(wire, sizeof(wire));
    for (size_t bit = 0; bit < 8 * len; bit++) {
        uint8_t bad[512];
        struct chempi_frame f;

        tear_down();
        set_up();
        memcpy(bad, wire, len);
        bad[bit / 8] ^= (uint8_t)(1 << bit % 8);
        inject(bad, len);
        /* A longer length only makes the reader wait for more. */
        if (chempi_channel_fill(&b) == 1) {
            cr_assert_lt(bit, 16, "bit %zu", bit);
            cr_assert_eq(chempi_channel_next(&b, &f), 0);
        }
        cr_assert_eq(chempi_channel_next(&b, &f), 0, "bit %zu", bit);
    }
}

Test(seal, a_record_sent_again_is_refused)
{
    uint8_t wire[512];
    size_t len;

    say("once");
    len = intercept(wire, sizeof(wire));
    inject(wire, len);
    cr_assert_eq(chempi_channel_fill(&b), 1);
    expect_frame(&b, 7, "once");
    inject(wire, len);
    expect_refusal(-EKEYREJECTED);
}

Test(seal, records_out_of_order_are_refused)
{
    uint8_t one[512], two[512];
    size_t one_len, two_len;

    say("one");
    one_len = intercept(one, sizeof(one));
    say("two");
    two_len = intercept(two, sizeof(two));
    inject(two, two_len);
    inject(one, one_len);
    expect_refusal(-EKEYREJECTED);
}

Test(seal, a_record_left_out_is_noticed_by_the_next)
{
    uint8_t wire[512];
    size_t len;

    say("one");
    (void)intercept(wire, sizeof(wire));
    say("two");
    len = intercept(wire, sizeof(wire));
    inject(wire, len);
    expect_refusal(-EKEYREJECTED);
}

Test(seal, a_record_of_ones_own_is_refused)
{
    uint8_t wire[512];
    size_t len;

    say("reflected");
    len = intercept(wire, sizeof(wire));
    cr_assert_eq(write(b.fd, wire, len), (ssize_t)len);
    cr_assert_eq(chempi_channel_fill(&a), -EKEYREJECTED);
}

Test(seal, a_stream_that_is_cut_gives_nothing_of_the_last_record)
{
    struct chempi_frame f;
    uint8_t wire[512];
    size_t len;

    say("whole");
    len = intercept(wire, sizeof(wire));
    inject(wire, len - 1);
    (void)shutdown(a.fd, SHUT_WR);
    cr_assert_eq(chempi_channel_fill(&b), 1);
    cr_assert_eq(chempi_channel_next(&b, &f), 0);
    cr_assert_eq(chempi_channel_fill(&b), -EPIPE);
}

Test(seal, bytes_in_clear_are_refused)
{
    static const uint8_t frame[64] = {0, 0, 0, 0, 52, 0, 0xe1, 0xc4};

    inject(frame, sizeof(frame));
    expect_refusal(-EKEYREJECTED);
}

Test(seal, a_record_over_the_limit_is_refused_by_its_length)
{
    static const uint8_t head[] = {0xff, 0xff, 1};

    inject(head, sizeof(head));
    expect_refusal(-EKEYREJECTED);
}

/* It would have nothing in it, and nobody waits for more of it. */
Test(seal, a_record_without_content_is_refused_by_its_length)
{
    static const uint8_t record[2 + 16] = {16, 0};

    inject(record, sizeof(record));
    expect_refusal(-EKEYREJECTED);
}

Test(seal, frames_before_a_bad_record_still_come)
{
    uint8_t wire[1024];
    size_t len;

    say("good");
    say("bad");
    len = intercept(wire, sizeof(wire));
    wire[len - 1] ^= 1;
    inject(wire, len);
    cr_assert_eq(chempi_channel_fill(&b), -EKEYREJECTED);
    expect_frame(&b, 7, "good");
}
