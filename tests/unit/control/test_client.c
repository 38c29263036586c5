/* SPDX-License-Identifier: BSD-3-Clause */
/* The rank's side, with the test as its supervisor. */
#define _GNU_SOURCE /* memfd_create */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/sys.h"
#include "common/control/channel.h"
#include "common/control/client.h"
#include "common/control/dynamic.h"
#include "common/control/msg.h"

static struct chempi_channel super;
static struct chempi_client *client;
static int rank_fd;

/* What the test's welcome says; tests spoil it. */
static struct {
    uint32_t version, rank, size, node, nodes, local_size, bad_place;
    uint32_t bad_local, is_open, gateways;
    uint32_t first_wake; /* of ranks on one node; 0: there are two nodes */
    uint32_t events;
    uint8_t root;
    size_t cut;
    char names[200]; /* of nodes, each with its zero */
    size_t names_len;
} welcome;

static void set_up(void)
{
    char text[16];
    int fds[2];

    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    chempi_channel_init(&super, fds[0], 1u << 20, 1u << 20);
    rank_fd = fds[1];
    (void)snprintf(text, sizeof(text), "%d", fds[1]);
    cr_assert_eq(setenv(CHEMPI_CONTROL_ENV, text, 1), 0);
    welcome.version = CHEMPI_CONTROL_VERSION;
    welcome.rank = 2;
    welcome.size = 4;
    welcome.node = 1;
    welcome.nodes = 2;
    welcome.local_size = 2;
    welcome.events = 2;
    welcome.root = 1;
    memcpy(welcome.names, "a1\0a2", 6);
    welcome.names_len = 6;
}

static void tear_down(void)
{
    chempi_client_close(client);
    chempi_channel_fini(&super);
}

TestSuite(client, .init = set_up, .fini = tear_down);

/* Who is where; local ranks are counted as they should be. */
static uint32_t make_places(void)
{
    const int fd = memfd_create("places", MFD_ALLOW_SEALING);
    uint32_t used[10] = {0};
    uint32_t nodes[4] = {0};
    uint32_t locals[4] = {0};

    for (uint32_t i = 0; i < 4; i++) {
        nodes[i] = welcome.bad_place ? 9 : welcome.first_wake ? 1 : i / 2;
        locals[i] = used[nodes[i]]++ + (i == 3 && welcome.bad_local);
    }
    cr_assert_eq(write(fd, nodes, sizeof(nodes)), sizeof(nodes));
    cr_assert_eq(write(fd, locals, sizeof(locals)), sizeof(locals));
    cr_assert_eq(write(fd, welcome.names, welcome.names_len),
                 (ssize_t)welcome.names_len);
    if (!welcome.is_open)
        cr_assert_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK), 0);
    return (uint32_t)fd;
}

static void send_welcome(void)
{
    struct chempi_writer *w =
        chempi_channel_begin(&super, CHEMPI_MSG_WELCOME, 0);
    const uint32_t fd = (uint32_t)memfd_create("test", 0);
    uint8_t secret[CHEMPI_JOB_SECRET_BYTES] = {42};

    chempi_wire_put_u32(w, welcome.version);
    chempi_wire_put_str(w, "job");
    chempi_wire_put_raw(w, secret, sizeof(secret));
    chempi_wire_put_u8(w, 1);
    secret[0] = 43;
    chempi_wire_put_raw(w, secret, sizeof(secret));
    chempi_wire_put_u32(w, welcome.rank);
    chempi_wire_put_u32(w, welcome.size);
    chempi_wire_put_u32(w, welcome.node);
    chempi_wire_put_u32(w, welcome.nodes);
    chempi_wire_put_u32(w, welcome.gateways);
    chempi_wire_put_u32(w, make_places());
    chempi_wire_put_u32(w, welcome.local_size);
    chempi_wire_put_u32(w, 0);  /* app number */
    chempi_wire_put_u32(w, 16); /* universe */
    chempi_wire_put_u32(w, 1);  /* stats */
    chempi_wire_put_u32(w, fd);
    chempi_wire_put_u32(w, UINT32_MAX);
    chempi_wire_put_u32(w, welcome.events);
    for (uint32_t i = 0; i < welcome.events && i < 4; i++)
        chempi_wire_put_u32(w,
                            welcome.first_wake ? welcome.first_wake + i : fd);
    chempi_wire_put_u64(w, 1u << 20); /* memory */
    chempi_wire_put_str(w, "port of parents");
    chempi_wire_put_u32(w, 3); /* world */
    chempi_wire_put_u8(w, welcome.root);
    w->len -= welcome.cut;
    cr_assert_eq(chempi_channel_end(&super), 0);
    cr_assert_eq(chempi_channel_flush(&super), 0);
}

