/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tcp device as one that reaches processes of other worlds: they call by
 * bond and number, and have an index that is each process's own.
 *
 *   process         0         1         2
 *   number in X     0         1         -
 *   number in Y     2         0         1
 *   process 0 calls     1 by X, 2 by Y
 *   process 1 calls     0 by Y, 2 by Y
 *   process 2 calls     0 by Y, 1 by Y
 */
#define _GNU_SOURCE /* SOCK_NONBLOCK */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libchempi/devices/host.h"
#include "libchempi/devices/tcp/internal.h"
#include "libchempi/devices/tcp/tcp.h"
#include "tests/unit/tcp/ends.h"

#define COUNT 3u
#define FIRST 5u /* index of the first process of another world */
#define NONE UINT32_MAX

enum { X, Y, BONDS };

/* What process i knows: its bonds, and whom it calls how. */
struct knowledge {
    struct chempi_bond bonds[BONDS];
    uint32_t index[COUNT];   /* of process j */
    uint32_t call_by[COUNT]; /* the bond for process j */
    bool has[BONDS];
};

static const uint32_t numbers[BONDS][COUNT] = {{0, 1, NONE}, {2, 0, 1}};
static struct knowledge known[COUNT];
static struct chempi_services jobs[COUNT];
static struct ends ends;

/* ---- what a device is handed ----------------------------------------- */

static bool place(uint32_t me, uint32_t index, struct chempi_bond_place *out)
{
    static const char *const who[COUNT] = {
        "rank 0 of world 7", "rank 1 of world 8", "rank 2 of world 9"};
    const struct knowledge *k = &known[me];

    for (uint32_t j = 0; j < COUNT; j++) {
        if (k->index[j] != index || j == me)
            continue;
        *out = (struct chempi_bond_place){.bond = &k->bonds[k->call_by[j]],
                                          .number = numbers[k->call_by[j]][j],
                                          .node = "far",
                                          .who = who[j]};
        return true;
    }
    return false;
}

static const struct chempi_bond *find(uint32_t me, const uint8_t *name)
{
    for (uint32_t b = 0; b < BONDS; b++)
        if (known[me].has[b] &&
            memcmp(known[me].bonds[b].name, name, CHEMPI_BOND_NAME_BYTES) == 0)
            return &known[me].bonds[b];
    return NULL;
}

static uint32_t index_of(uint32_t me, const struct chempi_bond *bond,
                         uint32_t number)
{
    const uint32_t b = (uint32_t)(bond - known[me].bonds);

    for (uint32_t j = 0; j < COUNT; j++)
        if (j != me && numbers[b][j] == number && number != NONE)
            return known[me].index[j];
    return NONE;
}

static bool is_before(uint32_t me, uint32_t index)
{
    for (uint32_t j = 0; j < COUNT; j++)
        if (known[me].index[j] == index)
            return me < j;
    return false;
}

static uint32_t index_end(void)
{
    return FIRST + COUNT;
}

static bool share(const struct chempi_bond *bond, uint32_t number,
                  uint8_t out[CHEMPI_BOND_SECRET_BYTES])
{
    memcpy(out, bond->secret, CHEMPI_BOND_SECRET_BYTES);
    return number < bond->size;
}

#define KNOWS(i)                                                               \
    static bool place_##i(uint32_t index, struct chempi_bond_place *out)       \
    {                                                                          \
        return place(i, index, out);                                           \
    }                                                                          \
    static const struct chempi_bond *find_##i(const uint8_t *name)             \
    {                                                                          \
        return find(i, name);                                                  \
    }                                                                          \
    static uint32_t index_##i(const struct chempi_bond *bond, uint32_t number) \
    {                                                                          \
        return index_of(i, bond, number);                                      \
    }                                                                          \
    static bool is_before_##i(uint32_t index)                                  \
    {                                                                          \
        return is_before(i, index);                                            \
    }

KNOWS(0)
KNOWS(1)
KNOWS(2)

