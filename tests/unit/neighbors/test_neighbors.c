/* SPDX-License-Identifier: BSD-3-Clause */
/* Neighbours over a device of the test's own. */
#define _GNU_SOURCE /* clock_gettime */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "libchempi/neighbors/neighbors.h"
#include "tests/unit/base/rig.h"

static int connect_status; /* what connect() says */
static int connects;
static struct chempi_ep ep;

static int fake_connect(struct chempi_dev *dev, uint32_t proc,
                        struct chempi_ep **out, struct chempi_err *err)
{
    connects++;
    if (connect_status)
        return chempi_err_set(err, connect_status, "refused");
    ep = (struct chempi_ep){.dev = dev, .proc = proc};
    *out = &ep;
    return 0;
}

static struct chempi_tx *taken[CHEMPI_NEIGHBOR_SENDING_MAX + 1];
static uint32_t taken_count;

static int fake_send(struct chempi_ep *to, struct chempi_tx *tx)
{
    (void)to;
    cr_assert_lt(taken_count, CHEMPI_ARRAY_LEN(taken));
    taken[taken_count++] = tx;
    return CHEMPI_PENDING;
}

static const struct chempi_dev_ops ops = {
    .name = "fake", .connect = fake_connect, .send = fake_send};
static const struct chempi_dev_caps caps = {.protocol_count = 0};
static struct chempi_dev fake = {.ops = &ops, .caps = &caps};
static struct chempi_dev *const devices[] = {&fake};
static const uint32_t device_count = 1;
static const uint32_t nodes[] = {0, 1, 1};
static const char *const names[] = {"a", "b"};
static const struct chempi_services services = {.proc_count = 3,
                                                .node_of_proc = nodes,
                                                .node_names = names,
                                                .node_count = 2};
static int losses;
static char words[128]; /* of the last one */

static void ignore(void *arg, struct chempi_neighbor_buf *buf)
{
    (void)arg;
    (void)buf;
}

static bool take(void *arg, uint32_t from, const uint8_t *data, size_t len,
                 struct chempi_neighbor_buf *buf)
{
    (void)arg;
    (void)from;
    (void)data;
    (void)len;
    (void)buf;
    return true;
}

static void lose(void *arg, uint32_t proc, const char *why)
{
    (void)arg;
    (void)proc;
    (void)snprintf(words, sizeof(words), "%s", why);
    losses++;
}

static const struct chempi_neighbors_ops holder = {
    .frame = take, .left = ignore, .lost = lose};

static void open_neighbors(struct chempi_neighbors *neighbors)
{
    cr_assert_eq(chempi_neighbors_open(neighbors, &services, devices,
                                       &device_count, &holder, NULL),
                 0);
}

/* That there is no memory for a way does not say that none leads there. */
Test(neighbors, who_misses_memory_for_a_way_finds_it_later)
{
    struct chempi_neighbors neighbors;
    struct chempi_err err = {0};

    open_neighbors(&neighbors);
    connect_status = -EHOSTUNREACH;
    cr_assert_eq(chempi_neighbors_reach(&neighbors, 1, &err), -EHOSTUNREACH);
    cr_assert_str_eq(err.text, "no device leads from node a to b");
    connect_status = -ENOMEM;
    cr_assert_eq(chempi_neighbors_reach(&neighbors, 1, &err), -ENOMEM);
    cr_assert_not_null(strstr(err.text, "out of memory"));
    connect_status = 0;
    cr_assert_eq(chempi_neighbors_reach(&neighbors, 1, &err), 0);
    cr_assert_eq(connects, 3);
    cr_assert_eq(chempi_neighbors_reach(&neighbors, 1, &err), 0);
    cr_assert_eq(connects, 3);
    chempi_neighbors_close(&neighbors);
}

/* Whoever announces frames without an end is stopped, and nobody does who
 * follows the rule. */
Test(neighbors, so_many_frames_are_under_way_at_once)
{
    struct chempi_neighbors neighbors;

    open_neighbors(&neighbors);
    for (uint32_t i = 0; i < CHEMPI_ARRAY_LEN(taken); i++)
        cr_assert_eq(chempi_neighbors_queue(&neighbors, 1,
                                            chempi_neighbor_buf_create(100)),
                     0);
    chempi_neighbors_flush(&neighbors);
    cr_assert_eq(taken_count, CHEMPI_NEIGHBOR_SENDING_MAX);
    cr_assert_not(chempi_neighbors_is_dirty(&neighbors));
    cr_assert(chempi_neighbors_sent(&neighbors, taken[7], 0));
    cr_assert(chempi_neighbors_is_dirty(&neighbors));
    chempi_neighbors_flush(&neighbors);
    cr_assert_eq(taken_count, CHEMPI_NEIGHBOR_SENDING_MAX + 1);
    chempi_neighbors_close(&neighbors);
}

