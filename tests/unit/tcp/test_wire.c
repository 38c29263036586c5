/* SPDX-License-Identifier: BSD-3-Clause */
/* What comes over the wire: frames, cards, and a peer that is no device of
 * ours but a bare socket that says what the test wants. */
#define _GNU_SOURCE /* endian.h */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libchempi/devices/tcp/card.h"
#include "libchempi/devices/tcp/internal.h"
#include "libchempi/devices/tcp/tcp.h"
#include "libchempi/services/handle_table.h"
#include "tests/unit/tcp/ends.h"

static struct ends ends;

/* ---- frames ---------------------------------------------------------- */

static const struct chempi_envelope sample = {.len = 77,
                                              .context = 0x01020304,
                                              .source = 5,
                                              .tag = 6,
                                              .serial = 7,
                                              .credit = 8,
                                              .kind = CHEMPI_KIND_SYNC,
                                              .lane = 3,
                                              .flags = 1};

static int get(const uint8_t *bytes, size_t n, struct chempi_tcp_frame *f)
{
    const char *why = NULL;
    int rc = chempi_tcp_wire_get(bytes, n, f, &why);

    cr_assert(rc >= 0 || why, "a refusal has words");
    return rc;
}

Test(tcp_frame, every_kind_reads_back_as_it_was_written)
{
    uint8_t b[CHEMPI_TCP_FIXED_MAX];
    struct chempi_tcp_frame f;

    cr_assert_eq(chempi_tcp_wire_put_eager(b, &sample), 40u);
    cr_assert_eq(get(b, 40, &f), 40);
    cr_assert_eq(f.kind, (uint32_t)CHEMPI_TCP_EAGER);
    cr_assert_eq(f.len, 77u);
    cr_assert_eq(memcmp(&f.env, &sample, sizeof(sample)), 0);
    cr_assert_eq(chempi_tcp_wire_put_rts(b, &sample, 99), 48u);
    cr_assert_eq(get(b, 48, &f), 48);
    cr_assert_eq(f.sender, 99u);
    cr_assert_eq(chempi_tcp_wire_put_cts(b, 1, 2, 3), 32u);
    cr_assert_eq(get(b, 32, &f), 32);
    cr_assert_eq(f.sender + 10 * f.receiver + 100 * f.take, 321u);
    cr_assert_eq(chempi_tcp_wire_put_drop(b, 4), 16u);
    cr_assert_eq(get(b, 16, &f), 16);
    cr_assert_eq(f.sender, 4u);
    cr_assert_eq(chempi_tcp_wire_put_data(b, 5, 6, 7), 24u);
    cr_assert_eq(get(b, 24, &f), 24);
    cr_assert_eq(f.receiver + 10 * f.offset + 100 * f.len, 765u);
    cr_assert_eq(chempi_tcp_wire_put_bye(b), 8u);
    cr_assert_eq(get(b, 8, &f), 8);
}

Test(tcp_frame, the_bytes_are_little_endian_and_in_their_places)
{
    uint8_t b[CHEMPI_TCP_FIXED_MAX];
    static const uint8_t head[8] = {77, 0, 0, 0, 1, 0, 0x43, 0x74};

    (void)chempi_tcp_wire_put_eager(b, &sample);
    cr_assert_eq(memcmp(b, head, sizeof(head)), 0);
    cr_assert_eq(b[8], 77);
    cr_assert_eq(b[16], 4);
    cr_assert_eq(b[19], 1);
    cr_assert_eq(b[20], 5);
    cr_assert_eq(b[36], CHEMPI_KIND_SYNC);
}

Test(tcp_frame, an_incomplete_frame_asks_for_more)
{
    uint8_t b[CHEMPI_TCP_FIXED_MAX];
    struct chempi_tcp_frame f;

    (void)chempi_tcp_wire_put_rts(b, &sample, 1);
    for (size_t n = 0; n < 48; n++)
        cr_assert_eq(get(b, n, &f), 0);
}

