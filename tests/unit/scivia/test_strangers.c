/* SPDX-License-Identifier: BSD-3-Clause */
/* What another user passes to an adapter, whose name everybody can see. */
#define _GNU_SOURCE /* seteuid */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/fd/file.h"
#include "tests/unit/fd/clinging.h"
#include "tests/unit/scivia/duo.h"

#define LIMIT_S 30
#define STRANGER 60001

enum { NAME_AT = 8 + CHEMPI_FILE_HOST_BYTES, NAME_BYTES = 16 };

/* A connection of the stranger's, over which it has passed one. */
static int come(struct chempi_adapter *adapter)
{
    unsigned char address[CHEMPI_ADAPTER_ADDRESS_BYTES];
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    int len;

    chempi_adapter_address(adapter, address);
    len = snprintf(at.sun_path + 1, sizeof(at.sun_path) - 1, "chempi-scivia-");
    for (int i = 0; i < NAME_BYTES; i++)
        len += snprintf(at.sun_path + 1 + len, 3, "%02x", address[NAME_AT + i]);
    cr_assert_eq(seteuid(STRANGER), 0);
    cr_assert_eq(connect(fd, (struct sockaddr *)&at,
                         (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
                                     1 + (size_t)len)),
                 0, "%s", strerror(errno));
    cr_assert_eq(seteuid(0), 0);
    clinging_pass(fd, 1);
    return fd;
}

static void expect_closed(int fd)
{
    char byte;

    cr_expect_leq(recv(fd, &byte, 1, 0), 0);
    (void)close(fd);
}

static void need_root(void)
{
    if (geteuid() != 0)
        cr_skip_test("only root can be a stranger to itself");
}

Test(strangers, what_they_pass_keeps_nobody_waiting, .timeout = LIMIT_S)
{
    struct duo duo;
    int fd;

    need_root();
    duo_init(&duo);
    duo_open(&duo);
    fd = come(duo.a.adapter);
    duo_pump(&duo);
    expect_closed(fd);
    cr_expect_eq(chempi_adapter_link_state(duo.b.link), 0);
    duo_close(&duo);
}

Test(strangers, who_is_not_let_in_keeps_nobody_from_leaving, .timeout = LIMIT_S)
{
    struct duo duo;
    int fd;

    need_root();
    duo_init(&duo);
    duo_open(&duo);
    fd = come(duo.a.adapter);
    duo_close(&duo);
    expect_closed(fd);
}
