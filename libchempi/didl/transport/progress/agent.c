/* SPDX-License-Identifier: BSD-3-Clause */
/* The agent; see agent.h. */
#define _GNU_SOURCE /* nanosleep */
#include "libchempi/didl/transport/progress/agent.h"

#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/wake/futex.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/base/setting.h"
#include "libchempi/didl/base/thread.h"
#include "libchempi/didl/locality/affinity.h"
#include "libchempi/didl/transport/conn.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/progress/others.h"
#include "libchempi/didl/transport/progress/progress.h"
#include "libchempi/didl/transport/progress/watcher.h"

/* Bounds of the pauses between being woken and finding that the application is
 * away, or stays in a call, ns. They double while it comes and goes; two may go
 * by before it counts as away. Only while it is found in calls they grow beyond
 * the second bound: it communicates nearly all the time, and a pause that ends
 * takes its core (20 to 60 us on a virtual machine; with 1.28 ms, windows of
 * 64 KiB took a tenth longer). But its calls may be such as do not poll, so the
 * pause that makes LINGER_NS in turn is the last one. */
#define PAUSE_MIN_NS 10000L
#define PAUSE_MAX_NS 1280000L
#define PAUSE_IN_CALLS_MAX_NS (8 * PAUSE_MAX_NS)
#define LINGER_NS (PAUSES_MAX * PAUSE_MAX_NS)
/* And of that while something is to be done which does not advance, ns. */
#define STUCK_MAX_NS 10000000L

enum {
    LEAVE_TURNS = 4,   /* polls with events until leaving hands over */
    AGENT_TURNS = 256, /* until the agent looks at the bell again */
    PAUSES_MAX = 8     /* while the application comes and goes */
};

/* Operations in turn, at 20 ns and more, with nothing owed until the agent goes
 * off duty: putting it on duty again has the kernel interrupt others, 2 us. */
enum { DUTY_BEGUN = 1024 };

enum phase { PHASE_NONE, PHASE_BEING_BORN, PHASE_UP, PHASE_REFUSED };

static struct {
    struct chempi_wake *wake;
    int wake_fd;
    pthread_t thread;
    _Atomic int phase;            /* enum phase */
    _Atomic uint32_t is_stopping; /* 1: yes; a futex of long pauses */
    uint32_t begun;               /* since something was owed; the holder's */
    bool is_watching;     /* the agent's own: it waits for descriptors */
    _Atomic bool watches; /* A7 */
    _Atomic uint64_t births;
    _Atomic uint64_t wakes;
    _Atomic uint64_t turns;
    _Atomic uint64_t pauses;
} agent;

