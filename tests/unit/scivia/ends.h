/* SPDX-License-Identifier: BSD-3-Clause */
/* Two nodes with a device each, both in one process: the fixture of
 * test_device.c. */
#ifndef CHEMPI_TESTS_UNIT_SCIVIA_ENDS_H
#define CHEMPI_TESTS_UNIT_SCIVIA_ENDS_H

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libchempi/devices/scivia/internal.h"
#include "libchempi/devices/scivia/scivia.h"
#include "tests/unit/base/rig.h"

#define LEN_MAX (1u << 20)

struct end {
    struct chempi_services services;
    struct chempi_dev *dev;
    struct chempi_ep *ep;
    struct chempi_rx rx;
    unsigned char *data;
    uint32_t received;
    uint32_t sent;
    uint32_t failed;
    uint32_t lost;
    char why[CHEMPI_ERR_TEXT_MAX];
};

static const uint32_t node_of_proc[2] = {0, 1};
static const uint32_t local_rank_of_proc[2] = {0, 0};
static const char *const node_names[2] = {"a", "b"};
static const uint8_t secret[32] = {1, 2, 3, 4};
static const int no_fd = -1;
static struct end ends[2];
static struct chempi_memory *memory; /* both ends are in one process */
static void (*on_arrival)(void);     /* what else happens then, or NULL */

static enum chempi_verdict
arrived(void *arg, const struct chempi_arrival *arrival, struct chempi_rx **rx)
{
    struct end *end = arg;

    if (arrival->avail == arrival->env.len) {
        memcpy(end->data, arrival->data, arrival->avail);
        end->received++;
        if (on_arrival)
            on_arrival();
        return CHEMPI_TAKEN;
    }
    end->rx = (struct chempi_rx){.buf = end->data, .cap = LEN_MAX};
    *rx = &end->rx;
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
    end->failed += status != 0;
}

static void room(void *arg, struct chempi_ep *ep)
{
    (void)arg;
    (void)ep;
}

static void lost(void *arg, uint32_t proc, int status, const char *why)
{
    struct end *end = arg;

    cr_assert_eq(proc, 1 - end->services.proc);
    cr_assert_lt(status, 0);
    end->lost++;
    (void)strncpy(end->why, why, sizeof(end->why) - 1);
}

static const struct chempi_sink sink = {
    .arrived = arrived,
    .delivered = delivered,
    .sent = sent,
    .room = room,
    .lost = lost,
};

static void open_end(uint32_t i, const _Atomic uint64_t *settings)
{
    struct end *end = &ends[i];
    struct chempi_dev_params params = {.services = &end->services,
                                       .sink = &sink,
                                       .sink_arg = end,
                                       .settings = settings};
    struct chempi_err err = {.text = ""};

    end->data = calloc(1, LEN_MAX);
    end->services = (struct chempi_services){
        .job_id = "unit",
        .secret = secret,
        .proc = i,
        .proc_count = 2,
        .node = i,
        .node_count = 2,
        .local_size = 1,
        .node_of_proc = node_of_proc,
        .local_rank_of_proc = local_rank_of_proc,
        .node_names = node_names,
        .wake_fds = &no_fd,
        .memory = memory,
    };
    cr_assert_eq(chempi_pollset_create(&end->services.pollset), 0);
    cr_assert_eq(chempi_scivia_ops.open(&params, &end->dev, &err), 0, "%s",
                 err.text);
}

static void open_ends_with(const _Atomic uint64_t *settings, uint64_t share)
{
    unsigned char card[CHEMPI_ADAPTER_ADDRESS_BYTES];
    struct chempi_err err = {.text = ""};
    size_t len = sizeof(card);

    memset(ends, 0, sizeof(ends));
    cr_assert_eq(chempi_memory_create(share, &memory), 0);
    open_end(0, settings);
    open_end(1, settings);
    for (uint32_t i = 0; i < 2; i++)
        cr_assert_eq(
            chempi_scivia_ops.connect(ends[i].dev, 1 - i, &ends[i].ep, &err),
            0);
    cr_assert_eq(chempi_scivia_ops.card(ends[1].dev, card, &len), 0);
    cr_assert_eq(chempi_scivia_ops.card_arrived(ends[0].ep, card, len, &err),
                 0);
}

static void open_ends(const _Atomic uint64_t *settings)
{
    open_ends_with(settings, CHEMPI_MEMORY_UNLIMITED);
}