/* Change one byte of a good frame. */
static void spoil(uint8_t *b, size_t n, size_t at, uint8_t value)
{
    struct chempi_tcp_frame f;
    uint8_t old = b[at];

    b[at] = value;
    cr_assert_eq(get(b, n, &f), -EPROTO, "byte %zu = %u", at, value);
    b[at] = old;
}

Test(tcp_frame, what_breaks_the_rules_is_refused)
{
    uint8_t b[CHEMPI_TCP_FIXED_MAX];

    (void)chempi_tcp_wire_put_eager(b, &sample);
    spoil(b, 40, 4, 0);  /* kind */
    spoil(b, 40, 4, 7);  /* kind */
    spoil(b, 40, 5, 1);  /* zero */
    spoil(b, 40, 6, 0);  /* mark */
    spoil(b, 40, 0, 78); /* length of frame and message differ */
    spoil(b, 40, 3, 1);  /* too long */
    spoil(b, 40, 36, 0); /* envelope's kind */
    spoil(b, 40, 36, 4);
    (void)chempi_tcp_wire_put_rts(b, &sample, 1);
    spoil(b, 48, 0, 1);    /* payload */
    spoil(b, 48, 15, 255); /* impossible length */
    spoil(b, 48, 8, 0);    /* nothing */
    (void)chempi_tcp_wire_put_cts(b, 1, 2, 3);
    spoil(b, 32, 24, 0); /* takes nothing */
    spoil(b, 32, 0, 1);
    (void)chempi_tcp_wire_put_drop(b, 1);
    spoil(b, 16, 0, 1);
    (void)chempi_tcp_wire_put_data(b, 1, 2, 3);
    spoil(b, 24, 0, 0);  /* empty */
    spoil(b, 24, 3, 16); /* too long */
    (void)chempi_tcp_wire_put_bye(b);
    spoil(b, 8, 0, 1);
}

/* ---- slots ----------------------------------------------------------- */

Test(tcp_slots, a_token_finds_its_own_slot_once)
{
    struct chempi_handle_table slots = {0};
    uint64_t tokens[100];
    uint64_t again;
    int things[100];

    for (int i = 0; i < 100; i++)
        cr_assert_eq(chempi_handle_table_put(&slots, &things[i], &tokens[i]),
                     0);
    cr_assert_eq(slots.used, 100u);
    for (int i = 0; i < 100; i++)
        cr_assert_eq(chempi_handle_table_get(&slots, tokens[i]), &things[i]);
    cr_assert_eq(chempi_handle_table_take(&slots, tokens[7]), &things[7]);
    cr_assert_null(chempi_handle_table_take(&slots, tokens[7]));
    cr_assert_eq(chempi_handle_table_put(&slots, &things[7], &again), 0);
    cr_assert_neq(again, tokens[7]);
    cr_assert_null(chempi_handle_table_get(&slots, tokens[7]));
    cr_assert_null(chempi_handle_table_get(&slots, UINT64_MAX));
    cr_assert_null(chempi_handle_table_get(&slots, 0));
    for (int i = 0; i < 100; i++)
        cr_assert_not_null(chempi_handle_table_pop(&slots));
    cr_assert_null(chempi_handle_table_pop(&slots));
    chempi_handle_table_fini(&slots);
}

Test(tcp_slots, a_walk_finds_what_is_named_also_while_it_is_taken)
{
    struct chempi_handle_table slots = {0};
    uint64_t tokens[5];
    int things[5];
    uint32_t place = 0;
    int *thing;
    int found = 0;

    for (int i = 0; i < 5; i++)
        cr_assert_eq(chempi_handle_table_put(&slots, &things[i], &tokens[i]),
                     0);
    cr_assert_eq(chempi_handle_table_take(&slots, tokens[2]), &things[2]);
    while ((thing = chempi_handle_table_next(&slots, &place)) != NULL) {
        cr_assert_neq(thing, &things[2]);
        cr_assert_eq(chempi_handle_table_take(&slots, tokens[thing - things]),
                     thing);
        found++;
    }
    cr_assert_eq(found, 4);
    cr_assert_eq(slots.used, 0u);
    chempi_handle_table_fini(&slots);
}