static void count(_Atomic uint64_t *counter)
{
    (void)atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

static uint32_t state(void)
{
    return atomic_load_explicit(&agent.wake->state, memory_order_seq_cst);
}

static uint32_t bell(void)
{
    return atomic_load_explicit(&agent.wake->bell, memory_order_seq_cst);
}

static uint32_t bell_set(uint32_t bits)
{
    return atomic_fetch_or_explicit(&agent.wake->bell, bits,
                                    memory_order_seq_cst);
}

static void bell_clear(uint32_t bits)
{
    (void)atomic_fetch_and_explicit(&agent.wake->bell, ~bits,
                                    memory_order_seq_cst);
}

static bool is_visited(void)
{
    return atomic_load_explicit(&chempi_lane_main.is_visited,
                                memory_order_acquire);
}

static bool can_watch(void)
{
    return agent.wake_fd >= 0 && chempi_conn_has_fds(&chempi_lane_main);
}

/* ---- the agent's side ---------------------------------------------------- */

/* A long one ends with the agent, for which the application waits. */
static void pause_for(long ns)
{
    const struct timespec t = {.tv_nsec = ns};

    if (ns > PAUSE_MAX_NS)
        chempi_futex_wait(&agent.is_stopping, 0, (int)(ns / 1000000));
    else
        (void)nanosleep(&t, NULL);
}

static void sleep_on_bell(uint32_t was)
{
    if (state() == CHEMPI_WAKE_AWAY_OWED)
        chempi_watcher_arm();
    chempi_wake_agent_sleep(agent.wake, was);
}

/* Sleep until woken, unless there is something to do: nobody else looks at
 * descriptors while the application is away. */
static void rest(void)
{
    const uint32_t bit =
        agent.is_watching ? CHEMPI_WAKE_AGENT_EPOLL : CHEMPI_WAKE_AGENT_FUTEX;
    uint32_t was;
    bool is_needed;

    atomic_store(&agent.watches, agent.is_watching); /* before the bit */
    was = bell_set(bit);
    is_needed = (was & CHEMPI_WAKE_URGENT) ||
                atomic_load(&chempi_lane_main.keeps) ||
                (!agent.is_watching && can_watch());

    if (!atomic_load(&agent.is_stopping) &&
        !(is_needed && state() == CHEMPI_WAKE_AWAY_OWED)) {
        if (agent.is_watching)
            chempi_pollset_watch(chempi_ctx.services.pollset);
        else
            sleep_on_bell(was | bit);
        count(&agent.wakes);
    }
    bell_clear(CHEMPI_WAKE_AGENT_ASLEEP);
    atomic_store(&agent.watches, false);
}

/* In the lane: poll until there is nothing, the application is back, or it is
 * enough. False: there is more to do. */
static bool poll_dry(void)
{
    bell_clear(CHEMPI_WAKE_URGENT); /* A4 */
    for (int i = 0; i < AGENT_TURNS; i++) {
        if (chempi_progress_turn() > 0) {
            count(&agent.turns);
        } else if (!chempi_progress_is_ready()) {
            if (!chempi_others_are_ready(true))
                return true;
            break; /* A9 */
        }
        if (state() != CHEMPI_WAKE_AWAY_OWED || is_visited() ||
            atomic_load_explicit(&chempi_lane_main.wanted,
                                 memory_order_relaxed))
            break;
    }
    bell_set(CHEMPI_WAKE_URGENT);
    return false;
}

/* In the lane. True: nothing is left to be done now. */
static bool work(void)
{
    uint32_t away = CHEMPI_WAKE_AWAY_OWED;
    bool is_dry = poll_dry();

    agent.is_watching = is_dry && chempi_lane_main.owed > 0 && can_watch();
    if (chempi_lane_main.owed == 0)
        (void)atomic_compare_exchange_strong(&agent.wake->state, &away,
                                             CHEMPI_WAKE_AWAKE);
    return is_dry;
}

/* A2. False: the application is back, or visits. */
static bool enter_lent(bool *is_dry)
{
    bool is_away;

    atomic_store_explicit(&chempi_lane_main.has_agent, true,
                          memory_order_seq_cst);
    chempi_lane_barrier();
    is_away = atomic_load_explicit(&agent.wake->state, memory_order_acquire) ==
                  CHEMPI_WAKE_AWAY_OWED &&
              !is_visited();
    if (is_away)
        *is_dry = work();
    else
        agent.is_watching = false;
    atomic_store_explicit(&chempi_lane_main.has_agent, false,
                          memory_order_release);
    return is_away;
}

/* A5. False: another thread polls, or will. */
static bool enter_locked(bool *is_dry)
{
    bool is_away;

    chempi_lane_lock(&chempi_lane_main);
    is_away =
        state() == CHEMPI_WAKE_AWAY_OWED && !chempi_progress_is_attended();
    if (is_away)
        *is_dry = work();
    else
        agent.is_watching = false;
    chempi_lane_pause(&chempi_lane_main);
    return is_away;
}

static long next_pause(long pause_ns, bool is_away)
{
    long max_ns = is_away ? PAUSE_MAX_NS : PAUSE_IN_CALLS_MAX_NS;

    return pause_ns < max_ns ? pause_ns * 2 : max_ns;
}

/*
 * An application that calls again and again does it by itself: meanwhile the
 * agent has no bit in the bell, and neither leaving nor a peer's urgent line
 * costs a system call, and no core is taken from a process that copies. Until
 * the application stays where it is, away or in a call, or has come and gone
 * for long: calls that only post need not poll.
 */
static void linger(long *pause_ns)
{
    long left_ns = LINGER_NS;

    for (int i = 0;
         i < PAUSES_MAX && left_ns > 0 && !atomic_load(&agent.is_stopping);
         i++) {
        uint32_t before = atomic_load_explicit(&chempi_lane_main.leaves,
                                               memory_order_relaxed);
        bool is_away;

        count(&agent.pauses);
        left_ns -= *pause_ns;
        pause_for(*pause_ns);
        is_away = state() == CHEMPI_WAKE_AWAY_OWED;
        if (atomic_load_explicit(&chempi_lane_main.leaves,
                                 memory_order_relaxed) == before &&
            (is_away || *pause_ns >= PAUSE_MAX_NS))
            return;
        *pause_ns = next_pause(*pause_ns, is_away);
    }
}

/* Of an application that has needed no agent for so long nothing is known. */
static void rest_and_forget(long *pause_ns)
{
    const uint64_t since_ns = chempi_clock_ns();

    rest();
    if (*pause_ns > PAUSE_MAX_NS &&
        chempi_clock_ns() - since_ns > (uint64_t)PAUSE_IN_CALLS_MAX_NS)
        *pause_ns = PAUSE_MAX_NS;
}

static void *run(void *arg)
{
    long pause_ns = PAUSE_MIN_NS;
    long stuck_ns = PAUSE_MIN_NS;

    (void)arg;
    (void)prctl(PR_SET_NAME, "chempi-agent");
    (void)prctl(PR_SET_TIMERSLACK, 1000UL); /* ns */
    chempi_affinity_free_thread();
    for (;;) {
        bool is_dry = true;
        bool was_away;

        rest_and_forget(&pause_ns);
        if (atomic_load(&agent.is_stopping))
            return NULL;
        linger(&pause_ns);
        if (state() != CHEMPI_WAKE_AWAY_OWED) {
            agent.is_watching = false;
            continue;
        }
        was_away = chempi_lane_main.is_locking ? enter_locked(&is_dry)
                                               : enter_lent(&is_dry);
        if (was_away && pause_ns > PAUSE_MAX_NS)
            pause_ns = PAUSE_MAX_NS;
        else if (was_away && pause_ns > PAUSE_MIN_NS)
            pause_ns /= 2;
        if (is_dry) {
            stuck_ns = PAUSE_MIN_NS;
        } else if (state() == CHEMPI_WAKE_AWAY_OWED) {
            pause_for(stuck_ns);
            if (stuck_ns < STUCK_MAX_NS)
                stuck_ns *= 2;
        }
    }
}

/* ---- birth and end ------------------------------------------------------- */

/* By a thread that may be in a biased lane, but has no lock. False: not now,
 * or never. */
static bool bear(void)
{
    int none = PHASE_NONE;

    if (!atomic_compare_exchange_strong(&agent.phase, &none, PHASE_BEING_BORN))
        return false;
    atomic_store(&agent.is_stopping, 0);
    agent.is_watching = false;
    if ((!chempi_lane_main.is_locking && !chempi_lane_register_barrier()) ||
        chempi_thread_start(&agent.thread, run) != 0) {
        chempi_log(CHEMPI_LOG_WARNING, "agent",
                   "no thread can be made that makes progress while the "
                   "program computes; others may wait for its next call");
        atomic_store(&agent.phase, PHASE_REFUSED);
        return false;
    }
    count(&agent.births);
    atomic_store(&agent.phase, PHASE_UP);
    return true;
}

/* By the application. It may be called again: its bit is gone, but not the call
 * heard (A7). */
static void call_agent(void)
{
    if (atomic_load(&agent.watches))
        bell_set(CHEMPI_WAKE_AGENT_EPOLL);
    chempi_wake_agent(agent.wake, agent.wake_fd);
}

void chempi_agent_stop(void)
{
    if (atomic_load(&agent.phase) == PHASE_UP) {
        if (!chempi_lane_main.is_locking)
            chempi_lane_lock(&chempi_lane_main); /* it is not in the lane */
        atomic_store(&agent.is_stopping, 1);
        chempi_futex_wake(&agent.is_stopping);
        bell_set(CHEMPI_WAKE_URGENT);
        call_agent();
        (void)pthread_join(agent.thread, NULL);
        chempi_lane_main.is_on_duty = false;
        atomic_store(&agent.wake->has_agent, 0);
        chempi_wake_cancel(agent.wake);
    }
    if (atomic_load(&agent.phase) != PHASE_NONE)
        atomic_store(&agent.phase, PHASE_NONE);
}

/* ---- the application's side ---------------------------------------------- */

static void lend(struct chempi_lane *lane)
{
    atomic_store_explicit(&agent.wake->state, CHEMPI_WAKE_AWAY_OWED,
                          memory_order_seq_cst);
    if (!lane->is_locking)
        lane->on_lock |= CHEMPI_LANE_LENT;
}

/* A3 */
static void retake(struct chempi_lane *lane)
{
    uint32_t relaxes = 0;

    atomic_store_explicit(&agent.wake->state, CHEMPI_WAKE_AWAKE,
                          memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst); /* partner: the membarrier */
    while (atomic_load_explicit(&lane->has_agent, memory_order_acquire))
        chempi_lane_relax(&relaxes);
    lane->on_lock &= (uint8_t)~CHEMPI_LANE_LENT;
}

/* The agent shall go on where the application leaves off. */
static void hand_over(struct chempi_lane *lane)
{
    if (!(bell() & CHEMPI_WAKE_URGENT))
        bell_set(CHEMPI_WAKE_URGENT);
    lend(lane);
    if ((bell() & CHEMPI_WAKE_AGENT_ASLEEP) || atomic_load(&agent.watches))
        call_agent();
}

/* What an agent that sleeps cannot know: that descriptors are its business
 * now, that messages are kept, or that it was called. */
static void tell_agent(struct chempi_lane *lane, uint32_t bell_was)
{
    const bool keeps = atomic_load(&lane->keeps);
    const bool was_called =
        atomic_load(&agent.watches) && !(bell_was & CHEMPI_WAKE_AGENT_EPOLL);

    chempi_watcher_arm(); /* what is the agent's now rings the bell */
    if ((can_watch() && (bell_was & CHEMPI_WAKE_AGENT_FUTEX)) ||
        (keeps && (bell_was & CHEMPI_WAKE_AGENT_ASLEEP)) || was_called)
        call_agent();
}

/* Poll until there is nothing. False: it takes too long. */
static bool poll_last(int turns)
{
    if (turns > 0)
        bell_clear(CHEMPI_WAKE_URGENT); /* A4 */
    for (int i = 0; i < turns; i++)
        if (chempi_progress_turn() == 0)
            return !chempi_progress_is_ready();
    return false;
}

/* Is there work that nobody will announce? Asking arms the devices. Messages
 * that are kept are such work, too: the agent hears of them in another way. */
static bool is_work_left(const struct chempi_lane *lane)
{
    return !atomic_load(&lane->keeps) && chempi_progress_is_ready();
}

/* With the lock, others may be in the lane afterwards; so the agent polls. */
static void leave_locked(struct chempi_lane *lane)
{
    lend(lane);
    if ((bell() & CHEMPI_WAKE_URGENT) || is_work_left(lane))
        hand_over(lane);
    else
        tell_agent(lane, bell());
}

/*
 * Who has posted is likely to post more, and shall not copy what the peer has
 * posted before: one poll copies all of it, while the peer waits for what is
 * yet to be posted, and copies when this process waits. So that is left to
 * the agent, which finds the application back in most cases.
 */
static void leave_lent(struct chempi_lane *lane, bool has_posted)
{
    int turns = has_posted ? 0 : LEAVE_TURNS;
    bool is_dry = !(bell() & CHEMPI_WAKE_URGENT) && !is_work_left(lane);

    for (;;) {
        uint32_t now;

        if (!is_dry && !poll_last(turns)) {
            if (lane->owed)
                hand_over(lane);
            return;
        }
        if (!lane->owed)
            return;
        lend(lane);
        now = bell();
        if (!(now & CHEMPI_WAKE_URGENT)) {
            tell_agent(lane, now);
            return;
        }
        retake(lane);
        is_dry = false;
    }
}

/* A8: what is published from now on rings; what was before is polled. */
static CHEMPI_COLD void put_on_duty(struct chempi_lane *lane)
{
    lane->is_on_duty = true;
    atomic_store(&agent.wake->has_agent, 1);
    (void)chempi_wake_barrier(); /* who saw 0 has published */
    bell_set(CHEMPI_WAKE_URGENT);
}

CHEMPI_COLD void chempi_agent_count_begun(void)
{
    struct chempi_lane *lane = &chempi_lane_main;

    if (lane->owed || ++agent.begun < DUTY_BEGUN)
        return;
    agent.begun = 0;
    lane->is_on_duty = false;
    atomic_store_explicit(&agent.wake->has_agent, 0, memory_order_relaxed);
}

/* Another lane than the first one, which owes for it (lane.h, L10): whoever
 * polls or sleeps for that one hears of work that nobody announces. */
static void leave_other(struct chempi_lane *lane)
{
    chempi_lane_count_leave(&chempi_lane_main);
    if (chempi_others_is_ready(lane))
        chempi_wake_look_urgently(agent.wake, agent.wake_fd);
}

static void leave(struct chempi_lane *lane, bool has_posted)
{
    bool is_up =
        atomic_load_explicit(&agent.phase, memory_order_acquire) == PHASE_UP;

    if (lane->number > 0) {
        leave_other(lane);
        return;
    }
    if (chempi_progress_is_attended())
        return;
    if (CHEMPI_UNLIKELY(!is_up))
        is_up = !lane->is_locking && bear();
    if (!has_posted || !is_up)
        chempi_progress_let_go();
    if (!is_up)
        return;
    chempi_lane_count_leave(lane);
    if (!lane->owed)
        return;
    agent.begun = 0;
    if (CHEMPI_UNLIKELY(!lane->is_on_duty))
        put_on_duty(lane);
    if (lane->is_locking)
        leave_locked(lane);
    else
        leave_lent(lane, has_posted);
}

/* With the lock, an agent is born when it is free. */
static void left(struct chempi_lane *lane)
{
    if (CHEMPI_LIKELY(atomic_load_explicit(
                          &agent.phase, memory_order_acquire) != PHASE_NONE) ||
        !lane->is_locking || lane->number > 0 || !bear())
        return;
    chempi_lane_lock(lane);
    chempi_lane_unlock(lane);
}

static void set_lender(const struct chempi_lane_lender *lender)
{
    for (uint32_t i = 0; i < chempi_lane_count; i++)
        chempi_lanes[i]->lender = lender;
}

void chempi_agent_init(void)
{
    static const struct chempi_lane_lender lender = {
        .retake = retake,
        .leave = leave,
        .left = left,
    };
    const struct chempi_services *s = &chempi_ctx.services;

    agent.wake = &s->wakes[s->local_rank];
    agent.wake_fd = s->wake_fds[s->local_rank];
    set_lender(chempi_setting(CHEMPI_SET_AGENT_ENABLED) ? &lender : NULL);
}

bool chempi_agent_is_offered(void)
{
    return chempi_lane_main.lender &&
           atomic_load_explicit(&agent.phase, memory_order_relaxed) !=
               PHASE_REFUSED;
}

void chempi_agent_fini(void)
{
    chempi_agent_stop();
    set_lender(NULL);
}

struct chempi_agent_stats chempi_agent_stats(void)
{
    return (struct chempi_agent_stats){
        .births = atomic_load_explicit(&agent.births, memory_order_relaxed),
        .wakes = atomic_load_explicit(&agent.wakes, memory_order_relaxed),
        .turns = atomic_load_explicit(&agent.turns, memory_order_relaxed),
        .pauses = atomic_load_explicit(&agent.pauses, memory_order_relaxed),
    };
}
