/* SPDX-License-Identifier: BSD-3-Clause */
/* Several devices in one process; see ends.h. */
#define _GNU_SOURCE /* mempcpy and friends */
#include "tests/unit/tcp/ends.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libchempi/devices/tcp/internal.h"
#include "libchempi/devices/tcp/tcp.h"
#include "libchempi/services/layout/layout.h"
#include "libchempi/services/pollset.h"

#define ROUNDS_MAX 200000 /* a wait that takes longer has failed */
#define IDLE_ROUNDS 64    /* then the wait sleeps, up to */
#define IDLE_MS 20

static const uint8_t secret[32] = {1, 2, 3};
static const uint32_t nodes[ENDS_MAX] = {0, 1, 2, 3};
static const uint32_t zeros[ENDS_MAX];
static const char *const names[ENDS_MAX] = {"n0", "n1", "n2", "n3"};

/* ---- the sink -------------------------------------------------------- */

static void prepare(struct end *end, struct arrival *a)
{
    uint64_t len = a->env.len < end->cap ? a->env.len : end->cap;

    a->rx.cap = end->cap;
    if (end->layout) {
        a->rx.iter = calloc(1, sizeof(*a->rx.iter));
        chempi_segment_init(a->rx.iter, end->area, len / end->layout->size,
                            end->layout);
        return;
    }
    a->data = malloc(len ? (size_t)len : 1);
    a->rx.buf = a->data;
}

static enum chempi_verdict
arrived(void *arg, const struct chempi_arrival *arrival, struct chempi_rx **rx)
{
    struct end *end = arg;
    struct arrival *a;

    if (end->refused & 1u << arrival->ep->proc)
        return CHEMPI_NO_ROOM;
    a = calloc(1, sizeof(*a));
    a->env = arrival->env;
    a->token[0] = arrival->token[0];
    a->token[1] = arrival->token[1];
    a->from = arrival->ep->proc;
    a->protocol = arrival->protocol;
    end->arrivals[end->arrival_count++] = a;
    if (arrival->avail == arrival->env.len) {
        prepare(end, a);
        if (a->data && end->cap >= arrival->avail && arrival->avail)
            memcpy(a->data, arrival->data, (size_t)arrival->avail);
        if (end->layout)
            (void)chempi_segment_unpack(a->rx.iter, arrival->data,
                                        (size_t)arrival->avail);
        a->is_complete = true;
        return CHEMPI_TAKEN;
    }
    if (end->wants_late && !(arrival->flags & CHEMPI_ARRIVAL_STREAMED)) {
        a->is_late = true;
        return CHEMPI_LATER;
    }
    prepare(end, a);
    *rx = &a->rx;
    return CHEMPI_ACCEPT;
}

static void delivered(void *arg, struct chempi_rx *rx, int status)
{
    struct end *end = arg;
    struct arrival *a = CHEMPI_CONTAINER_OF(rx, struct arrival, rx);

    a->status = status;
    a->is_complete = status == 0;
    end->failed += status != 0;
}

static void sent(void *arg, struct chempi_tx *tx, int status)
{
    struct end *end = arg;

    (void)tx;
    if (status)
        end->sent_failed++;
    else
        end->sent++;
}

/* Processes beyond belong to other jobs (test_bonds.c): nothing waits there. */
static void make_due(struct end *end, uint32_t proc)
{
    if (proc < ENDS_MAX)
        end->is_due[proc] = true;
}

static void room(void *arg, struct chempi_ep *ep)
{
    struct end *end = arg;

    make_due(end, ep->proc);
    end->rooms++;
}

static void lost(void *arg, uint32_t proc, int status, const char *why)
{
    struct end *end = arg;

    make_due(end, proc);
    end->lost++;
    end->lost_status = status;
    (void)snprintf(end->lost_why, sizeof(end->lost_why), "%s", why);
}

static void finished(void *arg, uint32_t proc, const char *why)
{
    struct end *end = arg;

    (void)proc;
    end->finished++;
    (void)snprintf(end->lost_why, sizeof(end->lost_why), "%s", why);
}

static const struct chempi_sink sink = {.arrived = arrived,
                                        .delivered = delivered,
                                        .sent = sent,
                                        .room = room,
                                        .lost = lost,
                                        .finished = finished};

/* ---- life ------------------------------------------------------------ */

