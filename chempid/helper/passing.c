/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets with descriptors; see passing.h. */
#include "chempid/helper/passing.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include "common/fd/rights.h"

int chempi_passing_send(int fd, const void *data, size_t len, int passed_fd,
                        bool waits)
{
    ssize_t n;

    do
        n = chempi_rights_send_fds(fd, data, len, &passed_fd, passed_fd >= 0,
                                   waits ? 0 : MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : 0;
}

int chempi_passing_receive(int fd, void *data, size_t len, int *passed_fd)
{
    size_t count;
    int got;
    const ssize_t n =
        chempi_rights_recv_fds(fd, data, len, &got, 1, &count, MSG_DONTWAIT);

    *passed_fd = -1;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n < 0 && (errno == ENOMEM || errno == ENOBUFS))
        return -ENOMEM;
    if (n < 0 ? errno != EPROTO : n == 0 && count == 0)
        return -EPIPE;
    if (n == (ssize_t)len) {
        *passed_fd = count > 0 ? got : -1;
        return 1;
    }
    if (count > 0)
        (void)close(got); /* nobody asked for it */
    return -EBADMSG;
}
