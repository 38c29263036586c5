/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Descriptors that somebody passes over Unix sockets (clinging.h). The kernel
 * is not asked to refuse them.
 */
#define _GNU_SOURCE /* accept4 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/sys.h"
#include "common/fd/rights.h"
#include "tests/unit/fd/clinging.h"

#define LIMIT_S 30
#define SOCKETS 200

static void pass(int to)
{
    clinging_pass(to, 1);
}

static void make_pair(int fds[2])
{
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

static void expect_no_children(void)
{
    cr_expect_eq(waitpid(-1, NULL, WNOHANG), -1);
    cr_expect_eq(errno, ECHILD);
}

Test(rights, what_comes_without_descriptors_is_received, .timeout = LIMIT_S)
{
    char data[16];
    int fds[2];

    make_pair(fds);
    cr_expect_lt(chempi_rights_recv(fds[0], data, sizeof(data)), 0);
    cr_expect_eq(errno, EAGAIN);
    cr_assert_eq(send(fds[1], "abc", 3, 0), 3);
    cr_expect_eq(chempi_rights_recv(fds[0], data, 2), 2);
    cr_expect_eq(chempi_rights_recv(fds[0], data, sizeof(data)), 1);
    cr_expect_eq(data[0], 'c');
    cr_assert_eq(close(fds[1]), 0);
    cr_expect_eq(chempi_rights_recv(fds[0], data, sizeof(data)), 0);
    chempi_rights_close(fds[0]);
}

Test(rights, what_comes_with_descriptors_is_left, .timeout = LIMIT_S)
{
    char data[16];
    int fds[2];

    make_pair(fds);
    pass(fds[1]);
    for (int i = 0; i < 2; i++) {
        cr_expect_lt(chempi_rights_recv(fds[0], data, sizeof(data)), 0);
        cr_expect_eq(errno, EPERM);
    }
    chempi_rights_close(fds[0]);
    cr_expect_lt(send(fds[1], "?", 1, MSG_NOSIGNAL), 0); /* it is closed */
    expect_no_children();
}

Test(rights, what_comes_with_empty_packets_is_left, .timeout = LIMIT_S)
{
    char data[16];
    int fds[2];

    for (int behind = 0; behind < 2; behind++) {
        cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
        if (behind)
            cr_assert_eq(send(fds[1], "", 0, 0), 0);
        clinging_pass(fds[1], 0);
        if (!behind) {
            cr_expect_lt(chempi_rights_recv(fds[0], data, sizeof(data)), 0);
            cr_expect_eq(errno, EPERM);
        }
        chempi_rights_close(fds[0]);
        cr_expect_not(is_open(fds[0]));
        cr_expect_lt(send(fds[1], "?", 1, MSG_NOSIGNAL), 0);
        expect_no_children();
        (void)close(fds[1]);
    }
}

/* The lowest number that is not used. */
static int spare_fd(void)
{
    const int fd = fcntl(STDIN_FILENO, F_DUPFD, 0);

    cr_assert_geq(fd, 0);
    cr_assert_eq(close(fd), 0);
    return fd;
}

Test(rights, who_asks_for_descriptors_has_no_more_than_that, .timeout = LIMIT_S)
{
    char data[4];
    int got[2];
    int fds[2];
    size_t count;
    int spare;

    cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
    cr_assert_eq(chempi_rights_send_fds(fds[1], "ab", 2, fds, 2, 0), 2);
    cr_assert_eq(
        chempi_rights_recv_fds(fds[0], data, sizeof(data), got, 2, &count, 0),
        2);
    cr_assert_eq(count, 2);
    cr_expect(is_open(got[0]) && is_open(got[1]));
    cr_expect(fcntl(got[1], F_GETFD) & FD_CLOEXEC);
    cr_assert_eq(chempi_rights_send_fds(fds[1], "ab", 2, NULL, 0, 0), 2);
    cr_assert_eq(
        chempi_rights_recv_fds(fds[0], data, sizeof(data), got, 2, &count, 0),
        2);
    cr_assert_eq(count, 0);
    spare = spare_fd();
    for (size_t n = 1; n <= 2; n++) { /* too long, too many */
        cr_assert_eq(
            chempi_rights_send_fds(fds[1], "abcde", 7 - 2 * n, fds, n, 0),
            (ssize_t)(7 - 2 * n));
        cr_expect_lt(chempi_rights_recv_fds(fds[0], data, sizeof(data), got, 1,
                                            &count, 0),
                     0);
        cr_expect_eq(errno, EPROTO);
        cr_expect_eq(count, 0);
        cr_expect_eq(spare_fd(), spare);
    }
}

static struct {
    int forks; /* of this process and of children of it */
    int failing;
} rig;

static pid_t rigged_fork(void)
{
    if (++rig.forks == rig.failing) {
        errno = EAGAIN;
        return -1;
    }
    return fork();
}

static int no_pipe2(int fds[2], int flags)
{
    (void)fds;
    (void)flags;
    errno = EMFILE;
    return -1;
}

/* No process, none for the second of two, no descriptors. */
Test(rights, what_no_child_can_be_made_for_is_left_later, .timeout = LIMIT_S)
{
    struct chempi_sys table = chempi_sys_libc;
    int kept[3][2];
    int fds[2];

    chempi_sys = &table;
    for (int i = 0; i < 3; i++) {
        make_pair(kept[i]);
        pass(kept[i][1]);
        rig.forks = 0;
        rig.failing = i + 1;
        table.fork = rigged_fork;
        table.pipe2 = i == 2 ? no_pipe2 : chempi_sys_libc.pipe2;
        chempi_rights_close(kept[i][0]);
        cr_expect(is_open(kept[i][0]));
        cr_expect_lt(send(kept[i][1], "?", 1, MSG_NOSIGNAL), 0);
        expect_no_children();
    }
    chempi_sys = &chempi_sys_libc;
    make_pair(fds);
    chempi_rights_close(fds[0]);
    for (int i = 0; i < 3; i++)
        cr_expect_not(is_open(kept[i][0]));
    expect_no_children();
}

/* As no descriptor here lingers, closing the rest keeps nobody waiting. */
Test(rights, what_is_kept_is_bounded, .timeout = LIMIT_S)
{
    struct chempi_sys table = chempi_sys_libc;
    int last = -1;

    table.pipe2 = no_pipe2;
    chempi_sys = &table;
    for (int i = 0; i < SOCKETS; i++) {
        int fds[2];

        cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
        (void)close(fds[1]);
        chempi_rights_close(fds[0]); /* it may have some */
        last = fds[0];
    }
    chempi_sys = &chempi_sys_libc;
    cr_expect_lt(last, SOCKETS / 2); /* numbers are used again */
}

Test(rights, what_lies_behind_other_bytes_is_found, .timeout = LIMIT_S)
{
    int fds[2];

    make_pair(fds);
    for (int i = 0; i < 20; i++)
        cr_assert_eq(send(fds[1], (char[1000]){0}, 1000, 0), 1000);
    pass(fds[1]);
    chempi_rights_close(fds[0]);
    cr_expect_lt(send(fds[1], "?", 1, MSG_NOSIGNAL), 0);
}

Test(rights, who_waits_at_a_listener_keeps_nobody, .timeout = LIMIT_S)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    socklen_t len = sizeof(at);
    const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    const int caller = socket(AF_UNIX, SOCK_STREAM, 0);

    cr_assert_eq(bind(listener, (struct sockaddr *)&at, sizeof(sa_family_t)),
                 0);
    cr_assert_eq(listen(listener, 4), 0);
    cr_assert_eq(getsockname(listener, (struct sockaddr *)&at, &len), 0);
    cr_assert_eq(connect(caller, (struct sockaddr *)&at, len), 0);
    pass(caller);
    chempi_rights_close_listener(listener);
    cr_expect_lt(send(caller, "?", 1, MSG_NOSIGNAL), 0);
}

/* Only where the kernel can: then nobody looks. */
Test(rights, who_is_refused_is_told, .timeout = LIMIT_S)
{
    int fds[2];

    make_pair(fds);
    cr_expect_not(chempi_rights_are_refused(fds[0]));
    chempi_rights_refuse(fds[0]);
    if (chempi_rights_are_refused(fds[0])) {
        chempi_rights_allow(fds[0]);
        cr_expect_not(chempi_rights_are_refused(fds[0]));
    }
}
