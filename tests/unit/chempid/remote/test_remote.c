/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What callers and those whom they have called make of frames that no honest
 * other end sends: CALL and LAUNCH at an inner node of the tree, which is a
 * process of its own here, and CALLED at its caller.
 */
#define _GNU_SOURCE /* pipe2 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chempid/remote/remote_tree.h"
#include "common/base/clock.h"
#include "common/control/msg.h"

#define NOBODY "false" /* a launcher that reaches no host */
#define WAIT_NS UINT64_C(30000000000)

/* ---- an inner node --------------------------------------------------------
 */

static struct {
    pid_t pid;
    int words; /* what it complains of */
    struct chempi_channel ch;
} inner;

static void start_inner(void)
{
    int ends[2];
    int words[2];

    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    cr_assert_eq(pipe2(words, O_CLOEXEC), 0);
    inner.pid = fork();
    cr_assert(inner.pid >= 0);
    if (inner.pid == 0) {
        (void)close(ends[0]);
        (void)dup2(words[1], 2);
        (void)fcntl(ends[1], F_SETFL, O_NONBLOCK);
        chempi_remote_serve_inner(ends[1]);
    }
    (void)close(ends[1]);
    (void)close(words[1]);
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    inner.words = words[0];
    chempi_channel_init(&inner.ch, ends[0], CHEMPI_TREE_MAX, CHEMPI_QUEUE_MAX);
}

static void say(uint16_t type, const void *data, size_t len)
{
    cr_assert_eq(chempi_channel_send(&inner.ch, type, 0, data, len), 0);
    (void)chempi_remote_flush(&inner.ch, chempi_clock_ns() + WAIT_NS);
}

/* It ends with status 1 and these words, and says nothing to its caller. */
static void expect_refused(const char *what, const char *words)
{
    struct chempi_frame frame;
    char text[512];
    size_t len = 0;
    int status;
    ssize_t n;

    cr_expect_eq(
        chempi_remote_await(&inner.ch, chempi_clock_ns() + WAIT_NS, &frame),
        -EPIPE, "%s", what);
    while (len < sizeof(text) - 1 &&
           (n = read(inner.words, text + len, sizeof(text) - 1 - len)) > 0)
        len += (size_t)n;
    text[len] = '\0';
    cr_assert_eq(waitpid(inner.pid, &status, 0), inner.pid);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 1, "%s", what);
    cr_expect(strstr(text, words), "%s: %s", what, text);
    (void)close(inner.words);
    chempi_channel_fini(&inner.ch);
}

/* ---- CALL ---------------------------------------------------------------- */

static void put_call(struct chempi_writer *w, uint32_t limit_ms, uint32_t count,
                     const char *host)
{
    chempi_wire_put_u32(w, limit_ms);
    chempi_wire_put_str(w, NOBODY);
    chempi_wire_put_u32(w, count);
    chempi_wire_put_u32(w, 1);
    chempi_wire_put_str(w, host);
}

static void refuse_call(uint16_t type, const void *data, size_t len,
                        const char *what)
{
    start_inner();
    say(type, data, len);
    expect_refused(what, "a call that is malformed");
}

Test(remote, malformed_calls_end_the_inner_node)
{
    static const struct {
        uint32_t limit_ms;
        uint32_t count;
        const char *host;
    } wrong[] = {
        {CHEMPI_REMOTE_LIMIT_MS + 1, 1, "b"}, /* longer than anybody may */
        {1000, 0, "b"},                       /* and a host all the same */
        {1000, 2, "b"},                       /* of which one is missing */
        {1000, UINT32_MAX, "b"},
        {1000, 1, ""},
        {1000, 1, "../b"},
        {1000, 1, "b c"},
    };
    struct chempi_writer w = {0};

    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        put_call(&w, wrong[i].limit_ms, wrong[i].count, wrong[i].host);
        refuse_call(CHEMPI_MSG_CALL, w.data, w.len, wrong[i].host);
        chempi_wire_clear(&w);
    }
    put_call(&w, 1000, 1, "b");
    for (size_t cut = 1; cut <= w.len; cut++)
        refuse_call(CHEMPI_MSG_CALL, w.data, w.len - cut, "cut off");
    chempi_wire_put_u8(&w, 0);
    refuse_call(CHEMPI_MSG_CALL, w.data, w.len, "a byte too many");
    refuse_call(CHEMPI_MSG_LAUNCH, w.data, w.len - 1, "of another kind");
    chempi_wire_clear(&w);
}

/* ---- LAUNCH -------------------------------------------------------------- */

/* An inner node that has been told of a host which it does not reach. */
static void start_called(void)
{
    struct chempi_writer w = {0};
    struct chempi_frame frame;
    struct chempi_reader r;

    start_inner();
    put_call(&w, 1000, 1, "b");
    say(CHEMPI_MSG_CALL, w.data, w.len);
    chempi_wire_clear(&w);
    cr_assert_eq(
        chempi_remote_await(&inner.ch, chempi_clock_ns() + WAIT_NS, &frame), 0);
    cr_assert_eq(frame.type, CHEMPI_MSG_CALLED);
    chempi_wire_read(&r, frame.data, frame.len);
    cr_assert_eq(chempi_wire_get_u32(&r), 1);
    cr_assert_eq(chempi_wire_get_u32(&r), 1); /* the node */
}

