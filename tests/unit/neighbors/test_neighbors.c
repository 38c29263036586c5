/* SPDX-License-Identifier: BSD-3-Clause */
/* Neighbours over a device of the test's own. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "libchempi/neighbors/neighbors.h"

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

static const struct chempi_dev_ops ops = {.name = "fake",
                                          .connect = fake_connect};
static const struct chempi_dev_caps caps = {.protocol_count = 0};
static struct chempi_dev fake = {.ops = &ops, .caps = &caps};
static struct chempi_dev *const devices[] = {&fake};
static const uint32_t device_count = 1;
static const uint32_t nodes[] = {0, 1};
static const char *const names[] = {"a", "b"};
static const struct chempi_services services = {.proc_count = 2,
                                                .node_of_proc = nodes,
                                                .node_names = names,
                                                .node_count = 2};
static const struct chempi_neighbors_ops no_ops = {.frame = NULL};

/* That there is no memory for a way does not say that none leads there. */
Test(neighbors, who_misses_memory_for_a_way_finds_it_later)
{
    struct chempi_neighbors neighbors;
    struct chempi_err err = {0};

    cr_assert_eq(chempi_neighbors_open(&neighbors, &services, devices,
                                       &device_count, &no_ops, NULL),
                 0);
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
