/* SPDX-License-Identifier: BSD-3-Clause */
/* Every system call that the device makes fails once, each in its turn: what
 * comes of it is a message that arrives all the same, or an error with words;
 * never a hang, a crash or a descriptor left behind. */
#define _GNU_SOURCE /* RLIMIT_NOFILE */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "libchempi/devices/tcp/internal.h"
#include "libchempi/devices/tcp/tcp.h"
#include "libchempi/services/pollset.h"
#include "tests/unit/tcp/ends.h"

static struct ends ends;
static uint8_t data[300000];

static int open_files(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;

    cr_assert_not_null(dir);
    while (readdir(dir))
        n++;
    (void)closedir(dir);
    return n;
}

/* Over for this side: it has what it waits for, or knows that it will not. */
static bool is_settled(struct ends *all, const void *arg)
{
    (void)arg;
    return all->end[0].lost || all->end[1].lost ||
           (end_complete(&all->end[1]) >= 3 &&
            end_complete(&all->end[0]) >= 1 && all->end[0].sent >= 2);
}

/* A small, an eager and an announced message one way, a small one back.
 * Returns 0 when all arrived, else what went wrong. */
static int converse(struct chempi_tx txs[2])
{
    int rc = ends_inject(&ends, 0, 1, data, 10, 1);

    if (rc < 0)
        return rc;
    rc = ends_send(&ends, 0, 1, &txs[0], data, 100000, 2, 0);
    if (rc < 0)
        return rc;
    rc = ends_send(&ends, 0, 1, &txs[1], data, sizeof(data), 3, 1);
    if (rc < 0)
        return rc;
    rc = ends_inject(&ends, 1, 0, data, 10, 4);
    if (rc < 0)
        return rc;
    cr_assert(ends_wait(&ends, is_settled, NULL));
    for (uint32_t i = 0; i < 2; i++) {
        if (ends.end[i].lost) {
            cr_assert_neq(ends.end[i].lost_why[0], '\0');
            return ends.end[i].lost_status;
        }
    }
    return 0;
}

static void check_words(int rc)
{
    bool has_words = false;

    if (rc == 0 || rc == -ENOMEM)
        return;
    for (uint32_t i = 0; i < 2; i++)
        has_words = has_words || ends.end[i].err.text[0] ||
                    (ends.end[i].dev && ends.end[i].dev->err.text[0]);
    cr_assert(has_words, "%d", rc);
}

/* The nth call of these fails with error, for every n that happens. */
static void walk(unsigned which, int error)
{
    int files = 0;

    for (unsigned nth = 1;; nth++) {
        struct chempi_tx txs[2] = {{.iter = NULL}, {.iter = NULL}};
        unsigned calls;
        int rc;

        if (nth == 2)
            files = open_files(); /* the first round warms libraries up */
        rig_fail(which, nth, error, 0);
        rc = ends_open(&ends, 2, true);
        if (rc) /* the pollset has no words: the number says enough */
            cr_assert(ends.end[0].dev == NULL || ends.end[1].dev == NULL ||
                      ends.end[0].err.text[0] || ends.end[1].err.text[0]);
        else
            check_words(converse(txs));
        calls = rig_calls();
        rig_reset();
        ends_close(&ends);
        if (nth >= 2)
            cr_assert_eq(open_files(), files, "call %u of %x", nth, which);
        if (calls < nth)
            return; /* every one has had its turn */
    }
}

TestSuite(tcp_fault, .timeout = 110);

