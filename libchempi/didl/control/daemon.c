/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon's end of didl; see daemon.h. */
#define _GNU_SOURCE /* clock_gettime */
#include "libchempi/didl/control/daemon.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

#include "common/base/clock.h"
#include "common/containers/array.h"
#include "common/control/msg.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/base/setting.h"
#include "libchempi/didl/control/entry.h"
#include "libchempi/didl/control/own_launcher.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/error/fatal.h"

enum {
    QUIET_MAX = 64, /* looks that trust the count of notices */
    ASKED_MAX = 8   /* suspects at a time */
};
#define LOOK_NS 1000000L /* between looks for the end */

/* The connection to a process of this job was lost. */
struct suspect {
    uint32_t proc;
    char why[256];
};

static struct {
    const struct chempi_daemon_listener *listener;
    uint64_t fence_entered;
    uint64_t fence_passed;
    uint64_t suspect_ns;      /* 0: nobody is suspected */
    struct suspect *suspects; /* [suspect_count] */
    uint32_t suspect_count;
    uint32_t suspect_room;
    bool has_unlisted; /* there is no memory for one: nothing acquits it */
    uint32_t asked; /* the supervisor about these first ones, whether they have
                    left in order, and has not said so (yet) */
    struct chempi_poll_item item;
    bool is_watched;
    struct chempi_poll_item own; /* of the launcher that we have started */
    bool is_own_watched;
    struct chempi_memory_state memory; /* as told last */
    bool cares;                        /* what the supervisor knows */
    bool is_sought;                    /* asked where it waits, */
    enum chempi_wait_depth depth;      /* and for how much */
    uint32_t quiet;                    /* looks for news so far; it wraps */
} self;

/* NULL when the launcher is lost. It wants one thread at a time: the one that
 * has the lane, or while nothing is locked the only one. */
static const struct chempi_entry_ops *entry(void)
{
    assert(self.listener->is_alone());
    return chempi_ctx.entry ? chempi_ctx.entry->ops : NULL;
}

/* To a supervisor of ours; NULL: there is none, or a thread has found it lost
 * and forgotten it. */
static struct chempi_client *any_client(void)
{
    const struct chempi_entry *found = chempi_ctx.entry;

    return found ? found->ops->client() : NULL;
}

/* The same, for what wants one thread at a time. */
static struct chempi_client *client(void)
{
    const struct chempi_entry_ops *ops = entry();

    return ops ? ops->client() : NULL;
}

int chempi_daemon_open(const struct chempi_daemon_listener *listener,
                       struct chempi_err *err)
{
    const struct chempi_entry *found = chempi_entry_find(err);
    const struct chempi_job *job;
    int rc;

    self.listener = listener;
    if (!found)
        return -EPROTO;
    rc = found->ops->open(found, &job, err);
    if (rc)
        return rc;
    chempi_ctx.entry = found;
    chempi_ctx.job = job;
    chempi_fatal_place(job);
    self.cares = false;
    self.is_sought = false;
    return 0;
}

void chempi_daemon_close(void)
{
    chempi_own_launcher_close();
    if (chempi_ctx.entry)
        chempi_ctx.entry->ops->close();
    chempi_ctx.entry = NULL;
    chempi_ctx.job = NULL;
    chempi_fatal_set_free(false); /* nobody is to be told any more */
}

int chempi_daemon_begin(struct chempi_err *err)
{
    int rc = chempi_ctx.entry ? chempi_ctx.entry->ops->begin(err) : 0;

    if (rc == 0)
        chempi_fatal_set_free(false);
    chempi_own_launcher_begin();
    return rc < 0 ? rc : 0;
}

void chempi_daemon_end(bool is_for_good)
{
    chempi_own_launcher_end();
    if (!chempi_ctx.entry)
        return;
    (void)chempi_ctx.entry->ops->end(is_for_good); /* nobody is to act on it */
    /* A launcher that has heard of the end may close its side, which would be
     * readable for ever. */
    if (is_for_good && chempi_ctx.entry->begins_fenced)
        chempi_daemon_unwatch();
    chempi_fatal_set_free(chempi_ctx.entry->is_free_after_end);
}

bool chempi_daemon_abort(int exit_code, const char *text)
{
    /* A thread that finds the launcher lost forgets it. */
    const struct chempi_entry *found = chempi_ctx.entry;

    return found && found->ops->abort(exit_code, text) == 0;
}

void chempi_daemon_report(const void *text, size_t len)
{
    struct chempi_client *to = any_client();

    if (to)
        (void)chempi_client_report(to, text, len);
}

bool chempi_daemon_needs_fence(void)
{
    return chempi_ctx.job->node_count > 1 && chempi_ctx.entry &&
           !chempi_ctx.entry->begins_fenced;
}

