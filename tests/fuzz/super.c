/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sequences of messages against a supervisor: from its ranks and its gateway,
 * and from above, with processes that end in between. Every message that it
 * takes is among them, but END and PART, with which its own process ends and
 * begins. An input is the kind of job and a row of steps:
 *
 *     u8 flags (enum kind); u8 who (enum who), u8 type, u16 length, the payload
 *
 * In the end all ranks end. What the supervisor has said is read then: each
 * end once (P1), fences in order, and DONE once (P3), behind ends and figures.
 */
#define _GNU_SOURCE /* pipe2, F_DUPFD_CLOEXEC */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "chempid/supervisor/super.h"
#include "chempid/tree/nodes/budget.h"
#include "common/control/dynamic.h"
#include "tests/fuzz/target.h"

#define RANKS 4u /* 0 to 2 are here */
#define HERE 3u
#define NODES 3u
#define GATEWAYS 2u /* the first one is here */

enum kind { SURVIVES = 1, HELD = 2, DIVIDED = 4, ALONE = 8 };

enum who {
    ABOVE,
    RANK, /* the first one */
    GATEWAY = RANK + HERE,
    ENDED, /* a rank or the gateway, of the number in the type */
    WHO_COUNT
};

#define HOLDS(is_so)                                                           \
    do {                                                                       \
        if (!(is_so)) {                                                        \
            (void)fprintf(stderr, "super.c:%d: not so: %s\n", __LINE__,        \
                          #is_so);                                             \
            abort();                                                           \
        }                                                                      \
    } while (0)

static char *node_names[NODES] = {"a1", "b1", "g1"};
static char *argv[] = {"true", NULL};
static char *env[] = {"A=1", NULL};
static uint32_t node_of_rank[RANKS + GATEWAYS] = {0, 0, 0, 1, 0, 2};
static uint32_t node_of_all[RANKS] = {0, 0, 0, 0}; /* ALONE */
static uint32_t numbers[NODES] = {0, 1, 2};
static uint32_t zeros[NODES];
static struct chempi_app app = {argv, env, NULL, 0, RANKS};
static struct chempi_spec spec;
static struct chempi_super here;
static struct ev_loop *loop;
static struct chempi_share share; /* of all inputs */
static int peers[2];              /* a socket for all; nobody reads there */
static int full[2];               /* a pipe that takes no more */
static uint32_t refused;          /* steps of this input, or nobody heard */

static void describe(uint8_t flags)
{
    spec = (struct chempi_spec){
        .job = 7,
        .id = "0000000000000007",
        .uid = (uint32_t)geteuid(),
        .gid = (uint32_t)getegid(),
        .size = flags & ALONE ? HERE : RANKS,
        .gateway_count = flags & ALONE ? 0 : GATEWAYS,
        .node_count = flags & ALONE ? 1 : NODES,
        .node_names = node_names,
        .node_of_rank = flags & ALONE ? node_of_all : node_of_rank,
        .bind_offset = zeros,
        .host_of_node = numbers,
        .apps = &app,
        .app_count = 1,
        .env = env,
        .cwd = "/",
        .universe_size = RANKS,
        .stdin_rank = CHEMPI_STDIN_ALL,
        .want_stats = CHEMPI_STATS_TRAFFIC | CHEMPI_STATS_ROUTES,
        .is_debugged = (flags & HELD) != 0,
        .survives = (flags & SURVIVES) != 0,
        .memory_share = flags & DIVIDED ? 4096 : CHEMPI_BUDGET_NONE,
    };
}

static void is_over(struct ev_loop *l, ev_timer *w, int events)
{
    (void)l;
    (void)w;
    (void)events; /* the loop never runs */
}

static void set_up_once(void)
{
    static const char zeros_4k[4096];
    struct chempi_err err;

    if (loop)
        return;
    /* As supervisors do, which end all of their children: under libFuzzer the
     * one that finds names for addresses. */
    (void)signal(SIGPIPE, SIG_IGN);
    loop = ev_loop_new(EVFLAG_AUTO);
    HOLDS(loop && chempi_share_init(&share, HERE + 1, true, &err) == 0);
    HOLDS(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, peers) == 0);
    HOLDS(pipe2(full, O_CLOEXEC | O_NONBLOCK) == 0);
    while (write(full[1], zeros_4k, sizeof(zeros_4k)) > 0)
        ;
}

