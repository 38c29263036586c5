/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sequences of messages against a daemon's jobs and questions: from clients,
 * from daemons above and below, from supervisors, with connections and
 * supervisors that end in between. Every message that a daemon takes is among
 * them. An input is a row of steps:
 *
 *     u8 who (enum who), u8 type, u8 which job, u16 length, the payload
 *
 * After each step: no link between daemons has ended for what a message says
 * (D5), and the daemon's counts are those of its lists. When all who ordered
 * something are gone and all supervisors have ended, no job and no question is
 * left (D1 to D3).
 */
#include <errno.h>
#include <ev.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chempid/daemon/daemon.h"
#include "chempid/daemon/grants.h"
#include "common/base/sys.h"
#include "common/control/msg.h"
#include "tests/fuzz/target.h"

enum who {
    CLIENT,
    ABOVE,
    BESIDE,
    BELOW,
    OTHER_BELOW,
    SPARE_BELOW,
    CONN_COUNT,
    SUPERVISOR = CONN_COUNT,
    LOST,  /* the connection of the number in "which job" */
    ENDED, /* a supervisor */
    WHO_COUNT
};

static const struct {
    enum chempi_conn_kind kind;
    const char *peer;
} kinds[CONN_COUNT] = {
    [CLIENT] = {CHEMPI_CONN_LOCAL, ""},
    [ABOVE] = {CHEMPI_CONN_INBOUND, "p1"},
    [BESIDE] = {CHEMPI_CONN_INBOUND, "p2"},
    [BELOW] = {CHEMPI_CONN_OUTBOUND, "b1"},
    [OTHER_BELOW] = {CHEMPI_CONN_OUTBOUND, "b2"},
    [SPARE_BELOW] = {CHEMPI_CONN_OUTBOUND, "c1"},
};

static const struct chempi_daemon_options options = {
    .name = "a1", .dir = "/nonexistent", .slots = 2, .detect_s = 5};
static struct chempi_daemon daemon_here;
static struct chempi_conn *conns[CONN_COUNT];
static struct chempi_sys calls;