static struct chempi_frame take(uint16_t type)
{
    struct chempi_frame f;
    int rc;

    while ((rc = chempi_channel_next(&super, &f)) == 0)
        cr_assert_eq(chempi_channel_fill(&super), 1);
    cr_assert_eq(rc, 1);
    cr_assert_eq(f.type, type);
    return f;
}

Test(client, without_a_launcher_there_is_no_job)
{
    (void)unsetenv(CHEMPI_CONTROL_ENV);
    (void)close(rank_fd);
    cr_assert_eq(chempi_client_open(&client, NULL), -ENOENT);
}

Test(client, a_descriptor_that_was_closed_gets_a_clear_error)
{
    struct chempi_err err;

    (void)close(rank_fd);
    cr_assert_eq(chempi_client_open(&client, &err), -EBADF);
    cr_assert(strstr(err.text, "wrapper"));
}

Test(client, no_wake_event_of_many_goes_to_programs_that_a_rank_starts)
{
    enum { FIRST = 100, COUNT = 4 };

    for (int i = 0; i < COUNT; i++)
        cr_assert_eq(fcntl(super.fd, F_DUPFD, FIRST + i), FIRST + i);
    welcome.first_wake = FIRST;
    welcome.local_size = COUNT;
    welcome.events = COUNT;
    send_welcome();
    cr_assert_eq(chempi_client_open(&client, NULL), 0);
    for (int i = 0; i < COUNT; i++)
        cr_assert_eq(fcntl(FIRST + i, F_GETFD), FD_CLOEXEC);
}

Test(client, the_welcome_becomes_the_job)
{
    const struct chempi_job *job;

    send_welcome();
    cr_assert_eq(chempi_client_open(&client, NULL), 0);
    job = chempi_client_job(client);
    cr_assert_str_eq(job->id, "job");
    cr_assert_eq(job->rank, 2);
    cr_assert_eq(job->size, 4);
    cr_assert_eq(job->node, 1);
    cr_assert_eq(job->local_rank, 0);
    cr_assert_eq(job->local_size, 2);
    cr_assert_eq(job->local_rank_of_rank[3], 1);
    cr_assert_str_eq(job->node_names[1], "a2");
    cr_assert_eq(job->secret[0], 42);
    cr_assert_eq(job->universe_size, 16);
    cr_assert_eq(job->table_fd, -1);
    cr_assert_str_eq(job->parent, "port of parents");
    cr_assert_eq(job->world, 3);
    cr_assert(job->has_root);
    cr_assert_eq(fcntl(job->region_fd, F_GETFD), FD_CLOEXEC);
    cr_assert_eq(fcntl(chempi_client_fd(client), F_GETFD), FD_CLOEXEC);
    cr_assert_null(getenv(CHEMPI_CONTROL_ENV));
}

Test(client, ranks_may_have_no_wake_events)
{
    const struct chempi_job *job;

    welcome.events = 0;
    send_welcome();
    cr_assert_eq(chempi_client_open(&client, NULL), 0);
    job = chempi_client_job(client);
    cr_assert_eq(job->wake_fds[0], -1);
    cr_assert_eq(job->wake_fds[1], -1);
}

static void expect_refusal(int code)
{
    struct chempi_err err;

    send_welcome();
    cr_assert_eq(chempi_client_open(&client, &err), code);
    cr_assert(err.text[0]);
}

Test(client, another_version_is_refused)
{
    welcome.version++;
    expect_refusal(-EPROTO);
}

Test(client, a_rank_outside_the_world_is_refused)
{
    welcome.rank = 4;
    expect_refusal(-EBADMSG);
}

