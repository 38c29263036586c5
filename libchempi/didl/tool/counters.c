/* SPDX-License-Identifier: BSD-3-Clause */
/* Performance variables; see registry.h. */
#include <stdio.h>
#include <string.h>

#include "libchempi/didl/coll/coll.h"
#include "libchempi/didl/io/count.h"
#include "libchempi/didl/rma/count.h"
#include "libchempi/didl/tool/registry.h"
#include "libchempi/didl/transport/conn.h"
#include "libchempi/didl/transport/engine.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/match.h"
#include "libchempi/didl/transport/progress/agent.h"
#include "libchempi/didl/transport/progress/progress.h"

enum { PVARS_MAX = 256, TRAFFIC = 4 /* counters per protocol */ };

/* Guarded by the lane lock. */
static struct {
    bool is_attached;
    uint64_t kept[PVARS_MAX]; /* V2 */
} counters;

/* ---- didl's own ---- */

#define READER(name, value)                                                    \
    static uint64_t name(void)                                                 \
    {                                                                          \
        return value;                                                          \
    }

/* Of all lanes; under the first one's lock. */
static struct chempi_match_stats match_stats(void)
{
    struct chempi_match_stats sum = chempi_match_stats(chempi_lane_main.match);

    CHEMPI_LANES_FOR_OTHERS(lane)
    {
        struct chempi_match_stats stats;

        chempi_lane_lock(lane);
        stats = chempi_match_stats(lane->match);
        chempi_lane_drop(lane);
        sum.posted += stats.posted;
        sum.held += stats.held;
        sum.held_max += stats.held_max;
        sum.met_posted += stats.met_posted;
        sum.met_held += stats.met_held;
    }
    return sum;
}

/* The sum over all lanes of what each has; under the first one's lock. */
static uint64_t sum_up(uint64_t (*read)(const struct chempi_lane *lane,
                                        const void *arg),
                       const void *arg)
{
    uint64_t sum = read(&chempi_lane_main, arg);

    CHEMPI_LANES_FOR_OTHERS(lane)
    {
        chempi_lane_lock(lane);
        sum += read(lane, arg);
        chempi_lane_drop(lane);
    }
    return sum;
}

static uint64_t rearm(const struct chempi_lane *lane, const void *arg)
{
    (void)arg;
    return chempi_match_rearm(lane->match);
}

static uint64_t rearm_all(void)
{
    return sum_up(rearm, NULL);
}

static uint64_t count_waiting(const struct chempi_lane *lane, const void *arg)
{
    (void)arg;
    return chempi_engine_waiting_count(lane);
}

static uint64_t count_early(const struct chempi_lane *lane, const void *arg)
{
    (void)arg;
    return chempi_engine_early_count(lane);
}

READER(conn_waiting, sum_up(count_waiting, NULL))
READER(conn_early, sum_up(count_early, NULL))
READER(match_posted, match_stats().posted)
READER(match_held, match_stats().held)
READER(match_held_max, match_stats().held_max)
READER(match_met_posted, match_stats().met_posted)
READER(match_met_held, match_stats().met_held)
READER(progress_sleeps, chempi_progress_stats().sleeps)
READER(progress_yields, chempi_progress_stats().yields)
READER(progress_spins_in_vain, chempi_progress_stats().spins)
READER(progress_spins_now, chempi_progress_spins())
READER(agent_births, chempi_agent_stats().births)
READER(agent_wakes, chempi_agent_stats().wakes)
READER(agent_turns, chempi_agent_stats().turns)
READER(coll_rings, chempi_coll_counted(CHEMPI_COLL_WAY_RINGS))
READER(coll_chain, chempi_coll_counted(CHEMPI_COLL_WAY_CHAIN))
READER(coll_boards, chempi_coll_counted(CHEMPI_COLL_WAY_BOARDS))
READER(coll_past, chempi_coll_counted(CHEMPI_COLL_WAY_PAST))

struct own {
    const char *module;
    const char *name;
    const char *text;
    int var_class;
    bool is_basic;
    uint64_t (*read)(void);
    uint64_t (*rearm)(void); /* high watermarks only */
};

