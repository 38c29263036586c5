/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Progress and waiting; see progress.h.
 *
 *   P1  at most one thread, the owner, polls in a wait; the others sleep on
 *       their own word until their wait is over or they become owner
 *   P2  the owner leaves only after handing over to a waiter, if there is one
 *   P3  before it sleeps, the owner publishes its state, orders (wake.h, W3)
 *       and looks once more: at every hook, its condition, at every device.
 *       Other threads make work for hooks at any time, and so do the daemon's
 *       notices
 *   P4  a wait spins only while nobody else wants the core: how long is
 *       learned from what happens when the core is given away. A process that
 *       has a core of its own (affinity.h) does not give it away: it spins
 *       for a while, asks once whether it is its own still, then sleeps
 *   P5  a job that has a core for each process does not give it to those who
 *       keep it for a time slice: it spins on, then sleeps, and tries later
 *       whether they are still there. From those that give it back again and
 *       again it parts: there is a core for either
 *   P6  what the owner itself completes it tells nobody of at once: it looks at
 *       the waits of others after each poll, before hooks, which may run the
 *       user's functions, and when it leaves
 */
#define _GNU_SOURCE /* clock_gettime */
#include "libchempi/didl/transport/progress.h"

#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>

#include "common/base/clock.h"
#include "common/base/sys.h"
#include "common/wake/futex.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/base/setting.h"
#include "libchempi/didl/control/affinity.h"
#include "libchempi/didl/control/daemon.h"
#include "libchempi/didl/transport/backoff.h"
#include "libchempi/didl/transport/conn.h"
#include "libchempi/didl/transport/engine.h"
#include "libchempi/didl/transport/event.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/request.h"

/* Threads that wait awake at a time: more of them would only meet each other.
 */
enum { LOITERERS_MAX = 8 };

/* Polls of a program that does not wait, for one look for the daemon's news. */
enum { NEWS_EVERY = 64 };

struct waiter {
    struct chempi_list link;
    chempi_progress_done_fn *done;
    void *arg;
    bool is_asleep;             /* on is_called */
    _Atomic uint32_t is_called; /* wait is over, or become owner; a futex */
};

/* One unsuccessful stretch of polling. */
struct idling {
    uint32_t polls;
    uint32_t yields;
    uint32_t switches; /* yields in which somebody else ran on this core */
    bool has_asked;    /* whether its own core is wanted */
    uint64_t since_ns; /* of the first yield */
};

static struct {
    bool is_up;
    bool has_owner;
    bool is_asleep;
    pthread_t owner;   /* while has_owner; 0 unless the lane locks */
    uint32_t in_hooks; /* polls that run hooks, which may let go of the lock */
    bool is_roomy;     /* each process of the job has a core */
    uint32_t fd_turn;
    uint32_t calls;                /* of chempi_progress_poll(); it wraps */
    struct chempi_backoff backoff; /* P5 */
    struct chempi_wake *wake;
    int wake_fd;
    struct chempi_poll_item wake_item;
    struct chempi_list waiters;
    uint32_t loiterers; /* waiters that have not gone to sleep yet */
    struct chempi_list hooks;
    uint64_t hook_removals;
    bool has_news; /* events of the tool interface, or a question where this
                      process waits */
    struct chempi_progress_stats stats;
} progress;

/* ---- threads that wait for the owner ---- */

static void call(struct waiter *waiter)
{
    chempi_list_remove(&waiter->link);
    atomic_store_explicit(&waiter->is_called, 1, memory_order_relaxed);
    if (waiter->is_asleep)
        chempi_futex_wake(&waiter->is_called);
}

/* Let go the threads whose wait is over; true if there was one. */
static bool call_finished(void)
{
    bool is_any = false;

    CHEMPI_LIST_FOR_SAFE (pos, &progress.waiters) {
        struct waiter *waiter = CHEMPI_CONTAINER_OF(pos, struct waiter, link);

        if (!waiter->done(waiter->arg))
            continue;
        call(waiter);
        is_any = true;
    }
    return is_any;
}

/* P6 */
static inline void tell_finished(void)
{
    if (CHEMPI_UNLIKELY(!chempi_list_is_empty(&progress.waiters)))
        (void)call_finished();
}

/* ---- polling ---- */