#define TABLE(i)                                                               \
    {                                                                          \
        .place = place_##i, .find = find_##i, .index = index_##i,              \
        .secret = share, .is_before = is_before_##i, .index_begin = FIRST,     \
        .index_max = 100, .index_end = index_end                               \
    }

static const struct chempi_bonds tables[COUNT] = {TABLE(0), TABLE(1), TABLE(2)};

/* ---- the rig --------------------------------------------------------- */

static void make_known(bool is_secure)
{
    memset(known, 0, sizeof(known));
    for (uint32_t i = 0; i < COUNT; i++) {
        struct knowledge *k = &known[i];

        for (uint32_t b = 0; b < BONDS; b++) {
            k->has[b] = numbers[b][i] != NONE;
            k->bonds[b] = (struct chempi_bond){.self = numbers[b][i],
                                               .size = b == X ? 2 : 3,
                                               .is_secure = is_secure};
            memset(k->bonds[b].name, (int)(0x10 + b), CHEMPI_BOND_NAME_BYTES);
            memset(k->bonds[b].secret, (int)(0x50 + b),
                   CHEMPI_BOND_SECRET_BYTES);
        }
        for (uint32_t j = 0; j < COUNT; j++) {
            k->index[j] = FIRST + (i + 2 * j) % COUNT;
            k->call_by[j] = i == 0 && j == 1 ? X : Y;
        }
        k->index[i] = NONE;
    }
}

static void open_devices_as(const _Atomic uint64_t *settings)
{
    ends_default(&ends, COUNT);
    ends.settings = settings;
    for (uint32_t i = 0; i < COUNT; i++) {
        struct chempi_services *s = &ends.end[i].services;

        s->proc = 3; /* each in a world of its own */
        s->proc_count = FIRST;
        s->rank_count = FIRST;
        s->node = 0;
        s->node_count = 1;
        jobs[i] = *s;
        chempi_host_open_foreign(&jobs[i], &tables[i], s);
    }
    cr_assert_eq(ends_open_as(&ends, COUNT, false), 0, "%s",
                 ends.end[0].err.text);
}

static void open_devices(void)
{
    open_devices_as(NULL);
}

static void introduce(uint32_t i, uint32_t j)
{
    struct end *end = &ends.end[i];
    uint8_t card[4096];
    size_t len = sizeof(card);

    cr_assert_eq(chempi_tcp_ops.card(ends.end[j].dev, card, &len), 0);
    cr_assert_eq(chempi_tcp_ops.connect(end->dev, known[i].index[j],
                                        &end->eps[j], &end->err),
                 0, "%s", end->err.text);
    cr_assert_eq(chempi_tcp_ops.card_arrived(end->eps[j], card, len, NULL), 0);
}

static void link_devices(void)
{
    for (uint32_t i = 0; i < COUNT; i++)
        for (uint32_t j = 0; j < COUNT; j++)
            if (i != j)
                introduce(i, j);
}

static void open_all(void)
{
    make_known(false);
    open_devices();
    link_devices();
}

static void close_all(void)
{
    ends_close(&ends);
}

static struct chempi_tcp_link *link_of(uint32_t i, uint32_t j)
{
    return ((struct chempi_tcp_ep *)(void *)ends.end[i].eps[j])->links[0];
}

static uint64_t opened(uint32_t i)
{
    return ((struct chempi_tcp_dev *)(void *)ends.end[i].dev)->opened;
}

/* Nothing has come of process j's message to i but this. */
static void check_one(uint32_t i, uint32_t j)
{
    cr_assert(ends_wait_arrivals(&ends, i, 1));
    cr_assert_eq(ends.end[i].arrivals[0]->from, known[i].index[j]);
}

TestSuite(tcp_bonds, .init = open_all, .fini = close_all, .timeout = 60);
TestSuite(tcp_bonds_as, .timeout = 60); /* with devices of the test's own */

/* ---- calls ----------------------------------------------------------- */