/* As if it had been started; no process has its number. */
static void start(struct chempi_rank *rank)
{
    rank->pid = INT_MAX;
    chempi_control_connect(rank, fcntl(peers[0], F_DUPFD_CLOEXEC, 0));
}

static void set_up(uint8_t flags)
{
    struct chempi_super *s = &here;
    struct chempi_err err = {0};

    set_up_once();
    describe(flags);
    *s = (struct chempi_super){
        .loop = loop,
        .spec = &spec,
        .signal_fd = -1,
        .exec_fds = {-1, -1},
        .gate_fds = {-1, -1},
        .null_fd = -1,
        .has_children = true,
        .share = share,
        .on_rank_frame = chempi_hear_frame,
        .on_rank_lost = chempi_hear_lost,
    };
    chempi_link_prepare(&s->up, loop, CHEMPI_TREE_MAX, CHEMPI_QUEUE_MAX);
    s->up.arg = s;
    HOLDS(chempi_super_number_ranks(s, &err) == 0 && s->local_size == HERE &&
          !s->gateway == !!(flags & ALONE));
    ev_timer_init(&s->grace, is_over, 1.0, 0.0);
    ev_timer_init(&s->hold, is_over, 1.0, 0.0);
    ev_timer_init(&s->sweep, is_over, 1.0, 0.0);
    chempi_wait_collect_init(s);
    chempi_streams_init(s);
    for (uint32_t i = 0; i < HERE; i++) {
        start(&s->ranks[i]);
        s->alive++;
        chempi_streams_open_feed(s, &s->ranks[i].feed,
                                 fcntl(full[1], F_DUPFD_CLOEXEC, 0));
    }
    if (s->gateway)
        start(s->gateway);
}

static void check(void)
{
    const struct chempi_super *s = &here;
    uint32_t alive = 0;

    for (uint32_t i = 0; i < HERE; i++)
        alive += s->ranks[i].pid > 0;
    HOLDS(alive == s->alive);
    HOLDS(!s->is_done || alive == 0);
    HOLDS(s->released <= s->fence);
}

/* As when its process is waited for. */
static void end_one(uint32_t number, int status)
{
    struct chempi_super *s = &here;
    struct chempi_rank *rank = &s->ranks[number];

    if (rank->pid <= 0)
        return;
    if (rank == s->gateway)
        chempi_gateway_reap(s, status);
    else
        chempi_ranks_reap(rank, status);
    s->has_children = s->alive > 0;
    if (!s->has_children)
        chempi_streams_drain(s);
    chempi_tell_done(s);
    chempi_wait_collect_settle(s);
    chempi_ending_care(s);
}

/* Returns whether the supervisor goes on. */
static bool step(uint8_t who, uint8_t type, const uint8_t *data, uint32_t len)
{
    struct chempi_super *s = &here;
    const struct chempi_frame frame = {
        .job = spec.job, .type = type, .data = data, .len = len};
    const uint32_t count = HERE + (s->gateway != NULL);
    struct chempi_err err = {0};
    struct chempi_link *link;
    int rc;

    if (who == ABOVE) {
        rc = type == CHEMPI_MSG_END ? 0
                                    : chempi_super_take(&s->up, &frame, &err);
        refused += rc != 0;
        return rc == 0;
    }
    if (who == ENDED) {
        end_one(type % count, len ? data[0] << (len > 1 ? 8 : 0) : 0);
        return true;
    }
    link = &s->ranks[(who - RANK) % count].link;
    if (!link->is_open || (s->is_done && link->arg != s->gateway)) {
        refused++; /* nobody is left to say it */
        return true;
    }
    rc = link->on_frame(link, &frame, &err);
    if (rc) {
        refused++;
        HOLDS(err.code == rc && err.text[0]);
        link->on_lost(link, rc, &err);
    }
    return true;
}

/* ---- what it has said ---------------------------------------------------- */

struct said {
    uint32_t ended[RANKS];
    uint32_t done;
    uint32_t started;
    uint64_t fence;
};