Test(tcp_slots, a_token_is_past_once_it_was_taken)
{
    struct chempi_handle_table slots = {0};
    int thing;
    uint64_t first;
    uint64_t second;

    cr_assert_eq(chempi_handle_table_put(&slots, &thing, &first), 0);
    cr_assert_not(chempi_handle_table_is_past(&slots, first));
    cr_assert_not(chempi_handle_table_is_past(&slots, first + 1000),
                  "no such slot");
    (void)chempi_handle_table_take(&slots, first);
    cr_assert(chempi_handle_table_is_past(&slots, first));
    cr_assert_eq(chempi_handle_table_put(&slots, &thing, &second), 0);
    cr_assert(chempi_handle_table_is_past(&slots, first));
    cr_assert_not(chempi_handle_table_is_past(&slots, second));
    cr_assert_not(
        chempi_handle_table_is_past(&slots, second + (UINT64_C(1) << 32)),
        "not given yet");
    chempi_handle_table_fini(&slots);
}

/* ---- cards ----------------------------------------------------------- */

static void add(struct chempi_tcp_card *card, const char *text, uint16_t port,
                uint8_t prefix, uint32_t network)
{
    struct chempi_tcp_entry *e = &card->entries[card->count++];

    cr_assert_eq(chempi_address_parse(text, &e->address), 0, "%s", text);
    chempi_address_set_port(&e->address, port);
    e->prefix = prefix;
    e->network = network;
}

Test(tcp_card, a_card_reads_back_as_it_was_written)
{
    struct chempi_tcp_card card = {.host = {1, 2, 3}};
    struct chempi_tcp_card back;
    uint8_t bytes[CHEMPI_TCP_CARD_BYTES];
    char text[CHEMPI_ADDRESS_TEXT];
    size_t len;

    add(&card, "10.0.0.7", 4711, 24, 0);
    add(&card, "2001:db8::1", 65535, 64, 9);
    len = chempi_tcp_card_put(&card, bytes);
    cr_assert_eq(chempi_tcp_card_get(bytes, len, &back), 0);
    cr_assert_eq(back.count, 2u);
    cr_assert_eq(back.host[1], 2);
    cr_assert_eq(back.entries[1].network, 9u);
    cr_assert_str_eq(chempi_address_format(&back.entries[0].address, text),
                     "10.0.0.7:4711");
    cr_assert_str_eq(chempi_address_format(&back.entries[1].address, text),
                     "[2001:db8::1]:65535");
}

Test(tcp_card, a_damaged_card_is_refused)
{
    struct chempi_tcp_card card = {.count = 0};
    struct chempi_tcp_card back;
    uint8_t bytes[CHEMPI_TCP_CARD_BYTES + 24];
    static const struct {
        size_t at;
        uint8_t value;
    } damage[] = {{0, 0},  {4, 0},  {4, 2},   {4, 200}, {28, 0},
                  {30, 0}, {30, 5}, {31, 33}, {7, 1}};

    add(&card, "10.0.0.7", 1, 24, 0);
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(damage); i++) {
        size_t len = chempi_tcp_card_put(&card, bytes);

        cr_assert_eq(chempi_tcp_card_get(bytes, len, &back), 0);
        cr_assert_eq(chempi_tcp_card_get(bytes, len - 1, &back), -EBADMSG);
        cr_assert_eq(chempi_tcp_card_get(bytes, len + 1, &back), -EBADMSG);
        bytes[damage[i].at] = damage[i].value;
        cr_assert_eq(chempi_tcp_card_get(bytes, len, &back), -EBADMSG,
                     "damage %zu", i);
    }
    cr_assert_eq(chempi_tcp_card_get(bytes, 0, &back), -EBADMSG);
}

static const char *chosen(const struct chempi_tcp_card *mine,
                          const struct chempi_tcp_card *peer, uint32_t network)
{
    static char text[CHEMPI_ADDRESS_TEXT];
    struct chempi_address out[CHEMPI_TCP_ENTRY_MAX];

    if (!chempi_tcp_card_choose(mine, peer, network, out))
        return "none";
    return chempi_address_format(&out[0], text);
}

