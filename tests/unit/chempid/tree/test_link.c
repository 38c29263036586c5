/* SPDX-License-Identifier: BSD-3-Clause */
/* Links in a loop: turns (L6), and times without memory (L5). */
#define _GNU_SOURCE /* SOCK_CLOEXEC */
#include <criterion/criterion.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "chempid/tree/link.h"
#include "common/auth/seal.h"
#include "common/base/clock.h"
#include "common/base/sys.h"

#define MANY 1000u /* frames, of one write */
#define IN_MAX 4096u
#define QUEUE_MAX (1u << 20)

struct side {
    struct chempi_link link;
    int peer; /* the other end */
    uint64_t taken;
    uint64_t before; /* what its neighbour had taken at its first frame */
    int lost;        /* code */
    struct side *neighbour;
};

static struct ev_loop *loop;
static struct side busy;
static struct side quiet;
static struct chempi_sys rigged;

static void send_from(int fd, uint64_t first, uint64_t count)
{
    struct chempi_channel ch;

    chempi_channel_init(&ch, fd, IN_MAX, QUEUE_MAX);
    for (uint64_t i = first; i < first + count; i++)
        cr_assert_eq(chempi_channel_send(&ch, 1, i, NULL, 0), 0);
    cr_assert_eq(chempi_channel_flush(&ch), 0);
    ch.fd = -1; /* not ours to close */
    chempi_channel_fini(&ch);
}

/* The first frame of the busy side makes one for the quiet side, which the
 * loop can see in its next iteration only. */
static int on_frame(struct chempi_link *link, const struct chempi_frame *frame,
                    struct chempi_err *err)
{
    struct side *s = link->arg;

    (void)err;
    cr_expect_eq(frame->job, s->taken, "in order");
    if (s->taken++ == 0 && s->neighbour)
        s->before = s->neighbour->taken;
    if (s == &busy && s->taken == 1)
        send_from(quiet.peer, 0, 1);
    return 0;
}

static void on_lost(struct chempi_link *link, int code,
                    const struct chempi_err *err)
{
    struct side *s = link->arg;

    (void)err;
    cr_expect_eq(s->lost, 0, "once");
    s->lost = code;
    chempi_link_close(link);
}

static void open_side(struct side *s, struct side *neighbour, bool is_shared)
{
    int fds[2];

    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    *s = (struct side){.peer = fds[1], .neighbour = neighbour};
    chempi_link_prepare(&s->link, loop, IN_MAX, QUEUE_MAX);
    s->link.on_frame = on_frame;
    s->link.on_lost = on_lost;
    s->link.arg = s;
    s->link.is_shared = is_shared;
    s->link.ch.fd = fds[0];
}

static void close_side(struct side *s)
{
    chempi_link_close(&s->link);
    if (s->peer >= 0)
        (void)close(s->peer);
}

static void set_up(void)
{
    loop = ev_loop_new(EVFLAG_AUTO);
    cr_assert(loop);
    rigged = chempi_sys_libc;
    open_side(&busy, NULL, true);
    open_side(&quiet, &busy, true);
}

static void tear_down(void)
{
    chempi_sys = &chempi_sys_libc;
    close_side(&busy);
    close_side(&quiet);
    ev_loop_destroy(loop);
}

TestSuite(link, .init = set_up, .fini = tear_down, .timeout = 30);

Test(link, others_have_their_turn)
{
    chempi_link_start(&busy.link, busy.link.ch.fd);
    chempi_link_start(&quiet.link, quiet.link.ch.fd);
    send_from(busy.peer, 0, MANY);
    (void)close(busy.peer);
    busy.peer = -1;

    while (!busy.lost)
        (void)ev_run(loop, EVRUN_ONCE);
    cr_expect_eq(busy.taken, MANY, "all come before the end");
    cr_expect_eq(busy.lost, -EPIPE);
    cr_expect_eq(quiet.taken, 1);
    cr_expect_leq(quiet.before, 128, "two turns of 64");
}

/* Links of users, whose frames are dear. */
#define USERS 20u
#define DEAR_NS (3 * CHEMPI_NS_PER_MS)
#define OF_AN_ITERATION 4u /* of them have a turn: 10 ms are enough for */

static struct side users[USERS];

