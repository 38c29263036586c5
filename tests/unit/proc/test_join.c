/* SPDX-License-Identifier: BSD-3-Clause */
/* Exchanges over a socket of the user's. */
#define _GNU_SOURCE /* SOCK_NONBLOCK */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "tests/unit/proc/pump.h"

static struct chempi_err err;
static int fds[2];
static size_t count;

static void open_pair(void)
{
    pump_open();
    count = pump_count_fds();
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
}

static void close_pair(void)
{
    (void)close(fds[0]);
    (void)close(fds[1]);
    cr_assert_eq(pump_count_fds(), count, "descriptors are left, or closed");
    pump_close();
}

TestSuite(join, .init = open_pair, .fini = close_pair, .timeout = 100);

static struct chempi_exchange *join(int i)
{
    struct chempi_exchange *x;

    cr_assert_eq(chempi_exchange_join(fds[i], &x, &err), 0, "%s", err.text);
    return x;
}

static void check_text(struct chempi_exchange *x, const char *text)
{
    size_t len;
    char *got = pump_take(x, &len);

    cr_assert_not_null(got);
    cr_assert_str_eq(got, text);
    free(got);
}

Test(join, both_ends_meet_and_one_is_first)
{
    struct chempi_exchange *a = join(0);
    struct chempi_exchange *b;

    for (int i = 0; i < 5; i++)
        pump(0);
    cr_assert_eq(chempi_exchange_state(a, &err), 0); /* nobody is there yet */
    b = join(1);
    cr_assert_eq(pump_state(a, &err), 1, "%s", err.text);
    cr_assert_eq(pump_state(b, &err), 1, "%s", err.text);
    cr_assert_neq(chempi_exchange_is_first(a), chempi_exchange_is_first(b));
    cr_assert_eq(chempi_exchange_send(a, "to b", 5, &err), 0);
    cr_assert_eq(chempi_exchange_send(b, "to a", 5, &err), 0);
    check_text(a, "to a");
    check_text(b, "to b");
    chempi_exchange_close(a);
    chempi_exchange_close(b);
}

/* The user's own bytes stand right behind what was exchanged. */
Test(join, no_byte_is_read_that_is_the_users)
{
    struct chempi_exchange *a = join(0);
    struct chempi_exchange *b = join(1);
    char text[8] = "";

    cr_assert_eq(pump_state(a, &err), 1, "%s", err.text);
    cr_assert_eq(pump_state(b, &err), 1, "%s", err.text);
    cr_assert_eq(chempi_exchange_send(a, "one", 4, &err), 0);
    cr_assert_eq(chempi_exchange_send(a, "two", 4, &err), 0);
    cr_assert(chempi_exchange_is_drained(a));
    chempi_exchange_close(a);
    cr_assert_eq(send(fds[0], "user's", 7, 0), 7);
    check_text(b, "one");
    check_text(b, "two");
    chempi_exchange_close(b);
    cr_assert_eq(recv(fds[1], text, sizeof(text), MSG_DONTWAIT), 7);
    cr_assert_str_eq(text, "user's");
}

Test(join, an_end_that_is_closed_is_said)
{
    struct chempi_exchange *a = join(0);

    (void)shutdown(fds[1], SHUT_RDWR);
    cr_assert_eq(pump_state(a, &err), -ECONNRESET);
    cr_assert_neq(strstr(err.text, "has been closed"), NULL, "%s", err.text);
    chempi_exchange_close(a);
}

Test(join, who_says_something_else_is_refused)
{
    char junk[64];
    struct chempi_exchange *a;

    memset(junk, 'x', sizeof(junk));
    cr_assert_eq(send(fds[1], junk, sizeof(junk), 0), (ssize_t)sizeof(junk));
    a = join(0);
    cr_assert_eq(pump_state(a, &err), -EPROTO);
    cr_assert_neq(strstr(err.text, "MPI_Comm_join"), NULL, "%s", err.text);
    chempi_exchange_close(a);
}

Test(join, an_echo_is_not_taken_for_somebody_else)
{
    char greeting[40];
    struct chempi_exchange *a = join(0);

    cr_assert_eq(recv(fds[1], greeting, sizeof(greeting), MSG_WAITALL),
                 (ssize_t)sizeof(greeting));
    cr_assert_eq(send(fds[1], greeting, sizeof(greeting), 0),
                 (ssize_t)sizeof(greeting));
    cr_assert_eq(pump_state(a, &err), -EPROTO);
    chempi_exchange_close(a);
}

/* Any byte of a greeting is sent by who is in the call. */
Test(join, an_end_that_begins_to_greet_and_is_silent_is_lost)
{
    const char greeting[40] = "CHEMPIj1"; /* and a key */

    for (size_t len = 1; len <= sizeof(greeting); len += sizeof(greeting) - 1) {
        struct chempi_exchange *a;

        pump_set_patience(300);
        cr_assert_eq(send(fds[1], greeting, len, 0), (ssize_t)len);
        a = join(0);
        cr_assert_eq(pump_state(a, &err), -ETIMEDOUT, "%s", err.text);
        cr_assert_neq(strstr(err.text, "is silent"), NULL, "%s", err.text);
        chempi_exchange_close(a);
    }
}

static bool is_time(void *until_ns)
{
    return chempi_clock_ns() > *(uint64_t *)until_ns;
}

/* It computes before it joins. */
Test(join, an_end_that_has_not_greeted_is_waited_for)
{
    uint64_t until_ns = chempi_clock_ns() + CHEMPI_NS_PER_S;
    struct chempi_exchange *a = join(0);
    struct chempi_exchange *b;

    pump_set_patience(300);
    cr_assert(pump_until(is_time, &until_ns));
    cr_assert_eq(chempi_exchange_state(a, &err), 0, "%s", err.text);
    pump_set_patience(60000);
    b = join(1);
    cr_assert_eq(pump_state(a, &err), 1, "%s", err.text);
    chempi_exchange_close(a);
    chempi_exchange_close(b);
}

Test(join, what_is_no_stream_socket_is_refused)
{
    struct chempi_exchange *x;
    int pipes[2];
    int datagrams = socket(AF_UNIX, SOCK_DGRAM, 0);

    cr_assert_eq(pipe(pipes), 0);
    cr_assert_eq(chempi_exchange_join(pipes[0], &x, &err), -ENOTSOCK);
    cr_assert_eq(chempi_exchange_join(-1, &x, &err), -EBADF);
    cr_assert_eq(chempi_exchange_join(datagrams, &x, &err), -EPROTOTYPE);
    (void)close(pipes[0]);
    (void)close(pipes[1]);
    (void)close(datagrams);
}
