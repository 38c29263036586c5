/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Progress and waiting; see progress.h.
 *
 *   P1  at most one thread, the owner, polls in a wait; the others sleep on
 *       their own condition until their wait is over or they become owner
 *   P2  the owner leaves only after handing over to a waiter, if there is one
 *   P3  before it sleeps, the owner publishes its state, orders (wake.h, W3)
 *       and looks once more: at its condition, at every device
 *   P4  a wait spins only while the machine has a core to spare
 */
#define _GNU_SOURCE /* sched_getaffinity */
#include "libchempi/didl/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/sys.h"
#include "libchempi/didl/conn.h"
#include "libchempi/didl/ctx.h"
#include "libchempi/didl/daemon.h"
#include "libchempi/didl/engine.h"
#include "libchempi/didl/lane.h"

/* How long an unsuccessful wait polls before it sleeps, ns. */
#define SPIN_FREE_NS (UINT64_C(150) * CHEMPI_NS_PER_US)
#define SPIN_BUSY_NS (UINT64_C(4) * CHEMPI_NS_PER_US)
/* How long a reading of the machine's load is believed, ns. */
#define LOAD_VALID_NS (UINT64_C(500) * CHEMPI_NS_PER_US)

enum {
    CHECK_EVERY = 32, /* idle polls between looks at the clock; power of 2 */
    YIELDS_BUSY = 12, /* turns given away before sleeping */
    FD_EVERY_IDLE = 8,
    FD_EVERY_BUSY = 64,
    DAEMON_EVERY = 4096 /* idle polls between looks at the daemon */
};

struct waiter {
    struct chempi_list link;
    chempi_progress_done_fn *done;
    void *arg;
    pthread_cond_t cond;
    bool is_called; /* wait is over, or become owner */
};

/* One unsuccessful stretch of polling. */
struct idling {
    uint32_t polls;
    uint32_t yields;
    uint64_t since_ns; /* 0: not yet looked at the clock */
};

static struct {
    bool is_up;
    bool has_owner;
    bool is_asleep;
    bool is_crowded; /* more ranks here than cores, from the start */
    bool is_busy;    /* last reading of the load */
    int load_fd;     /* /proc/loadavg, -1 when it cannot be read */
    uint32_t cores;
    uint32_t fd_turn;
    uint64_t load_ns; /* when the load was read */
    struct chempi_wake *wake;
    int wake_fd;
    struct chempi_poll_item wake_item;
    struct chempi_list waiters;
    struct chempi_list hooks;
} progress;

/* ---- polling ---- */

static int poll_fds(void)
{
    if (chempi_pollset_collect(chempi_ctx.services.pollset, 0) <= 0)
        return 0;
    return chempi_pollset_dispatch(chempi_ctx.services.pollset);
}

static int poll_hooks(void)
{
    int events = 0;

    CHEMPI_LIST_FOR_SAFE(pos, &progress.hooks)
    {
        struct chempi_progress_hook *hook =
            CHEMPI_CONTAINER_OF(pos, struct chempi_progress_hook, link);

        events += hook->poll(hook);
    }
    return events;
}

static int poll_all(void)
{
    uint32_t count = chempi_conn_device_count();
    int events = 0;

    for (uint32_t i = 0; i < count; i++) {
        struct chempi_dev *dev = chempi_conn_device(i);

        events += dev->ops->progress(dev);
    }
    if (CHEMPI_UNLIKELY(!chempi_list_is_empty(&progress.hooks)))
        events += poll_hooks();
    if (chempi_conn_has_fds() &&
        ++progress.fd_turn >= (events ? FD_EVERY_BUSY : FD_EVERY_IDLE)) {
        progress.fd_turn = 0;
        events += poll_fds();
    }
    chempi_engine_settle();
    return events;
}

int chempi_progress_poll(void)
{
    int events = 0;

    chempi_lane_lock(&chempi_lane_main);
    if (!progress.has_owner)
        events = poll_all();
    chempi_lane_unlock(&chempi_lane_main);
    if (events == 0 && progress.is_crowded)
        (void)sched_yield(); /* a program that loops on MPI_Test */
    return events;
}

/* ---- how busy is the machine ---- */

/* Runnable processes of the whole machine, from the fourth field of
 * /proc/loadavg ("0.10 0.20 0.30 3/456 7890"); 0 when unknown. */
static unsigned long runnable_now(void)
{
    char text[128];
    ssize_t n;
    char *p = text;

    n = progress.load_fd < 0
            ? -1
            : pread(progress.load_fd, text, sizeof(text) - 1, 0);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    for (int field = 0; field < 3; field++) {
        while (*p && *p != ' ')
            p++;
        while (*p == ' ')
            p++;
    }
    return strtoul(p, NULL, 10);
}

static bool is_machine_busy(uint64_t now_ns)
{
    if (progress.is_crowded)
        return true;
    if (now_ns - progress.load_ns > LOAD_VALID_NS) {
        progress.load_ns = now_ns;
        progress.is_busy = runnable_now() > progress.cores;
    }
    return progress.is_busy;
}

/* ---- sleeping ---- */

