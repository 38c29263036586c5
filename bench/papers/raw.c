/* SPDX-License-Identifier: BSD-3-Clause */
/* The adapter's own figures: one operation, or many that follow each other. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/papers/papers.h"
#include "bench/papers/vi.h"

#define SEGMENT (UINT64_C(2) << 20)
#define STREAM 64u /* operations that follow each other */
#define REGION_MAX (UINT64_C(4) << 20)

struct raw {
    unsigned char *bytes;
    struct chempi_sci_dma *dma;
    uint32_t ptag;
    uint32_t handle; /* 0: not registered */
};

static struct raw *new_raw(struct pair *pair)
{
    struct raw *raw = calloc(1, sizeof(*raw));

    if (!raw)
        pair_die(pair, "out of memory");
    raw->bytes = pair_memory(pair, REGION_MAX);
    pair->state = raw;
    return raw;
}

/* --- SCI --- */

static void open_sci(struct pair *pair)
{
    struct raw *raw = new_raw(pair);

    pair_segment(pair, SEGMENT);
    pair_check(pair, chempi_sci_dma_create(pair->adapter, 1, &raw->dma));
}

static void store(struct pair *pair, size_t len)
{
    const struct raw *raw = pair->state;

    pair_store(pair, 0, raw->bytes, len);
    chempi_sci_store_barrier(pair->remote);
}

static void store_narrow(struct pair *pair, size_t len)
{
    const struct raw *raw = pair->state;

    pair_check(pair, chempi_sci_copy_narrow(pair->remote, 0, raw->bytes, len));
    chempi_sci_store_barrier(pair->remote);
}

static void stream(struct pair *pair, size_t len)
{
    const struct raw *raw = pair->state;

    for (unsigned i = 0; i < STREAM; i++)
        pair_store(pair, i * len, raw->bytes, len);
    chempi_sci_store_barrier(pair->remote);
}

static void read_there(struct pair *pair, size_t len)
{
    const struct raw *raw = pair->state;

    pair_check(pair, chempi_sci_read(pair->remote, 0, raw->bytes, len));
}

static void dma(struct pair *pair, size_t len)
{
    const struct raw *raw = pair->state;
    int rc;

    pair_check(pair,
               chempi_sci_dma_enqueue(raw->dma, pair->remote, 0, raw->bytes,
                                      len, CHEMPI_SCI_DMA_WRITE));
    pair_check(pair, chempi_sci_dma_start(raw->dma));
    do
        rc = chempi_sci_dma_state(raw->dma);
    while (rc == -EINPROGRESS);
    pair_check(pair, rc);
}

/* --- the processor --- */

static void copy(struct pair *pair, size_t len)
{
    const struct raw *raw = pair->state;

    chempi_adapter_host_copy(pair->adapter, raw->bytes,
                             raw->bytes + REGION_MAX / 2, len);
}

static void open_copy(struct pair *pair)
{
    (void)new_raw(pair);
}

/* --- registration --- */

static void open_memory(struct pair *pair)
{
    struct raw *raw = new_raw(pair);

    pair_check(pair, chempi_via_ptag_create(pair->adapter, &raw->ptag));
}

static void enter(struct pair *pair, size_t len)
{
    struct raw *raw = pair->state;

    if (!raw->handle)
        pair_check(pair, chempi_via_register(pair->adapter, raw->bytes, len,
                                             raw->ptag, 0, &raw->handle));
}

static void leave(struct pair *pair, size_t len)
{
    struct raw *raw = pair->state;

    (void)len;
    if (raw->handle)
        pair_check(pair, chempi_via_deregister(pair->adapter, raw->handle));
    raw->handle = 0;
}

/* --- VIA --- */

static void open_via(struct pair *pair)
{
    pair->state = vi_open(pair, 0, SEGMENT);
}

static void send_one(struct pair *pair, const void *message, size_t len)
{
    struct vi *vi = pair->state;

    memcpy(vi->out, message, len);
    vi_post(pair, vi, CHEMPI_VIA_SEND, len);
}

static void recv_one(struct pair *pair, void *message, size_t len)
{
    struct vi *vi = pair->state;
    struct chempi_via_descriptor *d = vi_take(pair, vi, false);

    if (d->length != len)
        pair_die(pair, "a message of another length");
    memcpy(message, d->segments[0].addr, len);
    vi_repost(pair, vi, d);
}

static void rdma_stream(struct pair *pair, size_t len)
{
    struct vi *vi = pair->state;

    for (unsigned i = 0; i < STREAM; i++)
        vi_post(pair, vi, CHEMPI_VIA_RDMA_WRITE, len);
    vi_finish(pair, vi, false);
}

#define SINGLE(tag, text, most, open_fn, ready_fn, act_fn, count)              \
    static const struct experiment tag = {.name = (text),                      \
                                          .len_max = (most),                   \
                                          .open = (open_fn),                   \
                                          .ready = (ready_fn),                 \
                                          .act = (act_fn),                     \
                                          .acts = (count)}
SINGLE(raw_store, "store", 1 << 20, open_sci, NULL, store, 1);
SINGLE(raw_memcpy, "store-memcpy", 1 << 20, open_sci, NULL, store_narrow, 1);
SINGLE(raw_stream, "store-stream", 16 << 10, open_sci, NULL, stream, STREAM);
SINGLE(raw_read, "read", 1 << 16, open_sci, NULL, read_there, 1);
SINGLE(raw_dma, "dma", 1 << 20, open_sci, NULL, dma, 1);
SINGLE(raw_copy, "copy", 1 << 20, open_copy, NULL, copy, 1);
SINGLE(raw_register, "register", REGION_MAX, open_memory, leave, enter, 1);
SINGLE(raw_deregister, "deregister", REGION_MAX, open_memory, enter, leave, 1);
SINGLE(raw_rdma, "rdma-stream", 1 << 20, open_via, NULL, rdma_stream, STREAM);

static const struct experiment raw_send = {.name = "send",
                                           .len_max = VI_RECEIVE_BYTES,
                                           .open = open_via,
                                           .send = send_one,
                                           .recv = recv_one};

const struct experiment *const papers_raw[] = {
    &raw_store, &raw_memcpy,   &raw_stream,     &raw_read, &raw_dma, &raw_copy,
    &raw_send,  &raw_register, &raw_deregister, &raw_rdma, NULL};
