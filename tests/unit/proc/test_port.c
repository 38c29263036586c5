/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports, and what leaders exchange, between the two ends of one process. */
#define _GNU_SOURCE /* SOCK_NONBLOCK */
#include <criterion/criterion.h>
#include <errno.h>
#include <sched.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "libchempi/didl/proc/hands.h"
#include "libchempi/didl/proc/internal.h"
#include "libchempi/didl/proc/port.h"
#include "libchempi/didl/proc/port_name.h"
#include "tests/unit/base/rig.h"
#include "tests/unit/proc/pump.h"

#define PLACES 64 /* of guests */

static char name[CHEMPI_PORT_NAME_MAX];
static struct chempi_err err;
static size_t fds;

static void open_port(void)
{
    pump_open();
    fds = pump_count_fds();
    cr_assert_eq(chempi_port_open(NULL, NULL, name, &err), 0, "%s", err.text);
}

static void close_port(void)
{
    chempi_port_close_all();
    cr_assert_eq(pump_count_fds(), fds, "descriptors are left");
    pump_close();
}

TestSuite(port, .init = open_port, .fini = close_port, .timeout = 100);

static struct chempi_exchange *accept_one(void)
{
    struct chempi_exchange *x;

    cr_assert_eq(chempi_port_accept(name, &x, &err), 0, "%s", err.text);
    return x;
}

static struct chempi_exchange *call(const char *whom)
{
    struct chempi_exchange *x;

    cr_assert_eq(chempi_port_connect(whom, &x, &err), 0, "%s", err.text);
    return x;
}

static void check_message(struct chempi_exchange *x, const void *data,
                          size_t len)
{
    size_t got_len;
    void *got = pump_take(x, &got_len);

    cr_assert_not_null(got);
    cr_assert_eq(got_len, len);
    cr_assert_eq(memcmp(got, data, len), 0);
    free(got);
}

static void say(struct chempi_exchange *x, const void *data, size_t len)
{
    cr_assert_eq(chempi_exchange_send(x, data, len, &err), 0, "%s", err.text);
}

static void meet(struct chempi_exchange **owner,
                 struct chempi_exchange **caller)
{
    *owner = accept_one();
    *caller = call(name);
    cr_assert_eq(pump_state(*caller, &err), 1, "%s", err.text);
    cr_assert_eq(pump_state(*owner, &err), 1, "%s", err.text);
}

static void part(struct chempi_exchange *owner, struct chempi_exchange *caller)
{
    chempi_exchange_close(owner);
    chempi_exchange_close(caller);
}

/* ---- meeting --------------------------------------------------------- */

Test(port, owner_and_caller_meet_and_agree_who_is_first)
{
    struct chempi_exchange *owner;
    struct chempi_exchange *caller;

    meet(&owner, &caller);
    cr_assert(chempi_exchange_is_first(owner));
    cr_assert_not(chempi_exchange_is_first(caller));
    say(owner, "from the owner", 15);
    say(caller, "from the caller", 16);
    say(caller, "", 0);
    check_message(caller, "from the owner", 15);
    check_message(owner, "from the caller", 16);
    check_message(owner, "", 0);
    part(owner, caller);
}

Test(port, callers_are_accepted_in_the_order_in_which_they_came)
{
    enum { COUNT = 5 };
    struct chempi_exchange *callers[COUNT];
    struct chempi_exchange *owner;
    char text[8];

    for (int i = 0; i < COUNT; i++) {
        callers[i] = call(name);
        cr_assert_eq(pump_state(callers[i], &err), 1, "%s", err.text);
        (void)snprintf(text, sizeof(text), "call %d", i);
        say(callers[i], text, 7);
        pump(0);
    }
    for (int i = 0; i < COUNT; i++) {
        owner = accept_one();
        cr_assert_eq(pump_state(owner, &err), 1, "%s", err.text);
        (void)snprintf(text, sizeof(text), "call %d", i);
        check_message(owner, text, 7);
        part(owner, callers[i]);
    }
}

