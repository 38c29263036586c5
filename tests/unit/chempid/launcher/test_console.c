/* SPDX-License-Identifier: BSD-3-Clause */
/* Output into a pipe that others write to, too. */
#define _GNU_SOURCE /* pipe2, F_SETPIPE_SZ */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "chempid/launcher/console.h"
#include "common/base/sys.h"

static struct chempi_console console;
static struct ev_loop *loop;
static struct chempi_sys rigged;
static int ours; /* a copy of the test's own standard output */
static int far;
static int other; /* somebody else's end, which does not block */

static void credit(void *arg, uint32_t node, uint32_t bytes)
{
    (void)arg;
    (void)node;
    (void)bytes;
}

static void input(void *arg, const void *data, size_t len)
{
    (void)arg;
    (void)data;
    (void)len;
}

static void broken(void *arg, int number, int code)
{
    (void)arg;
    cr_assert_fail("%d: %d", number, code);
}

static void empty(void *arg)
{
    (void)arg;
}

static const struct chempi_console_ops ops = {
    .credit = credit, .input = input, .broken = broken, .empty = empty};

/* Somebody comes between readiness and write. */
static void fill_up(void)
{
    static const char zeros[1];

    if (other < 0)
        while (chempi_sys_libc.send(1, zeros, sizeof(zeros), MSG_DONTWAIT) > 0)
            ;
    else
        while (chempi_sys_libc.write(other, zeros, sizeof(zeros)) > 0)
            ;
    cr_assert_eq(errno, EAGAIN);
}

static ssize_t fill_and_write(int fd, const void *data, size_t len)
{
    fill_up();
    return chempi_sys_libc.write(fd, data, len);
}

static ssize_t fill_and_send(int fd, const void *data, size_t len, int flags)
{
    fill_up();
    return chempi_sys_libc.send(fd, data, len, flags);
}

/* Standard output is this end for the test's time. */
static void open_on(int near)
{
    cr_assert_eq(dup2(near, 1), 1);
    (void)close(near);
    loop = ev_loop_new(EVFLAG_AUTO);
    cr_assert(loop);
    cr_assert_eq(
        chempi_console_init(&console, loop, 1, 0, false, false, &ops, NULL), 0);
    rigged = chempi_sys_libc;
    chempi_sys = &rigged;
}

static void open_pipe(void)
{
    int fds[2];

    cr_assert_eq(pipe2(fds, O_CLOEXEC), 0);
    far = fds[0];
    cr_assert_eq(fcntl(far, F_SETFL, O_NONBLOCK), 0);
    open_on(fds[1]);
    other = open("/proc/self/fd/1", O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    cr_assert_geq(other, 0);
}

static void set_up(void)
{
    ours = fcntl(1, F_DUPFD_CLOEXEC, 3);
    cr_assert_geq(ours, 0);
}

static void tear_down(void)
{
    chempi_sys = &chempi_sys_libc;
    chempi_console_fini(&console);
    ev_loop_destroy(loop);
    (void)dup2(ours, 1);
    (void)close(ours);
    (void)close(other);
    (void)close(far);
}

TestSuite(console, .init = set_up, .fini = tear_down, .timeout = 30);

static void drain(void)
{
    static char data[65536];

    while (read(far, data, sizeof(data)) > 0)
        ;
}

static void await_line(const char *line)
{
    char data[64] = "";

    drain();
    while (!chempi_console_is_empty(&console))
        ev_run(loop, EVRUN_ONCE);
    cr_expect_eq(read(far, data, sizeof(data) - 1), (ssize_t)strlen(line));
    cr_expect_str_eq(data, line);
}

Test(console, nobody_waits_for_who_fills_the_same_pipe)
{
    open_pipe();
    rigged.write = fill_and_write;
    chempi_console_show(&console, 0, 0, 1, "line\n", 5);
    cr_expect(!chempi_console_is_empty(&console));
    rigged.write = chempi_sys_libc.write;
    await_line("line\n");
}

Test(console, nor_the_same_socket)
{
    int fds[2];

    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    far = fds[0];
    cr_assert_eq(fcntl(far, F_SETFL, O_NONBLOCK), 0);
    open_on(fds[1]);
    other = -1;
    rigged.send = fill_and_send;
    chempi_console_show(&console, 0, 0, 1, "line\n", 5);
    cr_expect(!chempi_console_is_empty(&console));
    rigged.send = chempi_sys_libc.send;
    await_line("line\n");
}

/* Also where they are cut to what a pipe takes at once. */
Test(console, lines_are_written_whole)
{
    static char lines[10 * 1000 + 1];
    char piece[4096];
    ssize_t n;

    open_pipe();
    for (int i = 0; i < 10; i++) {
        memset(lines + 1000 * i, 'a' + i, 999);
        lines[1000 * i + 999] = '\n';
    }
    cr_assert_geq(fcntl(1, F_SETPIPE_SZ, 4096), 4096);
    chempi_console_show(&console, 0, 0, 1, lines, sizeof(lines) - 1);
    for (size_t at = 0; at < sizeof(lines) - 1; at += (size_t)n) {
        n = read(far, piece, sizeof(piece));
        cr_assert_gt(n, 0);
        cr_expect_eq(n % 1000, 0);
        cr_expect_eq(memcmp(piece, lines + at, (size_t)n), 0);
        (void)ev_run(loop, EVRUN_NOWAIT);
    }
}