Test(tcp_card, the_nearest_address_is_chosen)
{
    struct chempi_tcp_card mine = {.host = {1}};
    struct chempi_tcp_card peer = {.host = {1}};

    add(&mine, "192.168.5.1", 1, 24, 0);
    add(&peer, "2001:db8::1", 2, 64, 0);
    add(&peer, "10.0.0.7", 2, 8, 0);
    add(&peer, "192.168.5.9", 2, 24, 0);
    add(&peer, "127.0.0.1", 2, 8, 0);
    add(&peer, "fe80::1", 2, 64, 0);
    add(&peer, "10.9.9.9", 3, 24, 42);
    cr_assert_str_eq(chosen(&mine, &peer, 0), "127.0.0.1:2");
    cr_assert_str_eq(chosen(&mine, &peer, 42), "10.9.9.9:3");
    cr_assert_str_eq(chosen(&mine, &peer, 43), "none");
    peer.host[0] = 2; /* another machine: its loopback is not ours */
    cr_assert_str_eq(chosen(&mine, &peer, 0), "192.168.5.9:2");
    mine.count = 0;
    cr_assert_str_eq(chosen(&mine, &peer, 0), "10.0.0.7:2");
    peer.count = 1;
    cr_assert_str_eq(chosen(&mine, &peer, 0), "[2001:db8::1]:2");
    peer.count = 0;
    add(&peer, "fe80::1", 2, 64, 0);
    cr_assert_str_eq(chosen(&mine, &peer, 0), "none");
}

Test(tcp_card, names_and_nonsense_are_no_addresses)
{
    static const char *const bad[] = {
        "",    "localhost",      "10.0.0", "1.2.3.4.5", "10.0.0.1:80",
        "::g", "fe80::1%nowhere"};
    struct chempi_address a;

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(bad); i++)
        cr_assert_eq(chempi_address_parse(bad[i], &a), -EINVAL, "%s", bad[i]);
    cr_assert_eq(chempi_address_parse("fe80::1%lo", &a), 0);
}

/* ---- a bare peer ----------------------------------------------------- */

/* A socket connected to end 1's listener. */
static int bare_socket(void)
{
    struct chempi_address out[CHEMPI_TCP_ENTRY_MAX];
    struct chempi_tcp_card card;
    uint8_t bytes[4096];
    size_t len = sizeof(bytes);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    const struct timeval limit = {.tv_sec = 10};

    cr_assert_eq(chempi_tcp_ops.card(ends.end[1].dev, bytes, &len), 0);
    cr_assert_eq(chempi_tcp_card_get(bytes, len, &card), 0);
    cr_assert_gt(chempi_tcp_card_choose(&card, &card, 0, out), 0u);
    cr_assert_eq(connect(fd, &out[0].u.sa, chempi_address_len(&out[0])), 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    return fd;
}

static void put(int fd, const void *bytes, size_t len)
{
    cr_assert_eq(send(fd, bytes, len, MSG_NOSIGNAL), (ssize_t)len);
}

static bool is_closed_for(int fd)
{
    char byte;
    ssize_t n = recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK);

    return n == 0 || (n < 0 && errno == ECONNRESET);
}

static bool is_hung_up(struct ends *all, const void *arg)
{
    (void)all;
    return is_closed_for(*(const int *)arg);
}

/* Read exactly len bytes while the devices work; false at the end. */
static bool take(int fd, void *to, size_t len)
{
    size_t got = 0;

    for (int i = 0; i < 100000 && got < len; i++) {
        ssize_t n = recv(fd, (char *)to + got, len - got, MSG_DONTWAIT);

        if (n == 0 || (n < 0 && errno != EAGAIN))
            return false;
        got += n > 0 ? (size_t)n : 0;
        (void)ends_poll(&ends);
    }
    return got == len;
}

struct bare {
    int fd;
    struct chempi_auth auth;
    struct chempi_tcp_verdict verdict;
};

