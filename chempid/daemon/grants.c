/* SPDX-License-Identifier: BSD-3-Clause */
/* Shares of registrable memory on their way; see grants.h. */
#define _GNU_SOURCE /* clock_gettime */
#include "chempid/daemon/grants.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "chempid/daemon/daemon.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/sys.h"

#define REST_NS (2 * CHEMPI_NS_PER_MS) /* between two divisions */
#define REST_SHARE 4                   /* of the time that one has taken */

static uint64_t now_ms(void)
{
    return chempi_clock_ns() / CHEMPI_NS_PER_MS;
}

/* --- dividing --- */

static void watch_deadlines(struct chempi_daemon *d)
{
    uint64_t now = now_ms();
    uint64_t next = chempi_budget_tick(&d->budget, now);

    ev_timer_stop(d->loop, &d->budget_timer);
    if (!next)
        return;
    ev_timer_set(&d->budget_timer, (double)(next - now) / 1000.0, 0.0);
    ev_timer_start(d->loop, &d->budget_timer);
}

static void deadline(struct ev_loop *loop, ev_timer *w, int events)
{
    (void)loop;
    (void)events;
    watch_deadlines(w->data);
}

/* Reports of this turn and of the time since then; longer where that has taken
 * longer, as whoever has many ranks could have them report without end. */
static void settle(struct ev_loop *loop, ev_timer *w, int events)
{
    struct chempi_daemon *d = w->data;
    const uint64_t start = chempi_clock_ns();
    uint64_t rest;

    (void)loop;
    (void)events;
    chempi_budget_settle(&d->budget, now_ms());
    watch_deadlines(d);
    rest = REST_SHARE * (chempi_clock_ns() - start);
    d->budget_rest_ns = chempi_clock_ns() + (rest < REST_NS ? REST_NS : rest);
}

static void settle_soon(struct chempi_daemon *d)
{
    const uint64_t now = chempi_clock_ns();
    const uint64_t rest = d->budget_rest_ns > now ? d->budget_rest_ns - now : 0;

    if (ev_is_active(&d->budget_settle))
        return;
    ev_timer_set(&d->budget_settle, (double)rest / CHEMPI_NS_PER_S, 0.0);
    ev_timer_start(d->loop, &d->budget_settle);
}

void chempi_grants_init(struct chempi_daemon *d)
{
    uint64_t total = d->opt->registrable;

    chempi_budget_init(&d->budget, total ? total : chempi_budget_default());
    ev_timer_init(&d->budget_timer, deadline, 0.0, 0.0);
    d->budget_timer.data = d;
    ev_timer_init(&d->budget_settle, settle, 0.0, 0.0);
    d->budget_settle.data = d;
}

void chempi_grants_fini(struct chempi_daemon *d)
{
    if (!d->loop)
        return;
    ev_timer_stop(d->loop, &d->budget_timer);
    ev_timer_stop(d->loop, &d->budget_settle);
}

/* --- to and from a job --- */

static void send_share(void *arg, uint32_t local, uint64_t bytes,
                       uint32_t deadline_ms, uint32_t serial)
{
    struct chempi_grant *g = arg;
    struct chempi_writer *w;

    if (!g->link->is_open)
        return; /* its end is about to be noticed */
    w = chempi_link_begin(g->link, CHEMPI_MSG_SHARE, g->number);
    chempi_wire_put_u32(w, local);
    chempi_wire_put_u64(w, bytes);
    chempi_wire_put_u32(w, deadline_ms);
    chempi_wire_put_u32(w, serial);
    chempi_link_end(g->link);
}

static void report_late(void *arg, const struct chempi_budget_rank *rank)
{
    const struct chempi_grant *g = arg;

    chempi_log(CHEMPI_LOG_WARNING, "budget",
               "rank %u of job %s has not given back registrable memory: it "
               "was asked to keep %" PRIu64 " bytes and holds %" PRIu64
               "; others go on with less",
               rank->world, g->id, rank->ordered, rank->granted);
}

static void put_limit(const struct chempi_grant *g,
                      const struct chempi_budget_refusal *refusal, char *buf,
                      size_t len)
{
    (void)snprintf(
        buf, len,
        "node %s lets a process lock too little memory: one of the job's needs "
        "at least %" PRIu64 " bytes for its card to move anything, and its "
        "limit is %" PRIu64 " (RLIMIT_MEMLOCK, \"ulimit -l\", where the job is "
        "submitted or chempid there was started), which a limit raised in the "
        "job does not change; raise it there",
        g->daemon->opt->name, refusal->needed, refusal->available);
}

static void put_shortage(const struct chempi_grant *g,
                         const struct chempi_budget_refusal *refusal, char *buf,
                         size_t len)
{
    (void)snprintf(
        buf, len,
        "node %s has too little registrable memory: the job's cards there need "
        "at least %" PRIu64 " bytes to move anything, and can have %" PRIu64
        " of %" PRIu64 "%s; raise chempid --registrable there, or use fewer "
        "ranks per node",
        g->daemon->opt->name, refusal->needed, refusal->available,
        g->daemon->budget.total,
        refusal->is_late ? ", as others have not given back" : "");
}

/* Whoever reads this has neither node nor amounts before their eyes. */
static void refuse(void *arg, const struct chempi_budget_refusal *refusal)
{
    const struct chempi_grant *g = arg;
    char text[CHEMPI_TEXT_MAX];

    if (refusal->is_limit)
        put_limit(g, refusal, text, sizeof(text));
    else
        put_shortage(g, refusal, text, sizeof(text));
    chempi_log(CHEMPI_LOG_WARNING, "budget", "job %s: %s", g->id, text);
    g->refused(g->arg, text);
}