static void hear(struct said *said, const struct chempi_frame *frame)
{
    struct chempi_reader r;
    uint32_t number;

    if (frame->type == CHEMPI_MSG_OUTPUT || frame->type == CHEMPI_MSG_STATS ||
        frame->type == CHEMPI_MSG_ENDED)
        HOLDS(said->done == 0); /* P2 */
    chempi_wire_read(&r, frame->data, frame->len);
    switch (frame->type) {
    case CHEMPI_MSG_ENDED:
        HOLDS(chempi_wire_get_u32(&r) == here.node);
        number = chempi_wire_get_u32(&r);
        HOLDS(number < HERE && ++said->ended[number] == 1); /* P1 */
        break;
    case CHEMPI_MSG_ENTERED:
        HOLDS(chempi_wire_get_u64(&r) == ++said->fence);
        break;
    case CHEMPI_MSG_DONE:
        HOLDS(++said->done == 1); /* P3 */
        break;
    default:
        break;
    }
}

static void hear_all(void)
{
    struct chempi_channel *ch = &here.up.ch;
    struct said said = {.done = 0};
    struct chempi_reader r;

    chempi_wire_read(&r, ch->out.data + ch->out_head,
                     ch->out.len - ch->out_head);
    while (!chempi_wire_is_done(&r)) {
        struct chempi_frame frame = {.len = chempi_wire_get_u32(&r)};

        frame.type = chempi_wire_get_u16(&r);
        HOLDS(chempi_wire_get_u16(&r) == CHEMPI_FRAME_MAGIC);
        HOLDS(chempi_wire_get_u64(&r) == spec.job && !r.is_bad);
        HOLDS(frame.len <= (size_t)(r.end - r.next));
        frame.data = r.next;
        r.next += frame.len;
        hear(&said, &frame);
    }
    HOLDS(said.done == 1 || here.up.failure);
}

static void tear_down(void)
{
    struct chempi_super *s = &here;

    for (uint32_t i = 0; i < HERE; i++)
        end_one(i, 0);
    check();
    hear_all();
    for (uint32_t i = 0; i < HERE; i++)
        chempi_ranks_close(&s->ranks[i]);
    if (s->gateway)
        chempi_ranks_close(s->gateway);
    ev_timer_stop(loop, &s->grace);
    ev_timer_stop(loop, &s->hold);
    ev_timer_stop(loop, &s->sweep);
    ev_timer_stop(loop, &s->seek);
    ev_timer_stop(loop, &s->line_timer);
    chempi_link_close(&s->up);
    chempi_kvs_fini(&s->kvs);
    chempi_wire_clear(&s->report);
    free(s->ranks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct chempi_reader r;
    bool goes_on = true;

    refused = 0;
    chempi_wire_read(&r, data, size);
    set_up(chempi_wire_get_u8(&r));
    while (goes_on && !chempi_wire_is_done(&r) && !r.is_bad) {
        const uint8_t who = chempi_wire_get_u8(&r) % WHO_COUNT;
        const uint8_t type = chempi_wire_get_u8(&r);
        const uint32_t len = chempi_wire_get_u16(&r);
        const size_t left = (size_t)(r.end - r.next);
        const uint32_t taken = len < left ? len : (uint32_t)left;
        uint8_t *copy = malloc(taken ? taken : 1); /* its end is guarded */

        HOLDS(copy);
        memcpy(copy, r.next, taken);
        r.next += taken;
        goes_on = step(who, type, copy, taken);
        free(copy);
        check();
    }
    tear_down();
    return 0;
}

/* ---- seeds --------------------------------------------------------------- */

static struct chempi_writer row;
static struct chempi_writer part; /* the payload of the next step */

static void add(uint32_t who, uint8_t type)
{
    chempi_wire_put_u8(&row, (uint8_t)who);
    chempi_wire_put_u8(&row, type);
    chempi_wire_put_u16(&row, (uint16_t)part.len);
    chempi_wire_put_raw(&row, part.data, part.len);
    chempi_wire_clear(&part);
}

static void add_fence(uint32_t who, uint8_t type, uint64_t number)
{
    chempi_wire_put_u64(&part, number);
    add(who, type);
}

static void add_end(uint32_t number, uint8_t signal)
{
    if (signal)
        chempi_wire_put_u8(&part, signal);
    add(ENDED, (uint8_t)number);
}

/* The ranks, and the gateway behind them where there is one: it has no phases.
 * A node that is alone takes no releases. */
static void add_start(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        chempi_wire_put_u32(&part, CHEMPI_CONTROL_VERSION);
        chempi_wire_put_u32(&part, 77);
        add(RANK + i, CHEMPI_MSG_HELLO);
        chempi_wire_put_str(&part, "card");
        chempi_wire_put_blob(&part, "value", 5);
        add(RANK + i, CHEMPI_MSG_PUT);
        if (RANK + i == GATEWAY)
            continue;
        add(RANK + i, CHEMPI_MSG_WORLD);
        add(RANK + i, CHEMPI_MSG_INIT);
        add_fence(RANK + i, CHEMPI_MSG_FENCE, 1);
    }
    if (count > HERE)
        add_fence(ABOVE, CHEMPI_MSG_RELEASE, 1);
}