/* Say the preamble and the hello; read the verdict. */
static bool greet(struct bare *bare, uint32_t from, uint32_t to,
                  uint32_t network, const uint8_t *secret)
{
    struct chempi_tcp_preamble preamble;
    uint8_t context[CHEMPI_AUTH_CONTEXT_MAX];
    uint8_t out[CHEMPI_AUTH_MSG_MAX];
    size_t len;

    bare->fd = bare_socket();
    chempi_tcp_wire_put_preamble(&preamble, NULL, from, to, network);
    put(bare->fd, &preamble, sizeof(preamble));
    len = chempi_tcp_tie_context(&ends.end[0].services, NULL, from, to, network,
                                 context);
    cr_assert_eq(
        chempi_auth_init(&bare->auth, CHEMPI_AUTH_CLIENT, secret, context, len),
        0);
    cr_assert_eq(chempi_auth_step(&bare->auth, NULL, 0, out, &len, NULL), 0);
    put(bare->fd, out, len);
    return take(bare->fd, &bare->verdict, sizeof(bare->verdict)) &&
           chempi_tcp_wire_get_verdict(&bare->verdict, &bare->verdict) == 0;
}

/* A proven connection as process 0. */
static int proven(void)
{
    struct bare bare;
    uint8_t in[CHEMPI_AUTH_MSG_MAX];
    uint8_t out[CHEMPI_AUTH_MSG_MAX];
    size_t len;

    cr_assert(greet(&bare, 0, 1, 0, ends.end[0].services.secret));
    cr_assert_eq(bare.verdict.code, CHEMPI_TCP_WELCOME);
    cr_assert(take(bare.fd, in, chempi_auth_need(&bare.auth)));
    cr_assert_eq(chempi_auth_step(&bare.auth, in, sizeof(in), out, &len, NULL),
                 1);
    put(bare.fd, out, len);
    cr_assert(take(bare.fd, &bare.verdict, sizeof(bare.verdict)));
    cr_assert_eq(bare.verdict.code, CHEMPI_TCP_WELCOME);
    return bare.fd;
}

static void open_two(void)
{
    cr_assert_eq(ends_open(&ends, 2, true), 0, "%s", ends.end[0].err.text);
}

static void open_and_close(void)
{
    ends_close(&ends);
}

TestSuite(tcp_wire, .init = open_two, .fini = open_and_close, .timeout = 60);

Test(tcp_wire, a_bare_peer_with_the_secret_is_heard)
{
    int fd = proven();
    uint8_t b[64];
    struct chempi_envelope env = {.len = 3, .kind = CHEMPI_KIND_MESSAGE};
    size_t n = chempi_tcp_wire_put_eager(b, &env);

    memcpy(b + n, "abc", 3);
    for (size_t i = 0; i < n + 3; i++) {
        put(fd, b + i, 1);
        (void)ends_poll(&ends);
    }
    cr_assert(ends_wait_arrivals(&ends, 1, 1));
    (void)close(fd);
    cr_assert(ends_wait_lost(&ends, 1));
    cr_assert_neq(strstr(ends.end[1].lost_why, "connection closed by"), NULL);
}

Test(tcp_wire, garbage_instead_of_a_greeting_is_hung_up_on)
{
    uint8_t junk[4096];
    int fd;

    for (size_t len = 1; len <= sizeof(junk); len *= 4) {
        fill(junk, sizeof(junk), (unsigned)len);
        fd = bare_socket();
        put(fd, junk, len);
        for (int i = 0; i < 20; i++)
            (void)ends_poll(&ends);
        (void)shutdown(fd, SHUT_WR);
        for (int i = 0; i < 2000 && !is_closed_for(fd); i++) {
            char byte;

            (void)ends_poll(&ends);
            (void)recv(fd, &byte, 1, MSG_DONTWAIT);
        }
        cr_assert(is_closed_for(fd), "%zu", len);
        (void)close(fd);
    }
    cr_assert_eq(ends.end[1].lost, 0);
    cr_assert_eq(ends_inject(&ends, 0, 1, "x", 1, 1), CHEMPI_DONE);
    cr_assert(ends_wait_arrivals(&ends, 1, 1));
}