Test(tcp_bonds, messages_come_from_who_has_that_index_here)
{
    static uint8_t data[300000];
    struct chempi_tx tx = {.iter = NULL};

    fill(data, sizeof(data), 3);
    for (uint32_t i = 0; i < COUNT; i++) {
        const uint32_t to = (i + 1) % COUNT;

        cr_assert_eq(ends_inject(&ends, i, to, "abc", 3, 1), CHEMPI_DONE);
        check_one(to, i);
    }
    (void)ends_send(&ends, 2, 1, &tx, data, sizeof(data), 1,
                    CHEMPI_TCP_PROTO_RENDEZVOUS);
    cr_assert(ends_wait_arrivals(&ends, 1, 2));
    cr_assert_eq(ends.end[1].arrivals[1]->from, known[1].index[2]);
    cr_assert(is_filled(ends.end[1].arrivals[1]->data, sizeof(data), 3));
    for (uint32_t i = 0; i < COUNT; i++) {
        cr_assert(ends_wait_drained(&ends, i));
        cr_assert_eq(opened(i), 2u);
        cr_assert_eq(ends.end[i].lost, 0);
    }
}

static void talk_both_ways(uint32_t first, unsigned polls)
{
    const uint32_t second = 1 - first;

    make_known(false);
    open_devices();
    link_devices();
    (void)ends_inject(&ends, first, second, "1", 1, 1);
    for (unsigned i = 0; i < polls; i++)
        (void)end_poll(&ends.end[i / 2 % 2]);
    (void)ends_inject(&ends, second, first, "2", 1, 1);
    check_one(0, 1);
    check_one(1, 0);
    cr_assert_eq(opened(0), 1u);
    cr_assert_eq(opened(1), 1u);
    cr_assert_eq(ends.end[0].lost + ends.end[1].lost, 0);
    ends_close(&ends);
}

/* 0 calls by X, 1 by Y: that they are the same two is known all the same. */
Test(tcp_bonds_as, calls_by_two_bonds_that_cross_end_as_one_connection)
{
    for (unsigned polls = 0; polls < 16; polls++) {
        talk_both_ways(0, polls);
        talk_both_ways(1, polls);
    }
}

Test(tcp_bonds, who_is_lost_is_called_by_name)
{
    cr_assert_eq(ends_inject(&ends, 0, 1, "x", 1, 1), CHEMPI_DONE);
    check_one(1, 0);
    (void)shutdown(link_of(1, 0)->item.fd, SHUT_RDWR);
    cr_assert(ends_wait_lost(&ends, 0));
    cr_assert_neq(strstr(ends.end[0].lost_why, "rank 1 of world 8 on node far"),
                  NULL, "%s", ends.end[0].lost_why);
}

Test(tcp_bonds, who_has_finished_is_not_lost)
{
    cr_assert_eq(ends_inject(&ends, 0, 1, "x", 1, 1), CHEMPI_DONE);
    check_one(1, 0);
    chempi_tcp_ops.close(ends.end[1].dev);
    ends.end[1].dev = NULL;
    for (int i = 0; i < 1000; i++)
        (void)ends_poll(&ends);
    cr_assert_eq(ends_inject(&ends, 0, 1, "x", 1, 1), -EPIPE);
    cr_assert_eq(ends.end[0].lost, 0);
    cr_assert_eq(ends.end[0].finished, 1);
    cr_assert_neq(strstr(ends.end[0].dev->err.text,
                         "rank 1 of world 8 on node far has already finished"),
                  NULL, "%s", ends.end[0].dev->err.text);
}

/* Writes find it before its last word is read: the first one is answered by a
 * reset, the second one fails. */