static bool is_anything_ready(void)
{
    uint32_t count = chempi_conn_device_count();

    for (uint32_t i = 0; i < count; i++) {
        struct chempi_dev *dev = chempi_conn_device(i);

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
    bool has_fds = chempi_conn_has_fds();
    int limit_ms;

    limit_ms = chempi_wake_prepare(progress.wake,
                                   has_fds ? CHEMPI_WAKE_ASLEEP_EPOLL
                                           : CHEMPI_WAKE_ASLEEP_FUTEX);
    limit_ms = shorter(limit_ms, chempi_daemon_deadline_ms());
    if (done(arg) || is_anything_ready()) {
        chempi_wake_cancel(progress.wake);
        return;
    }
    progress.is_asleep = true;
    chempi_lane_unlock(&chempi_lane_main);
    if (has_fds)
        (void)chempi_pollset_collect(chempi_ctx.services.pollset, limit_ms);
    else
        chempi_wake_sleep(progress.wake, limit_ms);
    chempi_lane_lock(&chempi_lane_main);
    progress.is_asleep = false;
    chempi_wake_cancel(progress.wake);
    if (has_fds)
        (void)chempi_pollset_dispatch(chempi_ctx.services.pollset);
    chempi_daemon_poll();
}

/* Nothing happened in a poll: spin, give the core away, or sleep (P4). */
static void idle(struct idling *state, chempi_progress_done_fn *done, void *arg)
{
    uint64_t now_ns;

    chempi_lane_yield(&chempi_lane_main);
    if (++state->polls % CHECK_EVERY != 0 && !progress.is_crowded) {
        CHEMPI_CPU_RELAX();
        return;
    }
    if (state->polls % DAEMON_EVERY == 0)
        chempi_daemon_poll();
    now_ns = chempi_clock_ns();
    if (!state->since_ns)
        state->since_ns = now_ns;
    if (!is_machine_busy(now_ns)) {
        if (now_ns - state->since_ns < SPIN_FREE_NS)
            return;
    } else if (now_ns - state->since_ns < SPIN_BUSY_NS &&
               !progress.is_crowded) {
        return;
    } else if (state->yields++ < YIELDS_BUSY) {
        chempi_lane_unlock(&chempi_lane_main);
        (void)sched_yield();
        chempi_lane_lock(&chempi_lane_main);
        return;
    }
    sleep_until_woken(done, arg);
    *state = (struct idling){0};
}

/* ---- waiting ---- */

static void poll_until(chempi_progress_done_fn *done, void *arg)
{
    struct idling state = {0};

    progress.has_owner = true;
    while (!done(arg)) {
        if (poll_all() > 0) {
            state.polls = 0;
            state.yields = 0;
            state.since_ns = 0;
            chempi_lane_yield(&chempi_lane_main);
        } else {
            idle(&state, done, arg);
        }
    }
    progress.has_owner = false;
}

/* Another thread polls; sleep until it says so. */
static void follow(chempi_progress_done_fn *done, void *arg)
{
    struct waiter self = {.done = done, .arg = arg};

    (void)pthread_cond_init(&self.cond, NULL);
    chempi_list_append(&progress.waiters, &self.link);
    while (!self.is_called)
        (void)pthread_cond_wait(&self.cond, &chempi_lane_main.lock);
    (void)pthread_cond_destroy(&self.cond);
}

static void call(struct waiter *waiter)
{
    chempi_list_remove(&waiter->link);
    waiter->is_called = true;
    (void)pthread_cond_signal(&waiter->cond);
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
    if (!progress.is_up)
        return;
    CHEMPI_LIST_FOR_SAFE(pos, &progress.waiters)
    {
        struct waiter *waiter = CHEMPI_CONTAINER_OF(pos, struct waiter, link);

        if (waiter->done(waiter->arg))
            call(waiter);
    }
    chempi_progress_nudge();
}

void chempi_progress_nudge(void)
{
    if (progress.is_asleep)
        chempi_wake_rouse(progress.wake, progress.wake_fd);
}

int chempi_progress_wait(chempi_progress_done_fn *done, void *arg)
{
    chempi_lane_lock(&chempi_lane_main);
    while (!done(arg)) {
        if (CHEMPI_UNLIKELY(progress.has_owner))
            follow(done, arg);
        else
            poll_until(done, arg);
    }
    if (CHEMPI_UNLIKELY(chempi_lane_main.is_locking))
        hand_over();
    chempi_lane_unlock(&chempi_lane_main);
    return 0;
}

void chempi_progress_rouse_local(uint32_t local_rank)
{
    const struct chempi_services *s = &chempi_ctx.services;

    chempi_wake_peer(&s->wakes[local_rank], s->wake_fds[local_rank],
                     s->is_wake_registered);
}

/* ---- hooks, start and end ---- */

void chempi_progress_add_hook(struct chempi_progress_hook *hook)
{
    chempi_list_append(&progress.hooks, &hook->link);
}

void chempi_progress_remove_hook(struct chempi_progress_hook *hook)
{
    chempi_list_remove(&hook->link);
}

static void wake_fd_ready(struct chempi_poll_item *item, uint32_t events)
{
    uint64_t count;

    (void)events;
    while (chempi_sys->read(item->fd, &count, sizeof(count)) > 0)
        ;
}

static uint32_t count_cores(void)
{
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 0)
        return (uint32_t)CPU_COUNT(&set);
    return 1;
}

int chempi_progress_init(void)
{
    const struct chempi_services *s = &chempi_ctx.services;

    chempi_list_init(&progress.waiters);
    chempi_list_init(&progress.hooks);
    progress.cores = count_cores();
    progress.is_crowded = s->local_size > progress.cores;
    progress.load_fd =
        progress.is_crowded
            ? -1
            : chempi_sys->open("/proc/loadavg", O_RDONLY | O_CLOEXEC, 0);
    progress.wake = &s->wakes[s->local_rank];
    progress.wake_fd = s->wake_fds[s->local_rank];
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
        chempi_pollset_remove(chempi_ctx.services.pollset,
                              &progress.wake_item);
    if (progress.load_fd >= 0)
        (void)close(progress.load_fd);
    progress.is_up = false;
}