Test(tcp_wire, a_greeting_cut_off_anywhere_leaves_nothing_behind)
{
    struct chempi_tcp_preamble preamble;

    chempi_tcp_wire_put_preamble(&preamble, NULL, 0, 1, 0);
    for (size_t len = 0; len < sizeof(preamble); len++) {
        int fd = bare_socket();

        if (len)
            put(fd, &preamble, len);
        (void)ends_poll(&ends);
        (void)close(fd);
        (void)ends_poll(&ends);
    }
    for (int i = 0; i < 100; i++)
        (void)ends_poll(&ends);
    cr_assert_eq(
        ((struct chempi_tcp_dev *)(void *)ends.end[1].dev)->guest_count, 0u);
}

Test(tcp_wire, wrong_versions_and_strangers_are_told_so)
{
    static const struct {
        uint32_t from;
        uint32_t to;
        uint32_t network;
        unsigned code;
    } cases[] = {{0, 0, 0, CHEMPI_TCP_STRANGER},
                 {0, 2, 0, CHEMPI_TCP_STRANGER},
                 {1, 1, 0, CHEMPI_TCP_STRANGER},
                 {2, 1, 0, CHEMPI_TCP_STRANGER}};
    struct chempi_tcp_verdict verdict;
    struct chempi_tcp_preamble preamble;
    int fd;

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(cases); i++) {
        struct bare bare;

        cr_assert(greet(&bare, cases[i].from, cases[i].to, cases[i].network,
                        ends.end[0].services.secret));
        cr_assert_eq(bare.verdict.code, cases[i].code);
        (void)close(bare.fd);
    }
    chempi_tcp_wire_put_preamble(&preamble, NULL, 0, 1, 0);
    preamble.version = htole16(CHEMPI_TCP_VERSION + 1);
    fd = bare_socket();
    put(fd, &preamble, sizeof(preamble));
    cr_assert(take(fd, &verdict, sizeof(verdict)));
    cr_assert_eq(le16toh(verdict.code), CHEMPI_TCP_VERSIONS);
    (void)close(fd);
}

Test(tcp_wire, without_the_secret_nobody_gets_in)
{
    static const uint8_t wrong[32] = {9};
    struct bare bare;
    uint8_t in[CHEMPI_AUTH_MSG_MAX];
    uint8_t out[CHEMPI_AUTH_MSG_MAX];
    size_t len;

    /* The real device's proof does not convince who has another secret. */
    cr_assert(greet(&bare, 0, 1, 0, wrong));
    cr_assert(take(bare.fd, in, chempi_auth_need(&bare.auth)));
    cr_assert_eq(chempi_auth_step(&bare.auth, in, sizeof(in), out, &len, NULL),
                 -EACCES);
    /* And whatever he says instead of a proof does not help. */
    fill(out, sizeof(out), 1);
    put(bare.fd, out, 32);
    cr_assert(ends_wait(&ends, is_hung_up, &bare.fd));
    (void)close(bare.fd);
    cr_assert_eq(ends.end[1].lost, 0);
}

Test(tcp_wire, a_proof_for_one_process_is_none_for_another)
{
    struct bare bare;
    uint8_t in[CHEMPI_AUTH_MSG_MAX];
    uint8_t out[CHEMPI_AUTH_MSG_MAX];
    uint8_t context[CHEMPI_AUTH_CONTEXT_MAX];
    size_t len;

    cr_assert(greet(&bare, 0, 1, 0, ends.end[0].services.secret));
    cr_assert(take(bare.fd, in, chempi_auth_need(&bare.auth)));
    bare.auth.context_len =
        chempi_tcp_tie_context(&ends.end[0].services, NULL, 2, 1, 0, context);
    memcpy(bare.auth.context, context, bare.auth.context_len);
    cr_assert_eq(chempi_auth_step(&bare.auth, in, sizeof(in), out, &len, NULL),
                 -EACCES);
    (void)close(bare.fd);
}