/* The processes there in their local order: ranks, then the gateway. */
static uint32_t *worlds_of(const struct chempi_spec *spec, uint32_t node,
                           uint32_t *count)
{
    const uint32_t gateway = chempi_spec_gateway(spec, node);
    uint32_t *worlds = chempi_sys->calloc(
        (size_t)chempi_spec_local_size(spec, node) + 1, sizeof(*worlds));
    uint32_t k = 0;

    for (uint32_t i = 0; worlds && i < spec->size; i++)
        if (spec->node_of_rank[i] == node)
            worlds[k++] = i;
    if (worlds && gateway != CHEMPI_NODE_ANY)
        worlds[k++] = gateway;
    *count = k;
    return worlds;
}

/* What RLIMIT_MEMLOCK lets a rank lock here (shell.h). */
static uint64_t lockable(const struct chempi_daemon *d,
                         const struct chempi_spec *spec)
{
    const struct chempi_shell *shell = &spec->shell;
    const uint64_t own =
        d->owner == 0 ? CHEMPI_BUDGET_NONE : chempi_budget_limit(spec->uid);
    uint64_t wanted;

    if (spec->uid == 0 || !shell->is_known || shell->count <= RLIMIT_MEMLOCK)
        return chempi_budget_limit(spec->uid);
    wanted = shell->limits[RLIMIT_MEMLOCK].rlim_cur;
    if (wanted == RLIM_INFINITY)
        return own;
    wanted &= ~(uint64_t)4095;
    return wanted < own ? wanted : own;
}

int chempi_grants_open(struct chempi_daemon *d, struct chempi_grant *g,
                       const struct chempi_spec *spec, uint32_t node,
                       struct chempi_link *link, uint64_t *share)
{
    uint32_t count;
    uint32_t *worlds = worlds_of(spec, node, &count);
    int rc = -ENOMEM;

    *g = (struct chempi_grant){.job = {.send = send_share,
                                       .late = report_late,
                                       .refuse = refuse,
                                       .arg = g},
                               .refused = g->refused,
                               .arg = g->arg,
                               .daemon = d,
                               .link = link,
                               .id = spec->id,
                               .number = spec->job};
    if (worlds)
        rc = chempi_budget_add(&d->budget, &g->job, worlds, count,
                               lockable(d, spec));
    free(worlds);
    *share = d->budget.total == CHEMPI_BUDGET_NONE ? CHEMPI_BUDGET_NONE : 0;
    return rc;
}

int chempi_grants_take(struct chempi_grant *g, const struct chempi_frame *frame,
                       struct chempi_err *err)
{
    struct chempi_budget_report report;
    struct chempi_reader r;
    uint32_t local;

    chempi_wire_read(&r, frame->data, frame->len);
    local = chempi_wire_get_u32(&r);
    report.serial = chempi_wire_get_u32(&r);
    report.held = chempi_wire_get_u64(&r);
    report.used = chempi_wire_get_u64(&r);
    report.wanted = chempi_wire_get_u64(&r);
    report.needed = chempi_wire_get_u64(&r);
    report.degraded = chempi_wire_get_u64(&r);
    if (g->job.rank_count == 0 && chempi_wire_is_done(&r))
        return 0; /* nobody divides it */
    if (!chempi_wire_is_done(&r) ||
        chempi_budget_take(&g->daemon->budget, &g->job, local, &report) < 0)
        return chempi_err_set(err, -EBADMSG, "a malformed report of memory");
    settle_soon(g->daemon);
    return 0;
}

void chempi_grants_close(struct chempi_grant *g)
{
    if (g->job.rank_count == 0)
        return;
    chempi_budget_remove(&g->daemon->budget, &g->job);
    settle_soon(g->daemon);
}

/* --- questions --- */

static void show_rank(const struct chempi_grant *g,
                      const struct chempi_budget_rank *rank, uint64_t now,
                      struct chempi_status_grant *out)
{
    *out = (struct chempi_status_grant){
        .job = g->id,
        .rank = rank->world,
        .granted = rank->granted,
        .ordered = rank->ordered,
        .used = rank->last.used,
        .wanted = rank->last.wanted,
        .degraded = rank->last.degraded,
        .is_late = rank->is_late,
        .due_ms = rank->due_ms > now ? (uint32_t)(rank->due_ms - now) : 0,
    };
}

int chempi_grants_status(struct chempi_daemon *d, bool with_ranks,
                         struct chempi_pool *pool, struct chempi_status *out)
{
    uint64_t now = now_ms();
    uint32_t count = 0;

    out->memory = d->budget.total;
    out->memory_granted = chempi_budget_granted(&d->budget);
    if (!with_ranks)
        return 0;
    CHEMPI_LIST_FOR (e, &d->budget.jobs)
        count +=
            CHEMPI_CONTAINER_OF(e, struct chempi_budget_job, entry)->rank_count;
    out->grants = chempi_pool_array(pool, count, sizeof(*out->grants));
    if (!out->grants)
        return -ENOMEM;
    CHEMPI_LIST_FOR (e, &d->budget.jobs) {
        const struct chempi_budget_job *job =
            CHEMPI_CONTAINER_OF(e, struct chempi_budget_job, entry);

        for (uint32_t i = 0; i < job->rank_count; i++)
            show_rank(job->arg, &job->ranks[i], now,
                      &out->grants[out->grant_count++]);
    }
    return 0;
}