Test(client, a_rank_on_a_node_that_is_none_is_refused)
{
    welcome.bad_place = 1;
    expect_refusal(-EBADMSG);
}

Test(client, local_ranks_that_are_not_counted_in_order_are_refused)
{
    welcome.bad_local = 1;
    expect_refusal(-EBADMSG);
}

Test(client, places_that_others_may_change_are_refused)
{
    welcome.is_open = 1;
    expect_refusal(-EBADMSG);
}

Test(client, places_of_fewer_processes_are_refused)
{
    welcome.gateways = 1;
    expect_refusal(-EBADMSG);
}

Test(client, names_of_fewer_nodes_are_refused)
{
    welcome.nodes = 3;
    expect_refusal(-EBADMSG);
}

Test(client, names_behind_the_last_one_are_refused)
{
    welcome.names_len++;
    expect_refusal(-EBADMSG);
}

Test(client, a_name_without_an_end_is_refused)
{
    welcome.names_len--;
    expect_refusal(-EBADMSG);
}

Test(client, a_name_that_is_too_long_is_refused)
{
    memset(welcome.names + 3, 'a', CHEMPI_NODE_NAME_MAX);
    welcome.names_len = 3 + CHEMPI_NODE_NAME_MAX + 1;
    expect_refusal(-EBADMSG);
}

Test(client, more_nodes_than_the_file_has_bytes_are_refused)
{
    welcome.nodes = 7;
    expect_refusal(-EBADMSG);
}

Test(client, a_rank_that_is_not_where_it_should_be_is_refused)
{
    welcome.node = 0;
    expect_refusal(-EBADMSG);
}

Test(client, a_count_of_local_ranks_that_is_wrong_is_refused)
{
    welcome.local_size = 3;
    expect_refusal(-EBADMSG);
}

Test(client, a_cut_welcome_is_refused)
{
    welcome.cut = 2;
    expect_refusal(-EBADMSG);
}

Test(client, a_huge_world_without_its_ranks_is_refused)
{
    welcome.size = CHEMPI_JOB_RANKS_MAX;
    expect_refusal(-EBADMSG);
}

Test(client, a_supervisor_that_is_gone_is_lost)
{
    struct chempi_err err;

    chempi_channel_fini(&super);
    cr_assert_lt(chempi_client_open(&client, &err), 0);
}

/* ---- afterwards ---------------------------------------------------------- */

static struct {
    char text[64];
    uint64_t number;
    uint32_t rank;
} seen;

static void got(void *arg, uint32_t rank, const char *key, const void *value,
                size_t len)
{
    (void)arg;
    seen.rank = rank;
    (void)snprintf(seen.text, sizeof(seen.text), "%s=%.*s", key, (int)len,
                   (const char *)value);
}

static void fenced(void *arg, uint64_t fence)
{
    (void)arg;
    seen.number = fence;
}

static void rank_lost(void *arg, uint32_t rank, const char *text)
{
    (void)arg;
    seen.rank = rank;
    (void)snprintf(seen.text, sizeof(seen.text), "%s", text);
}

static void budget(void *arg, uint64_t bytes, uint32_t deadline_ms)
{
    (void)arg;
    seen.number = bytes;
    seen.rank = deadline_ms;
}

static void drained(void *arg, uint32_t gateway, bool is_drained)
{
    (void)arg;
    (void)gateway;
    (void)is_drained;
}

static void tell(void *arg)
{
    (void)arg;
    seen.number++;
}

static void where(void *arg, enum chempi_wait_depth depth)
{
    (void)arg;
    seen.rank = 77 + depth;
}

static void root_replied(void *arg, const struct chempi_reply *reply)
{
    (void)arg;
    seen.rank = reply->serial;
    (void)snprintf(seen.text, sizeof(seen.text), "%s", reply->text);
}

static const struct chempi_client_events events = {.got = got,
                                                   .fenced = fenced,
                                                   .rank_lost = rank_lost,
                                                   .budget = budget,
                                                   .drained = drained,
                                                   .tell = tell,
                                                   .where = where,
                                                   .root_replied =
                                                       root_replied};

static void open_client(void)
{
    send_welcome();
    cr_assert_eq(chempi_client_open(&client, NULL), 0);
    (void)take(CHEMPI_MSG_HELLO);
}