Test(tcp_wire, guests_are_limited_and_the_oldest_goes)
{
    enum { COUNT = CHEMPI_TCP_GUEST_MAX + 10 };
    static int fds[COUNT];
    struct chempi_tcp_dev *dev =
        (struct chempi_tcp_dev *)(void *)ends.end[1].dev;

    for (int i = 0; i < COUNT; i++) {
        fds[i] = bare_socket();
        (void)ends_poll(&ends);
    }
    for (int i = 0; i < 100; i++)
        (void)ends_poll(&ends);
    cr_assert_eq(dev->guest_count, (uint32_t)CHEMPI_TCP_GUEST_MAX);
    cr_assert(is_closed_for(fds[0]));
    cr_assert(is_closed_for(fds[9]));
    cr_assert_not(is_closed_for(fds[10]));
    /* One of ours still gets in. */
    cr_assert_eq(ends_inject(&ends, 0, 1, "x", 1, 1), CHEMPI_DONE);
    cr_assert(ends_wait_arrivals(&ends, 1, 1));
    for (int i = 0; i < COUNT; i++)
        (void)close(fds[i]);
}

Test(tcp_wire, a_second_connection_of_the_same_process_is_refused)
{
    int fd = proven();
    struct bare bare;
    uint8_t in[CHEMPI_AUTH_MSG_MAX];
    uint8_t out[CHEMPI_AUTH_MSG_MAX];
    size_t len;

    cr_assert(greet(&bare, 0, 1, 0, ends.end[0].services.secret));
    cr_assert(take(bare.fd, in, chempi_auth_need(&bare.auth)));
    cr_assert_eq(chempi_auth_step(&bare.auth, in, sizeof(in), out, &len, NULL),
                 1);
    put(bare.fd, out, len);
    cr_assert(take(bare.fd, &bare.verdict, sizeof(bare.verdict)));
    cr_assert_eq(le16toh(bare.verdict.code), CHEMPI_TCP_DUPLICATE);
    (void)close(bare.fd);
    cr_assert_eq(ends.end[1].lost, 0);
    (void)close(fd);
}

/* Frames that a proven peer must not send: the connection ends, by name. */
static void offend(const void *bytes, size_t len)
{
    int fd = proven();

    put(fd, bytes, len);
    cr_assert(ends_wait_lost(&ends, 1));
    cr_assert_eq(ends.end[1].lost_status, -EPROTO);
    cr_assert_neq(strstr(ends.end[1].lost_why, "process 0"), NULL, "%s",
                  ends.end[1].lost_why);
    cr_assert(ends_wait(&ends, is_hung_up, &fd));
    (void)close(fd);
}

Test(tcp_wire, garbage_after_the_proof_ends_the_connection)
{
    uint8_t junk[100];

    fill(junk, sizeof(junk), 1);
    offend(junk, sizeof(junk));
}

Test(tcp_wire, a_clearance_out_of_nothing_ends_the_connection)
{
    uint8_t b[64];

    offend(b, chempi_tcp_wire_put_cts(b, (uint64_t)1 << 32, 1, 1));
}

Test(tcp_wire, a_refusal_of_nothing_ends_the_connection)
{
    uint8_t b[64];

    offend(b, chempi_tcp_wire_put_drop(b, (uint64_t)1 << 32));
}

Test(tcp_wire, data_for_nothing_ends_the_connection)
{
    uint8_t b[64];

    offend(b, chempi_tcp_wire_put_data(b, (uint64_t)1 << 32, 0, 5));
}

/* A proven peer announces `len` bytes; its receive is cleared. */
static int announced(uint64_t len, struct chempi_tcp_frame *clear)
{
    int fd = proven();
    uint8_t b[64];
    const char *why;
    struct chempi_envelope env = {.len = len, .kind = CHEMPI_KIND_MESSAGE};

    put(fd, b, chempi_tcp_wire_put_rts(b, &env, 12345));
    cr_assert(take(fd, b, sizeof(struct chempi_tcp_cts)));
    cr_assert_gt(chempi_tcp_wire_get(b, sizeof(b), clear, &why), 0);
    cr_assert_eq(clear->kind, (uint32_t)CHEMPI_TCP_CTS);
    cr_assert_eq(clear->sender, 12345u);
    cr_assert_eq(clear->take, len);
    return fd;
}