static void a_good_life(void)
{
    static const char figures[] = "traffic 0 0 - shm eager 2 3\nfile open 4\n";

    add_start(HERE);
    for (uint32_t i = 0; i < HERE; i++) {
        add(RANK + i, CHEMPI_MSG_UNWORLD);
        chempi_wire_put_u8(&part, 0);
        chempi_wire_put_blob(&part, figures, sizeof(figures) - 1);
        add(RANK + i, CHEMPI_MSG_REPORT);
        add(RANK + i, CHEMPI_MSG_FINAL);
        add_end(i, 0);
    }
}

static void keys(void)
{
    static const uint32_t owners[] = {0, 2, 3, 5};

    add_start(HERE + 1);
    for (uint32_t i = 0; i < 4; i++) {
        chempi_wire_put_u32(&part, owners[i]);
        chempi_wire_put_str(&part, i ? "later" : "card");
        add(RANK + i, CHEMPI_MSG_GET);
        chempi_wire_put_u32(&part, 0); /* to, from, rank */
        chempi_wire_put_u32(&part, 1);
        chempi_wire_put_u32(&part, i < HERE ? i : RANKS); /* its gateway */
        chempi_wire_put_str(&part, "later");
        add(ABOVE, CHEMPI_MSG_ASK);
    }
    chempi_wire_put_str(&part, "later");
    chempi_wire_put_blob(&part, "v", 1);
    add(RANK + 2, CHEMPI_MSG_PUT);
    chempi_wire_put_u32(&part, 0);
    chempi_wire_put_u32(&part, 3);
    chempi_wire_put_str(&part, "later");
    chempi_wire_put_blob(&part, "v", 1);
    add(ABOVE, CHEMPI_MSG_ANSWER);
}

static void questions(void)
{
    add_start(HERE + 1);
    for (uint32_t i = 0; i < 4; i++) {
        chempi_wire_put_u32(&part, 1 + i / 2);
        chempi_wire_put_u8(&part, CHEMPI_ROOT_LOOKUP);
        chempi_wire_put_blob(&part, "blob", 4);
        add(RANK + i % 2, CHEMPI_MSG_ROOT_REQUEST);
    }
    for (uint32_t i = 0; i < 3; i++) {
        chempi_wire_put_u32(&part, 0); /* node, rank */
        chempi_wire_put_u32(&part, 0);
        chempi_reply_write(
            &(struct chempi_reply){.serial = 1,
                                   .state = i == 1 ? CHEMPI_REPLY_OVER
                                                   : CHEMPI_REPLY_GRANTED,
                                   .text = "port"},
            &part);
        add(ABOVE, CHEMPI_MSG_ROOT_REPLY);
    }
    add_end(0, 9);
}

static void places(void)
{
    add_start(HERE + 1);
    chempi_wire_put_u32(&part, 1000);
    chempi_wire_put_u8(&part, 1);
    add(ABOVE, CHEMPI_MSG_LOCATE);
    for (uint32_t i = 0; i < 3; i++) {
        chempi_wire_put_u8(&part, 1);
        chempi_wire_put_str(&part, "MPI_Recv");
        chempi_wire_put_str(&part, "main");
        chempi_wire_put_u64(&part, 3);
        chempi_wire_put_u32(&part, 1);
        chempi_wire_put_u32(&part, 2);
        chempi_wire_put_u8(&part, i == 0); /* the first one says more */
        add(RANK + i % 2, CHEMPI_MSG_HERE);
    }
    add_end(2, 9);
}

