/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors over Unix sockets; see rights.h. */
#define _GNU_SOURCE /* pipe2, accept4 */
#include "common/base/rights.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/sys.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* asm-generic/socket.h */
#endif

static void set(int fd, int value)
{
    /* Where the kernel has no such option all stays as it is. */
    (void)setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &value, sizeof(value));
}

void chempi_rights_refuse(int fd)
{
    set(fd, 0);
}

void chempi_rights_allow(int fd)
{
    set(fd, 1);
}

bool chempi_rights_are_refused(int fd)
{
    socklen_t len = sizeof(int);
    int value = 1;

    return getsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &value, &len) == 0 &&
           value == 0;
}

/* A look takes no descriptors and closes none; it ends with the first piece
 * that has some, as reading does. */
ssize_t chempi_rights_recv(int fd, void *data, size_t len)
{
    struct iovec iov = {data, len};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    const ssize_t n = chempi_sys->recvmsg(fd, &msg, MSG_PEEK | MSG_DONTWAIT);

    if (n <= 0)
        return n;
    if (msg.msg_flags & MSG_CTRUNC) { /* there is no room for them */
        errno = EPERM;
        return -1;
    }
    return chempi_sys->recv(fd, data, (size_t)n, MSG_DONTWAIT);
}

/* The last descriptor is that of a child, which ends after ours is closed.
 * Without one it stays open: that is less harm. */
static void leave_to_child(int fd)
{
    int gate[2];
    pid_t pid;
    char byte;

    if (chempi_sys->pipe2(gate, O_CLOEXEC) < 0)
        return;
    pid = chempi_sys->fork();
    if (pid == 0) {
        (void)close(gate[1]); /* the parent's */
        _exit(read(gate[0], &byte, 1) != 0);
    }
    if (pid > 0)
        (void)close(fd); /* the child has it, too */
    (void)close(gate[0]);
    (void)close(gate[1]); /* the sign */
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

/* Nothing more comes, and what has come is looked through. */
void chempi_rights_close(int fd)
{
    char data[4096];
    ssize_t n;

    (void)shutdown(fd, SHUT_RD); /* it may not be connected */
    do
        n = chempi_rights_recv(fd, data, sizeof(data));
    while (n > 0 || (n < 0 && errno == EINTR));
    if (n < 0 && errno == EPERM)
        leave_to_child(fd);
    else
        (void)close(fd); /* who has not read has not */
}

void chempi_rights_close_listener(int fd)
{
    int one;

    (void)shutdown(fd, SHUT_RD); /* nobody more */
    while ((one = chempi_sys->accept4(fd, NULL, NULL, SOCK_CLOEXEC)) >= 0)
        chempi_rights_close(one);
    (void)close(fd); /* it only listens */
}
