/* SPDX-License-Identifier: BSD-3-Clause */
/* Output of ranks: for how long the beginning of a line is held. */
#define _GNU_SOURCE /* pipe2 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "chempid/supervisor/super.h"
#include "common/base/clock.h"

#define UP_MAX (1u << 20)

static const struct chempi_spec spec = {.job = 7};
static struct chempi_super s;
static struct chempi_rank ranks[2];
static char text[CHEMPI_OUTPUT_CHUNK];
static int pipes[2][2];
static int up[2];

static void set_up(void)
{
    s.loop = ev_loop_new(EVFLAG_AUTO);
    cr_assert(s.loop);
    s.spec = &spec;
    s.ranks = ranks;
    s.local_size = 2;
    s.text = text;
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, up), 0);
    chempi_link_prepare(&s.up, s.loop, UP_MAX, UP_MAX);
    chempi_link_start(&s.up, up[0]);
    chempi_streams_init(&s);
    for (uint32_t i = 0; i < 2; i++) {
        cr_assert_eq(pipe2(pipes[i], O_CLOEXEC | O_NONBLOCK), 0);
        chempi_streams_open(&s, &ranks[i].streams[0], pipes[i][0], i, 1);
        ranks[i].streams[1].fd = -1;
    }
}

static void tear_down(void)
{
    for (uint32_t i = 0; i < 2; i++) {
        chempi_streams_close(&ranks[i].streams[0]);
        (void)close(pipes[i][1]);
    }
    ev_timer_stop(s.loop, &s.line_timer);
    chempi_link_close(&s.up);
    (void)close(up[1]);
    ev_loop_destroy(s.loop);
}

TestSuite(streams, .init = set_up, .fini = tear_down, .timeout = 30);

/* By a rank, read here, all that it has written so far. */
static void write_out(uint32_t rank, const char *line)
{
    const ssize_t len = (ssize_t)strlen(line);

    cr_assert_eq(write(pipes[rank][1], line, (size_t)len), len);
    ev_invoke(s.loop, &ranks[rank].streams[0].io, EV_READ);
}

Test(streams, the_beginning_of_a_line_is_held_though_another_one_is_late)
{
    struct chempi_stream *late = &ranks[0].streams[0];
    struct chempi_stream *quick = &ranks[1].streams[0];

    write_out(0, "a prompt: ");
    write_out(1, "one ");
    cr_assert(ev_is_active(&s.line_timer));
    cr_assert_eq(s.unshown, 0u);
    late->held_ns -= CHEMPI_NS_PER_S;
    quick->held_ns += CHEMPI_NS_PER_S; /* however slow this machine is */
    ev_invoke(s.loop, &s.line_timer, EV_TIMER);
    cr_assert_eq(late->held_len, 0u);
    cr_assert_eq(s.unshown, 10u);
    cr_assert_eq(quick->held_len, 4u);
    cr_assert(ev_is_active(&s.line_timer));
    write_out(1, "line\n");
    cr_assert_eq(quick->held_len, 0u);
    cr_assert_eq(s.unshown, 19u);
    ev_invoke(s.loop, &s.line_timer, EV_TIMER);
    cr_assert_not(ev_is_active(&s.line_timer));
}

/* The whole line goes up at once. */
Test(streams, the_end_of_a_late_line_is_read_before_its_beginning_is_shown)
{
    struct chempi_stream *late = &ranks[0].streams[0];

    write_out(0, "one ");
    late->held_ns -= CHEMPI_NS_PER_S;
    cr_assert_eq(write(pipes[0][1], "line\nan", 7), 7);
    ev_invoke(s.loop, &s.line_timer, EV_TIMER);
    cr_assert_eq(s.unshown, 9u);
    cr_assert_eq(late->held_len, 2u); /* the next one's beginning */
    cr_assert(ev_is_active(&s.line_timer));
}

/* And the end of what a rank writes is seen there, too. */
Test(streams, a_late_line_may_be_the_last)
{
    struct chempi_stream *late = &ranks[0].streams[0];

    write_out(0, "last");
    late->held_ns -= CHEMPI_NS_PER_S;
    (void)close(pipes[0][1]);
    pipes[0][1] = -1;
    ev_invoke(s.loop, &s.line_timer, EV_TIMER);
    cr_assert_eq(s.unshown, 4u);
    cr_assert_eq(late->fd, -1);
}
