/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting for what other lanes do, in them or joined to the first one; see
 * progress.h and, for P7 and P8, progress.c. */
#define _GNU_SOURCE /* clock_gettime */
#include <sched.h>

#include "common/base/clock.h"
#include "libchempi/didl/base/setting.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/progress/backoff.h"
#include "libchempi/didl/transport/progress/idling.h"
#include "libchempi/didl/transport/progress/internal.h"
#include "libchempi/didl/transport/progress/others.h"
#include "libchempi/didl/transport/progress/progress.h"

enum { FIRST_EVERY = 64 }; /* polls of another lane, for one of the first */

/* Nothing happened in a poll: spin or give the core away. False: it is time to
 * join. */
static bool idle_in(struct chempi_lane *lane, struct chempi_idling *state)
{
    uint64_t after_ns;
    uint64_t now_ns;

    lane->spins++;
    chempi_lane_yield(lane);
    if (state->polls++ < chempi_progress_spins()) {
        CHEMPI_CPU_RELAX();
        return true;
    }
    now_ns = chempi_clock_ns();
    if (!state->since_ns)
        state->since_ns = now_ns;
    if (now_ns - state->since_ns >=
        chempi_setting(CHEMPI_SET_PROGRESS_YIELD_WANTED))
        return false;
    lane->yields++;
    chempi_lane_pause(lane);
    (void)sched_yield();
    after_ns = chempi_clock_ns();
    if (after_ns - now_ns <= CHEMPI_BACKOFF_SWITCH_NS) {
        state->polls = 0; /* nobody wants it */
    } else if (chempi_lane_try(&chempi_lane_main)) {
        chempi_idling_judge(state, now_ns, after_ns);
        chempi_lane_unlock(&chempi_lane_main);
    }
    chempi_lane_lock(lane);
    return true;
}

/* One wait for what other lanes do. */
struct joined {
    uint32_t lanes;
    chempi_wait_report_fn *words;
    const void *object;
};

/* They may change what is told of: hold them off, one at a time. Of several
 * lanes this is as good as it can be. */
static void put_joined(struct chempi_wait_report *w, const void *object)
{
    const struct joined *joined = object;

    if (!joined->words)
        return;
    CHEMPI_LANES_FOR_OTHERS(lane)
    {
        if (joined->lanes != 1u << lane->number)
            continue;
        chempi_lane_lock(lane);
        joined->words(w, joined->object);
        chempi_others_leave(lane);
        return;
    }
    joined->words(w, joined->object);
}

/* P8: news may be told for long, and who has parked goes on meanwhile. */
static CHEMPI_COLD void step_aside(struct chempi_lane *lane,
                                   const struct joined *joined)
{
    chempi_progress_stop_polling(lane, false);
    chempi_lane_pause(lane);
    chempi_progress_take_in_news(put_joined, joined);
    chempi_lane_lock(lane);
    chempi_others_start_polling(lane);
}

/* P7. Holder of the lane. False: it is time to join. */
static bool poll_in(struct chempi_lane *lane, chempi_progress_done_fn *done,
                    void *arg, const struct joined *joined)
{
    struct chempi_idling state = {0};
    bool is_done;

    chempi_others_start_polling(lane);
    while (!(is_done = done(arg))) {
        if (chempi_others_poll(lane) > 0) {
            state = (struct chempi_idling){0};
            if (CHEMPI_UNLIKELY(lane->has_deferred)) {
                chempi_lane_pause(lane);
                chempi_lane_lock(lane);
            } else {
                chempi_lane_yield(lane);
            }
        } else if (!idle_in(lane, &state)) {
            break;
        }
        if (++lane->polls % FIRST_EVERY == 0) {
            chempi_lane_pause(lane);
            (void)chempi_progress_visit_first(FIRST_EVERY);
            chempi_lane_lock(lane);
            if (chempi_progress_has_news())
                step_aside(lane, joined);
        }
    }
    chempi_progress_stop_polling(lane, !is_done);
    return is_done;
}

static void join_all(uint32_t lanes, uint32_t more)
{
    CHEMPI_LANES_FOR_OTHERS(lane)
    {
        if (!(lanes & 1u << lane->number))
            continue;
        chempi_lane_lock(lane);
        chempi_others_join(lane, more);
        chempi_lane_pause(lane);
    }
}

int chempi_progress_wait_among(uint32_t lanes, chempi_progress_done_fn *done,
                               void *arg, chempi_wait_report_fn *words,
                               const void *object)
{
    const struct joined joined = {lanes, words, object};
    int rc;

    if (CHEMPI_LIKELY(lanes == 1))
        return chempi_progress_wait_for(done, arg, words, object);
    join_all(lanes, 1);
    rc = chempi_progress_wait_for(done, arg, put_joined, &joined);
    join_all(lanes, UINT32_MAX);
    return rc;
}

int chempi_progress_wait_in_other(struct chempi_lane *lane,
                                  chempi_progress_done_fn *done, void *arg,
                                  chempi_wait_report_fn *words,
                                  const void *object)
{
    const struct joined joined = {1u << lane->number, words, object};
    struct chempi_others_wait wait = {.done = done, .arg = arg};
    int rc;

    if (poll_in(lane, done, arg, &joined))
        return 0;
    chempi_list_append(&lane->waits, &wait.link);
    chempi_others_join(lane, 1);
    chempi_lane_pause(lane);
    rc = chempi_progress_wait_for(chempi_others_is_over, &wait, put_joined,
                                  &joined);
    chempi_lane_lock(lane);
    chempi_list_remove(&wait.link);
    chempi_others_join(lane, UINT32_MAX);
    return rc;
}
