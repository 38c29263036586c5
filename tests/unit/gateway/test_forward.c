/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Linked with "-Wl,--wrap=...": what a gateway hands to the next neighbour is
 * kept, and a frame may change while the gateway copies it.
 */
#include <string.h>

#include <criterion/criterion.h>

#include "programs/gateway/gateway.h"

enum { RANKS = 2, GATEWAY = 2, PROCS = 3, NOBODY = 9 };

struct chempi_neighbor_buf *__real_chempi_neighbor_buf_create(size_t cap);
struct chempi_neighbor_buf *__wrap_chempi_neighbor_buf_create(size_t cap);
int __wrap_chempi_neighbors_reach(struct chempi_neighbors *neighbors,
                                  uint32_t proc, struct chempi_err *err);
int __wrap_chempi_neighbors_queue(struct chempi_neighbors *neighbors,
                                  uint32_t proc,
                                  struct chempi_neighbor_buf *buf);

static const struct chempi_job job = {.size = RANKS, .gateways = 1};
static struct chempi_neighbor_source sources[PROCS];
static struct gateway gateway;

/* As it lies with a device. */
static uint8_t bytes[CHEMPI_NEIGHBOR_FIXED_MAX];
static size_t bytes_len;
static bool is_rewritten;
static uint32_t queued;

static void write_frame(uint32_t src)
{
    const struct chempi_neighbor_frame f = {.kind = CHEMPI_NEIGHBOR_ACK,
                                            .gateway_count = 1,
                                            .src = src,
                                            .dst = 1,
                                            .gateways = {GATEWAY}};

    bytes_len = chempi_neighbor_frame_put(bytes, &f);
}

struct chempi_neighbor_buf *__wrap_chempi_neighbor_buf_create(size_t cap)
{
    if (is_rewritten)
        write_frame(NOBODY);
    return __real_chempi_neighbor_buf_create(cap);
}

int __wrap_chempi_neighbors_reach(struct chempi_neighbors *neighbors,
                                  uint32_t proc, struct chempi_err *err)
{
    (void)neighbors;
    (void)proc;
    (void)err;
    return 0;
}

int __wrap_chempi_neighbors_queue(struct chempi_neighbors *neighbors,
                                  uint32_t proc,
                                  struct chempi_neighbor_buf *buf)
{
    struct chempi_neighbor_frame f;
    const char *why;

    (void)neighbors;
    cr_assert_geq(chempi_neighbor_frame_head(buf->data, buf->len, &f, &why), 0);
    cr_assert_eq(f.src, 0);
    cr_assert_eq(f.at, 1);
    cr_assert_eq(proc, 1);
    queued++;
    chempi_neighbor_buf_drop(buf);
    return 0;
}

static void take_frame(bool rewritten)
{
    memset(&gateway, 0, sizeof(gateway));
    queued = 0;
    is_rewritten = rewritten;
    gateway.job = &job;
    gateway.services.proc = GATEWAY;
    gateway.services.proc_count = PROCS;
    gateway.neighbors.sources = sources;
    write_frame(0);
    cr_assert(gateway_neighbors_ops.frame(&gateway, 0, bytes, bytes_len, NULL));
    gateway_flows_fini(&gateway.flows);
}

Test(gateway_forward, a_frame_goes_on)
{
    take_frame(false);
    cr_assert_eq(queued, 1);
    cr_assert(!gateway.is_over);
}

Test(gateway_forward, what_was_checked_is_what_is_sent_on)
{
    take_frame(true);
    cr_assert_eq(queued, 0);
    cr_assert(gateway.is_over, "a frame of nobody is taken");
}
