/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets with descriptors; see passing.h. */
#define _GNU_SOURCE /* MSG_CMSG_CLOEXEC */
#include "chempid/helper/passing.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include "common/base/sys.h"

union control { /* of one descriptor */
    struct cmsghdr head;
    char space[CMSG_SPACE(sizeof(int))];
};

int chempi_passing_send(int fd, const void *data, size_t len, int passed_fd,
                        bool waits)
{
    /* sendmsg(2) does not write there. */
    struct iovec iov = {(void *)(uintptr_t)data, len};
    union control control = {.space = ""};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    ssize_t n;

    if (passed_fd >= 0) {
        msg.msg_control = control.space;
        msg.msg_controllen = sizeof(control.space);
        control.head.cmsg_level = SOL_SOCKET;
        control.head.cmsg_type = SCM_RIGHTS;
        control.head.cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(&control.head), &passed_fd, sizeof(int));
    }
    do
        n = chempi_sys->sendmsg(fd, &msg,
                                MSG_NOSIGNAL | (waits ? 0 : MSG_DONTWAIT));
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : 0;
}

/* 0 or -EBADMSG: more than one is more than any packet has. */
static int take_fd(struct msghdr *msg, int *fd)
{
    const struct cmsghdr *head = CMSG_FIRSTHDR(msg);

    if (!head)
        return msg->msg_flags & MSG_CTRUNC ? -EBADMSG : 0;
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS ||
        head->cmsg_len != CMSG_LEN(sizeof(int)))
        return -EBADMSG;
    memcpy(fd, CMSG_DATA(head), sizeof(int));
    return msg->msg_flags & MSG_CTRUNC ? -EBADMSG : 0;
}

int chempi_passing_receive(int fd, void *data, size_t len, int *passed_fd)
{
    struct iovec iov = {data, len};
    union control control;
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control.space,
                         .msg_controllen = sizeof(control.space)};
    const ssize_t n =
        chempi_sys->recvmsg(fd, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);

    *passed_fd = -1;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n < 0 && (errno == ENOMEM || errno == ENOBUFS))
        return -ENOMEM;
    if (n < 0 || (n == 0 && msg.msg_controllen == 0))
        return -EPIPE;
    if (!take_fd(&msg, passed_fd) && n == (ssize_t)len &&
        !(msg.msg_flags & MSG_TRUNC))
        return 1;
    if (*passed_fd >= 0)
        (void)close(*passed_fd); /* nobody asked for it */
    *passed_fd = -1;
    return -EBADMSG;
}
