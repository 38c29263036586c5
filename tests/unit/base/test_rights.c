/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Descriptors that somebody passes over Unix sockets: of a connection that is
 * not closed for an hour. The kernel is not asked to refuse them.
 */
#define _GNU_SOURCE /* accept4 */
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/rights.h"

#define LIMIT_S 30

/* A connection whose peer does not read what is on its way. */
static int clinging_fd(void)
{
    const struct linger linger = {.l_onoff = 1, .l_linger = 3600};
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    static const char data[1 << 16];

    cr_assert_eq(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
    cr_assert_eq(listen(listener, 1), 0);
    cr_assert_eq(getsockname(listener, (struct sockaddr *)&at, &len), 0);
    cr_assert_eq(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    cr_assert_geq(accept(listener, NULL, NULL), 0);
    cr_assert_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)),
                 0);
    while (send(fd, data, sizeof(data), MSG_DONTWAIT) > 0)
        ;
    return fd;
}

/* Whoever takes it has the only one. */
static void pass(int to)
{
    const int fd = clinging_fd();
    struct iovec iov = {(char[]){'?'}, 1};
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {.room = ""};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control.room,
                         .msg_controllen = sizeof(control.room)};

    control.head.cmsg_level = SOL_SOCKET;
    control.head.cmsg_type = SCM_RIGHTS;
    control.head.cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(&control.head), &fd, sizeof(int));
    cr_assert_eq(sendmsg(to, &msg, 0), 1);
    cr_assert_eq(close(fd), 0);
}

static void make_pair(int fds[2])
{
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
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