void ends_default(struct ends *ends, uint32_t count)
{
    memset(ends, 0, sizeof(*ends));
    ends->count = count;
    for (uint32_t i = 0; i < count; i++)
        ends->end[i].services =
            (struct chempi_services){.job_id = "job",
                                     .secret = secret,
                                     .proc = i,
                                     .proc_count = count,
                                     .node = i,
                                     .node_count = count,
                                     .local_size = 1,
                                     .node_of_proc = nodes,
                                     .local_rank_of_proc = zeros,
                                     .node_names = names};
}

const _Atomic uint64_t *ends_secure_settings(void)
{
    static _Atomic uint64_t settings[CHEMPI_TCP_SET_COUNT];

    for (size_t i = 0; i < CHEMPI_TCP_SET_COUNT; i++)
        settings[i] = chempi_tcp_ops.panel->settings[i].initial;
    settings[CHEMPI_TCP_SET_SECURE] = 1;
    return settings;
}

static int open_end(struct end *end, const _Atomic uint64_t *settings)
{
    struct chempi_dev_params params = {.services = &end->services,
                                       .sink = &sink,
                                       .sink_arg = end,
                                       .settings = settings};
    int rc = chempi_pollset_create(&end->services.pollset);

    end->cap = UINT64_MAX;
    for (uint32_t i = 0; i < ENDS_MAX; i++)
        chempi_list_init(&end->waiting[i]);
    if (rc)
        return rc;
    return chempi_tcp_ops.open(&params, &end->dev, &end->err);
}

static int link_ends(struct ends *ends)
{
    for (uint32_t i = 0; i < ends->count; i++) {
        for (uint32_t j = 0; j < ends->count; j++) {
            struct end *from = &ends->end[i];
            uint8_t card[4096];
            size_t len = sizeof(card);
            int rc;

            if (i == j)
                continue;
            rc = chempi_tcp_ops.card(ends->end[j].dev, card, &len);
            if (!rc)
                rc = chempi_tcp_ops.connect(from->dev, j, &from->eps[j],
                                            &from->err);
            if (!rc)
                rc = chempi_tcp_ops.card_arrived(from->eps[j], card, len,
                                                 &from->err);
            if (rc)
                return rc;
        }
    }
    return 0;
}

int ends_open_as(struct ends *ends, uint32_t count, bool is_linked)
{
    for (uint32_t i = 0; i < count; i++) {
        int rc = open_end(&ends->end[i], ends->settings);

        if (rc)
            return rc;
    }
    return is_linked ? link_ends(ends) : 0;
}

int ends_open(struct ends *ends, uint32_t count, bool is_linked)
{
    ends_default(ends, count);
    return ends_open_as(ends, count, is_linked);
}

void ends_close(struct ends *ends)
{
    for (uint32_t i = 0; i < ends->count; i++) {
        struct end *end = &ends->end[i];

        chempi_tcp_ops.close(end->dev);
        chempi_pollset_destroy(end->services.pollset);
        for (size_t a = 0; a < end->arrival_count; a++) {
            free(end->arrivals[a]->rx.iter);
            free(end->arrivals[a]->data);
            free(end->arrivals[a]);
        }
    }
}

/* ---- progress -------------------------------------------------------- */

/* There is room, or will never be. */
static void send_waiting(struct end *end, uint32_t to)
{
    struct chempi_list *waiting = &end->waiting[to];

    end->is_due[to] = false;
    while (!chempi_list_is_empty(waiting)) {
        struct chempi_tx *tx = CHEMPI_CONTAINER_OF(chempi_list_first(waiting),
                                                   struct chempi_tx, link);
        int rc;

        chempi_list_remove(&tx->link);
        end->asked++;
        rc = chempi_tcp_ops.send(end->eps[to], tx);
        if (rc == -EAGAIN) {
            chempi_list_prepend(waiting, &tx->link);
            return;
        }
        end->sent += rc == CHEMPI_DONE || rc == CHEMPI_KEPT;
        end->sent_failed += rc < 0;
    }
}

int end_poll(struct end *end)
{
    int n = 0;

    if (!end->dev)
        return 0;
    n = chempi_tcp_ops.progress(end->dev);
    if (chempi_pollset_collect(end->services.pollset, 0) > 0)
        n += chempi_pollset_dispatch(end->services.pollset);
    for (uint32_t i = 0; i < ENDS_MAX; i++)
        if (end->is_due[i])
            send_waiting(end, i);
    return n;
}

int ends_poll(struct ends *ends)
{
    int n = 0;

    for (uint32_t i = 0; i < ends->count; i++)
        n += end_poll(&ends->end[i]);
    return n;
}

