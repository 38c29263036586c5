/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Layout of the shared area, endpoints, and the bells.
 *
 * The region holds an inbox per local rank, then the pairs, those of one
 * receiver together; of each lane one after the other. Their places are found
 * by arithmetic. A process maps the
 * inboxes, the pairs to itself and those from itself that it has used: what it
 * maps grows with the ranks of the node, not with their square. Pages are
 * reserved by their writer before they are first touched.
 *
 *   B1  a line is published before its bell is rung, bell word before summary
 *   B2  the listener clears summary before the word, the word before it looks
 *       at the ring: so a line is either seen or its bell still rings
 *   B3  a ring leaves dev->hot only after its mode is BELL, a barrier has
 *       reached all registered processes, and its own bell was rung once more
 */
#define _GNU_SOURCE /* clock_gettime, MAP_ANONYMOUS */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/sys.h"
#include "libchempi/devices/shm/internal.h"

#define PAGE 4096u

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

/* The larger the node, the smaller the rings: their number is quadratic. */
static void choose_sizes(struct shm_dev *dev)
{
    if (dev->local_size <= 32) {
        dev->line_mask = 255;
        dev->data_size = dev->local_size <= 4 ? 256 * 1024 : 64 * 1024;
    } else if (dev->local_size <= 128) {
        dev->line_mask = 127;
        dev->data_size = 32 * 1024;
    } else {
        dev->line_mask = dev->local_size <= 1024 ? 63 : 31;
        dev->data_size = 32 * 1024;
    }
}

static size_t round_to_page(size_t len)
{
    return (len + PAGE - 1) & ~(size_t)(PAGE - 1);
}

static struct shm_inbox *inbox_of(struct shm_dev *dev, uint32_t rank)
{
    return (struct shm_inbox *)(void *)(dev->inboxes +
                                        rank * dev->inbox_stride);
}

/* In the region's file. */
static uint64_t pair_at(const struct shm_dev *dev, uint32_t sender,
                        uint32_t receiver)
{
    uint64_t index = (uint64_t)receiver * dev->local_size + sender;

    return dev->pairs_at + index * dev->pair_stride;
}

static int find_local_procs(struct shm_dev *dev, struct chempi_err *err)
{
    const struct chempi_services *services = dev->base.params.services;

    dev->proc_of_local =
        chempi_sys->calloc(dev->local_size, sizeof(*dev->proc_of_local));
    if (!dev->proc_of_local)
        return chempi_err_set(err, -ENOMEM, "out of memory");
    for (uint32_t proc = 0; proc < services->proc_count; proc++) {
        uint32_t local = services->local_rank_of_proc[proc];

        if (services->node_of_proc[proc] == services->node &&
            local < dev->local_size)
            dev->proc_of_local[local] = proc;
    }
    return 0;
}

/* Of all lanes at once: what others lay out follows at the same place whether a
 * process has more lanes or not. */
static int lay_out_all(struct shm_dev *dev, struct chempi_err *err)
{
    const struct chempi_dev_params *params = &dev->base.params;
    struct chempi_region *region = params->services->region;
    size_t n = dev->local_size;
    size_t lanes = params->lanes ? params->lanes : 1;
    void *area;
    int rc;

    rc =
        chempi_region_extend(region, lanes * n * dev->inbox_stride, &area, err);
    if (rc < 0)
        return rc;
    dev->inboxes = area;
    return chempi_region_lay_out(region, lanes * n * n * dev->pair_stride,
                                 &dev->pairs_at, err);
}

/* Where this lane's inboxes and pairs lie. */
static int lay_out(struct shm_dev *dev, struct chempi_err *err)
{
    const struct shm_dev *first = (struct shm_dev *)dev->base.params.first;
    size_t lane = dev->base.params.lane;
    size_t n = dev->local_size;

    if (!first)
        return lay_out_all(dev, err);
    dev->inboxes = first->inboxes + lane * n * dev->inbox_stride;
    dev->pairs_at = first->pairs_at + lane * n * n * dev->pair_stride;
    return 0;
}