/* More than there are places, none of which is looked at meanwhile. */
Test(port, a_crowd_of_callers_is_let_in_one_after_the_other)
{
    enum { COUNT = 2 * PLACES };
    static struct chempi_exchange *callers[COUNT];

    for (int i = 0; i < COUNT; i++)
        callers[i] = call(name);
    for (int i = 0; i < COUNT; i++) {
        struct chempi_exchange *owner = accept_one();

        cr_assert_eq(pump_state(owner, &err), 1, "%d: %s", i, err.text);
        say(owner, "next", 5);
        chempi_exchange_close(owner);
    }
    for (int i = 0; i < COUNT; i++) {
        check_message(callers[i], "next", 5);
        chempi_exchange_close(callers[i]);
    }
}

Test(port, accepts_that_wait_are_served_in_their_order)
{
    struct chempi_exchange *first = accept_one();
    struct chempi_exchange *gone = accept_one();
    struct chempi_exchange *last = accept_one();
    struct chempi_exchange *callers[2];

    chempi_exchange_close(gone); /* has given up */
    callers[0] = call(name);
    cr_assert_eq(pump_state(first, &err), 1, "%s", err.text);
    cr_assert_eq(chempi_exchange_state(last, &err), 0);
    callers[1] = call(name);
    cr_assert_eq(pump_state(last, &err), 1, "%s", err.text);
    part(first, callers[0]);
    part(last, callers[1]);
}

static bool is_drained(void *arg)
{
    return chempi_exchange_is_drained(arg);
}

/* Larger than what buffers of sockets hold, both ways at once. */
Test(port, long_messages_cross_whole)
{
    enum { LEN = 9 * 1024 * 1024 + 17 };
    struct chempi_exchange *owner;
    struct chempi_exchange *caller;
    uint8_t *data = malloc(LEN);

    for (size_t i = 0; i < LEN; i++)
        data[i] = (uint8_t)(i * 7 + (i >> 11));
    meet(&owner, &caller);
    say(owner, data, LEN);
    say(caller, data, LEN);
    say(caller, data, 5);
    cr_assert_not(chempi_exchange_is_drained(owner));
    check_message(caller, data, LEN);
    check_message(owner, data, LEN);
    check_message(owner, data, 5);
    cr_assert(pump_until(is_drained, owner));
    part(owner, caller);
    free(data);
}

/* What nobody takes is not read, and so is not held here. */
Test(port, one_message_is_kept_and_no_more)
{
    enum { LEN = 1024 * 1024, COUNT = 32 };
    struct chempi_exchange *owner;
    struct chempi_exchange *caller;
    uint8_t *data = calloc(1, LEN);

    meet(&owner, &caller);
    for (int i = 0; i < COUNT; i++)
        say(caller, data, LEN);
    for (int i = 0; i < 200; i++)
        pump(0);
    cr_assert_not(chempi_exchange_is_drained(caller));
    for (int i = 0; i < COUNT; i++)
        check_message(owner, data, LEN);
    part(owner, caller);
    free(data);
}

/* ---- the end --------------------------------------------------------- */

static bool is_lost(void *arg)
{
    return chempi_exchange_state(arg, &err) < 0;
}

Test(port, the_end_of_the_other_side_is_noticed_behind_its_last_message)
{
    struct chempi_exchange *owner;
    struct chempi_exchange *caller;

    meet(&owner, &caller);
    say(caller, "last", 5);
    chempi_exchange_close(caller);
    check_message(owner, "last", 5);
    cr_assert(pump_until(is_lost, owner));
    cr_assert_eq(err.code, -ECONNRESET);
    cr_assert_neq(strstr(err.text, "has ended"), NULL, "%s", err.text);
    cr_assert_eq(chempi_exchange_send(owner, "x", 1, &err), -ECONNRESET);
    chempi_exchange_close(owner);
}