static void offend_with_data(uint64_t offset, uint32_t len, uint64_t change)
{
    struct chempi_tcp_frame clear;
    uint8_t b[64];
    int fd = announced(1000, &clear);

    put(fd, b,
        chempi_tcp_wire_put_data(b, clear.receiver ^ change, offset, len));
    cr_assert(ends_wait_lost(&ends, 1));
    cr_assert_eq(ends.end[1].lost_status, -EPROTO);
    cr_assert_eq(ends.end[1].failed, 1);
    (void)close(fd);
}

Test(tcp_wire, more_data_than_was_cleared_ends_the_connection)
{
    offend_with_data(0, 1001, 0);
}

Test(tcp_wire, data_for_another_place_ends_the_connection)
{
    offend_with_data(1, 10, 0);
}

Test(tcp_wire, data_for_a_worn_out_token_ends_the_connection)
{
    offend_with_data(0, 10, (uint64_t)1 << 33);
}

Test(tcp_wire, a_peer_that_dies_in_the_middle_of_a_message_fails_its_receive)
{
    struct chempi_tcp_frame clear;
    uint8_t b[64] = {0};
    int fd = announced(1000, &clear);
    size_t n = chempi_tcp_wire_put_data(b, clear.receiver, 0, 1000);
    const struct linger hard = {.l_onoff = 1};

    put(fd, b, n);
    put(fd, b, 10);
    for (int i = 0; i < 20; i++)
        (void)ends_poll(&ends);
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
    (void)close(fd); /* a reset */
    cr_assert(ends_wait_lost(&ends, 1));
    cr_assert_eq(ends.end[1].failed, 1);
    cr_assert_neq(strstr(ends.end[1].lost_why, "connection reset by"), NULL,
                  "%s", ends.end[1].lost_why);
}

Test(tcp_wire, a_killed_process_is_lost)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        /* The child becomes process 0: it connects, then is killed. */
        (void)ends_inject(&ends, 0, 1, "x", 1, 1);
        for (;;)
            (void)end_poll(&ends.end[0]);
    }
    cr_assert_gt(pid, 0);
    /* The parent's copy of process 0 stays out of it: its descriptors are
     * the child's, too, but nothing is connected yet. */
    while (!ends.end[1].arrival_count)
        (void)end_poll(&ends.end[1]);
    cr_assert_eq(kill(pid, SIGKILL), 0);
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    while (!ends.end[1].lost)
        (void)end_poll(&ends.end[1]);
    cr_assert_neq(strstr(ends.end[1].lost_why, "process 0"), NULL);
}

/* ---- congestion ---------------------------------------------------------- */

static void check_control(int fd, const char *wanted)
{
    char name[CHEMPI_TCP_CONGESTION_MAX] = "";
    socklen_t len = sizeof(name);

    cr_assert_eq(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &len), 0);
    cr_assert_str_eq(name, wanted);
}

Test(tcp_congestion, pacing_is_left_out_within_a_host_only)
{
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    char before[CHEMPI_TCP_CONGESTION_MAX];

    cr_assert_geq(fd, 0);
    if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "bbr", 3) < 0)
        cr_skip_test("no bbr on this system");
    chempi_tcp_link_hurry(fd, before);
    check_control(fd, "reno");
    chempi_tcp_link_calm(fd, before);
    check_control(fd, "bbr");
    cr_assert_eq(setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4), 0);
    chempi_tcp_link_hurry(fd, before);
    cr_assert_str_eq(before, "");
    chempi_tcp_link_calm(fd, before);
    check_control(fd, "reno");
    (void)close(fd);
}

Test(tcp_congestion, loopback_is_known_through_ipv6)
{
    struct chempi_address a = {.u.in6.sin6_family = AF_INET6};

    cr_assert_eq(inet_pton(AF_INET6, "::ffff:127.0.0.1", &a.u.in6.sin6_addr),
                 1);
    cr_assert(chempi_address_is_loopback(&a));
    cr_assert_eq(inet_pton(AF_INET6, "::ffff:10.0.0.1", &a.u.in6.sin6_addr), 1);
    cr_assert_not(chempi_address_is_loopback(&a));
}