/* The job, for these nodes of two; rank 0 is on node 0, rank 1 on node 1. */
static void put_launch(struct chempi_writer *w, const uint32_t *nodes,
                       uint32_t count)
{
    static char *names[] = {"a", "b"};
    static uint32_t places[] = {0, 1};
    static uint32_t zeros[] = {0, 0};
    static uint32_t hosts[] = {0, 1};
    static char *argv[] = {"true", NULL};
    static char *none[] = {NULL};
    static struct chempi_app app = {argv, none, NULL, 0, 2};
    const struct chempi_shell shell = {0};
    struct chempi_spec spec;

    cr_assert_eq(chempi_spec_init(&spec, NULL), 0);
    spec.size = spec.node_count = 2;
    spec.node_names = names;
    spec.node_of_rank = places;
    spec.bind_offset = zeros;
    spec.host_of_node = hosts;
    spec.apps = &app;
    spec.app_count = 1;
    spec.env = none;
    spec.stdin_rank = CHEMPI_STDIN_NONE;
    chempi_wire_put_u32(w, count);
    for (uint32_t i = 0; i < count; i++)
        chempi_wire_put_u32(w, nodes[i]);
    chempi_shell_write(&shell, w);
    chempi_spec_write(&spec, nodes[0], w);
}

static void refuse_launch(uint16_t type, const void *data, size_t len,
                          const char *what)
{
    start_called();
    say(type, data, len);
    expect_refused(what, "a launch that is malformed");
}

Test(remote, malformed_launches_end_the_inner_node)
{
    static const uint32_t alone[] = {0};
    static const uint32_t lost[] = {0, 1};
    static const uint32_t beyond[] = {2};
    struct chempi_writer w = {0};

    put_launch(&w, lost, 2);
    refuse_launch(CHEMPI_MSG_LAUNCH, w.data, w.len, "a host out of reach");
    chempi_wire_clear(&w);
    put_launch(&w, beyond, 1);
    refuse_launch(CHEMPI_MSG_LAUNCH, w.data, w.len, "no node of the job");
    chempi_wire_clear(&w);
    put_launch(&w, alone, 1);
    for (size_t len = 0; len < w.len; len += 1 + w.len / 24)
        refuse_launch(CHEMPI_MSG_LAUNCH, w.data, len, "cut off");
    refuse_launch(CHEMPI_MSG_LAUNCH, "\0\0\0\0", 4, "for nobody");
    refuse_launch(CHEMPI_MSG_CALL, w.data, w.len, "of another kind");
    chempi_wire_put_u8(&w, 0);
    refuse_launch(CHEMPI_MSG_LAUNCH, w.data, w.len, "a byte too many");
    chempi_wire_clear(&w);
}

/* ---- CALLED -------------------------------------------------------------- */

/* Post 0 has been told of 1 and 2, and 3 is its caller's own. */
static struct chempi_remote *make_posts(void)
{
    static const uint32_t via[] = {0, 0, 0, 3};
    struct chempi_remote *remotes = chempi_remote_create(4);

    cr_assert(remotes);
    for (uint32_t i = 0; i < 4; i++) {
        remotes[i].node = 10 + i;
        remotes[i].via = via[i];
    }
    return remotes;
}

static int take(struct chempi_remote *remotes, uint16_t type,
                const struct chempi_writer *w, size_t cut)
{
    struct chempi_frame frame = {
        .type = type, .data = w->data, .len = (uint32_t)(w->len - cut)};

    return chempi_remote_take_called(remotes, 4, 0, &frame);
}

static void put_called(struct chempi_writer *w, uint32_t count, uint32_t node,
                       const char *why)
{
    chempi_wire_put_u32(w, count);
    chempi_wire_put_u32(w, node);
    chempi_wire_put_str(w, why);
}

Test(remote, whoever_has_called_tells_of_its_own_group_only)
{
    static const uint32_t nodes[] = {10, 13, 14, 0, UINT32_MAX};
    struct chempi_remote *remotes = make_posts();
    struct chempi_writer w = {0};

    for (size_t i = 0; i < sizeof(nodes) / sizeof(*nodes); i++) {
        put_called(&w, 1, nodes[i], "x");
        cr_expect_eq(take(remotes, CHEMPI_MSG_CALLED, &w, 0), -EBADMSG);
        chempi_wire_clear(&w);
    }
    for (uint32_t i = 0; i < 4; i++)
        cr_expect_neq(remotes[i].via, CHEMPI_REMOTE_NONE);
    chempi_remote_destroy(remotes, 4);
}

Test(remote, malformed_answers_are_refused)
{
    struct chempi_remote *remotes = make_posts();
    struct chempi_writer w = {0};

    put_called(&w, 1, 11, "x");
    cr_expect_eq(take(remotes, CHEMPI_MSG_CALL, &w, 0), -EBADMSG);
    for (size_t cut = 1; cut <= w.len; cut++)
        cr_expect_eq(take(remotes, CHEMPI_MSG_CALLED, &w, cut), -EBADMSG);
    chempi_wire_put_u8(&w, 0);
    cr_expect_eq(take(remotes, CHEMPI_MSG_CALLED, &w, 0), -EBADMSG);
    chempi_wire_clear(&w);
    put_called(&w, UINT32_MAX, 11, "x");
    cr_expect_eq(take(remotes, CHEMPI_MSG_CALLED, &w, 0), -EBADMSG);
    chempi_wire_clear(&w);
    chempi_remote_destroy(remotes, 4);
    remotes = make_posts();
    put_called(&w, 2, 12, "gone\x1b[31m");
    chempi_wire_put_u32(&w, 12); /* once more */
    chempi_wire_put_str(&w, "y");
    cr_expect_eq(take(remotes, CHEMPI_MSG_CALLED, &w, 0), -EBADMSG);
    cr_expect_eq(remotes[2].via, CHEMPI_REMOTE_NONE);
    cr_expect_str_eq(remotes[2].why, "gone?[31m",
                     "terminals obey nothing of it");
    chempi_wire_clear(&w);
    chempi_remote_destroy(remotes, 4);
}