Test(neighbors, who_announces_a_frame_that_is_too_long_is_lost)
{
    const struct chempi_arrival arrival = {
        .ep = &ep,
        .env = {.len = CHEMPI_NEIGHBOR_FRAME_MAX + 1,
                .context = CHEMPI_NEIGHBOR_CONTEXT}};
    struct chempi_neighbors neighbors;
    enum chempi_verdict verdict;
    struct chempi_rx *rx = NULL;

    open_neighbors(&neighbors);
    ep = (struct chempi_ep){.dev = &fake, .proc = 1};
    cr_assert(chempi_neighbors_arrived(&neighbors, &arrival, &verdict, &rx));
    cr_assert_eq(verdict, CHEMPI_REFUSED);
    cr_assert_eq(losses, 1);
    chempi_neighbors_close(&neighbors);
}

Test(neighbors, who_announces_more_frames_than_it_may_is_lost)
{
    const uint32_t max = CHEMPI_NEIGHBOR_SENDING_MAX * CHEMPI_NEIGHBOR_WAYS_MAX;
    const struct chempi_arrival arrival = {
        .ep = &ep, .env = {.len = 100, .context = CHEMPI_NEIGHBOR_CONTEXT}};
    struct chempi_neighbors neighbors;
    enum chempi_verdict verdict;
    struct chempi_rx *rx = NULL;

    open_neighbors(&neighbors);
    ep = (struct chempi_ep){.dev = &fake, .proc = 1};
    for (uint32_t i = 0; i < max; i++) {
        cr_assert(
            chempi_neighbors_arrived(&neighbors, &arrival, &verdict, &rx));
        cr_assert_eq(verdict, CHEMPI_ACCEPT);
    }
    cr_assert(chempi_neighbors_delivered(&neighbors, rx, 0));
    cr_assert(chempi_neighbors_arrived(&neighbors, &arrival, &verdict, &rx));
    cr_assert_eq(verdict, CHEMPI_ACCEPT);
    cr_assert_eq(losses, 0);
    cr_assert(chempi_neighbors_arrived(&neighbors, &arrival, &verdict, &rx));
    cr_assert_eq(verdict, CHEMPI_REFUSED);
    cr_assert_eq(losses, 1);
    cr_assert_str_eq(words, "it announced more frames than it may, over device "
                            "fake from node b");
    chempi_neighbors_close(&neighbors);
}

static enum chempi_verdict announce(struct chempi_neighbors *neighbors,
                                    struct chempi_ep *from)
{
    const struct chempi_arrival arrival = {
        .ep = from, .env = {.len = 100, .context = CHEMPI_NEIGHBOR_CONTEXT}};
    enum chempi_verdict verdict = CHEMPI_TAKEN;
    struct chempi_rx *rx = NULL;

    cr_assert(chempi_neighbors_arrived(neighbors, &arrival, &verdict, &rx));
    return verdict;
}

/* What one finds does not end what another one lacks, nor is one lost for what
 * another one has waited for. */
Test(neighbors, each_has_its_own_time_to_wait_for_memory)
{
    struct chempi_ep first = {.dev = &fake, .proc = 1};
    struct chempi_ep second = {.dev = &fake, .proc = 2};
    struct chempi_neighbors neighbors;

    open_neighbors(&neighbors);
    rig_fail(RIG_MALLOC, 1, ENOMEM, 1);
    cr_assert_eq(announce(&neighbors, &first), CHEMPI_NO_ROOM);
    neighbors.sources[1].shortage = (struct chempi_shortage){
        .since_ns = 1, .refused_ns = chempi_clock_ns()};
    rig_reset();
    cr_assert_eq(announce(&neighbors, &second), CHEMPI_ACCEPT);
    rig_fail(RIG_MALLOC, 1, ENOMEM, 1);
    cr_assert_eq(announce(&neighbors, &second), CHEMPI_NO_ROOM);
    cr_assert_eq(losses, 0);
    cr_assert_eq(announce(&neighbors, &first), CHEMPI_REFUSED);
    cr_assert_eq(losses, 1);
    rig_reset();
    chempi_neighbors_close(&neighbors);
}