bool ends_wait(struct ends *ends, ends_done_fn *done, const void *arg)
{
    int idle = 0;
    uint32_t turn = 0;

    for (int round = 0; round < ROUNDS_MAX; round++) {
        struct end *end;

        if (done(ends, arg))
            return true;
        if (ends_poll(ends)) {
            idle = 0;
            continue;
        }
        if (++idle < IDLE_ROUNDS)
            continue;
        /* Sleep on one after the other; the limit is for a broken test. */
        if (idle > 1000)
            return false;
        end = &ends->end[turn++ % ends->count];
        if (end->dev && !chempi_tcp_ops.is_ready(end->dev) &&
            chempi_pollset_collect(end->services.pollset, IDLE_MS) > 0)
            (void)end_poll(end);
    }
    return false;
}

struct want {
    uint32_t end;
    size_t count;
};

size_t end_complete(const struct end *end)
{
    size_t n = 0;

    for (size_t i = 0; i < end->arrival_count; i++)
        n += end->arrivals[i]->is_complete;
    return n;
}

static bool has_arrivals(struct ends *ends, const void *arg)
{
    const struct want *want = arg;

    return end_complete(&ends->end[want->end]) >= want->count;
}

static bool has_sent(struct ends *ends, const void *arg)
{
    const struct want *want = arg;

    return (size_t)ends->end[want->end].sent >= want->count;
}

static bool has_lost(struct ends *ends, const void *arg)
{
    const struct want *want = arg;

    return ends->end[want->end].lost > 0;
}

static bool has_drained(struct ends *ends, const void *arg)
{
    const struct want *want = arg;

    return chempi_tcp_ops.is_drained(ends->end[want->end].dev);
}

bool ends_wait_arrivals(struct ends *ends, uint32_t end, size_t count)
{
    return ends_wait(ends, has_arrivals,
                     &(struct want){.end = end, .count = count});
}

bool ends_wait_sent(struct ends *ends, uint32_t end, int count)
{
    return ends_wait(ends, has_sent,
                     &(struct want){.end = end, .count = (size_t)count});
}

bool ends_wait_lost(struct ends *ends, uint32_t end)
{
    return ends_wait(ends, has_lost, &(struct want){.end = end});
}

bool ends_wait_drained(struct ends *ends, uint32_t end)
{
    return ends_wait(ends, has_drained, &(struct want){.end = end});
}

/* ---- sending --------------------------------------------------------- */

static struct chempi_envelope envelope(uint64_t len, int tag)
{
    return (struct chempi_envelope){
        .len = len, .context = 5, .tag = tag, .kind = CHEMPI_KIND_MESSAGE};
}

int ends_inject(struct ends *ends, uint32_t from, uint32_t to, const void *data,
                size_t len, int tag)
{
    struct chempi_envelope env = envelope(len, tag);
    int rc = -EAGAIN;

    for (int i = 0; rc == -EAGAIN && i < ROUNDS_MAX; i++) {
        rc = chempi_tcp_ops.inject(ends->end[from].eps[to], &env, data, len,
                                   false);
        if (rc == -EAGAIN)
            (void)ends_poll(ends);
    }
    return rc;
}

int ends_send(struct ends *ends, uint32_t from, uint32_t to,
              struct chempi_tx *tx, const void *data, uint64_t len, int tag,
              uint32_t protocol)
{
    struct chempi_segment *iter = tx->iter;

    *tx = (struct chempi_tx){.env = envelope(len, tag),
                             .buf = iter ? NULL : data,
                             .iter = iter,
                             .protocol = protocol};
    return end_send(&ends->end[from], to, tx);
}

int end_send(struct end *end, uint32_t to, struct chempi_tx *tx)
{
    int rc = -EAGAIN;

    if (chempi_list_is_empty(&end->waiting[to]))
        rc = chempi_tcp_ops.send(end->eps[to], tx);
    if (rc == -EAGAIN) {
        chempi_list_append(&end->waiting[to], &tx->link);
        return CHEMPI_PENDING;
    }
    end->sent += rc == CHEMPI_DONE || rc == CHEMPI_KEPT;
    return rc;
}

void fill(uint8_t *data, size_t len, unsigned seed)
{
    for (size_t i = 0; i < len; i++)
        data[i] = (uint8_t)(i * 7 + (i >> 8) * 3 + seed);
}

bool is_filled(const uint8_t *data, size_t len, unsigned seed)
{
    for (size_t i = 0; i < len; i++) {
        if (data[i] != (uint8_t)(i * 7 + (i >> 8) * 3 + seed))
            return false;
    }
    return true;
}