Test(tcp_fault, sockets_refused)
{
    walk(RIG_SOCKET, EMFILE);
}
Test(tcp_fault, sockets_of_no_such_family)
{
    walk(RIG_SOCKET, EAFNOSUPPORT);
}
Test(tcp_fault, binding_refused)
{
    walk(RIG_BIND, EADDRINUSE);
}
Test(tcp_fault, listening_refused)
{
    walk(RIG_LISTEN, EADDRINUSE);
}
Test(tcp_fault, accepting_fails)
{
    walk(RIG_ACCEPT, ECONNABORTED);
}
Test(tcp_fault, accepting_interrupted)
{
    walk(RIG_ACCEPT, EINTR);
}
Test(tcp_fault, accepting_out_of_files)
{
    walk(RIG_ACCEPT, EMFILE);
}
Test(tcp_fault, connecting_refused)
{
    walk(RIG_CONNECT, ECONNREFUSED);
}
Test(tcp_fault, connecting_without_a_route)
{
    walk(RIG_CONNECT, ENETUNREACH);
}
Test(tcp_fault, sending_fails)
{
    walk(RIG_SEND, ECONNRESET);
}
Test(tcp_fault, sending_interrupted)
{
    walk(RIG_SEND, EINTR);
}
Test(tcp_fault, sending_would_block)
{
    walk(RIG_SEND, EAGAIN);
}
Test(tcp_fault, receiving_fails)
{
    walk(RIG_RECV, ECONNRESET);
}
Test(tcp_fault, receiving_interrupted)
{
    walk(RIG_RECV, EINTR);
}
Test(tcp_fault, receiving_would_block)
{
    walk(RIG_RECV, EAGAIN);
}
Test(tcp_fault, memory_refused)
{
    walk(RIG_MALLOC, ENOMEM);
}
Test(tcp_fault, polling_refused)
{
    walk(RIG_EPOLL, ENOSPC);
}
Test(tcp_fault, files_refused)
{
    walk(RIG_OPEN, EMFILE);
}

Test(tcp_fault, an_interrupted_or_postponed_call_loses_nothing)
{
    static const int errors[] = {EINTR, EAGAIN};

    for (size_t e = 0; e < 2; e++) {
        for (unsigned nth = 1;; nth++) {
            struct chempi_tx txs[2] = {{.iter = NULL}, {.iter = NULL}};
            unsigned calls;

            cr_assert_eq(ends_open(&ends, 2, true), 0);
            cr_assert_eq(ends_inject(&ends, 1, 0, "x", 1, 1), 0);
            cr_assert(ends_wait_arrivals(&ends, 0, 1));
            rig_fail(RIG_SEND | RIG_RECV, nth, errors[e], 0);
            cr_assert_eq(converse(txs), 0, "call %u", nth);
            calls = rig_calls();
            rig_reset();
            ends_close(&ends);
            if (calls < nth)
                break;
        }
    }
}

static bool is_unread(struct ends *all, const void *arg)
{
    (void)arg;
    return ((struct chempi_tcp_dev *)(void *)all->end[0].dev)->unread.link !=
           NULL;
}

static void open_ends(uint32_t count, bool is_secure, bool is_linked)
{
    ends_default(&ends, count);
    ends.settings = is_secure ? ends_secure_settings() : NULL;
    cr_assert_eq(ends_open_as(&ends, count, is_linked), 0);
}

/* The others have talked to process 0 once; what 1 and, if so, others say now
 * has no memory there. */
static void starve(uint32_t count, bool is_secure, uint32_t refused)
{
    open_ends(count, is_secure, true);
    for (uint32_t i = 1; i < count; i++)
        cr_assert_eq(ends_inject(&ends, i, 0, "x", 1, 1), 0);
    cr_assert(ends_wait_arrivals(&ends, 0, count - 1));
    ends.end[0].refused = refused;
    fill(data, sizeof(data), 1);
    cr_assert_eq(ends_inject(&ends, 1, 0, data, 1000, 1), 0);
    cr_assert(ends_wait(&ends, is_unread, NULL));
}

/* What one process sent last is read while there is no memory for what another
 * one has sent. */
Test(tcp_fault, what_waits_for_memory_holds_nothing_back_of_an_ended_process)
{
    struct end *end = &ends.end[0];

    starve(3, false, 1u << 1);
    cr_assert(chempi_tcp_ops.is_ready(end->dev));
    cr_assert_eq(ends_inject(&ends, 2, 0, "last", 4, 2), 0);
    cr_assert(ends_wait_drained(&ends, 2));
    chempi_tcp_ops.close(ends.end[2].dev);
    ends.end[2].dev = NULL;
    cr_assert_eq(chempi_tcp_ops.ended(end->dev, 2), CHEMPI_REMAINS_NONE);
    cr_assert_eq(end->arrival_count, 3u);
    cr_assert_eq(end->arrivals[2]->from, 2u);
    cr_assert_eq(memcmp(end->arrivals[2]->data, "last", 4), 0);
    cr_assert(is_unread(&ends, NULL));
    cr_assert_eq(chempi_tcp_ops.ended(end->dev, 1), CHEMPI_REMAINS_LEFT);
    (void)end_poll(end); /* whatever else there may have been */
    cr_assert_eq(end_poll(end), 0);
    end->refused = 0;
    (void)end_poll(end);
    cr_assert_eq(end->arrival_count, 4u);
    cr_assert(is_filled(end->arrivals[3]->data, 1000, 1));
    ends_close(&ends);
}

