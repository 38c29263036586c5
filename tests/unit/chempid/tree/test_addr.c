/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses of daemons. */
#define _GNU_SOURCE /* mkdtemp */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chempid/tree/addr.h"

Test(addr, numbers_of_both_families_are_understood)
{
    static const char *const same[] = {"127.0.0.1:4000", "[::1]:4000"};
    struct chempi_addr a;
    char text[CHEMPI_ADDR_MAX];

    for (int i = 0; i < 2; i++) {
        cr_assert_eq(chempi_addr_parse(same[i], &a, NULL), 0);
        chempi_addr_format(&a, text, sizeof(text));
        cr_assert_str_eq(text, same[i]);
    }
    cr_assert_eq(chempi_addr_parse("::1", &a, NULL), 0);
    chempi_addr_format(&a, text, sizeof(text));
    cr_assert_str_eq(text, "[::1]:0");
}

Test(addr, nonsense_is_refused)
{
    static const char *const bad[] = {
        "", ":1", "[::1", "[::1]x", "a:port", "127.0.0.1:", "a:123456"};
    struct chempi_addr a;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        cr_assert_eq(chempi_addr_parse(bad[i], &a, NULL), -EINVAL, "%s",
                     bad[i]);
}

Test(addr, port_zero_becomes_a_port)
{
    struct chempi_addr a;
    struct chempi_addr bound;
    char text[CHEMPI_ADDR_MAX];
    int fd;

    cr_assert_eq(chempi_addr_parse("127.0.0.1", &a, NULL), 0);
    fd = chempi_addr_listen(&a, &bound, NULL);
    cr_assert_geq(fd, 0);
    chempi_addr_format(&bound, text, sizeof(text));
    cr_assert_str_neq(text, "127.0.0.1:0");
    (void)close(fd);
}

/* Whoever listens takes nobody; each place is for one that waits. */
Test(addr, nobody_waits_for_ever_for_a_place)
{
    enum { CALLERS = 256 };
    int fds[CALLERS];
    char name[64];
    int listener;
    int count = 0;

    (void)snprintf(name, sizeof(name), "/tmp/chempi-addr-%ld", (long)getpid());
    listener = chempi_addr_listen_unix(name, 0600, NULL);
    cr_assert_geq(listener, 0);
    do
        fds[count] = chempi_addr_connect_unix(name, 10, NULL);
    while (fds[count] >= 0 && ++count < CALLERS);
    cr_expect_gt(count, 0);
    cr_assert_lt(count, CALLERS, "there is always a place");
    cr_expect_eq(fds[count], -EAGAIN);
    cr_expect_eq(chempi_addr_clear_unix(name, NULL), -EADDRINUSE);
    while (count > 0)
        (void)close(fds[--count]);
    (void)close(listener);
    cr_expect_eq(chempi_addr_clear_unix(name, NULL), 0);
    cr_expect_eq(access(name, F_OK), -1, "nobody listens there");
}
