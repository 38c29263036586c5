/* SPDX-License-Identifier: BSD-3-Clause */
/* What the first lane does for the others; see others.h. */
#include "libchempi/didl/transport/progress/others.h"

#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/comm/comm.h"
#include "libchempi/didl/transport/conn.h"
#include "libchempi/didl/transport/engine.h"

/* Polls of the first lane, for one of another that nobody has joined. */
enum { TURNS_EVERY = 16 };

static struct {
    uint32_t turn; /* it wraps */
    void (*release)(struct chempi_comm *comm);
} others;

void chempi_others_on_gone(void (*release)(struct chempi_comm *comm))
{
    others.release = release;
}

bool chempi_others_is_over(void *wait)
{
    const struct chempi_others_wait *w = wait;

    return atomic_load_explicit(&w->is_over, memory_order_relaxed);
}

/* Under the lane's lock, so that no locked instruction is needed. */
static void add(_Atomic uint32_t *count, uint32_t more)
{
    atomic_store_explicit(
        count, atomic_load_explicit(count, memory_order_relaxed) + more,
        memory_order_relaxed);
}

void chempi_others_start_polling(struct chempi_lane *lane)
{
    add(&lane->pollers, 1);
}

void chempi_others_join(struct chempi_lane *lane, uint32_t more)
{
    add(&lane->joined, more);
}

static bool is_joined(const struct chempi_lane *lane)
{
    return atomic_load_explicit(&lane->joined, memory_order_relaxed) > 0;
}

/* Which of the waits that have joined are over? Its holder. */
static void look_at_waits(struct chempi_lane *lane)
{
    CHEMPI_LIST_FOR (pos, &lane->waits) {
        struct chempi_others_wait *wait =
            CHEMPI_CONTAINER_OF(pos, struct chempi_others_wait, link);

        if (chempi_others_is_over(wait) || !wait->done(wait->arg))
            continue;
        atomic_store_explicit(&wait->is_over, true, memory_order_relaxed);
        lane->has_deferred = true;
    }
}

int chempi_others_poll(struct chempi_lane *lane)
{
    const uint32_t count = chempi_conn_device_count(lane);
    int events = 0;

    for (uint32_t i = 0; i < count; i++) {
        struct chempi_dev *dev = chempi_conn_device(lane, i);

        events += dev->ops->progress(dev);
    }
    chempi_engine_settle(lane);
    if (CHEMPI_UNLIKELY(is_joined(lane))) {
        lane->has_deferred |= events > 0;
        look_at_waits(lane);
    }
    return events;
}

static void release_gone(struct chempi_comm *comm)
{
    while (comm) {
        struct chempi_comm *next = comm->next_gone;

        others.release(comm);
        comm = next;
    }
}

/* The agent has passed the lane over until now: it shall look once more. */
static void begin_to_owe(void)
{
    const struct chempi_services *s = &chempi_ctx.services;

    chempi_lane_owe(&chempi_lane_main);
    chempi_wake_look_urgently(&s->wakes[s->local_rank],
                              s->wake_fds[s->local_rank]);
}

void chempi_others_run_deferred(struct chempi_lane *lane)
{
    const bool owes = lane->owed > 0;
    const bool did_owe = lane->is_owing;
    struct chempi_peer *lost = lane->lost;
    struct chempi_comm *gone = lane->gone;

    look_at_waits(lane); /* somebody may have ended one without a poll */
    lane->has_deferred = false;
    lane->is_owing = owes;
    lane->lost = NULL;
    lane->gone = NULL;
    chempi_lane_drop(lane);
    if (owes && !did_owe)
        begin_to_owe();
    else if (!owes && did_owe)
        chempi_lane_repay(&chempi_lane_main);
    chempi_conn_lose_deferred(lost);
    release_gone(gone);
}

void chempi_others_leave(struct chempi_lane *lane)
{
    if (CHEMPI_UNLIKELY(lane->has_deferred ||
                        (lane->is_owing && lane->owed == 0)))
        chempi_others_run_deferred(lane);
    else
        chempi_lane_drop(lane);
}

static bool has_pollers(const struct chempi_lane *lane)
{
    return atomic_load_explicit(&lane->pollers, memory_order_relaxed) > 0;
}

bool chempi_others_are_polled(void)
{
    CHEMPI_LANES_FOR_OTHERS(lane)
    if (has_pollers(lane))
        return true;
    return false;
}

int chempi_others_poll_all(void)
{
    const bool is_turn = ++others.turn % TURNS_EVERY == 0;
    int events = 0;

    CHEMPI_LANES_FOR_OTHERS(lane)
    {
        if ((!is_turn && !lane->is_owing && !is_joined(lane)) ||
            has_pollers(lane) || !chempi_lane_try(lane))
            continue;
        events += chempi_others_poll(lane);
        chempi_others_leave(lane);
    }
    return events;
}

bool chempi_others_is_ready(struct chempi_lane *lane)
{
    const uint32_t count = chempi_conn_device_count(lane);

    if (CHEMPI_UNLIKELY(chempi_engine_has_due(lane)))
        return true;
    for (uint32_t i = 0; i < count; i++) {
        struct chempi_dev *dev = chempi_conn_device(lane, i);

        if (dev->ops->is_ready(dev))
            return true;
    }
    return false;
}

bool chempi_others_are_ready(bool if_used)
{
    bool is_ready = false;

    CHEMPI_LANES_FOR_OTHERS(lane)
    {
        if (!lane->is_owing)
            continue;
        if (has_pollers(lane) || !chempi_lane_try(lane)) {
            is_ready |= if_used;
            continue;
        }
        is_ready |= chempi_others_is_ready(lane);
        chempi_others_leave(lane);
    }
    return is_ready;
}

/* Who has a lane's lock may make work there, and has looked before whether
 * the owner sleeps. */
bool chempi_others_are_quiet(void)
{
    CHEMPI_LANES_FOR_OTHERS(lane)
    {
        bool is_ready;

        if (!chempi_lane_try(lane))
            return false;
        look_at_waits(lane);
        is_ready = lane->has_deferred || chempi_others_is_ready(lane);
        chempi_others_leave(lane);
        if (is_ready)
            return false;
    }
    return true;
}