/* The same of one that has sent something without memory, too. */
Test(tcp_fault, what_waits_for_memory_loses_nothing_of_an_ended_process)
{
    struct end *end = &ends.end[0];

    starve(3, false, 1u << 1 | 1u << 2);
    cr_assert_eq(ends_inject(&ends, 2, 0, "last", 4, 2), 0);
    cr_assert(ends_wait_drained(&ends, 2));
    cr_assert_eq(end->arrival_count, 2u);
    (void)end_poll(end); /* whatever else there may have been */
    cr_assert_eq(end_poll(end), 0);
    cr_assert_gt(chempi_pollset_collect(end->services.pollset, 0), 0);
    cr_assert_eq(chempi_pollset_dispatch(end->services.pollset), 0);
    chempi_tcp_ops.close(ends.end[2].dev);
    ends.end[2].dev = NULL;
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(chempi_tcp_ops.ended(end->dev, 2), CHEMPI_REMAINS_LEFT);
        (void)end_poll(end);
    }
    cr_assert(is_unread(&ends, NULL));
    cr_assert_eq(end->arrival_count, 2u);
    end->refused = 0;
    cr_assert_eq(chempi_tcp_ops.ended(end->dev, 2), CHEMPI_REMAINS_NONE);
    cr_assert_eq(end->arrival_count, 3u);
    cr_assert_eq(end->arrivals[2]->from, 2u);
    cr_assert_eq(memcmp(end->arrivals[2]->data, "last", 4), 0);
    (void)end_poll(end);
    cr_assert_eq(end->arrival_count, 4u);
    cr_assert(is_filled(end->arrivals[3]->data, 1000, 1));
    ends_close(&ends);
}

/* Small, long, announced and strided ones, in this order; also by writes that
 * cut frames. */
static void send_each_kind(uint32_t from, size_t max)
{
    static struct chempi_tx txs[2];

    rig_limit(max);
    txs[0].iter = NULL;
    txs[1].iter = NULL;
    for (int i = 0; i < 40; i++)
        cr_assert_eq(ends_inject(&ends, from, 0, data, 4000, 1), 0);
    cr_assert_geq(ends_send(&ends, from, 0, &txs[0], data, sizeof(data), 2, 0),
                  0);
    cr_assert_geq(ends_send(&ends, from, 0, &txs[1], data, sizeof(data), 3, 1),
                  0);
}

/* From here on, what one process has sent by send_each_kind(). */
static void check_each_kind(size_t at, uint32_t from)
{
    const struct end *end = &ends.end[0];
    int tags[3] = {0, 0, 0};

    for (size_t i = at; i < end->arrival_count; i++) {
        const struct arrival *a = end->arrivals[i];

        if (a->from != from)
            continue;
        cr_assert(a->is_complete);
        cr_assert(is_filled(a->data, (size_t)a->env.len, 1));
        cr_assert_eq(a->env.len, a->env.tag == 1 ? 4000u : sizeof(data));
        tags[a->env.tag - 1]++;
        cr_assert(a->env.tag > 1 || (tags[1] == 0 && tags[2] == 0));
    }
    cr_assert_eq(tags[0], 40);
    cr_assert_eq(tags[1], 1);
    cr_assert_eq(tags[2], 1);
}

/* 1 and 2 wait, 3 does not; then all have come, each in its order. */
static void hold_back_two(bool is_secure, size_t max)
{
    struct end *end = &ends.end[0];

    starve(4, is_secure, 1u << 1 | 1u << 2);
    send_each_kind(2, max);
    for (int i = 0; i < 20; i++)
        (void)ends_poll(&ends);
    cr_assert_eq(end->arrival_count, 3u);
    send_each_kind(3, max);
    cr_assert(ends_wait_arrivals(&ends, 0, 45), "%zu", end_complete(end));
    check_each_kind(3, 3);
    cr_assert(is_unread(&ends, NULL));
    end->refused = 1u << 2;
    cr_assert(ends_wait_arrivals(&ends, 0, 46));
    cr_assert_eq(end->arrivals[45]->from, 1u);
    (void)end_poll(end); /* whatever else there may have been */
    cr_assert(is_unread(&ends, NULL));
    end->refused = 0;
    cr_assert(ends_wait_arrivals(&ends, 0, 88));
    check_each_kind(46, 2);
    rig_reset();
    ends_close(&ends);
}