static int on_dear_frame(struct chempi_link *link,
                         const struct chempi_frame *frame,
                         struct chempi_err *err)
{
    const uint64_t end = chempi_clock_ns() + DEAR_NS;
    struct side *s = link->arg;

    (void)err;
    cr_expect_eq(frame->job, s->taken++, "in order");
    /* Those of an iteration come in any order in a later one. */
    for (unsigned i = 0; i < USERS; i++)
        cr_expect_geq(users[i].taken + 2, s->taken, "nobody waits for long");
    while (chempi_clock_ns() < end)
        ;
    return 0;
}

static uint64_t taken_by_users(void)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < USERS; i++)
        n += users[i].taken;
    return n;
}

Test(link, users_together_leave_time_to_others)
{
    const uint64_t frames = 5;

    for (unsigned i = 0; i < USERS; i++) {
        open_side(&users[i], NULL, false);
        users[i].link.on_frame = on_dear_frame;
        chempi_link_start(&users[i].link, users[i].link.ch.fd);
        send_from(users[i].peer, 0, frames);
    }
    while (taken_by_users() < frames * USERS) {
        const uint64_t before = taken_by_users();

        (void)ev_run(loop, EVRUN_ONCE);
        cr_assert_gt(taken_by_users(), before, "the loop does not idle");
        cr_assert_leq(taken_by_users() - before, OF_AN_ITERATION);
    }
    for (unsigned i = 0; i < USERS; i++)
        close_side(&users[i]);
}

/* Of one user, and all of them always have more. */
#define CROWD 64u
/* Until the other one's link is read, is put off behind links whose user had a
 * turn in the same iteration, and comes first: with 1 to spare. */
#define ITERATIONS 4u

static struct side crowd[CROWD];
static struct side other;
static struct chempi_purse purses[2] = {{.max = 1u << 30}, {.max = 1u << 30}};
static uint64_t turns;      /* of the crowd */
static uint64_t turns_then; /* when the other one has said something */

static void other_says(void)
{
    turns_then = turns;
    send_from(other.peer, other.taken, 1);
}

/* It is the link's only one, and it says it anew. */
static int on_frame_of_crowd(struct chempi_link *link,
                             const struct chempi_frame *frame,
                             struct chempi_err *err)
{
    const uint64_t end = chempi_clock_ns() + DEAR_NS;
    struct side *s = link->arg;

    (void)err;
    cr_expect_eq(frame->job, s->taken++, "in order");
    for (unsigned i = 0; i < CROWD; i++)
        cr_expect_geq(crowd[i].taken + 2, s->taken, "nor does one of them");
    send_from(s->peer, s->taken, 1);
    if (++turns == CROWD)
        other_says();
    while (chempi_clock_ns() < end)
        ;
    return 0;
}

static int on_frame_of_other(struct chempi_link *link,
                             const struct chempi_frame *frame,
                             struct chempi_err *err)
{
    (void)link;
    (void)err;
    cr_expect_eq(frame->job, other.taken++, "in order");
    cr_expect_leq(turns - turns_then, ITERATIONS * OF_AN_ITERATION,
                  "it has waited for %ju turns of another user's links",
                  (uintmax_t)(turns - turns_then));
    other_says();
    return 0;
}

Test(link, a_user_does_not_wait_for_all_links_of_another)
{
    for (unsigned i = 0; i < CROWD; i++) {
        open_side(&crowd[i], NULL, false);
        crowd[i].link.on_frame = on_frame_of_crowd;
        crowd[i].link.ch.purse = &purses[0];
        chempi_link_start(&crowd[i].link, crowd[i].link.ch.fd);
        send_from(crowd[i].peer, 0, 1);
    }
    open_side(&other, NULL, false);
    other.link.on_frame = on_frame_of_other;
    other.link.ch.purse = &purses[1];
    chempi_link_start(&other.link, other.link.ch.fd);
    while (other.taken < 8 && turns < 4 * CROWD)
        (void)ev_run(loop, EVRUN_ONCE);
    cr_expect_eq(other.taken, 8);
    for (unsigned i = 0; i < CROWD; i++)
        close_side(&crowd[i]);
    close_side(&other);
}