static int answer(uint16_t type, const struct chempi_writer *w)
{
    struct chempi_err err;

    cr_assert_eq(chempi_channel_send(&super, type, 0, w->data, w->len), 0);
    cr_assert_eq(chempi_channel_flush(&super), 0);
    return chempi_client_progress(client, &events, NULL, &err);
}

/* Takes a piece of a report; returns its length, and whether more follows. */
static size_t take_report(uint8_t *has_more)
{
    struct chempi_frame f;
    struct chempi_reader r;
    size_t len;
    const uint8_t *text;
    int rc;

    while ((rc = chempi_channel_next(&super, &f)) == 0) {
        /* More than the socket holds; both ends are in this thread. */
        cr_assert(chempi_client_progress(client, &events, NULL, NULL) >= 0);
        cr_assert(chempi_channel_fill(&super) >= 0);
    }
    cr_assert_eq(rc, 1);
    cr_assert_eq(f.type, CHEMPI_MSG_REPORT);
    chempi_wire_read(&r, f.data, f.len);
    *has_more = chempi_wire_get_u8(&r);
    text = chempi_wire_get_blob(&r, CHEMPI_REPORT_MAX, &len);
    cr_assert(chempi_wire_is_done(&r));
    cr_assert(len == 0 || text[len - 1] == '\n');
    return len;
}

Test(client, figures_are_told_when_asked_for_and_in_pieces)
{
    const size_t len = CHEMPI_REPORT_MAX + 50;
    struct chempi_writer w = {0};
    uint8_t has_more;
    size_t first;
    char *text = calloc(len, 1);

    cr_assert(text);
    open_client();
    seen.number = 0;
    cr_assert_eq(answer(CHEMPI_MSG_TELL, &w), 1);
    cr_assert_eq(seen.number, 1);
    cr_assert_eq(chempi_client_report(client, NULL, 0), 0);
    cr_assert_eq(take_report(&has_more), 0);
    cr_assert_eq(has_more, 0);
    cr_assert_eq(chempi_client_report(client, text, len), -EMSGSIZE);
    memset(text, 'x', len);
    for (size_t i = 99; i < len; i += 100)
        text[i] = '\n';
    text[len - 1] = '\n';
    cr_assert_eq(chempi_client_report(client, text, len), 0);
    first = take_report(&has_more);
    cr_assert_eq(first, CHEMPI_REPORT_MAX / 100 * 100);
    cr_assert_eq(has_more, 1);
    cr_assert_eq(take_report(&has_more), len - first);
    cr_assert_eq(has_more, 0);
    free(text);
}

/* Takes the answer where the rank waits; returns its kind. */
static uint8_t take_here(char text[CHEMPI_HERE_MAX], bool *has_more)
{
    struct chempi_frame f = take(CHEMPI_MSG_HERE);
    struct chempi_reader r;
    uint8_t kind;

    chempi_wire_read(&r, f.data, f.len);
    kind = chempi_wire_get_u8(&r);
    (void)strcpy(text, chempi_wire_get_str(&r, CHEMPI_HERE_MAX));
    cr_assert_str_eq(chempi_wire_get_str(&r, CHEMPI_HERE_SITE_MAX), "f+0x1");
    cr_assert_eq(chempi_wire_get_u64(&r), UINT64_C(5) << 40);
    cr_assert_eq(chempi_wire_get_u32(&r), 2);
    cr_assert_eq(chempi_wire_get_u32(&r), 7);
    cr_assert_eq(chempi_wire_get_u32(&r), 9);
    *has_more = chempi_wire_get_u8(&r);
    cr_assert(chempi_wire_is_done(&r));
    return kind;
}