Test(tcp_fault, what_waits_for_memory_holds_back_its_connection_alone)
{
    static const size_t pieces[] = {0, 3000, 37};

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(pieces); i++)
        hold_back_two(false, pieces[i]);
}

Test(tcp_fault, what_waits_for_memory_holds_back_its_sealed_connection_alone)
{
    hold_back_two(true, 0);
    hold_back_two(true, 3000);
}

/* Each call of these is refused once for want of memory: messages arrive all
 * the same. is_met: the processes are connected before; max: as rig_limit(). */
static void refuse_each(unsigned which, bool is_met, size_t max, bool is_secure)
{
    unsigned calls = 1;

    for (unsigned nth = 1; nth <= calls; nth++) {
        struct chempi_tx txs[2] = {{.iter = NULL}, {.iter = NULL}};
        int rc;

        open_ends(2, is_secure, true);
        if (is_met) {
            cr_assert_eq(ends_inject(&ends, 1, 0, "x", 1, 1), 0);
            cr_assert(ends_wait_arrivals(&ends, 0, 1));
        }
        rig_limit(max);
        rig_fail(which, nth, ENOMEM, 0);
        rc = converse(txs);
        calls = rig_calls();
        rig_reset();
        cr_assert_eq(rc, 0, "call %u of %x: %d", nth, which, rc);
        for (uint32_t i = 0; i < 2; i++)
            cr_assert_eq(ends.end[i].lost, 0, "call %u of %x: %s", nth, which,
                         ends.end[i].lost_why);
        ends_close(&ends);
    }
    cr_assert_gt(calls, 1);
}

Test(tcp_fault, memory_that_is_missing_once_loses_no_process)
{
    refuse_each(RIG_MALLOC, true, 0, false);
}

Test(tcp_fault, memory_that_is_missing_once_loses_no_process_of_a_secure_job)
{
    refuse_each(RIG_MALLOC, true, 0, true);
}

/* By the kernel; writes are cut, so that many of them wait for room. */
Test(tcp_fault, a_descriptor_that_is_not_watched_once_loses_no_process)
{
    refuse_each(RIG_EPOLL, false, 9000, false);
    refuse_each(RIG_EPOLL, false, 9000, true);
}

/* The kernel takes a part of a small message, and there is no memory for the
 * rest: then nothing of it leaves. */
Test(tcp_fault, a_small_message_that_leaves_in_part_has_room_for_the_rest)
{
    const struct chempi_envelope env = {
        .len = 1000, .context = 5, .tag = 2, .kind = CHEMPI_KIND_MESSAGE};
    const struct end *end = &ends.end[0];

    cr_assert_eq(ends_open(&ends, 2, true), 0);
    cr_assert_eq(ends_inject(&ends, 1, 0, "x", 1, 1), 0);
    cr_assert(ends_wait_arrivals(&ends, 0, 1));
    fill(data, 1000, 1);
    rig_limit(100);
    rig_fail(RIG_MALLOC, 1, ENOMEM, 0);
    cr_assert_eq(chempi_tcp_ops.inject(end->eps[1], &env, data, 1000, false),
                 -EAGAIN);
    cr_assert_eq(rig_calls(), 1);
    cr_assert_eq(chempi_tcp_ops.inject(end->eps[1], &env, data, 1000, false),
                 CHEMPI_DONE);
    rig_reset();
    cr_assert(ends_wait_arrivals(&ends, 1, 1));
    cr_assert(is_filled(ends.end[1].arrivals[0]->data, 1000, 1));
    ends_close(&ends);
}

/* Two connections that are being made; there is no memory for a message of
 * one. */
