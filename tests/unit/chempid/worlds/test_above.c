/* SPDX-License-Identifier: BSD-3-Clause */
/* What a world's launcher says to the first one, which does not read. */
#define _GNU_SOURCE /* SOCK_CLOEXEC */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "chempid/worlds/above.h"
#include "common/control/dynamic.h"
#include "common/control/msg.h"
#include "tests/unit/base/rig.h"

#define QUEUE_MAX 64u

static struct chempi_above above;
static struct ev_loop *loop;
static int far; /* the first launcher's end */
static char said[256];
static int ends;

static void replied(void *arg, const void *data, size_t len)
{
    struct chempi_reader r;
    struct chempi_reply reply;
    uint32_t node;
    uint32_t rank;

    (void)arg;
    chempi_wire_read(&r, data, len);
    node = chempi_wire_get_u32(&r);
    rank = chempi_wire_get_u32(&r);
    cr_assert_eq(chempi_reply_read(&r, &reply), 0);
    (void)snprintf(said, sizeof(said), "%u/%u:%u %d %d", node, rank,
                   reply.serial, (int)reply.state, (int)reply.error);
}

static void signalled(void *arg, uint32_t number)
{
    (void)arg;
    (void)number;
}

static void end(void *arg, int status, const char *text)
{
    (void)arg;
    (void)status;
    (void)text;
    ends++;
}

static const struct chempi_above_ops ops = {
    .replied = replied, .signalled = signalled, .end = end};

static void set_up(void)
{
    static const uint8_t zeros[4096];
    int fds[2];

    cr_assert_eq(
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds),
        0);
    far = fds[1];
    while (write(fds[0], zeros, sizeof(zeros)) > 0)
        ; /* as much as the socket takes */
    loop = ev_loop_new(EVFLAG_AUTO);
    cr_assert(loop);
    chempi_channel_init(&above.ch, fds[0], CHEMPI_TREE_MAX, QUEUE_MAX);
    chempi_above_watch(&above, loop, &ops, NULL);
}

static void tear_down(void)
{
    rig_reset();
    (void)close(far);
    chempi_above_unwatch(&above);
    chempi_channel_fini(&above.ch);
    ev_loop_destroy(loop);
}

TestSuite(above, .init = set_up, .fini = tear_down, .timeout = 30);

/* A question of rank 3 on node 1. */
static const char *ask(uint32_t serial, size_t len)
{
    static const uint8_t zeros[100];
    struct chempi_writer w = {0};

    said[0] = '\0';
    chempi_wire_put_u32(&w, 1);
    chempi_wire_put_u32(&w, 3);
    chempi_wire_put_u32(&w, serial);
    chempi_wire_put_u8(&w, CHEMPI_ROOT_LOOKUP);
    chempi_wire_put_blob(&w, zeros, len);
    chempi_above_ask(&above, w.data, w.len);
    chempi_wire_clear(&w);
    return said;
}

Test(above, a_question_that_cannot_be_passed_on_is_answered)
{
    cr_expect_str_eq(ask(7, 4), ""); /* it waits */
    cr_expect_str_eq(ask(8, 100), "1/3:8 1 6");
    cr_expect_eq(CHEMPI_REPLY_FAILED, 1);
    cr_expect_eq(CHEMPI_REPLY_MEMORY, 6);
    cr_expect_eq(ends, 0);
}

/* Frames that are queued behind what the socket has taken. */
static uint32_t count_frames(void)
{
    struct chempi_reader r;
    uint32_t n = 0;

    chempi_wire_read(&r, above.ch.out.data + above.ch.out_head,
                     above.ch.out.len - above.ch.out_head);
    while (!chempi_wire_is_done(&r)) {
        const uint32_t len = chempi_wire_get_u32(&r);

        (void)chempi_wire_get_raw(&r, CHEMPI_FRAME_HEADER - sizeof(len) + len);
        cr_assert(!r.is_bad);
        n++;
    }
    return n;
}

Test(above, questions_leave_room_for_what_is_said_once)
{
    cr_expect_str_eq(ask(7, 30), "");
    cr_expect_str_eq(ask(8, 30), "1/3:8 1 6");
    chempi_above_started(&above, 5);
    cr_expect_str_eq(ask(0, 0), ""); /* the end of the rank */
    chempi_above_gone(&above, "for some reason");
    cr_expect_eq(count_frames(), 4);
    cr_expect_eq(ends, 0);
}

Test(above, a_world_whose_start_cannot_be_said_ends)
{
    rig_fail(RIG_MALLOC, 1, ENOMEM, true);
    chempi_above_started(&above, 5);
    cr_expect_eq(ends, 1);
}