Test(port, a_closed_port_ends_who_waits_on_either_side)
{
    struct chempi_exchange *owner = accept_one();
    struct chempi_exchange *caller;

    cr_assert_eq(chempi_port_close(name, &err), 0);
    cr_assert_eq(chempi_exchange_state(owner, &err), -ECANCELED);
    cr_assert_neq(strstr(err.text, "closed"), NULL);
    caller = call(name);
    cr_assert_eq(pump_state(caller, &err), -ECONNREFUSED);
    cr_assert_neq(strstr(err.text, "nobody listens at"), NULL, "%s", err.text);
    part(owner, caller);
    cr_assert_eq(chempi_port_close(name, &err), -ENOENT);
    cr_assert_eq(chempi_port_accept(name, &owner, &err), -ENOENT);
}

Test(port, callers_that_nobody_accepts_hear_of_the_end)
{
    struct chempi_exchange *caller = call(name);

    cr_assert_eq(pump_state(caller, &err), 1, "%s", err.text);
    pump(0);
    chempi_port_close_all();
    cr_assert(pump_until(is_lost, caller));
    chempi_exchange_close(caller);
}

Test(port, a_caller_that_has_hung_up_is_not_accepted)
{
    struct chempi_exchange *gone = call(name);
    struct chempi_exchange *caller;
    struct chempi_exchange *owner;

    cr_assert_eq(pump_state(gone, &err), 1, "%s", err.text);
    pump(0);
    chempi_exchange_close(gone);
    caller = call(name);
    cr_assert_eq(pump_state(caller, &err), 1, "%s", err.text);
    say(caller, "here", 5);
    for (int i = 0; i < 20; i++)
        pump(1);
    owner = accept_one();
    check_message(owner, "here", 5);
    part(owner, caller);
}

/* ---- names ----------------------------------------------------------- */

static void change(char *text, const char *what)
{
    struct chempi_port_name parts;

    cr_assert_eq(chempi_port_name_read(name, &parts), 0);
    if (*what == 't')
        parts.token[5] ^= 1;
    if (*what == 'k')
        parts.key[5] ^= 1;
    chempi_port_name_write(&parts, text);
}

Test(port, a_caller_with_another_token_gets_no_answer)
{
    char wrong[CHEMPI_PORT_NAME_MAX];
    struct chempi_exchange *owner = accept_one();
    struct chempi_exchange *caller;

    change(wrong, "token");
    caller = call(wrong);
    cr_assert_lt(pump_state(caller, &err), 0);
    cr_assert_eq(chempi_exchange_state(owner, &err), 0);
    part(owner, caller);
}

Test(port, who_has_the_token_and_not_the_key_is_not_taken_for_the_owner)
{
    char wrong[CHEMPI_PORT_NAME_MAX];
    struct chempi_exchange *owner = accept_one();
    struct chempi_exchange *caller;

    change(wrong, "key");
    caller = call(wrong);
    cr_assert_eq(pump_state(caller, &err), -ECONNREFUSED);
    cr_assert_neq(strstr(err.text, "is not the port's owner"), NULL, "%s",
                  err.text);
    cr_assert_eq(chempi_exchange_state(owner, &err), 0);
    part(owner, caller);
}

/* A name of the port whose first address is a stranger's, who says nothing; his
 * descriptor. */