Test(tcp_fault, a_shortage_of_one_connection_does_not_end_with_another_one)
{
    const size_t len = CHEMPI_TCP_INJECT_MAX;
    const struct chempi_envelope env = {.tag = 1, .len = len};
    const struct end *end = &ends.end[0];
    const struct chempi_tcp_ep *ep;

    ends_default(&ends, 3);
    cr_assert_eq(ends_open_as(&ends, 3, true), 0);
    ep = (const struct chempi_tcp_ep *)(void *)end->eps[1];
    cr_assert_eq(ends_inject(&ends, 0, 1, "x", 1, 1), CHEMPI_DONE);
    rig_fail(RIG_MALLOC, 1, ENOMEM, 0);
    cr_assert_eq(chempi_tcp_ops.inject(end->eps[1], &env, data, len, false),
                 -EAGAIN);
    cr_assert_gt(rig_calls(), 0);
    rig_reset();
    cr_assert(chempi_shortage_is(&ep->links[0]->sending));
    cr_assert_eq(ends_inject(&ends, 0, 2, data, len, 1), CHEMPI_DONE);
    cr_assert(chempi_shortage_is(&ep->links[0]->sending));
    cr_assert_eq(ends_inject(&ends, 0, 1, data, len, 1), CHEMPI_DONE);
    cr_assert(!chempi_shortage_is(&ep->links[0]->sending));
    cr_assert(ends_wait_arrivals(&ends, 1, 2));
    cr_assert(ends_wait_arrivals(&ends, 2, 1));
    ends_close(&ends);
}

/* Process 0 has the address of 1, which knows nothing of it. */
static void be_strangers(bool is_secure, uint8_t card[CHEMPI_TCP_CARD_BYTES],
                         size_t *len)
{
    struct end *end = &ends.end[0];

    open_ends(2, is_secure, false);
    *len = CHEMPI_TCP_CARD_BYTES;
    cr_assert_eq(chempi_tcp_ops.card(ends.end[1].dev, card, len), 0);
    cr_assert_eq(chempi_tcp_ops.connect(end->dev, 1, &end->eps[1], &end->err),
                 0);
}

/* An address is taken without memory; who connects waits for it, as does who is
 * connected to. */
static void connect_without_memory(bool is_secure)
{
    uint8_t card[CHEMPI_TCP_CARD_BYTES];
    size_t len;
    struct end *end = &ends.end[0];
    struct chempi_tx tx = {.iter = NULL};

    be_strangers(is_secure, card, &len);
    rig_fail(RIG_MALLOC, 1, ENOMEM, 0);
    cr_assert_eq(chempi_tcp_ops.card_arrived(end->eps[1], card, len, &end->err),
                 0);
    cr_assert_geq(ends_send(&ends, 0, 1, &tx, "first", 5, 1, 0), 0);
    for (int i = 0; i < 3; i++) {
        cr_assert(chempi_tcp_ops.is_ready(end->dev));
        rig_fail(RIG_MALLOC, 1, ENOMEM, 0);
        (void)end_poll(end);
        cr_assert_gt(rig_calls(), 0);
    }
    rig_reset();
    for (int i = 0; i < 50; i++) {
        (void)end_poll(end);
        rig_fail(RIG_MALLOC, 1, ENOMEM, 0);
        (void)end_poll(&ends.end[1]);
        rig_reset();
    }
    cr_assert_eq(ends.end[1].arrival_count, 0u);
    cr_assert(ends_wait_arrivals(&ends, 1, 1));
    cr_assert_eq(ends.end[0].lost, 0, "%s", ends.end[0].lost_why);
    cr_assert_eq(ends.end[1].lost, 0, "%s", ends.end[1].lost_why);
    ends_close(&ends);
}

Test(tcp_fault, to_connect_waits_for_memory)
{
    connect_without_memory(false);
}

Test(tcp_fault, to_connect_in_a_secure_job_waits_for_memory)
{
    connect_without_memory(true);
}

/* Each piece of memory is refused once while they connect. */
static void refuse_each_to_connect(bool is_secure)
{
    unsigned calls = 1;

    for (unsigned nth = 1; nth <= calls; nth++) {
        uint8_t card[CHEMPI_TCP_CARD_BYTES];
        size_t len;
        struct end *end = &ends.end[0];

        be_strangers(is_secure, card, &len);
        rig_fail(RIG_MALLOC, nth, ENOMEM, 0);
        cr_assert_eq(
            chempi_tcp_ops.card_arrived(end->eps[1], card, len, &end->err), 0);
        cr_assert_eq(ends_inject(&ends, 0, 1, "x", 1, 1), CHEMPI_DONE);
        cr_assert(ends_wait_arrivals(&ends, 1, 1), "piece %d: %s", nth,
                  end->lost_why);
        calls = rig_calls();
        rig_reset();
        cr_assert_eq(ends.end[0].lost, 0, "%s", ends.end[0].lost_why);
        cr_assert_eq(ends.end[1].lost, 0, "%s", ends.end[1].lost_why);
        ends_close(&ends);
    }
    cr_assert_gt(calls, 3);
}