static int poll_fds(void)
{
    if (chempi_pollset_collect(chempi_ctx.services.pollset, 0) <= 0)
        return 0;
    return chempi_pollset_dispatch(chempi_ctx.services.pollset);
}

/* A hook may let go of the lock, and another thread's poll may then remove
 * the next one: the rest must wait for the next poll. */
static int poll_hooks(void)
{
    uint64_t removals = progress.hook_removals;
    int events = 0;

    progress.in_hooks++;
    CHEMPI_LIST_FOR_SAFE (pos, &progress.hooks) {
        struct chempi_progress_hook *hook =
            CHEMPI_CONTAINER_OF(pos, struct chempi_progress_hook, link);

        events += hook->poll(hook);
        if (CHEMPI_UNLIKELY(removals != progress.hook_removals)) {
            events++;
            break;
        }
    }
    progress.in_hooks--;
    return events;
}

static inline int poll_devices(void)
{
    uint32_t count = chempi_conn_device_count(&chempi_lane_main);
    int events = 0;

    for (uint32_t i = 0; i < count; i++) {
        struct chempi_dev *dev = chempi_conn_device(&chempi_lane_main, i);

        events += dev->ops->progress(dev);
    }
    chempi_lane_let_go(&chempi_lane_main);
    return events;
}

static int poll_all(void)
{
    int events = poll_devices();

    if (CHEMPI_UNLIKELY(!chempi_list_is_empty(&progress.hooks))) {
        tell_finished();
        events += poll_hooks();
    }
    if (chempi_conn_has_fds() &&
        ++progress.fd_turn >=
            chempi_setting(events ? CHEMPI_SET_PROGRESS_FDS_BUSY
                                  : CHEMPI_SET_PROGRESS_FDS_IDLE)) {
        progress.fd_turn = 0;
        events += poll_fds();
    }
    chempi_engine_settle(&chempi_lane_main);
    return events;
}

/* Events are told without the lock, by a thread that is in no operation; where
 * this thread is, under it. words may be NULL. */
static CHEMPI_COLD void tell_news(chempi_wait_report_fn *words,
                                  const void *object)
{
    enum chempi_wait_depth depth;

    progress.has_news = false;
    if (chempi_daemon_was_sought(&depth))
        chempi_wait_report_tell(words, object, depth);
    chempi_lane_pause(&chempi_lane_main);
    chempi_event_deliver();
    chempi_lane_lock(&chempi_lane_main);
    chempi_daemon_care(chempi_event_is_wanted(CHEMPI_EVENT_LOST) &&
                       chempi_conn_lost_count() == 0);
}

/* What they mean is settled at once: what a lost process had sent before comes
 * first, and whoever looks next finds it. */
static void take_news(void)
{
    chempi_daemon_poll_news();
    chempi_engine_settle(&chempi_lane_main);
}

int chempi_progress_poll(void)
{
    int events = 0;

    chempi_lane_lock(&chempi_lane_main);
    if (!progress.has_owner) {
        events = poll_all();
        if (CHEMPI_UNLIKELY(++progress.calls % NEWS_EVERY == 0))
            take_news(); /* who never waits hears of it here */
    }
    if (CHEMPI_UNLIKELY(progress.has_news))
        tell_news(NULL, NULL);
    chempi_lane_unlock(&chempi_lane_main);
    if (events == 0 && chempi_progress_spins() == 0)
        (void)sched_yield(); /* a program that loops on MPI_Test */
    return events;
}

/* ---- for the agent ---- */

int chempi_progress_turn(void)
{
    int events = poll_devices();

    if (chempi_conn_has_fds())
        events += poll_fds();
    CHEMPI_LIST_FOR (pos, &progress.hooks) {
        struct chempi_progress_hook *hook =
            CHEMPI_CONTAINER_OF(pos, struct chempi_progress_hook, link);

        if (hook->is_ready)
            events += hook->poll(hook);
    }
    chempi_engine_settle(&chempi_lane_main);
    return events;
}

void chempi_progress_let_go(void)
{
    if (!atomic_load_explicit(&chempi_lane_main.keeps, memory_order_relaxed))
        return;
    (void)poll_devices();
    chempi_engine_settle(&chempi_lane_main);
}

bool chempi_progress_is_attended(void)
{
    return progress.has_owner || progress.in_hooks > 0;
}

/* ---- sleeping ---- */

