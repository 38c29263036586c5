/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames over a socket: whole, in pieces, too long, and no frames at all. */
#define _GNU_SOURCE /* SOCK_NONBLOCK */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/control/channel.h"
#include "common/fd/rights.h"

#define IN_MAX 1024u

static struct chempi_channel a, b;

static void set_up(void)
{
    int fds[2];

    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    chempi_channel_init(&a, fds[0], IN_MAX, 1u << 20);
    chempi_channel_init(&b, fds[1], IN_MAX, 1u << 20);
}

static void tear_down(void)
{
    chempi_channel_fini(&a);
    chempi_channel_fini(&b);
}

TestSuite(channel, .init = set_up, .fini = tear_down);

Test(channel, a_frame_arrives_as_it_was_sent)
{
    struct chempi_frame f;

    cr_assert_eq(chempi_channel_send(&a, 7, 99, "hello", 5), 0);
    cr_assert_eq(chempi_channel_send(&a, 8, 0, NULL, 0), 0);
    cr_assert(chempi_channel_has_output(&a));
    cr_assert_eq(chempi_channel_flush(&a), 0);
    cr_assert_not(chempi_channel_has_output(&a));
    cr_assert_eq(chempi_channel_fill(&b), 1);
    cr_assert_eq(chempi_channel_next(&b, &f), 1);
    cr_assert_eq(f.type, 7);
    cr_assert_eq(f.job, 99);
    cr_assert_eq(f.len, 5);
    cr_assert_eq(memcmp(f.data, "hello", 5), 0);
    cr_assert_eq(chempi_channel_next(&b, &f), 1);
    cr_assert_eq(f.type, 8);
    cr_assert_eq(f.len, 0);
    cr_assert_eq(chempi_channel_next(&b, &f), 0);
    cr_assert_eq(chempi_channel_fill(&b), 0);
}

Test(channel, a_frame_may_come_byte_by_byte)
{
    static const uint8_t bytes[] = {3, 0, 0, 0, 5, 0, 0xe1, 0xc4, 0,  0,
                                    0, 0, 0, 0, 0, 0, 'x',  'y',  'z'};
    struct chempi_frame f;

    for (size_t i = 0; i < sizeof(bytes); i++) {
        cr_assert_eq(chempi_channel_next(&b, &f), 0);
        cr_assert_eq(write(a.fd, &bytes[i], 1), 1);
        cr_assert_eq(chempi_channel_fill(&b), 1);
    }
    cr_assert_eq(chempi_channel_next(&b, &f), 1);
    cr_assert_eq(f.len, 3);
    cr_assert_eq(memcmp(f.data, "xyz", 3), 0);
}

Test(channel, many_frames_of_all_sizes_arrive_in_order)
{
    static uint8_t data[IN_MAX];
    struct chempi_frame f;
    uint32_t got = 0;

    for (uint32_t i = 0; i <= IN_MAX; i++)
        cr_assert_eq(chempi_channel_send(&a, 1, i, data, i), 0);
    while (got <= IN_MAX) {
        cr_assert(chempi_channel_flush(&a) >= 0);
        (void)chempi_channel_fill(&b);
        while (chempi_channel_next(&b, &f) == 1) {
            cr_assert_eq(f.len, got);
            cr_assert_eq(f.job, got);
            got++;
        }
    }
}

Test(channel, bytes_that_are_no_frame_are_refused)
{
    struct chempi_frame f;

    cr_assert_eq(write(a.fd, "GET / HTTP/1.1\r\n\r\n", 18), 18);
    cr_assert_eq(chempi_channel_fill(&b), 1);
    cr_assert_eq(chempi_channel_next(&b, &f), -EBADMSG);
}

Test(channel, a_frame_over_the_limit_is_refused_from_its_header)
{
    static const uint8_t header[] = {1, 4, 0, 0, 5, 0, 0xe1, 0xc4,
                                     0, 0, 0, 0, 0, 0, 0,    0};
    struct chempi_frame f;

    cr_assert_eq(write(a.fd, header, sizeof(header)), sizeof(header));
    cr_assert_eq(chempi_channel_fill(&b), 1);
    cr_assert_eq(chempi_channel_next(&b, &f), -EMSGSIZE);
}

Test(channel, the_end_of_the_stream_comes_after_the_last_frame)
{
    struct chempi_frame f;

    cr_assert_eq(chempi_channel_send(&a, 1, 0, "x", 1), 0);
    cr_assert_eq(chempi_channel_flush(&a), 0);
    chempi_channel_fini(&a);
    cr_assert_eq(chempi_channel_fill(&b), 1);
    cr_assert_eq(chempi_channel_next(&b, &f), 1);
    cr_assert_eq(chempi_channel_fill(&b), -EPIPE);
}

Test(channel, a_peer_that_does_not_read_is_noticed_and_the_stream_stays_whole)
{
    static uint8_t data[IN_MAX];
    struct chempi_frame f;
    unsigned sent = 0;
    unsigned got = 0;
    int rc;

    while ((rc = chempi_channel_send(&a, 1, 0, data, sizeof(data))) == 0) {
        (void)chempi_channel_flush(&a);
        sent++;
    }
    cr_assert_eq(rc, -ENOBUFS);
    while (got < sent) {
        (void)chempi_channel_flush(&a);
        (void)chempi_channel_fill(&b);
        while ((rc = chempi_channel_next(&b, &f)) == 1)
            got++;
        cr_assert_eq(rc, 0);
    }
    cr_assert_eq(chempi_channel_send(&a, 1, 0, data, 1), 0);
}

Test(channel, writing_to_a_peer_that_is_gone_is_an_error_and_no_signal)
{
    chempi_channel_fini(&b);
    cr_assert_eq(chempi_channel_send(&a, 1, 0, "x", 1), 0);
    cr_assert_eq(chempi_channel_flush(&a), -EPIPE);
}

Test(channel, one_that_is_wary_takes_no_descriptors)
{
    b.is_wary = true;
    cr_expect_eq(chempi_channel_fill(&b), 0);
    cr_assert_eq(send(a.fd, "abc", 3, 0), 3);
    cr_expect_eq(chempi_channel_fill(&b), 1);
    cr_expect_eq(b.in_len, 3);
    cr_assert_eq(chempi_rights_send_fds(a.fd, "?", 1, &a.fd, 1, 0), 1);
    cr_expect_eq(chempi_channel_fill(&b), -EPERM);
    cr_expect_eq(b.in_len, 3);
}
