/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * chempi-gateway: forwards the messages of one job at one node. Started by the
 * job's supervisor there, which speaks to it by an inherited socket, as to a
 * rank; it ends with the supervisor.
 */
#define _GNU_SOURCE /* eventfd, sched_yield */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/sys.h"
#include "programs/gateway/gateway.h"

/* Polls that find nothing before it sleeps: while frames come one after the
 * other, waking up would cost more than all the rest. */
#define IDLE_POLLS_MAX 40u

/* ---- the supervisor ------------------------------------------------------ */

static void got(void *arg, uint32_t rank, const char *key, const void *value,
                size_t len)
{
    struct gateway *g = arg;

    chempi_neighbors_card(&g->neighbors, rank, key, value, len);
}

static void fenced(void *arg, uint64_t fence)
{
    (void)arg;
    (void)fence;
}

static void rank_lost(void *arg, uint32_t rank, const char *text)
{
    struct gateway *g = arg;

    (void)text;
    chempi_neighbors_forget(&g->neighbors, rank);
    gateway_flush_ended(g, rank);
}

static void budget(void *arg, uint64_t bytes, uint32_t deadline_ms)
{
    struct gateway *g = arg;

    (void)deadline_ms; /* what is not in use goes at once */
    chempi_memory_set_share(g->services.memory, bytes);
}

static void drained(void *arg, uint32_t gateway, bool is_drained)
{
    (void)arg; /* whoever sends by it has a reason */
    (void)gateway;
    (void)is_drained;
}

static void tell(void *arg)
{
    struct gateway *g = arg;
    struct chempi_writer text = {0};

    chempi_route_stats_report(&g->tally, &g->neighbors, &text);
    if (!text.error) /* else it is missed */
        (void)chempi_client_report(g->client, text.data, text.len);
    chempi_wire_clear(&text);
}

static void where(void *arg, enum chempi_wait_depth depth)
{
    (void)arg; /* ranks are asked, not gateways */
    (void)depth;
}

/* A gateway asks nothing of the root. */
static void root_replied(void *arg, const struct chempi_reply *reply)
{
    (void)arg;
    (void)reply;
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

static void control_ready(struct chempi_poll_item *item, uint32_t ready)
{
    struct gateway *g = CHEMPI_CONTAINER_OF(item, struct gateway, control);

    (void)ready;
    if (chempi_client_progress(g->client, &events, g, NULL) < 0)
        g->is_over = true; /* the job has ended, or its supervisor */
}

static void wake_ready(struct chempi_poll_item *item, uint32_t ready)
{
    uint64_t count;

    (void)ready;
    while (chempi_sys->read(item->fd, &count, sizeof(count)) > 0)
        ;
}

static int watch(struct gateway *g, struct chempi_err *err)
{
    int rc;

    g->control = (struct chempi_poll_item){.fd = chempi_client_fd(g->client),
                                           .ready = control_ready};
    g->wake = (struct chempi_poll_item){
        .fd = g->services.wake_fds[g->services.local_rank],
        .ready = wake_ready};
    rc = chempi_pollset_add(g->services.pollset, &g->control, EPOLLIN);
    if (!rc)
        rc = chempi_pollset_add(g->services.pollset, &g->wake, EPOLLIN);
    return rc ? chempi_err_set(err, rc, "epoll: %s", chempi_err_name(rc)) : 0;
}

/* ---- the loop ------------------------------------------------------------ */

/* Who only waits for what may still come looks at it once in a millisecond. */
static int settle_ends(struct gateway *g)
{
    const uint64_t now_ns = chempi_clock_ns();

    if (!g->is_restless && now_ns - g->settled_ns < CHEMPI_NS_PER_MS)
        return 0;
    g->settled_ns = now_ns;
    return gateway_flush_settle(g);
}

static int poll_all(struct gateway *g, int timeout_ms)
{
    int n = 0;

    for (uint32_t i = 0; i < g->device_count; i++)
        n += g->devices[i]->ops->progress(g->devices[i]);
    if (chempi_neighbors_is_dirty(
            &g->neighbors)) /* before asking who else has come */
        chempi_neighbors_flush(&g->neighbors);
    if (chempi_pollset_collect(g->services.pollset, timeout_ms) > 0)
        n += chempi_pollset_dispatch(g->services.pollset);
    if (CHEMPI_UNLIKELY(g->end_count))
        n += settle_ends(g);
    if (CHEMPI_UNLIKELY(chempi_neighbors_has_left(&g->neighbors)))
        n += chempi_neighbors_retake(&g->neighbors);
    if (chempi_neighbors_is_dirty(&g->neighbors)) {
        chempi_neighbors_flush(&g->neighbors);
        n++;
    }
    return n;
}

static bool is_anything_ready(struct gateway *g)
{
    for (uint32_t i = 0; i < g->device_count; i++)
        if (g->devices[i]->ops->is_ready(g->devices[i]))
            return true;
    return chempi_neighbors_is_dirty(&g->neighbors) ||
           chempi_neighbors_has_left(&g->neighbors) || g->is_restless;
}

/* As wake.h says: publish, look once more, sleep. */
static void sleep_until_woken(struct gateway *g)
{
    struct chempi_wake *wake = &g->services.wakes[g->services.local_rank];
    int limit_ms = chempi_wake_prepare(wake, CHEMPI_WAKE_ASLEEP_EPOLL);

    if (g->end_count)
        (void)gateway_flush_settle(g); /* an answer makes it ready */
    if (is_anything_ready(g)) {
        chempi_wake_cancel(wake);
        return;
    }
    (void)chempi_pollset_collect(g->services.pollset, limit_ms);
    chempi_wake_cancel(wake);
    (void)chempi_pollset_dispatch(g->services.pollset);
    g->is_restless = g->end_count > 0;
    chempi_neighbors_flush(&g->neighbors);
}

static void run(struct gateway *g)
{
    uint32_t idle = IDLE_POLLS_MAX;

    while (!g->is_over) {
        if (poll_all(g, 0) > 0) {
            idle = 0;
        } else if (idle < IDLE_POLLS_MAX) {
            idle++;
            (void)sched_yield();
        } else {
            sleep_until_woken(g);
            idle = 0;
        }
    }
}

static void log_to_stderr(void *arg, enum chempi_log_level level,
                          const char *module, const char *text)
{
    (void)arg;
    (void)level;
    (void)fprintf(stderr, "chempi-gateway: %s: %s\n", module, text);
}

int main(void)
{
    struct gateway g = {0};
    struct chempi_err err = {0};
    int rc = chempi_client_open(&g.client, &err);

    if (rc) {
        (void)fprintf(stderr,
                      "chempi-gateway: %s; it is started by chempirun and "
                      "chempid, not by hand\n",
                      err.text[0] ? err.text : "there is no supervisor");
        return EXIT_FAILURE;
    }
    chempi_log_set(log_to_stderr, NULL, CHEMPI_LOG_WARNING);
    g.job = chempi_client_job(g.client);
    if (g.job->rank < g.job->size)
        rc = chempi_err_set(&err, -1, "the supervisor takes it for a rank");
    if (!rc)
        rc = gateway_start(&g, &err);
    g.tally.is_on = g.job->want_stats & CHEMPI_STATS_ROUTES;
    if (!rc)
        rc = watch(&g, &err);
    if (rc)
        gateway_give_up(&g, "%s", err.text);
    else
        run(&g);
    gateway_stop(&g);
    chempi_client_close(g.client);
    return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}