bool chempi_progress_is_ready(void)
{
    uint32_t count = chempi_conn_device_count(&chempi_lane_main);

    if (CHEMPI_UNLIKELY(chempi_engine_has_due(&chempi_lane_main)))
        return true;
    CHEMPI_LIST_FOR (pos, &progress.hooks) {
        struct chempi_progress_hook *hook =
            CHEMPI_CONTAINER_OF(pos, struct chempi_progress_hook, link);

        if (hook->is_ready && hook->is_ready(hook))
            return true;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct chempi_dev *dev = chempi_conn_device(&chempi_lane_main, i);

        if (dev->ops->is_ready(dev))
            return true;
    }
    return false;
}

static int shorter(int a_ms, int b_ms)
{
    if (a_ms < 0)
        return b_ms;
    return b_ms < 0 || a_ms < b_ms ? a_ms : b_ms;
}

/* P3. The lock is held on entry and on return, not while asleep. */
static void sleep_until_woken(chempi_progress_done_fn *done, void *arg)
{
    bool has_fds = chempi_conn_has_fds() || chempi_daemon_needs_fd();
    int limit_ms;

    limit_ms =
        chempi_wake_prepare(progress.wake, has_fds ? CHEMPI_WAKE_ASLEEP_EPOLL
                                                   : CHEMPI_WAKE_ASLEEP_FUTEX);
    take_news(); /* the supervisor rouses once per notice, too */
    limit_ms = shorter(limit_ms, chempi_daemon_deadline_ms());
    if (poll_hooks() > 0 || done(arg) || call_finished() || progress.has_news ||
        chempi_progress_is_ready()) {
        chempi_wake_cancel(progress.wake);
        return;
    }
    progress.is_asleep = true;
    progress.stats.sleeps++;
    chempi_lane_pause(&chempi_lane_main);
    if (has_fds)
        (void)chempi_pollset_collect(chempi_ctx.services.pollset, limit_ms);
    else
        chempi_wake_sleep(progress.wake, limit_ms);
    chempi_lane_lock(&chempi_lane_main);
    progress.is_asleep = false;
    chempi_wake_cancel(progress.wake);
    if (has_fds)
        (void)chempi_pollset_dispatch(chempi_ctx.services.pollset);
    take_news();
}

static uint32_t spins_max(void)
{
    return (uint32_t)chempi_setting(CHEMPI_SET_PROGRESS_SPINS_MAX);
}

static void set_spins(uint32_t spins)
{
    const uint32_t least =
        progress.is_roomy
            ? (uint32_t)chempi_setting(CHEMPI_SET_PROGRESS_SPINS_ROOMY)
            : 0;

    if (spins < least)
        spins = least;
    if (spins > spins_max())
        spins = spins_max();
    atomic_store_explicit(&chempi_ctx.spins, spins, memory_order_relaxed);
}

/* The core was given away for so long: learn from it (P4, P5). */
static void judge_yield(struct idling *state, uint64_t before_ns,
                        uint64_t after_ns)
{
    const uint32_t spins = chempi_progress_spins();

    switch (chempi_backoff_judge(&progress.backoff, progress.is_roomy,
                                 before_ns, after_ns)) {
    case CHEMPI_BACKOFF_NOBODY:
        set_spins(spins + spins / 16 + 1);
        state->polls = 0; /* spin on; ask again after as many polls */
        break;
    case CHEMPI_BACKOFF_STRANGER:
        state->since_ns = after_ns;
        break;
    case CHEMPI_BACKOFF_PEER:
        state->switches++;
        set_spins(spins / 2);
        if (progress.is_roomy &&
            chempi_backoff_parts(&progress.backoff, after_ns))
            chempi_affinity_part();
        break;
    }
}

/* Give the core away once, unless it is this process's own or wanted by a
 * stranger. */
static void yield_core(struct idling *state)
{
    uint64_t before_ns = chempi_clock_ns();

    if (!state->since_ns)
        state->since_ns = before_ns;
    state->yields++;
    if (chempi_affinity_is_own() ||
        chempi_backoff_is(&progress.backoff, before_ns)) {
        state->polls = 0;
    } else {
        progress.stats.yields++;
        chempi_lane_pause(&chempi_lane_main);
        (void)sched_yield();
        chempi_lane_lock(&chempi_lane_main);
        judge_yield(state, before_ns, chempi_clock_ns());
    }
    if (state->yields % chempi_setting(CHEMPI_SET_PROGRESS_DAEMON_EVERY) == 0) {
        chempi_daemon_poll();
        chempi_engine_settle(&chempi_lane_main); /* as take_news() */
    }
}

