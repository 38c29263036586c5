/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon's end of didl; see daemon.h. */
#define _GNU_SOURCE /* close_range, via the client */
#include "libchempi/didl/control/daemon.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/base/error.h"
#include "libchempi/didl/base/fatal.h"
#include "libchempi/didl/base/setting.h"

static struct {
    const struct chempi_daemon_listener *listener;
    uint64_t fence_entered;
    uint64_t fence_passed;
    uint64_t suspect_ns;                      /* 0: nobody is suspected */
    uint32_t suspects[CHEMPI_ERROR_LOST_MAX]; /* the first is `why` about */
    uint32_t suspect_count;
    char why[256];
    struct chempi_poll_item item;
    bool is_watched;
    struct chempi_memory_state memory; /* as told last */
    bool cares;                        /* what the supervisor knows */
    bool is_sought;                    /* asked where it waits */
    uint32_t zero;
    int no_fd;
    const char *name;
    struct chempi_job alone;
    char host[CHEMPI_NODE_NAME_MAX];
} self;

/* NULL in a world of one. It wants one thread at a time: the one that has the
 * lane, or while nothing is locked the only one. */
static struct chempi_client *client(void)
{
    assert(self.listener->is_alone());
    return chempi_ctx.client;
}

static int open_alone(void)
{
    if (gethostname(self.host, sizeof(self.host)) != 0)
        (void)snprintf(self.host, sizeof(self.host), "localhost");
    self.host[sizeof(self.host) - 1] = '\0';
    self.no_fd = -1;
    self.name = self.host;
    self.alone = (struct chempi_job){
        .id = "alone",
        .size = 1,
        .node_count = 1,
        .local_size = 1,
        .node_of_rank = &self.zero,
        .local_rank_of_rank = &self.zero,
        .node_names = &self.name,
        .universe_size = 1,
        .region_fd = -1,
        .table_fd = -1,
        .wake_fds = &self.no_fd,
        .memory_share = CHEMPI_MEMORY_UNLIMITED,
    };
    chempi_ctx.job = &self.alone;
    chempi_fatal_place(chempi_ctx.job);
    return 0;
}

int chempi_daemon_open(const struct chempi_daemon_listener *listener,
                       struct chempi_err *err)
{
    int rc = chempi_client_open(&chempi_ctx.client, err);

    self.listener = listener;
    if (rc == -ENOENT)
        return open_alone();
    if (rc)
        return rc;
    chempi_ctx.job = chempi_client_job(chempi_ctx.client);
    chempi_fatal_place(chempi_ctx.job);
    self.cares = false;
    self.is_sought = false;
    return 0;
}

void chempi_daemon_close(void)
{
    chempi_client_close(chempi_ctx.client);
    chempi_ctx.client = NULL;
    chempi_ctx.job = NULL;
    chempi_fatal_set_free(false); /* nobody is to be told any more */
}

static void notice_ready(struct chempi_poll_item *item, uint32_t events)
{
    (void)item;
    (void)events;
    chempi_daemon_poll();
}

/* A lost supervisor is noticed when its notices are read. */
static void report_memory(void *arg)
{
    struct chempi_memory_state state;

    (void)arg;
    if (!client())
        return;
    chempi_memory_state(chempi_ctx.services.memory, &state);
    self.memory = state;
    chempi_memory_told(chempi_ctx.services.memory, &state);
    (void)chempi_client_memory(
        client(), &(struct chempi_client_memory){.held = state.held,
                                                 .used = state.used,
                                                 .wanted = state.wanted,
                                                 .needed = state.needed,
                                                 .degraded = state.degraded});
}

/* Before this process sleeps: small changes are told, too. */
static void tell_memory(void)
{
    struct chempi_memory_state state;

    if (!self.is_watched)
        return;
    chempi_memory_state(chempi_ctx.services.memory, &state);
    if (state.used != self.memory.used ||
        state.degraded != self.memory.degraded)
        report_memory(NULL);
}

bool chempi_daemon_has_memory(void *unused)
{
    struct chempi_memory_state state;

    (void)unused;
    chempi_memory_state(chempi_ctx.services.memory, &state);
    return state.share >= state.needed;
}

void chempi_daemon_ask_memory(void)
{
    report_memory(NULL);
}

int chempi_daemon_watch(void)
{
    int rc;

    if (!chempi_ctx.client)
        return 0;
    chempi_memory_on_change(chempi_ctx.services.memory, report_memory, NULL);
    self.item.fd = chempi_client_fd(chempi_ctx.client);
    self.item.ready = notice_ready;
    rc = chempi_pollset_add(chempi_ctx.services.pollset, &self.item, EPOLLIN);
    self.is_watched = rc == 0;
    return rc;
}

void chempi_daemon_unwatch(void)
{
    if (self.is_watched)
        chempi_pollset_remove(chempi_ctx.services.pollset, &self.item);
    self.is_watched = false;
}

