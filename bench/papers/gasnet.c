/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Long active messages as the GASNet conduit for SCI sends them: the payload
 * goes straight to its place at the receiver, by DMA from 2048 bytes on (the
 * whole of it, as it is aligned here) and by stores below; then the header
 * follows in a packet of its own. "stores" does without DMA, as the conduit
 * over ScaMPI did.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/papers/papers.h"

#define LINE PAPERS_LINE
#define LONG_MAX (UINT64_C(1) << 20)
#define DMA_MIN 2048u

enum { AT_COMMAND = 0, AT_PAYLOAD = 4096 };

struct gasnet {
    struct chempi_sci_dma *dma;
    bool has_dma;
    uint32_t sent;
    uint32_t taken;
};

static void open(struct pair *pair, bool has_dma)
{
    struct gasnet *g = calloc(1, sizeof(*g));

    if (!g)
        pair_die(pair, "out of memory");
    pair_segment(pair, AT_PAYLOAD + LONG_MAX);
    pair_check(pair, chempi_sci_dma_create(pair->adapter, 1, &g->dma));
    g->has_dma = has_dma;
    pair->state = g;
}

static void open_dma(struct pair *pair)
{
    open(pair, true);
}

static void open_stores(struct pair *pair)
{
    open(pair, false);
}

static void *buffer(struct pair *pair)
{
    return pair->local + AT_PAYLOAD;
}

static void move(struct pair *pair, const struct gasnet *g, const void *message,
                 size_t len)
{
    int rc;

    pair_check(pair, chempi_sci_dma_enqueue(
                         g->dma, pair->remote, AT_PAYLOAD,
                         (void *)(uintptr_t)message, /* it is read from */
                         len, CHEMPI_SCI_DMA_WRITE));
    pair_check(pair, chempi_sci_dma_start(g->dma));
    do
        rc = chempi_sci_dma_state(g->dma);
    while (rc == -EINPROGRESS);
    pair_check(pair, rc);
}

static void send(struct pair *pair, const void *message, size_t len)
{
    struct gasnet *g = pair->state;
    _Alignas(LINE) unsigned char command[LINE] = {0};

    if (g->has_dma && len >= DMA_MIN && len % CHEMPI_SCI_DMA_ALIGN == 0)
        move(pair, g, message, len);
    else
        pair_store(pair, AT_PAYLOAD, message, papers_round(len));
    chempi_sci_store_barrier(pair->remote);
    g->sent++;
    memcpy(command + LINE - sizeof(g->sent), &g->sent, sizeof(g->sent));
    pair_store(pair, AT_COMMAND, command, LINE);
}

static void recv(struct pair *pair, void *message, size_t len)
{
    struct gasnet *g = pair->state;
    uint32_t looks = 0;

    (void)message;
    (void)len;
    while (pair_load32(pair, AT_COMMAND + LINE - sizeof(uint32_t)) == g->taken)
        pair_relax(&looks);
    g->taken++;
}

static const struct experiment by_dma = {.name = "gasnet-long",
                                         .len_max = LONG_MAX,
                                         .open = open_dma,
                                         .buffer = buffer,
                                         .send = send,
                                         .recv = recv};
static const struct experiment by_stores = {.name = "gasnet-stores",
                                            .len_max = LONG_MAX,
                                            .open = open_stores,
                                            .buffer = buffer,
                                            .send = send,
                                            .recv = recv};

const struct experiment *const papers_gasnet[] = {&by_dma, &by_stores, NULL};