/* Nothing came while this process kept its own core. Another launcher's rank
 * or a program that somebody has bound may wait for it there: then the core is
 * not its own any more. */
static void ask_own_core(struct idling *state)
{
    uint64_t before_ns;
    uint64_t after_ns;

    state->has_asked = true;
    progress.stats.yields++;
    chempi_lane_pause(&chempi_lane_main);
    before_ns = chempi_clock_ns();
    (void)sched_yield();
    after_ns = chempi_clock_ns();
    chempi_lane_lock(&chempi_lane_main);
    if (chempi_backoff_is_shared(&progress.backoff, before_ns, after_ns))
        chempi_affinity_widen();
}

/* Does somebody else want the core? With more processes than cores it is the
 * job itself, and one switch says so. */
static bool is_wanted(const struct idling *state, uint64_t now_ns)
{
    if (chempi_backoff_is(&progress.backoff, now_ns))
        return true;
    return state->switches > (progress.is_roomy ? state->yields / 2 : 0);
}

/* Waking from sleep is dear when nobody wants the core. */
static bool is_time_to_sleep(const struct idling *state)
{
    const uint64_t now_ns = chempi_clock_ns();
    uint64_t limit_ns;

    if (!state->yields)
        return false;
    limit_ns = chempi_setting(is_wanted(state, now_ns)
                                  ? CHEMPI_SET_PROGRESS_YIELD_WANTED
                                  : CHEMPI_SET_PROGRESS_YIELD_ALONE);
    return now_ns - state->since_ns >= limit_ns;
}

/* Nothing happened in a poll: spin, give the core away, or sleep. */
static void idle(struct idling *state, chempi_progress_done_fn *done, void *arg)
{
    progress.stats.spins++;

    tell_finished();
    chempi_lane_yield(&chempi_lane_main);
    if (state->polls++ < chempi_progress_spins()) {
        CHEMPI_CPU_RELAX();
        return;
    }
    if (!is_time_to_sleep(state)) {
        yield_core(state);
        return;
    }
    if (chempi_affinity_is_own() && !state->has_asked) {
        ask_own_core(state);
        return;
    }
    sleep_until_woken(done, arg);
    *state = (struct idling){0};
}

/* ---- waiting ---- */

static void poll_until(chempi_progress_done_fn *done, void *arg)
{
    struct idling state = {0};
    uint32_t spins;

    progress.has_owner = true;
    progress.owner = chempi_lane_holder(&chempi_lane_main);
    if (CHEMPI_UNLIKELY(chempi_lane_main.owed))
        chempi_wake_cancel(progress.wake); /* other threads leave it so */
    while (!done(arg)) {
        if (poll_all() > 0) {
            state = (struct idling){0};
            tell_finished();
            chempi_lane_yield(&chempi_lane_main);
        } else if (CHEMPI_UNLIKELY(progress.has_news)) {
            break;
        } else {
            idle(&state, done, arg);
        }
    }
    progress.has_owner = false;
    tell_finished();
    spins = chempi_progress_spins();
    if (state.polls && !state.yields && spins < spins_max())
        set_spins(spins + spins / 16 + 1); /* spinning was worth it */
}

/* Without the lock: give the core to others for a while, until called. */
static void loiter(const struct waiter *self)
{
    const uint64_t limit_ns = chempi_setting(CHEMPI_SET_PROGRESS_YIELD_WANTED);
    const uint64_t since_ns = chempi_clock_ns();

    chempi_lane_pause(&chempi_lane_main);
    while (!atomic_load_explicit(&self->is_called, memory_order_relaxed) &&
           chempi_clock_ns() - since_ns < limit_ns)
        (void)sched_yield();
    chempi_lane_lock(&chempi_lane_main);
}

/* Another thread polls; wait until it says so. To be woken costs both of them
 * more than what is waited for takes in most cases. */