Test(tcp_bonds, nor_is_one_that_is_written_to_meanwhile)
{
    int rc = CHEMPI_DONE;

    cr_assert_eq(ends_inject(&ends, 0, 1, "x", 1, 1), CHEMPI_DONE);
    check_one(1, 0);
    chempi_tcp_ops.close(ends.end[1].dev);
    ends.end[1].dev = NULL;
    for (int i = 0; i < 1000 && rc >= 0; i++)
        rc = ends_inject(&ends, 0, 1, "x", 1, 1);
    cr_assert(rc == -EPIPE || rc == -ECONNRESET, "%d", rc);
    for (int i = 0; i < 1000; i++)
        (void)ends_poll(&ends);
    cr_assert_eq(ends.end[0].lost, 0);
    cr_assert_eq(ends.end[0].finished, 1);
}

/* Both call; returns who yields, and has been told so, whereas the other one's
 * call is not taken yet. */
static uint32_t yield(void)
{
    const uint32_t self = is_before(0, known[0].index[1]);
    struct chempi_tcp_link *link;

    (void)ends_inject(&ends, self, !self, "1", 1, 1);
    (void)ends_inject(&ends, !self, self, "2", 1, 1);
    link = link_of(self, !self);
    while (link->attempt->step != CHEMPI_TCP_STEP_YIELDED) {
        (void)end_poll(&ends.end[!self]);
        link->item.ready(&link->item, EPOLLIN | EPOLLOUT); /* or connected */
    }
    cr_assert_geq(link_of(!self, self)->yielded.fd, 0);
    return self;
}

Test(tcp_bonds, who_ends_while_others_yield_to_its_call_is_lost)
{
    const uint32_t self = yield();

    chempi_tcp_ops.close(ends.end[!self].dev);
    ends.end[!self].dev = NULL;
    cr_assert(ends_wait_lost(&ends, self));
}

Test(tcp_bonds, who_has_yielded_calls_again_when_that_ends)
{
    const uint32_t self = yield();
    struct chempi_tcp_link *link = link_of(self, !self);
    struct chempi_tcp_link *other = link_of(!self, self);

    chempi_tcp_link_drop_yielded(other);
    do
        link->item.ready(&link->item, EPOLLIN);
    while (link->attempt->step == CHEMPI_TCP_STEP_YIELDED);
    check_one(0, 1);
    check_one(1, 0);
    cr_assert_eq(other->yielded.fd, -1);
    cr_assert_eq(opened(0) + opened(1), 2u);
    cr_assert_eq(ends.end[0].lost + ends.end[1].lost, 0);
}

/* As it does when memory is missing. */
Test(tcp_bonds, who_has_yielded_waits_while_the_other_begins_anew)
{
    const uint32_t self = yield();
    struct chempi_tcp_link *other = link_of(!self, self);

    for (int i = 0; i < 20; i++) { /* more often than one may call again */
        chempi_tcp_link_put_off(other);
        chempi_tcp_connect_start(other);
        link_of(self, !self)->item.ready(&link_of(self, !self)->item, EPOLLIN);
    }
    check_one(0, 1);
    check_one(1, 0);
    cr_assert_eq(((struct chempi_tcp_dev *)(void *)ends.end[self].dev)->redials,
                 0u);
    cr_assert_eq(ends.end[0].lost + ends.end[1].lost, 0);
}

/* What it waits for is an end, or the other one's call. */
Test(tcp_bonds, who_is_told_twice_to_yield_loses_the_other)
{
    const uint32_t self = yield();
    struct chempi_tcp_verdict verdict;

    chempi_tcp_wire_put_verdict(&verdict, CHEMPI_TCP_WELCOME);
    cr_assert_eq(send(link_of(!self, self)->yielded.fd, &verdict,
                      sizeof(verdict), MSG_NOSIGNAL),
                 (ssize_t)sizeof(verdict));
    cr_assert(ends_wait_lost(&ends, self));
}

/* ---- who is refused -------------------------------------------------- */