static int name_silent(char *with)
{
    struct chempi_port_name parts;
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    cr_assert_eq(bind(fd, (struct sockaddr *)&at, len), 0);
    cr_assert_eq(listen(fd, 4), 0);
    cr_assert_eq(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    cr_assert_eq(chempi_port_name_read(name, &parts), 0);
    parts.addresses[1] = parts.addresses[0];
    parts.addresses[0] = (struct chempi_address){.u.in = at};
    parts.count = 2;
    chempi_port_name_write(&parts, with);
    return fd;
}

Test(port, an_address_that_leads_to_a_stranger_keeps_nobody)
{
    char with[CHEMPI_PORT_NAME_MAX];
    const int fd = name_silent(with);
    struct chempi_exchange *owner = accept_one();
    struct chempi_exchange *caller;

    caller = call(with);
    cr_assert_eq(pump_state(caller, &err), 1, "%s", err.text);
    cr_assert_eq(pump_state(owner, &err), 1, "%s", err.text);
    part(owner, caller);
    (void)close(fd);
}

Test(port, what_is_no_port_is_not_called)
{
    struct chempi_exchange *x;

    cr_assert_eq(chempi_port_connect("somewhere", &x, &err), -EINVAL);
    cr_assert_neq(strstr(err.text, "no name of a port"), NULL);
}

Test(port, the_info_keys_are_obeyed_or_refused)
{
    static const char *const wrong[] = {"0", "65536", "-1", "x", "", "80x"};
    struct chempi_port_name parts;
    char other[CHEMPI_PORT_NAME_MAX];
    char number[8];

    cr_assert_eq(chempi_port_open(NULL, "127.0.0.1", other, &err), 0, "%s",
                 err.text);
    cr_assert_eq(chempi_port_name_read(other, &parts), 0);
    cr_assert_eq(parts.count, 1u);
    cr_assert(chempi_address_is_loopback(&parts.addresses[0]));
    (void)snprintf(number, sizeof(number), "%u",
                   (unsigned)chempi_address_port(&parts.addresses[0]));
    cr_assert_eq(chempi_port_open(number, "127.0.0.1", other, &err),
                 -EADDRINUSE);
    cr_assert_neq(strstr(err.text, number), NULL, "%s", err.text);
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(wrong); i++)
        cr_assert_eq(chempi_port_open(wrong[i], NULL, other, &err), -EINVAL,
                     "%s", wrong[i]);
    cr_assert_eq(chempi_port_open(NULL, "localhost", other, &err), -EINVAL);
    cr_assert_eq(chempi_port_open(NULL, "192.0.2.1", other, &err),
                 -EADDRNOTAVAIL);
}

Test(port, a_port_on_any_address_names_those_of_this_machine)
{
    struct chempi_port_name parts;
    char other[CHEMPI_PORT_NAME_MAX];

    cr_assert_eq(chempi_port_open(NULL, "0.0.0.0", other, &err), 0, "%s",
                 err.text);
    cr_assert_eq(chempi_port_name_read(other, &parts), 0);
    for (uint32_t i = 0; i < parts.count; i++) {
        cr_assert_eq(parts.addresses[i].u.sa.sa_family, AF_INET);
        cr_assert_neq(parts.addresses[i].u.in.sin_addr.s_addr, INADDR_ANY);
    }
}

/* ---- strangers ------------------------------------------------------- */

static int stranger(void)
{
    struct chempi_port_name parts;
    int fd;

    cr_assert_eq(chempi_port_name_read(name, &parts), 0);
    fd = socket(parts.addresses[0].u.sa.sa_family, SOCK_STREAM, 0);
    cr_assert_eq(connect(fd, &parts.addresses[0].u.sa,
                         chempi_address_len(&parts.addresses[0])),
                 0);
    return fd;
}

/* Nothing has come, and it has ended. */
static bool is_hung_up(void *arg)
{
    char byte;
    const ssize_t n = recv(*(int *)arg, &byte, 1, MSG_DONTWAIT);

    cr_assert_neq(n, 1, "a stranger was answered");
    return n == 0 || errno == ECONNRESET;
}

static void check_port_works(void)
{
    struct chempi_exchange *owner;
    struct chempi_exchange *caller;

    meet(&owner, &caller);
    say(caller, "all right", 10);
    check_message(owner, "all right", 10);
    part(owner, caller);
}

Test(port, garbage_is_not_answered)
{
    uint8_t junk[300];

    for (size_t len = 56; len <= sizeof(junk); len += 61) {
        int fd = stranger();

        randombytes_buf_deterministic(
            junk, sizeof(junk), (const unsigned char[32]){(unsigned char)len});
        if (len > 200)
            memcpy(junk, "CHEMPIn1", 8);
        cr_assert_eq(send(fd, junk, len, MSG_NOSIGNAL), (ssize_t)len);
        cr_assert(pump_until(is_hung_up, &fd));
        (void)close(fd);
    }
    check_port_works();
}