static const struct own own[] = {
    {"conn", "resolved", "Processes whose ways were looked up, a count.",
     MPI_T_PVAR_CLASS_LEVEL, true, chempi_conn_resolved_count, NULL},
    {"conn", "lost", "Processes that cannot be reached any more, a count.",
     MPI_T_PVAR_CLASS_LEVEL, true, chempi_conn_lost_count, NULL},
    {"conn", "waiting", "Messages that wait for room at a device, a count.",
     MPI_T_PVAR_CLASS_LEVEL, false, conn_waiting, NULL},
    {"conn", "early",
     "Messages that came before others that their process had sent earlier, a "
     "count.",
     MPI_T_PVAR_CLASS_COUNTER, false, conn_early, NULL},
    {"match", "posted", "Receives that wait for a message, a count.",
     MPI_T_PVAR_CLASS_LEVEL, true, match_posted, NULL},
    {"match", "unexpected", "Messages that wait for a receive, a count.",
     MPI_T_PVAR_CLASS_LEVEL, true, match_held, NULL},
    {"match", "unexpected_max",
     "The most messages that ever waited for a receive, a count; of several "
     "lanes the sum of what each had at the most.",
     MPI_T_PVAR_CLASS_HIGHWATERMARK, true, match_held_max, rearm_all},
    {"match", "met_posted", "Messages whose receive was there first, a count.",
     MPI_T_PVAR_CLASS_COUNTER, true, match_met_posted, NULL},
    {"match", "met_unexpected",
     "Receives whose message was there first, a "
     "count.",
     MPI_T_PVAR_CLASS_COUNTER, true, match_met_held, NULL},
    {"progress", "sleeps", "Times that a wait went to sleep, a count.",
     MPI_T_PVAR_CLASS_COUNTER, true, progress_sleeps, NULL},
    {"progress", "yields", "Times that a wait gave its core away, a count.",
     MPI_T_PVAR_CLASS_COUNTER, true, progress_yields, NULL},
    {"progress", "spins", "Polls that found nothing to do, a count.",
     MPI_T_PVAR_CLASS_COUNTER, true, progress_spins_in_vain, NULL},
    {"progress", "spins_limit",
     "How often a wait polls in vain, as learned, "
     "before it gives its core away, a count.",
     MPI_T_PVAR_CLASS_LEVEL, false, progress_spins_now, NULL},
    {"agent", "births", "Times that a thread for progress began, a count.",
     MPI_T_PVAR_CLASS_COUNTER, false, agent_births, NULL},
    {"agent", "wakes", "Times that it was woken, a count.",
     MPI_T_PVAR_CLASS_COUNTER, false, agent_wakes, NULL},
    {"agent", "turns", "Polls of it in which something happened, a count.",
     MPI_T_PVAR_CLASS_COUNTER, false, agent_turns, NULL},
    {"coll", "exchanges_by_rings",
     "Exchanges whose large blocks went through "
     "rings in a node's memory, a count.",
     MPI_T_PVAR_CLASS_COUNTER, false, coll_rings, NULL},
    {"coll", "reductions_by_chain",
     "Reductions to a root that went through "
     "SPSC rings in a node's memory, a count.",
     MPI_T_PVAR_CLASS_COUNTER, false, coll_chain, NULL},
    {"coll", "reductions_by_boards",
     "Reductions whose inputs went through "
     "boards in a node's memory, a count.",
     MPI_T_PVAR_CLASS_COUNTER, false, coll_boards, NULL},
    {"coll", "written_past_caches",
     "Times that data for processes on far cores was written past "
     "this core's caches, a count.",
     MPI_T_PVAR_CLASS_COUNTER, false, coll_past, NULL},
};

enum {
    OWN = CHEMPI_ARRAY_LEN(own),
    BEFORE_RMA = OWN + CHEMPI_IO_COUNTERS,         /* then those of files */
    BEFORE_WIN = BEFORE_RMA + CHEMPI_RMA_COUNTERS, /* then by window */
    BEFORE_DEVICES = BEFORE_WIN + CHEMPI_RMA_COUNTERS
};

static void describe_own(const struct own *var, struct chempi_tool_pvar *out)
{
    (void)snprintf(out->name, sizeof(out->name), "chempi_%s_%s", var->module,
                   var->name);
    (void)snprintf(out->text, sizeof(out->text), "%s", var->text);
    out->module = var->module;
    out->var_class = var->var_class;
    out->bind = MPI_T_BIND_NO_OBJECT;
    out->is_basic = var->is_basic;
}

static void describe_counter(const char *module,
                             const struct chempi_counter_words *words,
                             struct chempi_tool_pvar *out)
{
    describe_own(&(struct own){.module = module,
                               .name = words->name,
                               .text = words->text,
                               .var_class = MPI_T_PVAR_CLASS_COUNTER,
                               .is_basic = words->is_basic},
                 out);
}