static void follow(chempi_progress_done_fn *done, void *arg)
{
    struct waiter self = {.done = done, .arg = arg};

    chempi_list_append(&progress.waiters, &self.link);
    if (progress.loiterers < LOITERERS_MAX) {
        progress.loiterers++;
        loiter(&self);
        progress.loiterers--;
    }
    if (self.is_called)
        return;
    self.is_asleep = true;
    while (!self.is_called) {
        chempi_lane_pause(&chempi_lane_main);
        chempi_futex_wait(&self.is_called, 0, -1);
        chempi_lane_lock(&chempi_lane_main);
    }
}

static void hand_over(void)
{
    if (progress.has_owner || chempi_list_is_empty(&progress.waiters))
        return;
    call(CHEMPI_CONTAINER_OF(chempi_list_first(&progress.waiters),
                             struct waiter, link));
}

void chempi_progress_notify(void)
{
    if (!progress.is_up ||
        (progress.has_owner &&
         progress.owner == chempi_lane_holder(&chempi_lane_main)))
        return; /* P6 */
    (void)call_finished();
    chempi_progress_nudge();
}

void chempi_progress_rouse_own(void)
{
    if (progress.is_asleep)
        chempi_wake_rouse(progress.wake, progress.wake_fd);
}

int chempi_progress_wait_locked(chempi_progress_done_fn *done, void *arg,
                                chempi_wait_report_fn *words,
                                const void *object)
{
    while (!done(arg)) {
        if (CHEMPI_UNLIKELY(progress.has_owner))
            follow(done, arg);
        else
            poll_until(done, arg);
        if (CHEMPI_UNLIKELY(progress.has_news)) {
            hand_over(); /* P2: events may take long */
            tell_news(words, object);
        }
    }
    if (CHEMPI_UNLIKELY(chempi_lane_main.is_locking))
        hand_over();
    return 0;
}

int chempi_progress_wait_for(chempi_progress_done_fn *done, void *arg,
                             chempi_wait_report_fn *words, const void *object)
{
    int rc;

    chempi_lane_lock(&chempi_lane_main);
    rc = chempi_progress_wait_locked(done, arg, words, object);
    chempi_lane_unlock(&chempi_lane_main);
    return rc;
}

int chempi_progress_wait(chempi_progress_done_fn *done, void *arg)
{
    return chempi_progress_wait_for(done, arg, NULL, NULL);
}

void chempi_progress_announce(void)
{
    progress.has_news = true;
}

const struct chempi_progress_stats *chempi_progress_stats(void)
{
    return &progress.stats;
}

/* ---- hooks, start and end ---- */

void chempi_progress_add_hook(struct chempi_progress_hook *hook)
{
    chempi_list_append(&progress.hooks, &hook->link);
}

void chempi_progress_remove_hook(struct chempi_progress_hook *hook)
{
    chempi_list_remove(&hook->link);
    progress.hook_removals++;
}

static void wake_fd_ready(struct chempi_poll_item *item, uint32_t events)
{
    uint64_t count; /* all: later ones make the descriptor ready again */

    (void)events;
    (void)chempi_sys->read(item->fd, &count, sizeof(count));
}

int chempi_progress_init(void)
{
    const struct chempi_services *s = &chempi_ctx.services;

    chempi_list_init(&progress.waiters);
    chempi_list_init(&progress.hooks);
    chempi_affinity_init(s->proc_count);
    progress.is_roomy = chempi_affinity_is_roomy();
    chempi_backoff_init(&progress.backoff);
    chempi_request_on_complete(chempi_progress_notify);
    /* Where processes share cores somebody else wants this one: each of a crowd
     * would spin in its first waits until it has learned that. */
    set_spins(progress.is_roomy ? spins_max() : 0);
    progress.wake = &s->wakes[s->local_rank];
    progress.wake_fd = s->wake_fds[s->local_rank];
    progress.stats = (struct chempi_progress_stats){0};
    progress.is_up = true;
    if (progress.wake_fd < 0)
        return 0;
    progress.wake_item.fd = progress.wake_fd;
    progress.wake_item.ready = wake_fd_ready;
    return chempi_pollset_add(s->pollset, &progress.wake_item, EPOLLIN);
}

void chempi_progress_fini(void)
{
    if (progress.wake_fd >= 0)
        chempi_pollset_remove(chempi_ctx.services.pollset, &progress.wake_item);
    progress.is_up = false;
}