Test(port, strangers_that_say_nothing_take_no_place_of_a_caller)
{
    enum { COUNT = PLACES + 20 };
    int strangers[COUNT];

    for (int i = 0; i < COUNT; i++) {
        strangers[i] = stranger();
        pump(0);
    }
    cr_assert(pump_until(is_hung_up, &strangers[0]));
    check_port_works();
    for (int i = 0; i < COUNT; i++)
        (void)close(strangers[i]);
    for (int i = 0; i < 50; i++)
        pump(0);
}

Test(port, a_stranger_that_says_nothing_leaves_in_time)
{
    int fd = stranger();

    (void)send(fd, "CHEM", 4, MSG_NOSIGNAL);
    cr_assert(pump_until(is_hung_up, &fd));
    (void)close(fd);
}

static bool has_answer(void *fd)
{
    char byte;

    return recv(*(int *)fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 1;
}

/* With the token, and then nothing. */
static int half_caller(struct chempi_hands *hands, struct chempi_keys **keys)
{
    struct chempi_port_name parts;
    int fd = stranger();

    cr_assert_eq(chempi_port_name_read(name, &parts), 0);
    *keys = chempi_hands_make_keys(parts.token);
    cr_assert_eq(
        chempi_hands_begin(hands, true, *keys, CHEMPI_HANDS_PORT, NULL, NULL),
        0);
    cr_assert_eq(chempi_hands_write(hands, fd), 1);
    return fd;
}

Test(port, first_messages_without_the_last_keep_the_port_for_seconds_only)
{
    static struct chempi_hands hands;
    struct chempi_keys *keys;
    int half[PLACES];

    for (int i = 0; i < PLACES; i++) {
        half[i] = half_caller(&hands, &keys);
        chempi_hands_fini(&hands);
        chempi_hands_forget_keys(keys);
        pump(0);
    }
    check_port_works(); /* when they have left */
    for (int i = 0; i < PLACES; i++)
        (void)close(half[i]);
}

/* Who has recorded it shows it in vain, and gets no answer. */
Test(port, a_first_message_that_comes_again_takes_no_place)
{
    static struct chempi_hands hands;
    struct chempi_keys *keys;
    int fd = half_caller(&hands, &keys);

    cr_assert(pump_until(has_answer, &fd));
    for (int i = 0; i < 3; i++) {
        int again = stranger();

        cr_assert_eq(send(again, hands.out, hands.out_len, MSG_NOSIGNAL),
                     (ssize_t)hands.out_len);
        cr_assert(pump_until(is_hung_up, &again));
        (void)close(again);
    }
    chempi_hands_fini(&hands);
    chempi_hands_forget_keys(keys);
    (void)close(fd);
    check_port_works();
}

static bool has_read(void *arg)
{
    struct chempi_hands *hands = ((void **)arg)[0];

    return chempi_hands_read(hands, *(int *)((void **)arg)[1]) == 1;
}

/* The handshake's end by hand; what seals the rest. */
static struct chempi_seal *proven(int *fd)
{
    static struct chempi_hands hands;
    struct chempi_keys *keys;
    struct chempi_seal *seal;

    *fd = half_caller(&hands, &keys);
    cr_assert(pump_until(has_read, (void *[]){&hands, fd}));
    seal = chempi_hands_seal(&hands);
    cr_assert_eq(chempi_hands_write(&hands, *fd), 1);
    chempi_hands_fini(&hands);
    chempi_hands_forget_keys(keys);
    return seal;
}

/* Nothing has come, and it is to be read when it does. */
static void want(struct chempi_exchange *x)
{
    void *data;
    size_t len;

    cr_assert_eq(chempi_exchange_take(x, &data, &len, &err), -EAGAIN);
}

static void check_broken_by(const uint8_t *bytes, size_t len, bool is_sealed)
{
    struct chempi_exchange *owner = accept_one();
    int fd;
    struct chempi_seal *seal = proven(&fd);

    cr_assert_eq(pump_state(owner, &err), 1, "%s", err.text);
    chempi_exchange_limit(owner, 1000);
    want(owner);
    if (is_sealed) {
        cr_assert_eq(chempi_seal_put(seal, bytes, len), (ssize_t)len);
        cr_assert_eq(chempi_seal_flush(seal, fd), 0);
    } else {
        cr_assert_eq(send(fd, bytes, len, MSG_NOSIGNAL), (ssize_t)len);
    }
    cr_assert(pump_until(is_lost, owner));
    cr_assert_eq(err.code, -EPROTO, "%s", err.text);
    chempi_exchange_close(owner);
    chempi_seal_destroy(seal);
    (void)close(fd);
}

Test(port, a_proven_caller_that_breaks_the_rules_is_lost)
{
    uint8_t bytes[200];

    memset(bytes, 0xff, sizeof(bytes));
    check_broken_by(bytes, 4, true); /* a length too large */
    check_broken_by((uint8_t[]){0xe9, 3, 0, 0}, 4, true); /* by one byte */
    check_broken_by(bytes, sizeof(bytes), false); /* a record too long */
    memset(bytes, 0, sizeof(bytes));
    check_broken_by(bytes, sizeof(bytes), false); /* too short */
    bytes[0] = 100;
    check_broken_by(bytes, sizeof(bytes), false); /* that does not open */
    check_port_works();
}

static bool has_begun(void *owner)
{
    return ((struct chempi_exchange *)owner)->in_len > 0;
}

/* 1 GiB is announced, and a few bytes come. */
Test(port, memory_is_had_for_what_has_come_only)
{
    const uint8_t head[5] = {0, 0, 0, 0x40, 'x'};
    struct chempi_exchange *owner = accept_one();
    int fd;
    struct chempi_seal *seal = proven(&fd);

    cr_assert_eq(pump_state(owner, &err), 1, "%s", err.text);
    want(owner);
    cr_assert_eq(chempi_seal_put(seal, head, sizeof(head)), 5);
    cr_assert_eq(chempi_seal_flush(seal, fd), 0);
    cr_assert(pump_until(has_begun, owner));
    cr_assert_eq(owner->in_need, (size_t)1 << 30);
    cr_assert_eq(owner->in_len, 1u);
    cr_assert_leq(owner->in_cap, 4096u);
    chempi_exchange_close(owner);
    chempi_seal_destroy(seal);
    (void)close(fd);
}

/* ---- patience -------------------------------------------------------- */

static void check_silent(struct chempi_exchange *x)
{
    cr_assert(pump_until(is_lost, x));
    cr_assert_eq(err.code, -ETIMEDOUT, "%s", err.text);
    cr_assert_neq(strstr(err.text, "is silent"), NULL, "%s", err.text);
}

Test(port, a_proven_caller_that_says_nothing_is_lost)
{
    struct chempi_exchange *owner = accept_one();
    int fd;
    struct chempi_seal *seal = proven(&fd);

    cr_assert_eq(pump_state(owner, &err), 1, "%s", err.text);
    pump_set_patience(300);
    want(owner);
    check_silent(owner);
    chempi_exchange_close(owner);
    chempi_seal_destroy(seal);
    (void)close(fd);
}

/* What a caller sends in so many bytes at a time, every DRIP_NS. */
#define DRIP_NS (20 * CHEMPI_NS_PER_MS)
struct drip {
    struct chempi_exchange *owner;
    struct chempi_seal *seal;
    int fd;
    size_t len;
    uint64_t next_ns;
    uint64_t until_ns;
};

static bool drips(void *arg)
{
    static const uint8_t data[16384];
    struct drip *d = arg;
    const uint64_t now = chempi_clock_ns();

    if (is_lost(d->owner))
        return true;
    if (now >= d->next_ns) {
        (void)chempi_seal_put(d->seal, data, d->len);
        (void)chempi_seal_flush(d->seal, d->fd);
        d->next_ns = now + DRIP_NS;
    }
    return now > d->until_ns;
}

static void drip(size_t len, unsigned patience_ms, unsigned ms)
{
    const uint8_t head[4] = {0, 0, 0, 0x40}; /* a message of 1 GiB */
    struct drip d = {.owner = accept_one(), .len = len};

    d.seal = proven(&d.fd);
    cr_assert_eq(pump_state(d.owner, &err), 1, "%s", err.text);
    pump_set_patience(patience_ms);
    want(d.owner);
    cr_assert_eq(chempi_seal_put(d.seal, head, sizeof(head)), 4);
    d.until_ns = chempi_clock_ns() + ms * CHEMPI_NS_PER_MS;
    cr_assert(pump_until(drips, &d));
    err.code = 0;
    (void)chempi_exchange_state(d.owner, &err);
    chempi_exchange_close(d.owner);
    chempi_seal_destroy(d.seal);
    (void)close(d.fd);
}

Test(port, a_byte_now_and_then_is_silence_too)
{
    drip(1, 300, 10000);
    cr_assert_eq(err.code, -ETIMEDOUT, "%s", err.text);
}

Test(port, a_caller_that_is_slow_is_not_lost)
{
    drip(8192, 1500, 4000);
    cr_assert_eq(err.code, 0, "%s", err.text);
}

/* It would take its minute for 64 KiB of a GiB. */
Test(port, a_message_that_drips_for_ever_is_not_waited_for)
{
    drip(16384, 300, 15000);
    cr_assert_eq(err.code, -ETIMEDOUT, "%s", err.text);
}

Test(port, a_caller_that_never_reads_is_lost)
{
    enum { LEN = 16 * 1024 * 1024 };
    uint8_t *data = calloc(1, LEN);
    struct chempi_exchange *owner = accept_one();
    int fd;
    struct chempi_seal *seal = proven(&fd);

    cr_assert_eq(pump_state(owner, &err), 1, "%s", err.text);
    pump_set_patience(300);
    say(owner, data, LEN);
    check_silent(owner);
    chempi_exchange_close(owner);
    chempi_seal_destroy(seal);
    (void)close(fd);
    free(data);
}

static bool is_time(void *until_ns)
{
    return chempi_clock_ns() > *(uint64_t *)until_ns;
}

/* It comes when the patience is over, and before this process looks. */
Test(port, who_has_not_looked_takes_nobody_for_silent)
{
    struct chempi_exchange *owner;
    struct chempi_exchange *caller;
    uint64_t until_ns;

    meet(&owner, &caller);
    pump_set_patience(300);
    want(owner);
    until_ns = chempi_clock_ns() + CHEMPI_NS_PER_S / 2;
    while (!is_time(&until_ns))
        (void)sched_yield();
    say(caller, "here", 5);
    check_message(owner, "here", 5);
    part(owner, caller);
}

/* The owner's address refuses, and a stranger that is silent has another one.
 */
Test(port, a_closed_port_ends_who_calls_though_an_address_is_silent)
{
    char with[CHEMPI_PORT_NAME_MAX];
    struct chempi_exchange *caller;
    const int fd = name_silent(with);

    pump_set_patience(300);
    cr_assert_eq(chempi_port_close(name, &err), 0);
    caller = call(with);
    cr_assert_eq(pump_state(caller, &err), -ECONNREFUSED);
    cr_assert_neq(strstr(err.text, "nobody listens at"), NULL, "%s", err.text);
    chempi_exchange_close(caller);
    (void)close(fd);
}

/* It computes before it accepts; then it is silent. */
Test(port, a_caller_waits_for_the_owner_as_long_as_that_computes)
{
    uint64_t until_ns = chempi_clock_ns() + CHEMPI_NS_PER_S;
    struct chempi_exchange *caller = call(name);
    struct chempi_exchange *owner;

    pump_set_patience(300);
    cr_assert_eq(pump_state(caller, &err), 1, "%s", err.text);
    say(caller, "here", 5);
    want(caller);
    cr_assert(pump_until(is_time, &until_ns));
    cr_assert_eq(chempi_exchange_state(caller, &err), 1, "%s", err.text);
    owner = accept_one();
    say(owner, "one", 4);
    check_message(caller, "one", 4);
    want(caller);
    check_silent(caller);
    part(owner, caller);
}

/* ---- failures -------------------------------------------------------- */

/* Nothing can be opened until they are given back. */
static int use_up_fds(int *all, int max)
{
    const struct rlimit limit = {.rlim_cur = (rlim_t)max,
                                 .rlim_max = (rlim_t)max};
    int n = 0;

    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    while (n < max && (all[n] = dup(0)) >= 0)
        n++;
    cr_assert_lt(n, max);
    return n;
}

/* No caller comes, and nothing is opened or closed in the meantime. */
Test(port, a_caller_is_let_in_when_descriptors_are_free_again)
{
    int all[128];
    struct chempi_exchange *owner = accept_one();
    struct chempi_exchange *caller = call(name);
    const int n = use_up_fds(all, 128);

    for (int i = 0; i < 20; i++)
        pump(1);
    cr_assert_eq(chempi_exchange_state(caller, &err), 0);
    for (int i = 0; i < n; i++)
        (void)close(all[i]);
    cr_assert_eq(pump_state(owner, &err), 1, "%s", err.text);
    cr_assert_eq(pump_state(caller, &err), 1, "%s", err.text);
    part(owner, caller);
}

/* The last quarter is for the process itself. */
Test(port, a_caller_does_not_have_the_last_descriptors)
{
    int all[128];
    struct chempi_exchange *owner = accept_one();
    struct chempi_exchange *caller = call(name);
    const int n = use_up_fds(all, 128);

    for (int i = 0; i < n; i++)
        if (all[i] >= 96)
            (void)close(all[i]);
    for (int i = 0; i < 20; i++)
        pump(20);
    cr_assert_eq(chempi_exchange_state(caller, &err), 0);
    for (int i = 0; i < n; i++)
        if (all[i] < 96)
            (void)close(all[i]);
    cr_assert_eq(pump_state(owner, &err), 1, "%s", err.text);
    cr_assert_eq(pump_state(caller, &err), 1, "%s", err.text);
    part(owner, caller);
}

/* Each call that can fail fails once: it is said, or done all the same. */
Test(port, what_fails_once_is_said_and_nothing_is_left)
{
    bool was_hit = true;

    for (unsigned nth = 1; was_hit; nth++) {
        struct chempi_exchange *owner = NULL;
        struct chempi_exchange *caller = NULL;
        char other[CHEMPI_PORT_NAME_MAX];
        int rc;

        rig_fail(RIG_MALLOC | RIG_MMAP | RIG_SOCKET | RIG_ACCEPT | RIG_EPOLL,
                 nth, 0, false);
        rc = chempi_port_open(NULL, "127.0.0.1", other, &err);
        if (!rc)
            rc = chempi_port_accept(other, &owner, &err);
        if (!rc)
            rc = chempi_port_connect(other, &caller, &err);
        if (!rc)
            rc = pump_state(caller, &err) < 0;
        if (!rc) {
            rc = chempi_exchange_send(caller, "abc", 4, &err);
            for (int i = 0; i < 100 && !rc; i++) {
                size_t len;
                void *data;

                rc = chempi_exchange_take(owner, (void **)&data, &len, &err);
                if (rc == 0) {
                    cr_assert_str_eq(data, "abc");
                    free(data);
                    break;
                }
                rc = rc == -EAGAIN ? 0 : rc;
                pump(10);
            }
        }
        was_hit = rig_calls() >= nth;
        rig_reset();
        cr_assert(rc == 0 || err.text[0], "%u: without words", nth);
        cr_assert(rc == 0 || was_hit, "%u: %s", nth, err.text);
        part(owner, caller);
        if (rc == 0 || owner)
            (void)chempi_port_close(other, NULL);
        cr_assert_lt(nth, 500u);
    }
    chempi_port_close_all();
}