bool chempi_daemon_needs_fd(void)
{
    return chempi_own_launcher_fd() >= 0 ||
           (chempi_ctx.entry && chempi_ctx.entry->ops->needs_fd());
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
    if (!entry())
        return;
    chempi_memory_state(chempi_ctx.services.memory, &state);
    self.memory = state;
    chempi_memory_told(chempi_ctx.services.memory, &state);
    if (client())
        (void)chempi_client_memory(client(), &(struct chempi_client_memory){
                                                 .held = state.held,
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

    if (!chempi_ctx.entry || chempi_ctx.entry->ops->fd() < 0)
        return 0;
    chempi_memory_on_change(chempi_ctx.services.memory, report_memory, NULL);
    self.item.fd = chempi_ctx.entry->ops->fd();
    self.item.ready = notice_ready;
    rc = chempi_pollset_add(chempi_ctx.services.pollset, &self.item, EPOLLIN);
    self.is_watched = rc == 0;
    return rc;
}

static void unwatch_own(void)
{
    if (self.is_own_watched)
        chempi_pollset_remove(chempi_ctx.services.pollset, &self.own);
    self.is_own_watched = false;
}

void chempi_daemon_unwatch(void)
{
    unwatch_own();
    if (self.is_watched)
        chempi_pollset_remove(chempi_ctx.services.pollset, &self.item);
    self.is_watched = false;
}

/* ---- processes to which the connection was lost ---- */

static void start_clock(void)
{
    self.suspect_ns =
        chempi_clock_ns() +
        chempi_setting(CHEMPI_SET_DAEMON_SUSPECT) * CHEMPI_NS_PER_MS;
}

/* The answer comes when it has left, if it does. */
static void ask_of_suspects(void)
{
    while (client() && self.asked < self.suspect_count &&
           self.asked < ASKED_MAX &&
           chempi_client_get(client(), self.suspects[self.asked].proc,
                             CHEMPI_KEY_LEFT) == 0)
        self.asked++;
}

/* Its process has ended after its last use of MPI: no loss. */
static void acquit(uint32_t proc)
{
    uint32_t at = 0;

    while (at < self.asked && self.suspects[at].proc != proc)
        at++;
    if (at == self.asked)
        return;
    self.asked--;
    self.suspect_count--;
    memmove(&self.suspects[at], &self.suspects[at + 1],
            (self.suspect_count - at) * sizeof(*self.suspects));
    if (self.suspect_count > 0)
        start_clock();
    else if (!self.has_unlisted)
        self.suspect_ns = 0;
    ask_of_suspects();
}

void chempi_daemon_suspect(uint32_t proc, const char *why)
{
    if (chempi_ctx.job->survives)
        return;
    if (!self.suspect_ns)
        start_clock(); /* since the first one */
    if (!CHEMPI_ARRAY_FIT(self.suspects, self.suspect_room,
                          self.suspect_count + 1)) {
        self.has_unlisted = true;
        return;
    }
    self.suspects[self.suspect_count].proc = proc;
    (void)snprintf(self.suspects[self.suspect_count++].why,
                   sizeof(self.suspects->why), "%s", why);
    ask_of_suspects();
}

/* Nobody has said what has become of those that are missed. */
CHEMPI_NORETURN static void give_up(void)
{
    uint32_t ranks[CHEMPI_ERROR_LOST_MAX];
    char others[CHEMPI_ERROR_RANKS_TEXT];

    if (self.suspect_count == 0)
        chempi_fatal_die("the connection to a rank was lost, and there is "
                         "no memory to tell which");
    for (uint32_t i = 0; i < CHEMPI_ERROR_LOST_MAX && i < self.suspect_count;
         i++)
        ranks[i] = self.suspects[i].proc;
    chempi_error_put_ranks(ranks, self.suspect_count, others, sizeof(others));
    chempi_fatal_die("the connection to rank %u was lost: %s%s", ranks[0],
                     self.suspects->why, others);
}

static void got(void *arg, uint32_t rank, const char *key, const void *value,
                size_t len)
{
    (void)arg;
    if (strcmp(key, CHEMPI_KEY_LEFT) == 0)
        acquit(rank);
    else
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
static void where(void *arg, enum chempi_wait_depth depth)
{
    (void)arg;
    if (!self.is_sought || depth > self.depth)
        self.depth = depth;
    self.is_sought = true;
    self.listener->sought();
}

static void root_replied(void *arg, const struct chempi_reply *reply)
{
    (void)arg;
    self.listener->replied(reply);
}

static const struct chempi_client_events events = {
    .got = got,
    .fenced = fenced,
    .rank_lost = rank_lost,
    .budget = budget,
    .drained = drained,
    .tell = tell,
    .where = where,
    .root_replied = root_replied,
};

/* Its end is no end of this process. */
static void poll_own(void)
{
    struct chempi_err err;

    if (chempi_own_launcher_fd() < 0 ||
        chempi_own_launcher_progress(&events, &err))
        return;
    unwatch_own();
    chempi_own_launcher_close();
    self.listener->unanswered(err.text);
}

void chempi_daemon_poll(void)
{
    struct chempi_err err = {0};

    tell_memory();
    poll_own();
    if (entry() && entry()->progress(&events, NULL, &err) < 0) {
        /* Not closed: the names in the sentence, and all that other threads
         * may read of the job, are its own. */
        chempi_ctx.entry = NULL;
        chempi_fatal_die("%s", err.text);
    }
    if (self.suspect_ns && chempi_clock_ns() > self.suspect_ns)
        give_up();
}

void chempi_daemon_poll_news(void)
{
    /* That a supervisor is lost is no news of its own. */
    bool is_time = ++self.quiet % QUIET_MAX == 0;

    if (is_time || self.suspect_ns || chempi_own_launcher_fd() >= 0 ||
        !entry() || !entry()->is_quiet())
        chempi_daemon_poll();
    else
        tell_memory();
}

int chempi_daemon_deadline_ms(void)
{
    const int due_ms = chempi_clock_shorter_ms(
        chempi_ctx.entry ? chempi_ctx.entry->ops->due_ms() : -1,
        chempi_own_launcher_due_ms());
    uint64_t now_ns;

    if (!self.suspect_ns)
        return due_ms;
    now_ns = chempi_clock_ns();
    if (now_ns >= self.suspect_ns)
        return 0;
    return chempi_clock_shorter_ms(
        due_ms, (int)((self.suspect_ns - now_ns) / CHEMPI_NS_PER_MS) + 1);
}

void chempi_daemon_await_end(void)
{
    const struct timespec pause = {.tv_nsec = LOOK_NS};
    struct chempi_err err = {0};

    while (chempi_clock_ns() < self.suspect_ns && entry() &&
           entry()->progress(&events, NULL, &err) >= 0)
        (void)nanosleep(&pause, NULL);
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
    if (cares == self.cares || !entry())
        return;
    self.cares = cares;
    if (client()) /* the next call says what is wrong */
        (void)chempi_client_care(client(), cares);
}

bool chempi_daemon_was_sought(enum chempi_wait_depth *depth)
{
    const bool was_sought = self.is_sought;

    *depth = self.depth;
    self.is_sought = false;
    return was_sought;
}

void chempi_daemon_here(const struct chempi_client_wait *wait)
{
    struct chempi_client *to = any_client();

    if (to) /* the next poll says what is wrong */
        (void)chempi_client_here(to, wait);
}

int chempi_daemon_put(const char *key, const void *value, size_t len)
{
    return entry() ? entry()->put(key, value, len) : 0;
}

int chempi_daemon_get(uint32_t proc, const char *key)
{
    return entry() ? entry()->get(proc, key) : -EHOSTUNREACH;
}

static int watch_own(struct chempi_err *err)
{
    int rc = self.is_own_watched ? 0 : self.listener->watch(err);

    if (rc || self.is_own_watched)
        return rc;
    self.own.fd = chempi_own_launcher_fd();
    self.own.ready = notice_ready;
    rc = chempi_pollset_add(chempi_ctx.services.pollset, &self.own, EPOLLIN);
    self.is_own_watched = rc == 0;
    return rc;
}

/* No launcher of ours has started this process. */
static int ask_own(enum chempi_root_request what, const void *blob, size_t len,
                   uint32_t *serial, struct chempi_err *err)
{
    int rc;

    if (chempi_ctx.job->size > 1 && what != CHEMPI_ROOT_SPAWN)
        return chempi_err_set(err, -EOPNOTSUPP,
                              "chempirun keeps names, and has not started this "
                              "world of several processes: start it by "
                              "'chempirun -n %u PROGRAM', or the like",
                              chempi_ctx.job->size);
    poll_own(); /* one that has ended meanwhile is not asked */
    rc = chempi_own_launcher_start(err);
    rc = rc ? rc : watch_own(err);
    return rc ? rc : chempi_own_launcher_ask(what, blob, len, serial);
}

int chempi_daemon_ask_root(enum chempi_root_request what, const void *blob,
                           size_t len, uint32_t *serial, struct chempi_err *err)
{
    int rc;

    if (!entry())
        return -EPIPE;
    rc = entry()->ask_root(what, blob, len, serial);
    return rc == -EOPNOTSUPP && !client()
               ? ask_own(what, blob, len, serial, err)
               : rc;
}

int chempi_daemon_enter_fence(void)
{
    return entry() ? entry()->fence(&self.fence_entered) : 0;
}

bool chempi_daemon_is_fenced(void *unused)
{
    (void)unused;
    return self.fence_passed >= self.fence_entered;
}