/* The same of one window. */
static void describe_win(uint32_t which, struct chempi_tool_pvar *out)
{
    struct chempi_counter_words words = chempi_rma_counter_words[which];
    char name[CHEMPI_SETTING_NAME_MAX - 16];
    char text[CHEMPI_TOOL_TEXT_MAX];

    (void)snprintf(name, sizeof(name), "window_%s", words.name);
    (void)snprintf(text, sizeof(text), "Of one window: %s", words.text);
    words.name = name;
    words.text = text;
    describe_counter("rma", &words, out);
    out->bind = MPI_T_BIND_MPI_WIN;
}

/* ---- devices ---- */

/* Where an index of a device's variable lies: traffic of a protocol, or a
 * gauge. */
struct place {
    const struct chempi_dev_ops *ops;
    const struct chempi_gauge *gauge; /* NULL: traffic */
    uint32_t protocol;
    bool is_received;
    bool is_bytes;
};

static uint32_t shown_by(const struct chempi_dev_panel *panel)
{
    return TRAFFIC * panel->protocol_count + panel->gauge_count;
}

static void find_place(uint32_t i, struct place *out)
{
    const struct chempi_dev_ops *ops = chempi_tool_device_at(0);
    uint32_t traffic;

    for (size_t d = 1; i >= shown_by(ops->panel); d++) {
        i -= shown_by(ops->panel);
        ops = chempi_tool_device_at(d);
    }
    traffic = TRAFFIC * ops->panel->protocol_count;
    *out = (struct place){.ops = ops};
    if (i >= traffic) {
        out->gauge = &ops->panel->gauges[i - traffic];
        return;
    }
    out->protocol = i / TRAFFIC;
    out->is_received = i % TRAFFIC >= 2;
    out->is_bytes = i % 2;
}

static void describe_traffic(const struct place *at,
                             struct chempi_tool_pvar *out)
{
    const char *protocol = at->ops->panel->protocols[at->protocol];

    (void)snprintf(out->name, sizeof(out->name), "chempi_%s_%s_%s_%s",
                   at->ops->name, protocol, at->is_bytes ? "bytes" : "messages",
                   at->is_received ? "received" : "sent");
    for (char *c = out->name; *c; c++)
        if (*c == '-')
            *c = '_';
    (void)snprintf(out->text, sizeof(out->text),
                   "%s %s by protocol %s of device %s, %s.",
                   at->is_bytes ? "Payload" : "Messages",
                   at->is_received ? "that arrived" : "sent", protocol,
                   at->ops->name, at->is_bytes ? "in bytes" : "a count");
    out->var_class = MPI_T_PVAR_CLASS_COUNTER;
    out->is_basic = true;
}

static void describe_gauge(const struct place *at, struct chempi_tool_pvar *out)
{
    (void)snprintf(out->name, sizeof(out->name), "chempi_%s_%s", at->ops->name,
                   at->gauge->name);
    (void)snprintf(out->text, sizeof(out->text), "%s", at->gauge->text);
    out->var_class = at->gauge->kind == CHEMPI_GAUGE_COUNTER
                         ? MPI_T_PVAR_CLASS_COUNTER
                         : MPI_T_PVAR_CLASS_LEVEL;
    out->is_basic = false;
}

static uint64_t read_place(const struct chempi_lane *lane, const void *arg)
{
    const struct place *at = arg;

    for (uint32_t i = 0; i < chempi_conn_device_count(lane); i++) {
        struct chempi_dev *dev = chempi_conn_device(lane, i);
        struct chempi_dev_traffic t;

        if (dev->ops != at->ops)
            continue;
        if (at->gauge)
            return chempi_gauge_read(at->gauge, dev);
        t = at->is_received ? dev->received[at->protocol]
                            : chempi_conn_sent(lane, i, at->protocol);
        return at->is_bytes ? t.bytes : t.messages;
    }
    return 0; /* the device is not in use */
}

/* ---- all ---- */

uint32_t chempi_tool_pvar_count(void)
{
    uint32_t n = BEFORE_DEVICES;

    for (size_t i = 0; i < chempi_tool_device_count(); i++)
        n += shown_by(chempi_tool_device_at(i)->panel);
    return n < PVARS_MAX ? n : PVARS_MAX;
}