int chempi_shm_endpoint_init(struct shm_dev *dev, struct chempi_err *err)
{
    const struct chempi_services *services = dev->base.params.services;
    struct chempi_region *region = services->region;
    size_t n = services->local_size;
    void *area;
    void *eps;
    int rc;

    dev->local_size = services->local_size;
    dev->local_rank = services->local_rank;
    if (n > SHM_RANKS_MAX)
        return chempi_err_set(err, -ENOTSUP,
                              "%zu ranks on one node; the shm device serves "
                              "at most %u",
                              n, SHM_RANKS_MAX);
    choose_sizes(dev);
    dev->inbox_stride = round_to_page(sizeof(struct shm_inbox));
    dev->pair_lines = sizeof(struct shm_pair) +
                      (dev->line_mask + 1) * sizeof(struct shm_line);
    dev->pair_stride = round_to_page(dev->pair_lines + dev->data_size);
    rc = find_local_procs(dev, err);
    if (rc < 0)
        return rc;
    /* Zero pages, touched when an endpoint is first used. */
    dev->eps_len = round_to_page(n * sizeof(*dev->eps));
    eps = chempi_sys->mmap(NULL, dev->eps_len, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (eps == MAP_FAILED)
        return chempi_err_set(err, -ENOMEM, "out of memory");
    dev->eps = eps;
    rc = lay_out(dev, err);
    if (rc == 0)
        rc = chempi_region_map(region, pair_at(dev, 0, dev->local_rank),
                               n * dev->pair_stride, &area, err);
    if (rc < 0)
        return rc;
    dev->received = area;
    dev->inbox = inbox_of(dev, dev->local_rank);
    dev->probe_byte =
        (unsigned char)(chempi_clock_ns() >> 8 ^ (uint64_t)getpid() * 167);
    return chempi_region_reserve(region, dev->inbox, dev->inbox_stride, err);
}

void chempi_shm_endpoint_fini(struct shm_dev *dev)
{
    for (struct shm_ep *ep = dev->open; ep; ep = ep->next_open)
        (void)chempi_sys->munmap(ep->tx_pair, dev->pair_stride);
    if (dev->received)
        (void)chempi_sys->munmap(dev->received,
                                 dev->local_size * dev->pair_stride);
    if (dev->eps)
        (void)chempi_sys->munmap(dev->eps, dev->eps_len);
    free(dev->proc_of_local);
}

struct shm_ep *chempi_shm_endpoint_ep(struct shm_dev *dev, uint32_t peer)
{
    const struct chempi_services *services = dev->base.params.services;
    struct shm_ep *ep = &dev->eps[peer];
    char *lines;

    if (CHEMPI_LIKELY(ep->is_initialized))
        return ep;
    memset(ep, 0, sizeof(*ep));
    ep->base.dev = &dev->base;
    ep->base.proc = dev->proc_of_local[peer];
    ep->peer = peer;
    ep->line_mask = dev->line_mask;
    ep->wake = &services->wakes[peer];
    ep->wake_fd = services->wake_fds[peer];
    ep->tx_tail = 0u - (dev->line_mask + 1); /* E1: closed */
    ep->rx_pair = (void *)(dev->received + peer * dev->pair_stride);
    lines = (char *)(ep->rx_pair + 1);
    ep->rx_lines = (struct shm_line *)(void *)lines;
    ep->rx_base = (unsigned char *)(ep->rx_lines + dev->line_mask + 1);
    chempi_list_init(&ep->busy_link);
    chempi_rndv_peer_init(&ep->rndv, &dev->rndv, &ep->base);
    ep->is_initialized = true;
    return ep;
}

static int fail_sending(struct shm_ep *ep, int rc)
{
    (void)chempi_err_prefix(&ep->base.dev->err, "sending to rank %" PRIu32,
                            ep->base.proc);
    return rc;
}

/* The lines' pages; data that lies there can be used at once (E3). */
static int reserve_lines(struct shm_ep *ep)
{
    struct shm_dev *dev = shm_dev_of(ep);
    struct chempi_region *region = dev->base.params.services->region;
    int rc = chempi_region_reserve_at(region,
                                      pair_at(dev, dev->local_rank, ep->peer),
                                      dev->pair_lines, &dev->base.err);

    if (rc == 0)
        rc = chempi_region_reserve(region, inbox_of(dev, ep->peer),
                                   dev->inbox_stride, &dev->base.err);
    return rc;
}

static int map_tx(struct shm_ep *ep)
{
    struct shm_dev *dev = shm_dev_of(ep);
    void *start;
    int rc;

    if (ep->tx_pair)
        return 0;
    rc = chempi_region_map(dev->base.params.services->region,
                           pair_at(dev, dev->local_rank, ep->peer),
                           dev->pair_stride, &start, &dev->base.err);
    if (rc < 0)
        return rc;
    ep->tx_pair = start;
    ep->tx_lines = (struct shm_line *)(void *)(ep->tx_pair + 1);
    ep->tx_data = (unsigned char *)start + dev->pair_lines;
    ep->next_open = dev->open;
    dev->open = ep;
    return 0;
}

int chempi_shm_endpoint_open_tx(struct shm_ep *ep)
{
    struct shm_dev *dev = shm_dev_of(ep);
    int rc = reserve_lines(ep);

    if (rc == 0)
        rc = map_tx(ep);
    if (rc < 0)
        return fail_sending(ep, rc);
    ep->tx_pair->sender.pid = (int32_t)getpid();
    ep->tx_pair->sender.probe_addr = (uint64_t)(uintptr_t)&dev->probe_byte;
    ep->tx_pair->sender.probe_value = dev->probe_byte;
    ep->tx_tail = 0;
    ep->data_end = (uint32_t)(round_to_page(dev->pair_lines) - dev->pair_lines);
    ep->is_tx_open = true;
    return 0;
}

/* Touch all of the data, as far as the kernel does it at once: else each of the
 * first messages would find pages of its own that nobody has touched, and what
 * they cost would stand for what the ring costs (choice.c: 16 KiB took 10 us
 * to write in place of 2, and went by single copies then). */
static void touch_data(const struct shm_ep *ep)
{
    uintptr_t first = round_to_page((uintptr_t)ep->tx_data);
    uintptr_t end = (uintptr_t)ep->tx_data + shm_dev_of(ep)->data_size;

    if (first < end)
        (void)madvise((void *)first, end - first, MADV_POPULATE_WRITE);
}

int chempi_shm_endpoint_open_data(struct shm_ep *ep)
{
    struct shm_dev *dev = shm_dev_of(ep);
    uint64_t at = pair_at(dev, dev->local_rank, ep->peer) + dev->pair_lines;
    int rc = chempi_region_reserve_at(dev->base.params.services->region, at,
                                      dev->data_size, &dev->base.err);

    if (rc < 0)
        return fail_sending(ep, rc);
    touch_data(ep);
    ep->is_data_open = true;
    ep->data_end = ep->data_tail + dev->data_size;
    return 0;
}

void chempi_shm_endpoint_bell(struct shm_inbox *inbox, uint32_t sender)
{
    uint32_t word = sender / 64;

    (void)atomic_fetch_or_explicit(&inbox->words[word],
                                   UINT64_C(1) << (sender % 64),
                                   memory_order_acq_rel); /* B1 */
    (void)atomic_fetch_or_explicit(&inbox->summary, UINT64_C(1) << word,
                                   memory_order_acq_rel);
}

bool chempi_shm_endpoint_has_rung(const struct shm_inbox *inbox,
                                  uint32_t sender)
{
    return atomic_load_explicit(&inbox->words[sender / 64],
                                memory_order_acquire) >>
               sender % 64 &
           1;
}

void chempi_shm_endpoint_ring(struct shm_ep *ep)
{
    struct shm_dev *dev = shm_dev_of(ep);

    chempi_shm_endpoint_bell(inbox_of(dev, ep->peer), dev->local_rank);
    atomic_thread_fence(memory_order_seq_cst); /* before the wake word */
}

bool chempi_shm_endpoint_is_ready(struct shm_dev *dev)
{
    for (uint32_t i = 0; i < dev->hot_count; i++) {
        if (chempi_shm_eager_has_any(dev->hot[i]))
            return true;
    }
    return atomic_load_explicit(&dev->inbox->summary, memory_order_acquire) !=
           0;
}

/* A broken ring is not looked at any more. */
void chempi_shm_endpoint_cool(struct shm_ep *ep)
{
    struct shm_dev *dev = shm_dev_of(ep);

    for (uint32_t i = 0; i < dev->hot_count; i++) {
        if (dev->hot[i] == ep)
            dev->hot[i] = dev->hot[--dev->hot_count];
    }
    ep->is_hot = false;
}