static void got(void *arg, uint32_t rank, const char *key, const void *value,
                size_t len)
{
    (void)arg;
    self.listener->card(rank, key, value, len);
}

static void fenced(void *arg, uint64_t fence)
{
    (void)arg;
    self.fence_passed = fence;
}

static void rank_lost(void *arg, uint32_t rank, const char *text)
{
    (void)arg;
    self.listener->lost(rank, text);
}

static void budget(void *arg, uint64_t bytes, uint32_t deadline_ms)
{
    (void)arg;
    (void)deadline_ms; /* what is not in use goes at once */
    chempi_memory_set_share(chempi_ctx.services.memory, bytes);
}

static void drained(void *arg, uint32_t gateway, bool is_drained)
{
    (void)arg;
    self.listener->drained(gateway, is_drained);
}

static void tell(void *arg)
{
    (void)arg;
    self.listener->report();
}

/* Whoever waits has the words. */
static void where(void *arg)
{
    (void)arg;
    self.is_sought = true;
    self.listener->sought();
}

static const struct chempi_client_events events = {
    .got = got,
    .fenced = fenced,
    .rank_lost = rank_lost,
    .budget = budget,
    .drained = drained,
    .tell = tell,
    .where = where,
};

/* Nobody has said what has become of those that are missed. */
CHEMPI_NORETURN static void give_up(void)
{
    char others[CHEMPI_ERROR_RANKS_TEXT];

    chempi_error_put_ranks(self.suspects, self.suspect_count, others,
                           sizeof(others));
    chempi_fatal_die(1, "the connection to rank %u was lost: %s%s",
                     self.suspects[0], self.why, others);
}

void chempi_daemon_poll(void)
{
    struct chempi_err err = {0};

    tell_memory();
    if (client() && chempi_client_progress(client(), &events, NULL, &err) < 0) {
        /* Not closed: the names in the sentence, and all that other threads
         * may read of the job, are the client's. */
        chempi_ctx.client = NULL;
        chempi_fatal_die(1, "%s", err.text);
    }
    if (self.suspect_ns && chempi_clock_ns() > self.suspect_ns)
        give_up();
}

int chempi_daemon_deadline_ms(void)
{
    uint64_t now_ns;

    if (!self.suspect_ns)
        return -1;
    now_ns = chempi_clock_ns();
    if (now_ns >= self.suspect_ns)
        return 0;
    return (int)((self.suspect_ns - now_ns) / CHEMPI_NS_PER_MS) + 1;
}

static uint32_t named(void)
{
    return self.suspect_count < CHEMPI_ERROR_LOST_MAX ? self.suspect_count
                                                      : CHEMPI_ERROR_LOST_MAX;
}

void chempi_daemon_suspect(uint32_t proc, const char *why)
{
    for (uint32_t i = 0; i < named(); i++)
        if (self.suspects[i] == proc)
            return;
    if (self.suspect_count < CHEMPI_ERROR_LOST_MAX)
        self.suspects[self.suspect_count] = proc;
    if (self.suspect_count++)
        return; /* the time runs since the first one */
    (void)snprintf(self.why, sizeof(self.why), "%s", why);
    self.suspect_ns =
        chempi_clock_ns() +
        chempi_setting(CHEMPI_SET_DAEMON_SUSPECT) * CHEMPI_NS_PER_MS;
}

int chempi_daemon_need_world(void)
{
    return client() ? chempi_client_need_world(client()) : 0;
}

int chempi_daemon_leave_world(void)
{
    return client() ? chempi_client_leave_world(client()) : 0;
}

void chempi_daemon_cut(uint32_t gateway, const char *why)
{
    if (client()) /* else nobody listens to the end either */
        (void)chempi_client_cut(client(), gateway, why);
}

void chempi_daemon_care(bool cares)
{
    if (cares == self.cares || !client())
        return;
    self.cares = cares;
    (void)chempi_client_care(client(), cares); /* the next call says what is
                                                  wrong */
}

bool chempi_daemon_was_sought(void)
{
    const bool was_sought = self.is_sought;

    self.is_sought = false;
    return was_sought;
}

void chempi_daemon_here(bool is_waiting, const char *text)
{
    if (chempi_ctx.client) /* the next poll says what is wrong */
        (void)chempi_client_here(chempi_ctx.client, is_waiting, text);
}

int chempi_daemon_put(const char *key, const void *value, size_t len)
{
    return client() ? chempi_client_put(client(), key, value, len) : 0;
}

int chempi_daemon_get(uint32_t proc, const char *key)
{
    return client() ? chempi_client_get(client(), proc, key) : -EHOSTUNREACH;
}

int chempi_daemon_enter_fence(void)
{
    return client() ? chempi_client_fence(client(), &self.fence_entered) : 0;
}

bool chempi_daemon_is_fenced(void *unused)
{
    (void)unused;
    return self.fence_passed >= self.fence_entered;
}