void chempi_tool_pvar_at(uint32_t i, struct chempi_tool_pvar *out)
{
    struct place at;

    if (i < OWN) {
        describe_own(&own[i], out);
        return;
    }
    if (i < BEFORE_RMA) {
        describe_counter("io", &chempi_io_counter_words[i - OWN], out);
        return;
    }
    if (i < BEFORE_WIN) {
        describe_counter("rma", &chempi_rma_counter_words[i - BEFORE_RMA], out);
        return;
    }
    if (i < BEFORE_DEVICES) {
        describe_win(i - BEFORE_WIN, out);
        return;
    }
    find_place(i - BEFORE_DEVICES, &at);
    out->module = at.ops->name;
    out->bind = MPI_T_BIND_NO_OBJECT;
    if (at.gauge)
        describe_gauge(&at, out);
    else
        describe_traffic(&at, out);
}

static uint64_t read_live(uint32_t i)
{
    struct place at;

    if (i < OWN)
        return own[i].read();
    if (i < BEFORE_RMA)
        return chempi_io_counted((enum chempi_io_counter)(i - OWN));
    if (i < BEFORE_WIN)
        return chempi_rma_counts[i - BEFORE_RMA];
    if (i < BEFORE_DEVICES)
        return 0; /* of a window only */
    find_place(i - BEFORE_DEVICES, &at);
    return sum_up(read_place, &at);
}

static int class_of(uint32_t i)
{
    struct chempi_tool_pvar pvar;

    chempi_tool_pvar_at(i, &pvar);
    return pvar.var_class;
}

static uint64_t raw(uint32_t i)
{
    uint64_t value = counters.is_attached ? read_live(i) : 0;

    if (class_of(i) != MPI_T_PVAR_CLASS_HIGHWATERMARK)
        return value + counters.kept[i]; /* 0 for levels */
    return value < counters.kept[i] ? counters.kept[i] : value;
}

static bool raw_of_window(uint32_t i, uint64_t bound, uint64_t *out)
{
    return counters.is_attached &&
           chempi_rma_count_of(bound, (enum chempi_rma_counter)(i - BEFORE_WIN),
                               out);
}

bool chempi_tool_pvar_raw(uint32_t i, uint64_t bound, uint64_t *out)
{
    bool is_there = true;

    chempi_lane_lock(&chempi_lane_main);
    if (i >= BEFORE_WIN && i < BEFORE_DEVICES)
        is_there = raw_of_window(i, bound, out);
    else
        *out = raw(i);
    chempi_lane_unlock(&chempi_lane_main);
    return is_there;
}

uint64_t chempi_tool_pvar_bind(int bind, const void *obj_handle)
{
    uint64_t bound = 0;

    if (bind != MPI_T_BIND_MPI_WIN || !obj_handle)
        return 0;
    chempi_lane_lock(&chempi_lane_main);
    if (counters.is_attached)
        bound = chempi_rma_count_bind(*(const MPI_Win *)obj_handle);
    chempi_lane_unlock(&chempi_lane_main);
    return bound;
}

uint64_t chempi_tool_pvar_rearm(uint32_t i)
{
    uint64_t value = 0;

    chempi_lane_lock(&chempi_lane_main);
    counters.kept[i] = 0;
    if (counters.is_attached)
        value = own[i].rearm();
    chempi_lane_unlock(&chempi_lane_main);
    return value;
}

void chempi_tool_attach(void)
{
    chempi_lane_lock(&chempi_lane_main);
    counters.is_attached = true;
    chempi_lane_unlock(&chempi_lane_main);
}

bool chempi_tool_is_attached(void)
{
    bool is_attached;

    chempi_lane_lock(&chempi_lane_main);
    is_attached = counters.is_attached;
    chempi_lane_unlock(&chempi_lane_main);
    return is_attached;
}

void chempi_tool_detach(void)
{
    uint32_t count = chempi_tool_pvar_count();

    chempi_lane_lock(&chempi_lane_main);
    for (uint32_t i = 0; i < count && counters.is_attached; i++) {
        int var_class = class_of(i);

        if (var_class == MPI_T_PVAR_CLASS_COUNTER)
            counters.kept[i] += read_live(i);
        else if (var_class == MPI_T_PVAR_CLASS_HIGHWATERMARK &&
                 counters.kept[i] < read_live(i))
            counters.kept[i] = read_live(i);
    }
    counters.is_attached = false;
    chempi_lane_unlock(&chempi_lane_main);
}
