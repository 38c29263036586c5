/* SPDX-License-Identifier: BSD-3-Clause */
/* shm devices in one process; see ends.h. */
#define _GNU_SOURCE /* memfd_create */
#include "tests/unit/shm/ends.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libchempi/devices/shm/shm.h"

static void fill_rx(struct end *end, struct chempi_rx *rx)
{
    *rx = (struct chempi_rx){
        .buf = end->into ? NULL : end->data,
        .iter = end->into,
        .cap = end->cap,
    };
}

static enum chempi_verdict
arrived(void *arg, const struct chempi_arrival *arrival, struct chempi_rx **rx)
{
    struct end *end = arg;

    if (end->refusals > 0) {
        end->refusals--;
        return CHEMPI_NO_ROOM;
    }
    end->last = arrival->env;
    end->last_protocol = arrival->protocol;
    if (arrival->avail == arrival->env.len) {
        if (arrival->avail)
            memcpy(end->data, arrival->data, arrival->avail);
        end->received++;
        return CHEMPI_TAKEN;
    }
    if (end->wants_later) {
        end->from[end->later % 64] = arrival->ep;
        memcpy(end->token[end->later++ % 64], arrival->token,
               sizeof(arrival->token));
        return CHEMPI_LATER;
    }
    *rx = &end->rx[end->rx_count++ % 64];
    fill_rx(end, *rx);
    return CHEMPI_ACCEPT;
}

static void delivered(void *arg, struct chempi_rx *rx, int status)
{
    struct end *end = arg;

    (void)rx;
    end->received += status == 0;
    end->failed += status != 0;
}

static void sent(void *arg, struct chempi_tx *tx, int status)
{
    struct end *end = arg;

    (void)tx;
    end->sent += status == 0;
    end->sent_failed += status != 0;
}

static void room(void *arg, struct chempi_ep *ep)
{
    struct end *end = arg;

    (void)ep;
    end->rooms++;
}

static void lost(void *arg, uint32_t proc, int status, const char *why)
{
    struct end *end = arg;

    (void)proc;
    end->lost++;
    end->lost_status = status;
    (void)snprintf(end->lost_why, sizeof(end->lost_why), "%s", why);
}

static const struct chempi_sink sink = {
    .arrived = arrived,
    .delivered = delivered,
    .sent = sent,
    .room = room,
    .lost = lost,
};

static int make_region(uint32_t count)
{
    uint64_t len = chempi_region_reserved(count);
    struct chempi_region_header header = {
        .magic = CHEMPI_REGION_MAGIC,
        .version = CHEMPI_REGION_VERSION,
        .local_size = count,
    };
    int fd = memfd_create("ends", MFD_CLOEXEC);

    cr_assert(fd >= 0);
    cr_assert_eq(posix_fallocate(fd, 0, (off_t)len), 0);
    cr_assert_eq(pwrite(fd, &header, sizeof(header), 0), sizeof(header));
    return fd;
}

void ends_prepare(struct ends *ends, uint32_t count)
{
    memset(ends, 0, sizeof(*ends));
    ends->count = count;
    ends->fd = make_region(count);
    for (uint32_t i = 0; i < count; i++) {
        struct end *end = &ends->end[i];
        struct chempi_services *services = &end->services;

        ends->local_rank_of_proc[i] = i;
        ends->wake_fds[i] = -1;
        end->data = calloc(1, ENDS_DATA_MAX);
        cr_assert_not_null(end->data);
        end->cap = ENDS_DATA_MAX;
        services->proc = i;
        services->proc_count = count;
        services->node_count = 1;
        services->local_rank = i;
        services->local_size = count;
        services->node_of_proc = ends->node_of_proc;
        services->local_rank_of_proc = ends->local_rank_of_proc;
        services->wake_fds = ends->wake_fds;
        cr_assert_eq(chempi_region_open(dup(ends->fd), count, &services->region,
                                        &end->err),
                     0, "%s", end->err.text);
        services->wakes = chempi_region_wakes(services->region);
        services->is_wake_registered =
            !chempi_region_is_fenced(services->region) &&
            chempi_wake_register();
    }
}

int ends_open_one(struct ends *ends, uint32_t i)
{
    struct end *end = &ends->end[i];
    const struct chempi_dev_params params = {
        .services = &end->services,
        .sink = &sink,
        .sink_arg = end,
        .settings = end->settings,
    };
    int rc;

    rc = chempi_shm_ops.open(&params, &end->dev, &end->err);
    if (rc < 0)
        return rc;
    for (uint32_t k = 0; k < ends->count; k++) {
        if (k == i)
            continue;
        cr_assert_eq(
            chempi_shm_ops.connect(end->dev, k, &end->eps[k], &end->err), 0);
        ends_ep(ends, i, k)->puts_left = UINT32_MAX; /* none is timed */
    }
    return 0;
}

void ends_open(struct ends *ends, uint32_t count)
{
    ends_prepare(ends, count);
    for (uint32_t i = 0; i < count; i++)
        cr_assert_eq(ends_open_one(ends, i), 0, "%s", ends->end[i].err.text);
}

void ends_close(struct ends *ends)
{
    for (uint32_t i = 0; i < ends->count; i++) {
        chempi_shm_ops.close(ends->end[i].dev);
        chempi_region_close(ends->end[i].services.region);
        free(ends->end[i].data);
    }
    (void)close(ends->fd);
}

static int poll_all(struct ends *ends)
{
    int events = 0;

    for (uint32_t i = 0; i < ends->count; i++) {
        if (ends->end[i].dev)
            events += chempi_shm_ops.progress(ends->end[i].dev);
    }
    return events;
}

void ends_poll(struct ends *ends)
{
    (void)poll_all(ends);
}

void ends_settle(struct ends *ends)
{
    int quiet = 0;

    for (int i = 0; i < 100000 && quiet < 3; i++)
        quiet = poll_all(ends) ? 0 : quiet + 1;
    cr_assert_eq(quiet, 3, "it never gets quiet");
}

int ends_inject(struct ends *ends, uint32_t from, uint32_t to, const void *data,
                size_t len)
{
    struct chempi_envelope env = {.len = len, .kind = CHEMPI_KIND_MESSAGE};

    return chempi_shm_ops.inject(ends->end[from].eps[to], &env, data, len,
                                 false);
}

int ends_send(struct ends *ends, uint32_t from, uint32_t to,
              struct chempi_tx *tx, const void *data, uint64_t len,
              uint32_t protocol)
{
    *tx = (struct chempi_tx){
        .env = {.len = len, .kind = CHEMPI_KIND_MESSAGE},
        .buf = data,
        .protocol = protocol,
    };
    return chempi_shm_ops.send(ends->end[from].eps[to], tx);
}

int ends_accept(struct ends *ends, uint32_t at, uint32_t i)
{
    struct end *end = &ends->end[at];
    struct chempi_rx *rx = &end->rx[end->rx_count++ % 64];

    fill_rx(end, rx);
    return chempi_shm_ops.accept(end->from[i], end->token[i], rx);
}

struct shm_ep *ends_ep(struct ends *ends, uint32_t at, uint32_t peer)
{
    return (struct shm_ep *)ends->end[at].eps[peer];
}

unsigned char *ends_payload(uint64_t len)
{
    unsigned char *p = malloc(len);

    cr_assert_not_null(p);
    for (uint64_t i = 0; i < len; i++)
        p[i] = (unsigned char)(i * 13 + (i >> 9) + len);
    return p;
}