static void orders(void)
{
    static const uint8_t numbered[] = {CHEMPI_MSG_SIGNAL, CHEMPI_MSG_CREDIT,
                                       CHEMPI_MSG_ABSENT};

    add_start(HERE + 1);
    chempi_wire_put_u32(&part, 0);
    chempi_wire_put_blob(&part, "input\n", 6);
    add(ABOVE, CHEMPI_MSG_INPUT);
    for (size_t i = 0; i < sizeof(numbered); i++) {
        chempi_wire_put_u32(&part, 15);
        if (numbered[i] != CHEMPI_MSG_SIGNAL)
            chempi_wire_put_u32(&part, 3);
        add(ABOVE, numbered[i]);
    }
    for (uint32_t i = 0; i < 2; i++) {
        chempi_wire_put_u32(&part, i ? 5 : 3);
        chempi_wire_put_u8(&part, i ? CHEMPI_FALL_DRAINED : CHEMPI_FALL_DIED);
        chempi_wire_put_str(&part, "why");
        add(ABOVE, CHEMPI_MSG_FALLEN);
    }
    chempi_wire_put_u32(&part, 0);
    for (uint32_t i = 0; i < CHEMPI_SHARE_BYTES; i++)
        chempi_wire_put_u8(&part, 1);
    add(ABOVE, CHEMPI_MSG_SHARE);
    add(ABOVE, CHEMPI_MSG_BEGIN);
    chempi_wire_put_u8(&part, 1);
    add(RANK, CHEMPI_MSG_CARE);
    chempi_wire_put_u32(&part, 3);
    chempi_wire_put_str(&part, "it died");
    add(ABOVE, CHEMPI_MSG_KILL);
    chempi_wire_put_u8(&part, 0);
    add(RANK, CHEMPI_MSG_CARE);
}

static void bad_ends(void)
{
    add_start(HERE + 1);
    chempi_wire_put_u32(&part, 5);
    chempi_wire_put_str(&part, "its way is lost");
    add(RANK, CHEMPI_MSG_CUT);
    for (uint32_t i = 0; i < CHEMPI_MEMORY_BYTES; i++)
        chempi_wire_put_u8(&part, 0);
    add(RANK, CHEMPI_MSG_MEMORY);
    chempi_wire_put_u32(&part, 3);
    chempi_wire_put_str(&part, "MPI_Abort");
    add(RANK, CHEMPI_MSG_ABORT);
    add_end(0, 9);
    add(RANK + 1, 99);
    add_end(1, 9);
    add_end(HERE, 9);
    chempi_wire_put_u32(&part, 0);
    add(ABOVE, CHEMPI_MSG_SIGNAL);
}

/* What is refused ends its speaker or the input, and what stands behind it is
 * not tried: all but the last one are good. */
static const struct seed {
    void (*write)(void);
    uint8_t flags;
    uint32_t refused; /* as many of its steps */
} seeds[] = {{a_good_life, ALONE, 0},
             {keys, 0, 0},
             {places, 0, 0},
             {questions, 0, 0},
             {orders, HELD | DIVIDED, 0},
             {bad_ends, SURVIVES, 2}};

/* Each is run here, to see that it says what it shall. */
size_t fuzz_seed(unsigned i, uint8_t out[FUZZ_INPUT_MAX])
{
    const struct seed *seed;
    size_t len;

    if (i >= sizeof(seeds) / sizeof(seeds[0]))
        return 0;
    seed = &seeds[i];
    chempi_wire_put_u8(&row, seed->flags);
    seed->write();
    HOLDS(!row.error && row.len <= FUZZ_INPUT_MAX);
    len = row.len;
    memcpy(out, row.data, len);
    chempi_wire_clear(&row);
    (void)LLVMFuzzerTestOneInput(out, len);
    if (refused != seed->refused)
        (void)fprintf(stderr, "seed %u: %u steps are refused, not %u\n", i,
                      refused, seed->refused);
    HOLDS(refused == seed->refused);
    return len;
}
