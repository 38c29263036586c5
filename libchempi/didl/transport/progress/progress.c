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
 *   P7  other lanes (lane.h, L9): a thread that waits for what one of them does
 *       polls it by itself for a while, under its lock, and counts as one of
 *       its pollers. Then it joins: it waits in the first lane as any other
 *       thread. The owner polls the other lanes, too, but those that have
 *       pollers; of lane 0 pollers take a turn now and then while it has no
 *       owner. joined is counted before the last look under the lane's lock,
 *       so who completes something there, under that lock, defers. Whether
 *       its wait is over is asked under that lock, by who has it; the first
 *       lane is told by is_over, and does not wait for the lock
 *   P8  the owner does not sleep while another lane has pollers, who would pay
 *       a system call for each message if it did: it parks, which is to follow
 *       though there is no owner. is_parked is stored, the threads of this
 *       process are ordered (membarrier), and pollers looked at once more; the
 *       last poller stores that it is gone and looks at is_parked: so one of
 *       the two sees the other, and a poller that leaves calls one on (P2).
 *       It leaves to tell news, too, which run the user's functions
 *   P9  P3 looks at the other lanes, each under its lock, after the state was
 *       published: so a thread that makes work there by itself has either been
 *       before the look, or finds that the owner sleeps. Where somebody has
 *       that lock the owner does not wait for it, and does not sleep either
 *  P10  what another lane owes (L10) is polled in each turn of the first one's,
 *       and by the agent; who leaves it with something to do that nobody will
 *       announce rings this process's own bell
 *   The model of P7 to P9 is tests/unit/transport/lanes_model.py.
 */
#define _GNU_SOURCE /* clock_gettime */
#include "libchempi/didl/transport/progress/progress.h"

#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>

#include "common/base/clock.h"
#include "common/base/sys.h"
#include "common/wake/futex.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/base/setting.h"
#include "libchempi/didl/control/daemon.h"
#include "libchempi/didl/locality/affinity.h"
#include "libchempi/didl/transport/conn.h"
#include "libchempi/didl/transport/engine.h"
#include "libchempi/didl/transport/event.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/progress/idling.h"
#include "libchempi/didl/transport/progress/internal.h"
#include "libchempi/didl/transport/progress/others.h"
#include "libchempi/didl/transport/progress/watcher.h"
#include "libchempi/didl/transport/request.h"

/* Threads that wait awake at a time: more of them would only meet each other.
 */
enum { LOITERERS_MAX = 8 };

/* Polls of a program that does not wait, and yields of one that does, for one
 * look for the daemon's news; polls in vain, and others, for one question to
 * the kernel for ready descriptors. */
enum { NEWS_EVERY = 64, FDS_EVERY_IDLE = 8, FDS_EVERY_BUSY = 64 };

/* Polls of another lane by who tests, for one of the first. */
enum { TESTS_EVERY = 16 };

struct waiter {
    struct chempi_list link;
    chempi_progress_done_fn *done;
    void *arg;
    bool is_asleep;             /* on is_called */
    _Atomic uint32_t is_called; /* wait is over, or become owner; a futex */
};

static struct {
    bool is_up;
    bool has_owner;
    bool is_asleep;
    bool has_parked;   /* parking.is_parked, for the owner (P8) */
    pthread_t owner;   /* while has_owner; 0 unless the lane locks */
    uint32_t in_hooks; /* polls that run hooks, which may let go of the lock */
    uint32_t fd_turn;
    uint32_t calls; /* of chempi_progress_poll() since the last news */
    struct chempi_wake *wake;
    int wake_fd;
    struct chempi_poll_item wake_item;
    struct chempi_list waiters;
    uint32_t loiterers; /* waiters that have not gone to sleep yet */
    struct chempi_list hooks;
    uint64_t hook_removals;
    _Atomic bool has_news; /* events of the tool interface, or a question where
                              this process waits */
    uint64_t sleeps;       /* as in struct chempi_progress_stats */
    uint64_t spins;
} progress;

/* P8. Every wait in another lane looks at it: apart from what changes. */
static struct {
    _Alignas(CHEMPI_CACHE_LINE) _Atomic bool is_parked;
    char rest[CHEMPI_CACHE_LINE - 1];
} parking;