Test(client, where_a_rank_waits_is_told_when_asked_for_and_in_bounds)
{
    struct chempi_writer w = {0};
    char text[CHEMPI_HERE_MAX];
    char words[2 * CHEMPI_HERE_MAX];
    struct chempi_client_wait wait = {.is_waiting = true,
                                      .text = "MPI_Recv of X",
                                      .site = "f+0x1",
                                      .moves = UINT64_C(5) << 40,
                                      .count = 2,
                                      .ranks = {7, 9},
                                      .has_more = true};
    bool has_more;

    open_client();
    seen.rank = 0;
    chempi_wire_put_u8(&w, 0);
    cr_assert_eq(answer(CHEMPI_MSG_WHERE, &w), 1);
    cr_assert_eq(seen.rank, 77);
    chempi_wire_clear(&w);
    chempi_wire_put_u8(&w, 1);
    cr_assert_eq(answer(CHEMPI_MSG_WHERE, &w), 1);
    cr_assert_eq(seen.rank, 77 + CHEMPI_WAIT_PLACE);
    chempi_wire_clear(&w);
    chempi_wire_put_u8(&w, CHEMPI_WAIT_STACK);
    cr_assert_eq(answer(CHEMPI_MSG_WHERE, &w), 1);
    cr_assert_eq(seen.rank, 77 + CHEMPI_WAIT_STACK);
    cr_assert_eq(chempi_client_here(client, &wait), 0);
    cr_assert_eq(take_here(text, &has_more), CHEMPI_HERE_WAITS);
    cr_assert(has_more);
    cr_assert_str_eq(text, "MPI_Recv of X");
    memset(words, 'x', sizeof(words) - 1);
    words[sizeof(words) - 1] = '\0';
    wait.is_waiting = wait.has_more = false;
    wait.text = words;
    cr_assert_eq(chempi_client_here(client, &wait), 0);
    cr_assert_eq(take_here(text, &has_more), CHEMPI_HERE_TESTS);
    cr_assert(!has_more);
    cr_assert_eq(strlen(text), CHEMPI_HERE_MAX - 1);
    chempi_wire_put_u8(&w, 1); /* the question has one field */
    cr_assert_eq(answer(CHEMPI_MSG_WHERE, &w), -EPIPE);
    chempi_wire_clear(&w);
}

Test(client, questions_and_answers_pass)
{
    const struct chempi_client_memory memory = {
        .held = 4096, .used = 100, .wanted = 8192, .needed = 50, .degraded = 2};
    struct chempi_writer w = {0};
    struct chempi_frame f;
    struct chempi_reader r;
    uint64_t fence;

    open_client();
    cr_assert_eq(chempi_client_put(client, "card", "abc", 3), 0);
    f = take(CHEMPI_MSG_PUT);
    chempi_wire_read(&r, f.data, f.len);
    cr_assert_str_eq(chempi_wire_get_str(&r, 64), "card");
    cr_assert_eq(chempi_client_get(client, 3, "card"), 0);
    (void)take(CHEMPI_MSG_GET);
    chempi_wire_put_u32(&w, 3);
    chempi_wire_put_str(&w, "card");
    chempi_wire_put_blob(&w, "xyz", 3);
    cr_assert_eq(answer(CHEMPI_MSG_GOT, &w), 1);
    cr_assert_str_eq(seen.text, "card=xyz");
    cr_assert_eq(chempi_client_fence(client, &fence), 0);
    cr_assert_eq(fence, 1);
    (void)take(CHEMPI_MSG_FENCE);
    chempi_wire_clear(&w);
    chempi_wire_put_u64(&w, 1);
    cr_assert_eq(answer(CHEMPI_MSG_FENCED, &w), 1);
    cr_assert_eq(seen.number, 1);
    chempi_wire_clear(&w);
    chempi_wire_put_u32(&w, 1);
    chempi_wire_put_str(&w, "it died");
    cr_assert_eq(answer(CHEMPI_MSG_LOST, &w), 1);
    cr_assert_str_eq(seen.text, "it died");
    chempi_wire_clear(&w);
    chempi_wire_put_u64(&w, 4096);
    chempi_wire_put_u32(&w, 7);
    chempi_wire_put_u32(&w, 3); /* serial */
    cr_assert_eq(answer(CHEMPI_MSG_BUDGET, &w), 1);
    cr_assert_eq(seen.number, 4096);
    chempi_wire_clear(&w);
    /* What is said of memory refers to that share. */
    cr_assert_eq(chempi_client_memory(client, &memory), 0);
    f = take(CHEMPI_MSG_MEMORY);
    cr_assert_eq(f.len, CHEMPI_MEMORY_BYTES);
    chempi_wire_read(&r, f.data, f.len);
    cr_assert_eq(chempi_wire_get_u32(&r), 3);
    cr_assert_eq(chempi_wire_get_u64(&r), 4096);
    cr_assert_eq(chempi_wire_get_u64(&r), 100);
    cr_assert_eq(chempi_wire_get_u64(&r), 8192);
    cr_assert_eq(chempi_wire_get_u64(&r), 50);
    cr_assert_eq(chempi_wire_get_u64(&r), 2);
    cr_assert(chempi_wire_is_done(&r));
}

