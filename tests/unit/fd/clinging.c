/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors that cling to who closes them; see clinging.h. */
#include "tests/unit/fd/clinging.h"

#include <criterion/criterion.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/fd/rights.h"

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

void clinging_pass(int to, size_t len)
{
    const int fd = clinging_fd();

    cr_assert_eq(chempi_rights_send_fds(to, "?", len, &fd, 1, 0), (ssize_t)len);
    cr_assert_eq(close(fd), 0);
}