Test(tcp_fault, each_piece_of_memory_to_connect_may_be_missing_once)
{
    refuse_each_to_connect(false);
    refuse_each_to_connect(true);
}

static bool has_loss(struct ends *all, const void *arg)
{
    (void)arg;
    return all->end[0].lost > 0 || all->end[0].sent_failed > 0;
}

/* A write fails while something that has come waits for memory: the peer is
 * lost, but all of it is read before that is told. */
Test(tcp_fault, a_write_that_fails_loses_nothing_that_had_come)
{
    struct end *end = &ends.end[0];
    struct chempi_tx tx = {.iter = NULL};

    cr_assert_eq(ends_open(&ends, 2, true), 0);
    cr_assert_eq(ends_inject(&ends, 1, 0, "x", 1, 1), 0);
    cr_assert(ends_wait_arrivals(&ends, 0, 1));
    end->refused = 1u << 1;
    fill(data, 1000, 1);
    cr_assert_eq(ends_inject(&ends, 1, 0, data, 1000, 1), 0);
    cr_assert(ends_wait(&ends, is_unread, NULL));
    cr_assert_eq(ends_inject(&ends, 1, 0, "last", 4, 2), 0);
    cr_assert(ends_wait_drained(&ends, 1));
    rig_limit(1000); /* and the next time that there is room: */
    cr_assert_eq(ends_send(&ends, 0, 1, &tx, data, 100000, 1, 0),
                 CHEMPI_PENDING);
    rig_fail(RIG_SEND, 1, ECONNRESET, 0);
    for (int i = 0; i < 10; i++)
        (void)end_poll(end);
    rig_reset();
    cr_assert_eq(ends_inject(&ends, 0, 1, "x", 1, 1), -ECONNRESET);
    cr_assert_eq(end_poll(end), 0);
    cr_assert(chempi_tcp_ops.is_ready(end->dev));
    cr_assert_eq(chempi_tcp_ops.ended(end->dev, 1), CHEMPI_REMAINS_LEFT);
    cr_assert(is_unread(&ends, NULL));
    cr_assert_not(has_loss(&ends, NULL));
    cr_assert_eq(end->arrival_count, 1u);
    end->refused = 0;
    (void)end_poll(end);
    cr_assert_eq(end->lost, 1);
    cr_assert_eq(end->lost_status, -ECONNRESET);
    cr_assert_eq(end->sent_failed, 1);
    cr_assert_eq(end->arrival_count, 3u);
    cr_assert(is_filled(end->arrivals[1]->data, 1000, 1));
    cr_assert_eq(memcmp(end->arrivals[2]->data, "last", 4), 0);
    cr_assert(ends_wait_drained(&ends, 0));
    cr_assert(ends_wait_lost(&ends, 1));
    ends_close(&ends);
}

/* Leave this process only so many free descriptors. */
static int use_up_files(int left, int *fds, int max)
{
    struct rlimit limit = {.rlim_cur = 100, .rlim_max = 100};
    int n = 0;

    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    while (n < max && (fds[n] = open("/dev/null", O_RDONLY)) >= 0)
        n++;
    for (int i = 0; i < left; i++)
        (void)close(fds[--n]);
    return n;
}

Test(tcp_fault, running_out_of_descriptors_is_said_with_the_remedy)
{
    int fds[100];

    cr_assert_eq(ends_open(&ends, 2, true), 0);
    (void)use_up_files(0, fds, 100);
    cr_assert_eq(ends_inject(&ends, 0, 1, "x", 1, 1), -EMFILE);
    cr_assert_neq(strstr(ends.end[0].dev->err.text, "ulimit -n"), NULL);
    cr_assert_neq(strstr(ends.end[0].dev->err.text, "100"), NULL);
    cr_assert(ends_wait_lost(&ends, 0));
}