Test(client, a_malformed_notice_is_a_lost_supervisor)
{
    struct chempi_writer w = {0};

    open_client();
    chempi_wire_put_u32(&w, 77); /* no such rank */
    chempi_wire_put_str(&w, "card");
    chempi_wire_put_blob(&w, "xyz", 3);
    cr_assert_eq(answer(CHEMPI_MSG_GOT, &w), -EPIPE);
    chempi_wire_clear(&w);
}

Test(client, a_fence_that_was_not_entered_cannot_be_left)
{
    struct chempi_writer w = {0};

    open_client();
    chempi_wire_put_u64(&w, 1);
    cr_assert_eq(answer(CHEMPI_MSG_FENCED, &w), -EPIPE);
    chempi_wire_clear(&w);
}

Test(client, keys_and_values_over_their_limits_are_refused)
{
    static char value[CHEMPI_KVS_VALUE_MAX + 1];
    char key[CHEMPI_KVS_KEY_MAX + 1];

    open_client();
    memset(key, 'k', sizeof(key) - 1);
    key[sizeof(key) - 1] = '\0';
    cr_assert_eq(chempi_client_put(client, key, "", 0), -EINVAL);
    cr_assert_eq(chempi_client_put(client, "", "", 0), -EINVAL);
    cr_assert_eq(chempi_client_put(client, "k", value, sizeof(value)), -EINVAL);
    cr_assert_eq(chempi_client_get(client, 4, "k"), -EINVAL);
    cr_assert_eq(chempi_client_put(client, "k", value, sizeof(value) - 1), 0);
}

Test(client, the_end_of_the_supervisor_is_noticed)
{
    struct chempi_err err;

    open_client();
    chempi_channel_fini(&super);
    cr_assert_eq(chempi_client_progress(client, &events, NULL, &err), -EPIPE);
}

static ssize_t no_buffers(int fd, const void *data, size_t len, int flags)
{
    (void)fd;
    (void)data;
    (void)len;
    (void)flags;
    errno = ENOBUFS;
    return -1;
}

Test(client, a_start_that_cannot_be_sent_at_once_is_told_later)
{
    struct chempi_sys rigged = chempi_sys_libc;

    open_client();
    rigged.send = no_buffers;
    chempi_sys = &rigged;
    cr_assert_eq(chempi_client_set_initialized(client), 0);
    chempi_sys = &chempi_sys_libc;
    cr_assert_eq(chempi_client_set_finalized(client), 0);
    (void)take(CHEMPI_MSG_INIT);
    (void)take(CHEMPI_MSG_FINAL);
}

/* ---- the root ------------------------------------------------------------ */

static int reply(uint32_t serial, enum chempi_reply_state state)
{
    const struct chempi_reply said = {.serial = serial,
                                      .state = state,
                                      .error = state == CHEMPI_REPLY_FAILED
                                                   ? CHEMPI_REPLY_ARG
                                                   : CHEMPI_REPLY_NONE,
                                      .text = "why"};
    struct chempi_writer w = {0};
    int rc;

    chempi_reply_write(&said, &w);
    rc = answer(CHEMPI_MSG_ROOT_REPLY, &w);
    chempi_wire_clear(&w);
    return rc;
}

