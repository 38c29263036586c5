/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors over Unix sockets; see rights.h. */
#define _GNU_SOURCE /* pipe2, accept4, MSG_CMSG_CLOEXEC */
#include "common/fd/rights.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/sys.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* asm-generic/socket.h */
#endif

enum { KEPT_MAX = 32 };

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

union control {
    struct cmsghdr head;
    char room[CMSG_SPACE(CHEMPI_RIGHTS_MAX * sizeof(int))];
};

ssize_t chempi_rights_send_fds(int fd, const void *data, size_t len,
                               const int *fds, size_t count, int flags)
{
    /* sendmsg(2) does not write there. */
    struct iovec iov = {(void *)(uintptr_t)data, len};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    union control control;

    assert(count <= CHEMPI_RIGHTS_MAX);
    if (count > 0) {
        msg.msg_control = control.room;
        msg.msg_controllen = CMSG_SPACE(count * sizeof(int));
        memset(control.room, 0, msg.msg_controllen);
        control.head.cmsg_level = SOL_SOCKET;
        control.head.cmsg_type = SCM_RIGHTS;
        control.head.cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(&control.head), fds, count * sizeof(int));
    }
    return chempi_sys->sendmsg(fd, &msg, MSG_NOSIGNAL | flags);
}

/* How many came with a message; false: it has something else. */
static bool take_fds(struct msghdr *msg, int *fds, size_t *count)
{
    const struct cmsghdr *head = CMSG_FIRSTHDR(msg);

    *count = 0;
    if (!head)
        return true;
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
        return false;
    *count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    memcpy(fds, CMSG_DATA(head), *count * sizeof(int));
    return true;
}

ssize_t chempi_rights_recv_fds(int fd, void *data, size_t len, int *fds,
                               size_t max, size_t *count, int flags)
{
    union control control;
    struct iovec iov = {data, len};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control.room,
                         /* CMSG_SPACE would let one more in. */
                         .msg_controllen = CMSG_LEN(max * sizeof(int))};
    const ssize_t n = chempi_sys->recvmsg(fd, &msg, MSG_CMSG_CLOEXEC | flags);

    assert(max <= CHEMPI_RIGHTS_MAX);
    *count = 0;
    if (n < 0)
        return n;
    if (take_fds(&msg, fds, count) &&
        !(msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
        return n;
    while (*count > 0)
        (void)close(fds[--*count]); /* nobody asked for it */
    errno = EPROTO;
    return -1;
}

/* A look takes no descriptors and closes none; it ends with the first piece
 * that has some, as reading does. A packet may have some and no bytes. */
ssize_t chempi_rights_recv(int fd, void *data, size_t len)
{
    struct iovec iov = {data, len};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    const ssize_t n = chempi_sys->recvmsg(fd, &msg, MSG_PEEK | MSG_DONTWAIT);

    if (n >= 0 && msg.msg_flags & MSG_CTRUNC) { /* no room for them */
        errno = EPERM;
        return -1;
    }
    return n <= 0 ? n : chempi_sys->recv(fd, data, (size_t)n, MSG_DONTWAIT);
}

/* ---- leaving sockets to a child ---- */

/* What none could be made for yet: all are left to the next one. */
static pthread_mutex_t kept_mutex = PTHREAD_MUTEX_INITIALIZER;
static int kept[KEPT_MAX];
static size_t kept_count;

/* The last descriptors are those of a child's child, which ends after ours are
 * closed. That may take it as long as senders like, so nobody waits for it. */
static void end_last(const int gate[2])
{
    const pid_t pid = chempi_sys->fork();
    char byte;

    if (pid == 0) {
        (void)close(gate[1]);           /* the parent's */
        (void)!read(gate[0], &byte, 1); /* its end is the sign */
    }
    _exit(pid < 0);
}

/* False: there are no processes, or no descriptors, for that. */
static bool make_last(const int gate[2])
{
    const pid_t pid = chempi_sys->fork();
    int status = 0;
    pid_t got;

    if (pid < 0)
        return false;
    if (pid == 0)
        end_last(gate);
    do
        got = waitpid(pid, &status, 0);
    while (got < 0 && errno == EINTR);
    return got < 0 || status == 0; /* the program may have waited for it */
}

static void leave_kept(void)
{
    int gate[2];

    if (kept_count == 0 || chempi_sys->pipe2(gate, O_CLOEXEC) < 0)
        return;
    if (make_last(gate))
        while (kept_count)
            (void)close(kept[--kept_count]); /* the child has it, too */
    (void)close(gate[0]);
    (void)close(gate[1]); /* the sign */
}

static void leave_to_child(int fd)
{
    (void)shutdown(fd, SHUT_RDWR); /* for its peer it is closed now */
    if (kept_count == KEPT_MAX) /* to run out of descriptors is for ever, too */
        (void)close(kept[--kept_count]);
    kept[kept_count++] = fd;
    leave_kept();
}

static bool is_stream(int fd)
{
    socklen_t len = sizeof(int);
    int type = 0;

    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 &&
           type == SOCK_STREAM;
}

/* Nothing more comes, and what has come is looked through. False: there are
 * descriptors, or there may be: behind a packet without bytes, which looks as
 * the end does. */
static bool is_without(int fd)
{
    char data[4096];
    ssize_t n;

    (void)shutdown(fd, SHUT_RD); /* it may not be connected */
    do
        n = chempi_rights_recv(fd, data, sizeof(data));
    while (n > 0 || (n < 0 && errno == EINTR));
    return n < 0 ? errno != EPERM : is_stream(fd);
}

void chempi_rights_close(int fd)
{
    const bool is_plain = chempi_rights_are_refused(fd) || is_without(fd);

    if (is_plain)
        (void)close(fd); /* who has not read has not */
    (void)pthread_mutex_lock(&kept_mutex);
    if (is_plain)
        leave_kept();
    else
        leave_to_child(fd);
    (void)pthread_mutex_unlock(&kept_mutex);
}

void chempi_rights_close_listener(int fd)
{
    int one;

    (void)shutdown(fd, SHUT_RD); /* nobody more */
    while ((one = chempi_sys->accept4(fd, NULL, NULL, SOCK_CLOEXEC)) >= 0)
        chempi_rights_close(one);
    (void)close(fd); /* it only listens */
}