Test(tcp_fault, a_peer_out_of_descriptors_says_so)
{
    int fds[100];

    cr_assert_eq(ends_open(&ends, 2, true), 0);
    (void)use_up_files(1, fds, 100); /* for the socket that connects */
    cr_assert_eq(ends_inject(&ends, 0, 1, "x", 1, 1), CHEMPI_DONE);
    cr_assert(ends_wait_lost(&ends, 0));
    cr_assert_neq(strstr(ends.end[0].lost_why, "no file descriptor left"), NULL,
                  "%s", ends.end[0].lost_why);
    cr_assert_eq(ends.end[1].lost, 0);
    cr_assert_neq(strstr(ends.end[1].dev->err.text, "ulimit -n"), NULL);
}

Test(tcp_fault, the_soft_limit_of_descriptors_is_lifted_first)
{
    struct rlimit limit;
    int files;

    cr_assert_eq(ends_open(&ends, 2, true), 0);
    files = open_files();
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = (rlim_t)files - 2;
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    cr_assert_eq(ends_inject(&ends, 0, 1, "x", 1, 1), CHEMPI_DONE);
    cr_assert(ends_wait_arrivals(&ends, 1, 1));
    ends_close(&ends);
}

Test(tcp_fault, nobody_listening_is_said_with_the_address)
{
    cr_assert_eq(ends_open(&ends, 2, true), 0);
    chempi_tcp_ops.close(ends.end[1].dev);
    ends.end[1].dev = NULL;
    (void)ends_inject(&ends, 0, 1, "x", 1, 1);
    cr_assert(ends_wait_lost(&ends, 0));
    cr_assert_neq(strstr(ends.end[0].lost_why, "cannot connect to"), NULL);
    cr_assert_neq(strstr(ends.end[0].lost_why, "refused"), NULL);
    ends_close(&ends);
}

Test(tcp_fault, two_jobs_do_not_talk_to_each_other)
{
    static const uint8_t other[32] = {42};

    ends_default(&ends, 2);
    ends.end[1].services.secret = other;
    cr_assert_eq(ends_open_as(&ends, 2, true), 0);
    (void)ends_inject(&ends, 0, 1, "x", 1, 1);
    cr_assert(ends_wait_lost(&ends, 0));
    cr_assert_eq(ends.end[0].lost_status, -EACCES);
    cr_assert_neq(strstr(ends.end[0].lost_why, "belongs to this job"), NULL,
                  "%s", ends.end[0].lost_why);
    cr_assert_eq(ends.end[1].lost, 0);
    cr_assert_eq(ends.end[1].arrival_count, 0u);
    ends_close(&ends);
}

/* Ranks 0 and 1, of which 1 is played by whoever has what gateways have, and
 * gateway 2. */
Test(tcp_fault, who_has_what_gateways_have_is_no_rank)
{
    static const uint8_t key[32] = {7};

    ends_default(&ends, 3);
    ends.settings = ends_secure_settings();
    for (uint32_t i = 0; i < 3; i++)
        ends.end[i].services.rank_count = 2;
    ends.end[0].services.rank_key = key;
    cr_assert_eq(ends_open_as(&ends, 3, true), 0);
    (void)ends_inject(&ends, 1, 0, "x", 1, 1);
    cr_assert(ends_wait_lost(&ends, 1));
    cr_assert_eq(ends.end[0].arrival_count, 0u);
    (void)ends_inject(&ends, 2, 0, "y", 1, 1);
    cr_assert(ends_wait_arrivals(&ends, 0, 1));
    ends_close(&ends);
}

Test(tcp_fault, closing_with_work_pending_is_quiet)
{
    struct chempi_tx txs[3] = {{.iter = NULL}, {.iter = NULL}, {.iter = NULL}};

    cr_assert_eq(ends_open(&ends, 2, true), 0);
    (void)ends_inject(&ends, 0, 1, data, 10, 1);
    (void)ends_send(&ends, 0, 1, &txs[0], data, 100000, 1, 0);
    (void)ends_send(&ends, 0, 1, &txs[1], data, sizeof(data), 1, 1);
    for (int i = 0; i < 5; i++)
        (void)ends_poll(&ends);
    (void)ends_send(&ends, 1, 0, &txs[2], data, sizeof(data), 1, 1);
    ends_close(&ends);
    chempi_tcp_ops.close(NULL);
}