Test(client, a_question_reaches_the_root_and_an_answer_comes_back)
{
    struct chempi_frame f;
    struct chempi_reader r;
    uint32_t serial = 0;
    size_t len;

    open_client();
    cr_assert_eq(
        chempi_client_ask_root(client, CHEMPI_ROOT_LOOKUP, "ab", 2, &serial),
        0);
    cr_assert_eq(serial, 1);
    f = take(CHEMPI_MSG_ROOT_REQUEST);
    chempi_wire_read(&r, f.data, f.len);
    cr_assert_eq(chempi_wire_get_u32(&r), 1);
    cr_assert_eq(chempi_wire_get_u8(&r), CHEMPI_ROOT_LOOKUP);
    cr_assert_arr_eq(chempi_wire_get_blob(&r, 9, &len), "ab", 2);
    cr_assert_eq(len, 2);
    cr_assert(chempi_wire_is_done(&r));
    cr_assert_eq(reply(1, CHEMPI_REPLY_GRANTED), 1);
    cr_assert_eq(seen.rank, 1);
    cr_assert_str_eq(seen.text, "why");
    cr_assert_eq(reply(1, CHEMPI_REPLY_OVER), 1);
}

Test(client, questions_without_an_answer_are_counted)
{
    uint32_t serial = 0;

    open_client();
    for (uint32_t i = 1; i <= CHEMPI_ROOT_REQUESTS_MAX; i++)
        cr_assert_eq(chempi_client_ask_root(client, CHEMPI_ROOT_LOOKUP, NULL, 0,
                                            &serial),
                     0);
    cr_assert_eq(serial, CHEMPI_ROOT_REQUESTS_MAX);
    cr_assert_eq(
        chempi_client_ask_root(client, CHEMPI_ROOT_LOOKUP, NULL, 0, &serial),
        -EBUSY);
    cr_assert_eq(reply(5, CHEMPI_REPLY_FAILED), 1);
    cr_assert_eq(
        chempi_client_ask_root(client, CHEMPI_ROOT_LOOKUP, NULL, 0, &serial),
        0);
    cr_assert_eq(
        chempi_client_ask_root(client, CHEMPI_ROOT_LOOKUP, NULL, 0, &serial),
        -EBUSY);
}

Test(client, a_question_that_is_too_long_is_not_asked)
{
    static const uint8_t blob[CHEMPI_ROOT_BYTES_MAX + 1];
    uint32_t serial = 7;

    open_client();
    cr_assert_eq(chempi_client_ask_root(client, CHEMPI_ROOT_SPAWN, blob,
                                        sizeof(blob), &serial),
                 -EMSGSIZE);
    cr_assert_eq(serial, 7);
}

/* Of a process that has started its root itself: there is no welcome. */
Test(client, a_root_of_ones_own_is_asked_at_once)
{
    uint32_t serial = 0;
    struct chempi_err err = {0};
    int fds[2];

    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    chempi_channel_fini(&super);
    chempi_channel_init(&super, fds[1], 1u << 20, 1u << 20);
    cr_assert_eq(chempi_client_attach(&client, fds[0]), 0);
    cr_assert_eq(chempi_client_set_initialized(client), 0);
    cr_assert_eq(
        chempi_client_ask_root(client, CHEMPI_ROOT_LOOKUP, NULL, 0, &serial),
        0);
    cr_assert_eq(serial, 1);
    (void)take(CHEMPI_MSG_HELLO);
    (void)take(CHEMPI_MSG_INIT);
    (void)take(CHEMPI_MSG_ROOT_REQUEST);
    cr_assert_eq(reply(1, CHEMPI_REPLY_FAILED), 1);
    chempi_channel_fini(&super);
    cr_assert_eq(chempi_client_progress(client, &events, NULL, &err), -EPIPE);
}

Test(client, without_a_root_nobody_is_asked)
{
    uint32_t serial;

    welcome.root = 0;
    open_client();
    cr_assert_eq(
        chempi_client_ask_root(client, CHEMPI_ROOT_LOOKUP, NULL, 0, &serial),
        -EOPNOTSUPP);
}

Test(client, an_answer_to_no_question_is_a_lost_supervisor)
{
    open_client();
    cr_assert_eq(reply(1, CHEMPI_REPLY_GRANTED), -EPIPE);
}

Test(client, a_second_answer_is_a_lost_supervisor)
{
    uint32_t serial;

    open_client();
    cr_assert_eq(
        chempi_client_ask_root(client, CHEMPI_ROOT_LOOKUP, NULL, 0, &serial),
        0);
    cr_assert_eq(reply(1, CHEMPI_REPLY_FAILED), 1);
    cr_assert_eq(reply(1, CHEMPI_REPLY_FAILED), -EPIPE);
}