#define HOLDS(is_so)                                                           \
    do {                                                                       \
        if (!(is_so)) {                                                        \
            (void)fprintf(stderr, "jobs.c:%d: not so: %s\n", __LINE__,         \
                          #is_so);                                             \
            abort();                                                           \
        }                                                                      \
    } while (0)

/* No process has this number. */
static pid_t fork_nothing(void)
{
    return INT_MAX;
}

static void set_up_once(void)
{
    struct chempi_daemon *d = &daemon_here;

    if (d->loop)
        return;
    calls = *chempi_sys;
    calls.fork = fork_nothing;
    chempi_sys = &calls;
    *d = (struct chempi_daemon){.opt = &options,
                                .dir = options.dir,
                                .owner = geteuid(),
                                .slots = 2,
                                .unix_fd = -1,
                                .tcp_fd = -1};
    d->loop = ev_loop_new(EVFLAG_AUTO);
    chempi_list_init(&d->jobs);
    chempi_list_init(&d->queries);
    chempi_orders_init(&d->orders);
    chempi_rivals_init(&d->rivals);
    HOLDS(d->loop && chempi_supervisors_init(&d->supervisors, NULL) == 0);
    d->supervisors.loop = d->loop; /* which never runs: there are no children */
    chempi_grants_init(d);
    /* Without a key it calls nobody that it has no connection with. */
    chempi_conns_init(&d->conns, d->loop, "a1", NULL, false, 1024, NULL, d);
    chempi_beat_init(&d->beat, &d->conns, options.detect_s, NULL);
}

static void connect_to(enum who who)
{
    struct chempi_daemon *d = &daemon_here;
    struct chempi_conn *c = calloc(1, sizeof(*c));

    HOLDS(c);
    c->conns = &d->conns;
    c->kind = kinds[who].kind;
    c->fd = -1;
    c->uid = geteuid();
    c->gid = getegid();
    c->is_proven = c->is_greeted = true;
    (void)snprintf(c->peer, sizeof(c->peer), "%s", kinds[who].peer);
    chempi_list_append(&d->conns.all, &c->entry);
    chempi_link_prepare(&c->link, d->loop, CHEMPI_TREE_MAX, CHEMPI_QUEUE_MAX);
    conns[who] = c;
    if (c->kind == CHEMPI_CONN_OUTBOUND)
        HOLDS(chempi_members_add(&d->members, c->peer, "127.0.0.1:1", 2) == 1);
}

static void lose(enum who who)
{
    struct chempi_conn *c = conns[who];

    if (!c)
        return;
    conns[who] = NULL;
    chempi_list_remove(&c->entry);
    chempi_rivals_lost(&daemon_here, c);
    chempi_query_lose(&daemon_here, c, "lost");
    chempi_orders_lose(&daemon_here, c, "lost");
    chempi_jobs_lose(&daemon_here, c, "lost");
    chempi_link_close(&c->link);
    free(c);
}

/* The youngest one. */
static struct chempi_supervisor_child *find_supervisor(void)
{
    struct chempi_list *list = &daemon_here.supervisors.children;

    return list->prev == list
               ? NULL
               : CHEMPI_CONTAINER_OF(list->prev, struct chempi_supervisor_child,
                                     entry);
}

static void end_supervisor(struct chempi_supervisor_child *n)
{
    chempi_supervisors_forget(n);
    n->pid = 0;
    n->on_end(n->arg, "the supervisor has ended");
}

static uint32_t length(const struct chempi_list *list)
{
    uint32_t n = 0;

    CHEMPI_LIST_FOR (e, list)
        n++;
    return n;
}

static void check(void)
{
    struct chempi_daemon *d = &daemon_here;
    struct chempi_pool pool = {0};
    struct chempi_status s;

    HOLDS(length(&d->jobs) == d->job_count);
    HOLDS(length(&d->queries) == d->query_count);
    HOLDS(length(&d->orders.all) == d->orders.count);
    HOLDS(length(&d->rivals.all) == d->rivals.count);
    HOLDS(d->query_count <= CHEMPI_DAEMON_QUERIES_MAX);
    for (unsigned i = ABOVE; i < CONN_COUNT; i++)
        HOLDS(!conns[i] || (conns[i]->link.is_open && !conns[i]->link.failure));
    HOLDS(chempi_jobs_status(d, true, &pool, &s) == 0);
    HOLDS(s.job_count == d->job_count);
    chempi_pool_fini(&pool);
}

static void take(enum who who, const struct chempi_frame *frame)
{
    struct chempi_err err = {0};
    struct chempi_supervisor_child *n = find_supervisor();

    if (who == LOST) {
        lose(frame->job % CONN_COUNT);
    } else if (who == ENDED && n) {
        end_supervisor(n);
    } else if (who == SUPERVISOR && n) {
        if (n->on_frame(n->arg, frame, &err))
            end_supervisor(n); /* which is killed for it */
    } else if (who < CONN_COUNT && conns[who]) {
        const int rc = chempi_daemon_take(conns[who], frame, &err);

        HOLDS(rc == 0 || who == CLIENT);
        if (rc)
            lose(who);
    }
}

static void tear_down(void)
{
    struct chempi_daemon *d = &daemon_here;
    struct chempi_supervisor_child *n;

    for (unsigned i = 0; i < CONN_COUNT; i++)
        lose(i);
    while ((n = find_supervisor()))
        end_supervisor(n);
    HOLDS(d->job_count == 0 && chempi_list_is_empty(&d->jobs));
    HOLDS(d->orders.count == 0 && chempi_list_is_empty(&d->orders.all));
    HOLDS(d->query_count == 0 && chempi_list_is_empty(&d->queries));
    HOLDS(d->rivals.count == 0 && chempi_list_is_empty(&d->rivals.all));
    chempi_members_fini(&d->members);
    d->is_drained = false;
    d->next_query = d->orders.next = 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct chempi_reader r;

    set_up_once();
    for (unsigned i = 0; i < CONN_COUNT; i++)
        connect_to(i);
    chempi_wire_read(&r, data, size);
    while (!chempi_wire_is_done(&r) && !r.is_bad) {
        const uint8_t who = chempi_wire_get_u8(&r);
        const uint8_t type = chempi_wire_get_u8(&r);
        const uint8_t job = chempi_wire_get_u8(&r);
        const uint32_t len = chempi_wire_get_u16(&r);
        struct chempi_frame frame = {.type = type, .job = job};
        const size_t left = (size_t)(r.end - r.next);
        uint8_t *copy; /* of its own size, so that its end is guarded */

        frame.len = len < left ? len : (uint32_t)left;
        copy = malloc(frame.len ? frame.len : 1);
        HOLDS(copy);
        memcpy(copy, r.next, frame.len);
        r.next += frame.len;
        frame.data = copy;
        take(who % WHO_COUNT, &frame);
        free(copy);
        check();
    }
    tear_down();
    return 0;
}

/* ---- seeds --------------------------------------------------------------- */

static struct chempi_writer row;

static void add(enum who who, uint8_t type, uint8_t job,
                const struct chempi_writer *w)
{
    chempi_wire_put_u8(&row, (uint8_t)who);
    chempi_wire_put_u8(&row, type);
    chempi_wire_put_u8(&row, job);
    chempi_wire_put_u16(&row, w ? (uint16_t)w->len : 0);
    if (w)
        chempi_wire_put_raw(&row, w->data, w->len);
}

static void add_u32(enum who who, uint8_t type, uint8_t job, uint32_t value)
{
    struct chempi_writer w = {0};

    chempi_wire_put_u32(&w, value);
    add(who, type, job, &w);
    chempi_wire_clear(&w);
}

static void add_text(enum who who, uint8_t type, uint8_t job, uint32_t number,
                     const char *text)
{
    struct chempi_writer w = {0};

    chempi_wire_put_u32(&w, number);
    chempi_wire_put_str(&w, text);
    add(who, type, job, &w);
    chempi_wire_clear(&w);
}

static void add_fence(enum who who, uint8_t type, uint8_t job, uint64_t number)
{
    struct chempi_writer w = {0};

    chempi_wire_put_u64(&w, number);
    add(who, type, job, &w);
    chempi_wire_clear(&w);
}

#define NODES_MAX 8

/* Of a rank on each of the first nodes, and gateways on the others. */
static void add_job(enum who who, uint8_t job, char **names, uint32_t ranks,
                    uint32_t gateways)
{
    static uint32_t numbers[NODES_MAX] = {0, 1, 2, 3, 4, 5, 6, 7};
    static uint32_t zeros[NODES_MAX];
    static char *argv[] = {"true", NULL};
    static char *env[] = {"A=1", NULL};
    struct chempi_app app = {argv, env, NULL, 0, ranks};
    struct chempi_spec spec = {
        .job = job,
        .uid = (uint32_t)geteuid(),
        .gid = (uint32_t)getegid(),
        .size = ranks,
        .gateway_count = gateways,
        .node_count = ranks + gateways,
        .node_names = names,
        .node_of_rank = numbers,
        .bind_offset = zeros,
        .host_of_node = numbers,
        .apps = &app,
        .app_count = 1,
        .env = env,
        .cwd = "/",
        .universe_size = ranks,
        .shell = {.is_known = true, .count = RLIM_NLIMITS},
    };
    struct chempi_writer w = {0};

    chempi_spec_name(job, spec.id);
    chempi_wire_put_u32(&w, spec.node_count);
    for (uint32_t i = 0; i < spec.node_count; i++)
        chempi_wire_put_u32(&w, i);
    chempi_shell_write(&spec.shell, &w);
    chempi_spec_write(&spec, CHEMPI_NODE_ANY, &w);
    add(who, CHEMPI_MSG_LAUNCH, job, &w);
    chempi_wire_clear(&w);
}

static void add_launch(enum who who, uint8_t job, uint32_t ranks,
                       uint32_t gateways)
{
    static char *names[] = {"a1", "b1", "b2", "c1"};

    add_job(who, job, names, ranks, gateways);
}

static void add_life(enum who who, uint8_t job)
{
    static const enum who below[] = {SUPERVISOR, BELOW, OTHER_BELOW};

    add_launch(who, job, 3, 0);
    for (unsigned i = 0; i < 3; i++)
        add_u32(below[i], CHEMPI_MSG_STARTED, job, 1);
    for (unsigned i = 0; i < 3; i++)
        add_fence(below[i], CHEMPI_MSG_ENTERED, job, 1);
    add_fence(who, CHEMPI_MSG_RELEASE, job, 1);
}

static void add_end(enum who who, uint8_t job)
{
    add_u32(SUPERVISOR, CHEMPI_MSG_DONE, job, 1);
    add_u32(BELOW, CHEMPI_MSG_DONE, job, 1);
    add_u32(OTHER_BELOW, CHEMPI_MSG_DONE, job, 1);
    add(who, CHEMPI_MSG_END, job, NULL);
    add(ENDED, 0, 0, NULL);
    add_u32(BELOW, CHEMPI_MSG_GONE, job, 1);
    add_u32(OTHER_BELOW, CHEMPI_MSG_GONE, job, 1);
}

static void a_good_life(void)
{
    add_life(CLIENT, 3);
    add_end(CLIENT, 3);
}

/* Each type that goes towards the root or away from it. */
static void all_that_is_said(void)
{
    add_life(ABOVE, 5);
    for (uint8_t type = CHEMPI_MSG_OUTPUT; type <= CHEMPI_MSG_PIDS; type++) {
        if (type == CHEMPI_MSG_DONE || type == CHEMPI_MSG_GONE ||
            type == CHEMPI_MSG_ENTERED)
            continue;
        add_text(BELOW, type, 5, 1, "text");
        add_text(SUPERVISOR, type, 5, 0, "text");
    }
    for (uint8_t type = CHEMPI_MSG_INPUT; type <= CHEMPI_MSG_BEGIN; type++)
        if (type != CHEMPI_MSG_END)
            add_text(ABOVE, type, 5, 2, "text");
    for (uint8_t type = CHEMPI_MSG_ASK; type <= CHEMPI_MSG_RUNS; type++) {
        add_text(BELOW, type, 5, 2, "key");
        add_text(SUPERVISOR, type, 5, 1, "key");
    }
    add_end(ABOVE, 5);
}

static void two_that_are_dropped(void)
{
    add_life(ABOVE, 1);
    add_life(BESIDE, 2);
    add(ABOVE, CHEMPI_MSG_DROP, 1, NULL);
    add_u32(BELOW, CHEMPI_MSG_DONE, 1, 1); /* it was on its way */
    add(LOST, 0, BESIDE, NULL);
    add_launch(ABOVE, 2, 3, 0); /* its number is in use */
    add(ENDED, 0, 0, NULL);
    add(ENDED, 0, 0, NULL);
}

static void one_with_spares(void)
{
    add_launch(ABOVE, 4, 2, 2);
    add_text(SPARE_BELOW, CHEMPI_MSG_REFUSED, 4, CHEMPI_MSG_LAUNCH, "no");
    add(LOST, 0, OTHER_BELOW, NULL);
    add_text(ABOVE, CHEMPI_MSG_FALLEN, 4, 2, "x");
    add_u32(BELOW, CHEMPI_MSG_STARTED, 4, 1);
    add_u32(BELOW, CHEMPI_MSG_STARTED, 4, 9); /* too many */
    add(ENDED, 0, 0, NULL);
}

/* More than a hub has room for. */
static void one_name_for_all(void)
{
    static char *here[] = {"a1", "a1", "a1", "a1", "a1", "a1", "a1", "a1"};
    static char *there[] = {"b1", "b1", "b1", "b1", "b1", "b1", "b1", "b1"};

    add_job(CLIENT, 7, here, 8, 0);
    add_job(ABOVE, 7, here, 8, 0);
    add_job(ABOVE, 8, there, 8, 0);
    add_job(ABOVE, 9, here, 1, 7);
}

/* The gateway is here; the supervisor tells of it and of memory. */
static void reports_of_a_supervisor(void)
{
    static char *names[] = {"b1", "b2", "a1", "c1"};
    struct chempi_writer w = {0};

    add_job(CLIENT, 9, names, 2, 2);
    add_u32(SUPERVISOR, CHEMPI_MSG_RUNS, 9, 77);
    add_launch(ABOVE, 8, 2, 0);
    chempi_wire_put_u32(&w, 0);
    chempi_wire_put_u32(&w, 1);
    for (unsigned i = 0; i < 5; i++)
        chempi_wire_put_u64(&w, 4096);
    add(SUPERVISOR, CHEMPI_MSG_HOLDS, 8, &w);
    chempi_wire_clear(&w);
    for (uint32_t what = CHEMPI_REQUEST_DRAIN; what <= CHEMPI_REQUEST_UNDRAIN;
         what++) {
        chempi_wire_put_u32(&w, what);
        chempi_wire_put_str(&w, "a1");
        chempi_wire_put_str(&w, "");
        chempi_wire_put_u32(&w, (uint32_t)geteuid());
        add(CLIENT, CHEMPI_MSG_REQUEST, 0, &w);
        chempi_wire_clear(&w);
    }
}

static void put_status(struct chempi_writer *w, const char *node)
{
    struct chempi_status_gateway gateway = {"g0", CHEMPI_FATE_UP, 77};
    struct chempi_status_job job = {"id", 7, 4, 2, "./a", false, 1, &gateway};
    struct chempi_status_grant grant = {.job = "id", .rank = 1};
    const struct chempi_status s = {
        .node = node,
        .error = "",
        .slots = 2,
        .version = "0",
        .tables = "",
        .job_count = 1,
        .jobs = &job,
        .grant_count = 1,
        .grants = &grant,
    };

    chempi_status_write(w, &s);
}

static void add_query(enum who who, uint8_t number, uint32_t count)
{
    static const char *const names[] = {"a1", "b1", "b2", "c1", "zz"};
    struct chempi_writer w = {0};

    chempi_wire_put_u32(&w, 1); /* the user */
    chempi_wire_put_u32(&w, count);
    for (uint32_t i = 0; i < count; i++)
        chempi_wire_put_str(&w, names[i]);
    chempi_wire_put_u32(&w, 1);
    chempi_wire_put_u32(&w, 1000);
    add(who, CHEMPI_MSG_QUERY, number, &w);
    chempi_wire_clear(&w);
}

/* Numbers of questions and orders begin anew with each input. */
static void questions(void)
{
    struct chempi_writer w = {0};

    add_query(CLIENT, 1, 0);
    put_status(&w, "b1");
    for (uint8_t number = 0; number < 8; number++)
        add(BELOW, CHEMPI_MSG_STATUS, number, &w);
    add_query(ABOVE, 2, 5);
    for (uint8_t number = 0; number < 8; number++)
        add_text(OTHER_BELOW, CHEMPI_MSG_REFUSED, number, CHEMPI_MSG_QUERY,
                 "busy");
    add(LOST, 0, SPARE_BELOW, NULL);
    chempi_wire_clear(&w);
}

static void orders_and_news(void)
{
    struct chempi_writer w = {0};

    add_life(CLIENT, 6);
    for (uint32_t what = 1; what <= CHEMPI_REQUEST_WHERE; what++) {
        chempi_wire_put_u32(&w, what);
        chempi_wire_put_str(&w, what % 2 ? "a1" : "b1");
        chempi_wire_put_str(&w, "6");
        chempi_wire_put_u32(&w, (uint32_t)geteuid());
        add(what % 2 ? ABOVE : CLIENT, CHEMPI_MSG_REQUEST, 0, &w);
        chempi_wire_clear(&w);
    }
    for (uint8_t order = 0; order < 4; order++)
        add_text(BELOW, CHEMPI_MSG_REPLY, order, ESRCH, "no such job");
    chempi_wire_put_u32(&w, 2);
    chempi_wire_put_str(&w, "p1");
    chempi_wire_put_str(&w, "127.0.0.1:2");
    chempi_wire_put_u32(&w, 4);
    chempi_wire_put_str(&w, "n2");
    chempi_wire_put_str(&w, "127.0.0.1:3");
    chempi_wire_put_u32(&w, 4);
    add(ABOVE, CHEMPI_MSG_NEWS, 0, &w);
    chempi_wire_clear(&w);
}

static void add_news(enum who who, const char *node, const char *address)
{
    struct chempi_writer w = {0};

    chempi_wire_put_u32(&w, 1);
    chempi_wire_put_str(&w, node);
    chempi_wire_put_str(&w, address);
    chempi_wire_put_u32(&w, 4);
    add(who, CHEMPI_MSG_NEWS, 0, &w);
    chempi_wire_clear(&w);
}

/* Of a node that answers where it is known to be, and of one that does not. */
static void two_at_one_name(void)
{
    add_news(ABOVE, "b1", "127.0.0.1:2");
    add_news(ABOVE, "n2", "127.0.0.1:3");
    add_news(BESIDE, "n2", "127.0.0.1:4");
    add_news(ABOVE, "p1", "127.0.0.1:5");
    add(LOST, 0, BELOW, NULL);
    add_news(BESIDE, "b1", "127.0.0.1:6");
    add_news(ABOVE, "n2", "");
    add_news(BESIDE, "n2", "");
}

size_t fuzz_seed(unsigned i, uint8_t out[FUZZ_INPUT_MAX])
{
    static void (*const rows[])(void) = {
        a_good_life,     all_that_is_said, two_that_are_dropped,
        one_with_spares, one_name_for_all, reports_of_a_supervisor,
        questions,       orders_and_news,  two_at_one_name};
    size_t len = 0;

    if (i >= sizeof(rows) / sizeof(rows[0]))
        return 0;
    rows[i]();
    if (!row.error && row.len <= FUZZ_INPUT_MAX) {
        memcpy(out, row.data, row.len);
        len = row.len;
    }
    chempi_wire_clear(&row);
    return len;
}