Test(link, all_is_taken_when_it_is_asked_for)
{
    chempi_link_start(&busy.link, busy.link.ch.fd);
    send_from(busy.peer, 0, MANY);
    (void)ev_run(loop, EVRUN_ONCE); /* a turn */
    cr_expect_lt(busy.taken, MANY);
    chempi_link_drain(&busy.link);
    cr_expect_eq(busy.taken, MANY);
    cr_expect_eq(busy.lost, 0);
}

/* The last words of a peer, which come between two turns. */
Test(link, all_is_taken_of_a_peer_that_is_gone)
{
    chempi_link_start(&busy.link, busy.link.ch.fd);
    send_from(busy.peer, 0, MANY);
    (void)ev_run(loop, EVRUN_ONCE); /* a turn */
    cr_expect_lt(busy.taken, MANY);
    send_from(busy.peer, MANY, 1);
    (void)close(busy.peer);
    busy.peer = -1;
    chempi_link_send(&busy.link, 1, 0, NULL, 0); /* fails */

    while (!busy.lost)
        (void)ev_run(loop, EVRUN_ONCE);
    cr_expect_eq(busy.taken, MANY + 1);
    cr_expect_eq(busy.lost, -EPIPE);
}

static void *no_memory(void *ptr, size_t size)
{
    (void)ptr;
    (void)size;
    errno = ENOMEM;
    return NULL;
}

static ssize_t no_buffers(int fd, const void *buf, size_t len, int flags)
{
    (void)fd;
    (void)buf;
    (void)len;
    (void)flags;
    errno = ENOBUFS;
    return -1;
}

/* What is queued goes out when there is memory again. */
static void check_writes_later(void)
{
    char byte;

    chempi_link_send(&busy.link, 1, 0, "words", 5);
    chempi_sys = &rigged;
    chempi_link_start(&busy.link, busy.link.ch.fd);
    (void)ev_run(loop, EVRUN_NOWAIT);
    cr_expect_eq(busy.lost, 0, "lost: %d", busy.lost);
    cr_expect_gt(chempi_link_queued(&busy.link) +
                     (busy.link.ch.seal ? busy.link.ch.seal->out.len : 0),
                 0);
    chempi_sys = &chempi_sys_libc;
    while (!busy.lost && recv(busy.peer, &byte, 1, MSG_DONTWAIT) != 1)
        (void)ev_run(loop, EVRUN_ONCE);
    cr_expect_eq(busy.lost, 0, "lost: %d", busy.lost);
    cr_expect_eq(chempi_link_queued(&busy.link), 0);
}

/* Offers leave so much that DROP of all jobs is queued. */
Test(link, has_memory_ahead_for_what_must_be_said)
{
    const uint32_t jobs = 4096;
    uint64_t offers = 0;
    char byte;
    int rc;

    chempi_link_share(&busy.link);
    rigged.realloc = no_memory;
    chempi_sys = &rigged;
    while ((rc = chempi_link_offer(&busy.link, 1, 0, NULL, 0)) == 0)
        offers++;
    cr_expect_eq(rc, -ENOMEM);
    for (uint32_t i = 0; i < jobs; i++)
        chempi_link_send(&busy.link, 1, 0, NULL, 0);
    cr_expect_eq(busy.link.failure, 0, "%d", busy.link.failure);
    chempi_sys = &chempi_sys_libc;
    cr_expect_eq(chempi_link_queued(&busy.link),
                 (offers + jobs) * CHEMPI_FRAME_HEADER);
    chempi_link_start(&busy.link, busy.link.ch.fd);
    while (chempi_link_queued(&busy.link) > 0) {
        while (recv(busy.peer, &byte, 1, MSG_DONTWAIT) == 1)
            ;
        (void)ev_run(loop, EVRUN_NOWAIT);
    }
    cr_expect_eq(busy.lost, 0, "lost: %d", busy.lost);
}

Test(link, seals_later_without_memory)
{
    const struct chempi_noise_cipher cipher = {0};

    cr_assert_eq(chempi_channel_seal(&busy.link.ch, &cipher, &cipher), 0);
    rigged.realloc = no_memory;
    check_writes_later();
}

Test(link, writes_later_without_buffers_of_the_kernel)
{
    rigged.send = no_buffers;
    check_writes_later();
}