/* Cards with the VIA half only; the file is read when they are opened. */
static int begin_via(void)
{
    static const char text[] = "name: scivia-via\n"
                               "halves: via\n"
                               "interrupt: 0 ns\n"
                               "doorbell: 0 ns\n"
                               "via latency: 0 ns\n"
                               "via bandwidth: 1000 GB/s\n"
                               "register: 0 ns\n"
                               "register page: 0 ns\n"
                               "deregister: 0 ns\n"
                               "deregister page: 0 ns\n"
                               "table regions: 1024\n"
                               "table pages: 65536\n";
    char path[64];
    int fd = memfd_create("personality", MFD_CLOEXEC);

    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    cr_assert_eq(setenv("CHEMPI_SCIVIA_PERSONALITY", path, 1), 0);
    return fd;
}

static void end_via(int fd)
{
    cr_assert_eq(unsetenv("CHEMPI_SCIVIA_PERSONALITY"), 0);
    cr_assert_eq(close(fd), 0);
}

static void open_via_ends_with(const _Atomic uint64_t *settings, uint64_t share)
{
    int fd = begin_via();

    open_ends_with(settings, share);
    end_via(fd);
}

static void open_via_ends(const _Atomic uint64_t *settings)
{
    open_via_ends_with(settings, CHEMPI_MEMORY_UNLIMITED);
}

static void close_ends(void)
{
    for (uint32_t i = 0; i < 2; i++) {
        chempi_scivia_ops.close(ends[i].dev);
        chempi_pollset_destroy(ends[i].services.pollset);
        free(ends[i].data);
    }
    chempi_memory_destroy(memory);
}

static void poll_end(uint32_t i)
{
    if (chempi_pollset_collect(ends[i].services.pollset, 0) > 0)
        (void)chempi_pollset_dispatch(ends[i].services.pollset);
    (void)ends[i].dev->ops->progress(ends[i].dev);
}

static void poll_ends(void)
{
    poll_end(0);
    poll_end(1);
}

static uint64_t gauge(uint32_t i, const char *name)
{
    const struct chempi_dev_panel *panel = chempi_scivia_ops.panel;

    for (uint32_t k = 0; k < panel->gauge_count; k++) {
        if (strcmp(panel->gauges[k].name, name) == 0)
            return chempi_gauge_read(&panel->gauges[k], ends[i].dev);
    }
    cr_assert_fail("no gauge %s", name);
    return 0;
}

/* A message of len bytes. */
static struct chempi_tx message(const unsigned char *from, uint64_t len,
                                enum scivia_protocol protocol)
{
    static uint32_t serial;

    return (struct chempi_tx){
        .env = {.len = len,
                .context = 1,
                .serial = serial++,
                .kind = CHEMPI_KIND_MESSAGE},
        .buf = from,
        .protocol = protocol,
    };
}

/* The same from 0 to 1, to its end. */
static void transfer(const unsigned char *from, uint64_t len,
                     enum scivia_protocol protocol)
{
    struct chempi_tx tx = message(from, len, protocol);
    uint32_t received = ends[1].received + 1;
    uint32_t done = ends[0].sent + 1;
    int rc = -EAGAIN;

    memset(ends[1].data, 0, LEN_MAX);
    for (int i = 0; rc == -EAGAIN && i < 1000; i++) {
        rc = chempi_scivia_ops.send(ends[0].ep, &tx);
        poll_ends();
    }
    cr_assert_geq(rc, 0);
    ends[0].sent += rc == CHEMPI_DONE;
    for (int i = 0;
         (ends[1].received < received || ends[0].sent < done) && i < 100000;
         i++)
        poll_ends();
    cr_assert_eq(ends[1].received, received);
    cr_assert_eq(ends[0].sent, done);
    cr_assert_arr_eq(ends[1].data, from, len);
}

static unsigned char *payload(void)
{
    unsigned char *bytes = malloc(LEN_MAX);

    for (size_t i = 0; i < LEN_MAX; i++)
        bytes[i] = (unsigned char)(i * 13 + (i >> 8));
    return bytes;
}

/* What VIA moves of len bytes in pieces, with their heads. */
static uint64_t in_pieces(uint64_t len)
{
    return len + (len + SCIVIA_PIECE - 1) / SCIVIA_PIECE * SCIVIA_PIECE_HEAD;
}

#endif