static inline bool has_news(void)
{
    return CHEMPI_UNLIKELY(
        atomic_load_explicit(&progress.has_news, memory_order_relaxed));
}

static void set_news(bool has)
{
    atomic_store_explicit(&progress.has_news, has, memory_order_relaxed);
}

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

static CHEMPI_NOINLINE int poll_fds(void)
{
    chempi_engine_look(&chempi_lane_main, false);
    if (chempi_pollset_collect(chempi_ctx.services.pollset, 0) <= 0)
        return 0;
    return chempi_pollset_dispatch(chempi_ctx.services.pollset);
}

/* A hook that is over removes itself, and may be gone then. It may let go of
 * the lock, and another thread's poll may then remove the next one: the rest
 * must wait for the next poll. */
static CHEMPI_NOINLINE int poll_hooks(bool is_agent)
{
    uint64_t removals = progress.hook_removals;
    int events = 0;

    progress.in_hooks++;
    CHEMPI_LIST_FOR_SAFE (pos, &progress.hooks) {
        struct chempi_progress_hook *hook =
            CHEMPI_CONTAINER_OF(pos, struct chempi_progress_hook, link);

        if (is_agent && !hook->is_ready)
            continue;
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

/* ---- other lanes ---- */

/* P7 */
static int poll_others(struct chempi_progress_hook *hook)
{
    const int events = chempi_others_poll_all();

    (void)hook;
    if (events > 0)
        tell_finished();
    return events;
}

/* P10 */
static bool are_others_ready(struct chempi_progress_hook *hook)
{
    (void)hook;
    return chempi_others_are_ready(false);
}

/* Inline: the shorter a poll that finds nothing, the sooner a wait is over. */
static inline int poll_all(void)
{
    int events = poll_devices();

    if (CHEMPI_UNLIKELY(!chempi_list_is_empty(&progress.hooks))) {
        tell_finished();
        events += poll_hooks(false);
    }
    if (chempi_conn_has_fds(&chempi_lane_main) &&
        ++progress.fd_turn >=
            (uint32_t)(events ? FDS_EVERY_BUSY : FDS_EVERY_IDLE)) {
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

    set_news(false);
    if (chempi_daemon_was_sought(&depth))
        chempi_wait_report_tell(words, object, depth);
    chempi_lane_pause(&chempi_lane_main);
    chempi_event_deliver();
    chempi_lane_lock(&chempi_lane_main);
    chempi_daemon_care(chempi_event_is_wanted(CHEMPI_EVENT_LOST) &&
                       !chempi_conn_has_lost_own());
}

/* What they mean is settled at once: what a lost process had sent before comes
 * first, and whoever looks next finds it. is_now as in chempi_engine_look(). */
static void take_news(bool is_now)
{
    chempi_daemon_poll_news();
    chempi_engine_look(&chempi_lane_main, is_now);
    chempi_engine_settle(&chempi_lane_main);
}

/* By who does not wait for what the first lane does, once in so many polls.
 * There is no owner. */
static inline int poll_once(uint32_t polls)
{
    int events = poll_all();

    progress.calls += polls;
    if (CHEMPI_UNLIKELY(progress.calls >= NEWS_EVERY)) {
        progress.calls = 0;
        take_news(false); /* who never waits hears of it here */
    }
    return events;
}

int chempi_progress_poll(void)
{
    int events = 0;

    chempi_lane_lock(&chempi_lane_main);
    if (!progress.has_owner)
        events = poll_once(1);
    if (has_news())
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

    if (chempi_conn_has_fds(&chempi_lane_main))
        events += poll_fds();
    events += poll_hooks(true);
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

/* P3. The lock is held on entry and on return, not while asleep. */
static void sleep_until_woken(chempi_progress_done_fn *done, void *arg)
{
    bool has_fds =
        chempi_conn_has_fds(&chempi_lane_main) || chempi_daemon_needs_fd();
    bool is_watched = chempi_watcher_is_up();
    int limit_ms = chempi_wake_prepare(
        progress.wake, has_fds && !is_watched ? CHEMPI_WAKE_ASLEEP_EPOLL
                                              : CHEMPI_WAKE_ASLEEP_FUTEX);

    take_news(true); /* the supervisor rouses once per notice, too */
    limit_ms = chempi_clock_shorter_ms(limit_ms, chempi_daemon_deadline_ms());
    if (poll_hooks(false) > 0 || done(arg) || call_finished() || has_news() ||
        chempi_progress_is_ready() || !chempi_others_are_quiet()) {
        chempi_wake_cancel(progress.wake);
        return;
    }
    progress.is_asleep = true;
    progress.sleeps++;
    chempi_lane_pause(&chempi_lane_main);
    if (has_fds && !is_watched)
        (void)chempi_pollset_collect(chempi_ctx.services.pollset, limit_ms);
    else
        chempi_watcher_sleep(progress.wake, limit_ms);
    chempi_lane_lock(&chempi_lane_main);
    progress.is_asleep = false;
    chempi_wake_cancel(progress.wake);
    if (has_fds)
        (void)chempi_pollset_dispatch(chempi_ctx.services.pollset);
    take_news(true);
}

/* Give the core away once; now and then look for the daemon's news, too. */
static void yield_core(struct chempi_idling *state)
{
    chempi_idling_yield(state);
    if (state->yields % NEWS_EVERY == 0) {
        chempi_daemon_poll();
        chempi_engine_settle(&chempi_lane_main); /* as take_news() */
    }
}

/* It is not worth while to spin any longer: as idle(). */
static CHEMPI_NOINLINE bool idle_on(struct chempi_idling *state,
                                    chempi_progress_done_fn *done, void *arg)
{
    if (!chempi_idling_is_time_to_sleep(state)) {
        yield_core(state);
        return false;
    }
    if (chempi_affinity_is_own() && !state->has_asked) {
        chempi_idling_ask_own_core(state);
        return false;
    }
    if (CHEMPI_UNLIKELY(chempi_lane_count > 1) && chempi_others_are_polled())
        return true;
    sleep_until_woken(done, arg);
    *state = (struct chempi_idling){0};
    return false;
}

/* Nothing happened in a poll: spin, give the core away, or sleep. True: it is
 * time to park. */
static inline bool idle(struct chempi_idling *state,
                        chempi_progress_done_fn *done, void *arg)
{
    progress.spins++;

    tell_finished();
    chempi_lane_yield(&chempi_lane_main);
    if (state->polls++ < chempi_progress_spins()) {
        CHEMPI_CPU_RELAX();
        return false;
    }
    return idle_on(state, done, arg);
}

/* ---- waiting ---- */

/* As owner. It is not done yet. True: it is time to park. */
static bool poll_until(chempi_progress_done_fn *done, void *arg)
{
    struct chempi_idling state = {0};
    bool parks = false;

    if (CHEMPI_UNLIKELY(progress.has_parked)) {
        progress.has_parked = false;
        atomic_store_explicit(&parking.is_parked, false, memory_order_relaxed);
    }
    progress.has_owner = true;
    progress.owner = chempi_lane_holder(&chempi_lane_main);
    if (CHEMPI_UNLIKELY(chempi_lane_main.owed))
        chempi_wake_cancel(progress.wake); /* other threads leave it so */
    do {
        if (poll_all() > 0) {
            state = (struct chempi_idling){0};
            tell_finished();
            chempi_lane_yield(&chempi_lane_main);
        } else if (has_news()) {
            break;
        } else {
            parks = idle(&state, done, arg);
        }
    } while (!parks && !done(arg));
    progress.has_owner = false;
    tell_finished();
    chempi_idling_conclude(&state);
    return parks;
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

/* P8. There is no owner. */
static void park(chempi_progress_done_fn *done, void *arg)
{
    progress.has_parked = true;
    atomic_store_explicit(&parking.is_parked, true, memory_order_relaxed);
    chempi_lane_barrier(); /* partner: chempi_progress_stop_polling() */
    if (!done(arg) && chempi_others_are_polled())
        follow(done, arg); /* it may have ended since the owner asked */
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

void chempi_progress_rouse_own(struct chempi_lane *lane)
{
    if (lane->number > 0)
        chempi_wake_look(progress.wake, progress.wake_fd); /* P9 */
    else if (progress.is_asleep)
        chempi_wake_rouse(progress.wake, progress.wake_fd);
}

int chempi_progress_wait_locked(chempi_progress_done_fn *done, void *arg,
                                chempi_wait_report_fn *words,
                                const void *object)
{
    while (!done(arg)) {
        if (CHEMPI_UNLIKELY(progress.has_owner))
            follow(done, arg);
        else if (CHEMPI_UNLIKELY(poll_until(done, arg)))
            park(done, arg);
        if (has_news()) {
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

/* ---- for who waits in other lanes ---- */

int chempi_progress_visit_first(uint32_t polls)
{
    struct chempi_lane *lane = &chempi_lane_main;
    int events = 0;

    if (!chempi_lane_try(lane))
        return 0;
    if (!progress.has_owner) {
        events = poll_once(polls);
        tell_finished();
    }
    chempi_lane_unlock(lane);
    return events;
}

bool chempi_progress_has_news(void)
{
    return has_news();
}

CHEMPI_COLD void chempi_progress_take_in_news(chempi_wait_report_fn *words,
                                              const void *object)
{
    chempi_lane_lock(&chempi_lane_main);
    if (has_news())
        tell_news(words, object);
    chempi_lane_unlock(&chempi_lane_main);
}

/* L9: what a lane defers. Without a lock. */
static void run_deferred(struct chempi_lane *lane)
{
    chempi_lane_lock(&chempi_lane_main);
    chempi_lane_lock(lane);
    chempi_others_run_deferred(lane);
    (void)call_finished();
    if (atomic_load_explicit(&parking.is_parked, memory_order_relaxed) &&
        !chempi_others_are_polled())
        hand_over();
    chempi_progress_rouse_own(&chempi_lane_main);
    chempi_lane_unlock(&chempi_lane_main);
}

void chempi_progress_open_lane(struct chempi_lane *lane)
{
    static struct chempi_progress_hook others = {.poll = poll_others,
                                                 .is_ready = are_others_ready};

    lane->run_deferred = run_deferred;
    lane->lender = chempi_lane_main.lender;
    if (lane->number == 1)
        chempi_progress_add_hook(&others);
}

void chempi_progress_stop_polling(struct chempi_lane *lane, bool joins)
{
    const uint32_t left =
        atomic_load_explicit(&lane->pollers, memory_order_relaxed) - 1;

    atomic_store_explicit(&lane->pollers, left, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst); /* partner: park() */
    if (CHEMPI_UNLIKELY(
            left == 0 && !joins &&
            atomic_load_explicit(&parking.is_parked, memory_order_relaxed)))
        lane->has_deferred = true;
}

int chempi_progress_poll_others(uint32_t lanes)
{
    bool is_turn = false;
    int events = 0;

    CHEMPI_LANES_FOR_OTHERS(lane)
    {
        if (!(lanes & 1u << lane->number))
            continue;
        chempi_lane_lock(lane);
        events += chempi_others_poll(lane);
        is_turn |= ++lane->polls % TESTS_EVERY == 0;
        chempi_lane_unlock(lane);
    }
    if (lanes & 1)
        return events + chempi_progress_poll();
    if (is_turn)
        events += chempi_progress_visit_first(TESTS_EVERY);
    if (has_news())
        chempi_progress_take_in_news(NULL, NULL);
    if (events == 0 && chempi_progress_spins() == 0)
        (void)sched_yield(); /* as chempi_progress_poll() */
    return events;
}

void chempi_progress_announce(void)
{
    set_news(true);
}

struct chempi_progress_stats chempi_progress_stats(void)
{
    struct chempi_progress_stats sum = {
        .sleeps = progress.sleeps,
        .yields = chempi_idling_yield_count(),
        .spins = progress.spins,
    };

    CHEMPI_LANES_FOR_OTHERS(lane)
    {
        chempi_lane_lock(lane);
        sum.spins += lane->spins;
        sum.yields += lane->yields;
        chempi_lane_drop(lane);
    }
    return sum;
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
    chempi_idling_init(chempi_affinity_is_roomy());
    chempi_request_on_complete(chempi_progress_notify);
    progress.wake = &s->wakes[s->local_rank];
    progress.wake_fd = s->wake_fds[s->local_rank];
    progress.sleeps = 0;
    progress.spins = 0;
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