/* Process i calls j in vain: these words, and j has heard nothing. */
static void check_refused(uint32_t i, uint32_t j, int status, const char *words)
{
    (void)ends_inject(&ends, i, j, "x", 1, 1);
    cr_assert(ends_wait_lost(&ends, i));
    cr_assert_eq(ends.end[i].lost_status, status, "%s", ends.end[i].lost_why);
    cr_assert_neq(strstr(ends.end[i].lost_why, words), NULL, "%s",
                  ends.end[i].lost_why);
    cr_assert_eq(ends.end[j].lost, 0);
    cr_assert_eq(ends.end[j].arrival_count, 0u);
}

Test(tcp_bonds, a_bond_that_is_not_known_is_refused)
{
    known[1].has[Y] = false;
    check_refused(2, 1, -ECONNREFUSED, "has not met this process");
}

Test(tcp_bonds, a_bonds_name_without_its_secret_is_refused)
{
    known[2].bonds[Y].secret[31] ^= 1;
    check_refused(2, 1, -EACCES, "could not prove that it is who was met");
}

Test(tcp_bonds, a_number_that_nobody_has_is_refused)
{
    known[2].bonds[Y].self = 3;
    check_refused(2, 1, -ECONNREFUSED, "has not met this process");
}

Test(tcp_bonds, a_member_does_not_call_as_another_one_than_it_looks_for)
{
    known[1].bonds[Y].self = 2; /* who is called says to be number 2 */
    check_refused(2, 1, -ECONNREFUSED, "has not met this process");
}

/* A bond has members of the own job, too; those have its own devices. */
Test(tcp_bonds, a_process_of_the_own_job_is_refused)
{
    known[1].index[2] = FIRST - 1;
    check_refused(2, 1, -ECONNREFUSED, "has not met this process");
}

Test(tcp_bonds, there_is_no_endpoint_for_who_is_not_known)
{
    static const uint32_t wrong[] = {0,  3,   FIRST - 1, FIRST + COUNT,
                                     99, 100, UINT32_MAX};
    struct chempi_ep *ep;

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(wrong); i++)
        cr_assert_eq(
            chempi_tcp_ops.connect(ends.end[0].dev, wrong[i], &ep, NULL),
            -EHOSTUNREACH);
}

Test(tcp_bonds, a_malformed_address_is_said_with_a_name)
{
    struct chempi_err err = {.code = 0};
    struct chempi_tcp_ep *ep =
        (struct chempi_tcp_ep *)(void *)ends.end[0].eps[1];

    ep->card_len = 0;
    cr_assert_eq(chempi_tcp_ops.card_arrived(&ep->ep, "junk", 4, &err),
                 -EBADMSG);
    cr_assert_neq(strstr(err.text, "rank 1 of world 8"), NULL, "%s", err.text);
}

/* ---- descriptors ----------------------------------------------------- */

enum { FILES = 100, SPARE = 75 }; /* the rest is the own job's */

/* No descriptor below `end` is free; opened ones are closed by the process. */
static void use_up_below(int end)
{
    const struct rlimit limit = {.rlim_cur = FILES, .rlim_max = FILES};
    int fd;

    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    do {
        fd = dup(0);
        cr_assert_geq(fd, 0);
    } while (fd < end - 1);
}

static int call_plainly(uint32_t i)
{
    const struct chempi_tcp_dev *dev =
        (const struct chempi_tcp_dev *)(void *)ends.end[i].dev;
    const struct chempi_address *a = &dev->card.entries[0].address;
    const int fd = socket(a->u.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    cr_assert_eq(connect(fd, &a->u.sa, chempi_address_len(a)), 0);
    return fd;
}

Test(tcp_bonds, strangers_leave_descriptors_to_the_job)
{
    struct chempi_tcp_verdict raw;
    struct chempi_tcp_verdict v;
    ssize_t n;
    int fd;

    use_up_below(SPARE - 1);
    fd = call_plainly(1); /* the last one that others may have */
    while ((n = recv(fd, &raw, sizeof(raw), MSG_DONTWAIT)) < 0)
        (void)ends_poll(&ends);
    cr_assert_eq(n, (ssize_t)sizeof(raw));
    cr_assert_eq(chempi_tcp_wire_get_verdict((uint8_t *)&raw, &v), 0);
    cr_assert_eq(v.code, CHEMPI_TCP_NO_FILES);
    cr_assert_neq(strstr(ends.end[1].dev->err.text, "of another world"), NULL,
                  "%s", ends.end[1].dev->err.text);
    (void)close(fd);
}

Test(tcp_bonds, nor_are_they_called_with_the_last_ones)
{
    use_up_below(SPARE);
    cr_assert_eq(ends_inject(&ends, 0, 1, "x", 1, 1), -EMFILE);
    cr_assert(ends_wait_lost(&ends, 0));
    cr_assert_neq(strstr(ends.end[0].lost_why, "no file descriptor left"), NULL,
                  "%s", ends.end[0].lost_why);
}

Test(tcp_bonds, who_is_met_has_what_is_left_over)
{
    use_up_below(SPARE - 2); /* one at each end */
    cr_assert_eq(ends_inject(&ends, 0, 1, "x", 1, 1), CHEMPI_DONE);
    check_one(1, 0);
    cr_assert_eq(ends.end[0].lost + ends.end[1].lost, 0);
}

/* ---- sealed ---------------------------------------------------------- */

Test(tcp_bonds_as, a_secure_bonds_connections_are_sealed)
{
    make_known(true);
    open_devices();
    link_devices();
    for (uint32_t i = 0; i < COUNT; i++) {
        const uint32_t to = (i + 1) % COUNT;

        cr_assert_eq(ends_inject(&ends, i, to, "abc", 3, 1), CHEMPI_DONE);
        check_one(to, i);
        cr_assert_neq(link_of(i, to)->seal, NULL);
        cr_assert_neq(link_of(to, i)->seal, NULL);
    }
    ends_close(&ends);
}

Test(tcp_bonds_as, a_device_that_is_set_to_seal_says_so)
{
    make_known(false);
    open_devices();
    cr_assert_not(ends.end[0].dev->caps->flags & CHEMPI_DEV_SEALS);
    ends_close(&ends);
    open_devices_as(ends_secure_settings());
    cr_assert(ends.end[0].dev->caps->flags & CHEMPI_DEV_SEALS);
    ends_close(&ends);
}

Test(tcp_bonds_as, who_takes_a_clear_bond_for_a_secure_one_is_refused)
{
    make_known(false);
    known[2].bonds[Y].is_secure = true;
    open_devices();
    link_devices();
    (void)ends_inject(&ends, 2, 1, "x", 1, 1);
    cr_assert(ends_wait_lost(&ends, 2));
    cr_assert_eq(ends.end[1].arrival_count, 0u);
    cr_assert_eq(ends.end[1].lost, 0);
    ends_close(&ends);
}

Test(tcp_bonds_as, keys_that_there_is_no_memory_for_lose_nobody)
{
    make_known(true);
    for (int nth = 1; nth < 40; nth++) {
        open_devices();
        link_devices();
        (void)ends_inject(&ends, 0, 1, "x", 1, 1);
        rig_fail(RIG_MALLOC, (unsigned)nth, ENOMEM, 0);
        (void)ends_wait_arrivals(&ends, 1, 1);
        rig_reset();
        check_one(1, 0);
        cr_assert_eq(ends.end[0].lost + ends.end[1].lost, 0, "%d: %s", nth,
                     ends.end[0].lost_why);
        ends_close(&ends);
    }
}

/* ---- strangers ------------------------------------------------------- */

static int stranger(uint32_t to)
{
    struct chempi_address out[CHEMPI_TCP_ENTRY_MAX];
    struct chempi_tcp_card card;
    uint8_t bytes[4096];
    size_t len = sizeof(bytes);
    int fd;

    cr_assert_eq(chempi_tcp_ops.card(ends.end[to].dev, bytes, &len), 0);
    cr_assert_eq(chempi_tcp_card_get(bytes, len, &card), 0);
    cr_assert_gt(chempi_tcp_card_choose(&card, &card, 0, out), 0u);
    fd = socket(out[0].u.sa.sa_family, SOCK_STREAM, 0);
    cr_assert_eq(connect(fd, &out[0].u.sa, chempi_address_len(&out[0])), 0);
    return fd;
}

/* What is answered to these bytes: a verdict, or -1: the end. */
static int answer(const void *bytes, size_t len)
{
    struct chempi_tcp_verdict verdict;
    int fd = stranger(1);
    size_t got = 0;
    ssize_t n = -1;

    cr_assert_eq(send(fd, bytes, len, MSG_NOSIGNAL), (ssize_t)len);
    while (got < sizeof(verdict) && n != 0) {
        (void)ends_poll(&ends);
        n = recv(fd, (char *)&verdict + got, sizeof(verdict) - got,
                 MSG_DONTWAIT);
        if (n < 0 && errno == ECONNRESET)
            break;
        got += n > 0 ? (size_t)n : 0;
    }
    (void)close(fd);
    if (got < sizeof(verdict))
        return -1;
    cr_assert_eq(chempi_tcp_wire_get_verdict(&verdict, &verdict), 0);
    return verdict.code;
}

Test(tcp_bonds, a_call_as_of_a_job_is_refused)
{
    struct chempi_tcp_preamble preamble;

    for (uint32_t from = 0; from < FIRST + COUNT; from++) {
        chempi_tcp_wire_put_preamble(&preamble, NULL, from, 3, 0);
        cr_assert_eq(answer(&preamble, sizeof(preamble)), CHEMPI_TCP_STRANGER);
    }
}

Test(tcp_bonds, names_that_are_nearly_right_are_refused)
{
    struct chempi_tcp_preamble preamble;
    uint8_t name[CHEMPI_BOND_NAME_BYTES];

    for (size_t at = 0; at < sizeof(name); at++) {
        memcpy(name, known[1].bonds[Y].name, sizeof(name));
        name[at] ^= 0x80;
        chempi_tcp_wire_put_preamble(&preamble, name, 1, 0, 0);
        cr_assert_eq(answer(&preamble, sizeof(preamble)), CHEMPI_TCP_STRANGER);
    }
}

Test(tcp_bonds, any_numbers_of_a_known_bond_are_refused_or_proven)
{
    static const uint32_t some[] = {0, 1, 2, 3, 7, 100, 65536, UINT32_MAX};
    struct chempi_tcp_preamble preamble;
    uint8_t hello[sizeof(preamble) + CHEMPI_AUTH_MSG_MAX];

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(some); i++)
        for (size_t j = 0; j < CHEMPI_ARRAY_LEN(some); j++) {
            const bool is_known =
                some[j] == 0 && (some[i] == 1 || some[i] == 2);

            chempi_tcp_wire_put_preamble(&preamble, known[1].bonds[Y].name,
                                         some[i], some[j], 0);
            memcpy(hello, &preamble, sizeof(preamble));
            memset(hello + sizeof(preamble), 0, CHEMPI_AUTH_MSG_MAX);
            cr_assert_eq(answer(hello, sizeof(hello)),
                         is_known ? -1 : CHEMPI_TCP_STRANGER, "%u to %u",
                         some[i], some[j]);
        }
    cr_assert_eq(ends.end[1].lost, 0);
}

/* A device of the job alone knows no bonds. */
Test(tcp_bonds_as, a_device_of_a_job_takes_no_call_by_a_bond)
{
    struct chempi_tcp_preamble preamble;

    make_known(false);
    cr_assert_eq(ends_open(&ends, 2, true), 0);
    chempi_tcp_wire_put_preamble(&preamble, known[1].bonds[Y].name, 0, 1, 0);
    cr_assert_eq(answer(&preamble, sizeof(preamble)), CHEMPI_TCP_STRANGER);
    ends_close(&ends);
}
