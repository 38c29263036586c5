/* SPDX-License-Identifier: BSD-3-Clause */
/* A connected VI at each of the two processes; see vi.h. */
#include "bench/papers/vi.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

uint32_t vi_register(struct pair *pair, struct vi *vi, void *start, size_t len)
{
    uint32_t handle = 0;

    pair_check(pair, chempi_via_register(pair->adapter, start, len, vi->ptag,
                                         CHEMPI_VIA_ENABLE_WRITE, &handle));
    return handle;
}

static void connect_pair(struct pair *pair, struct vi *vi,
                         uint64_t discriminator)
{
    struct pollfd item = {.fd = chempi_adapter_fd(pair->adapter),
                          .events = POLLIN};

    pair_check(pair,
               chempi_via_connect_peer(vi->vi, pair->link, discriminator));
    while (chempi_via_vi_state(vi->vi) == CHEMPI_VIA_CONNECTING) {
        (void)poll(&item, 1, 1); /* interrupted or not: look */
        (void)chempi_adapter_service(pair->adapter);
    }
    if (chempi_via_vi_state(vi->vi) != CHEMPI_VIA_CONNECTED)
        pair_die(pair, "the VIs could not be connected");
}

struct vi *vi_open(struct pair *pair, uint64_t discriminator, size_t bytes)
{
    struct chempi_via_attributes attributes = {
        .reliability = CHEMPI_VIA_RELIABLE_DELIVERY};
    struct vi *vi = calloc(1, sizeof(*vi));

    if (!vi)
        pair_die(pair, "out of memory");
    pair_check(pair, chempi_via_ptag_create(pair->adapter, &vi->ptag));
    attributes.ptag = vi->ptag;
    pair_check(pair, chempi_via_vi_create(pair->adapter, &attributes, &vi->vi));
    vi->out = pair_memory(pair, bytes);
    vi->out_handle = vi_register(pair, vi, vi->out, bytes);
    vi->in = pair_memory(pair, VI_RECEIVES * VI_RECEIVE_BYTES);
    vi->in_handle =
        vi_register(pair, vi, vi->in, VI_RECEIVES * VI_RECEIVE_BYTES);
    for (uint32_t i = 0; i < VI_RECEIVES; i++)
        vi_repost(pair, vi, &vi->receives[i]);
    pair->board->windows[pair->rank] = (uint64_t)(uintptr_t)vi->out;
    pair->board->window_handles[pair->rank] = vi->out_handle;
    pair_barrier(pair);
    vi->window = (void *)(uintptr_t)pair->board->windows[!pair->rank];
    vi->window_handle = pair->board->window_handles[!pair->rank];
    connect_pair(pair, vi, discriminator);
    pair_barrier(pair);
    return vi;
}

/* --- sending --- */

static void take_sent(struct pair *pair, struct vi *vi, bool does_sleep)
{
    struct chempi_via_descriptor *d = NULL;
    uint32_t looks = 0;

    if (does_sleep) {
        d = chempi_via_send_wait(vi->vi, -1);
    } else {
        while (!(d = chempi_via_send_done(vi->vi)))
            pair_relax(&looks);
    }
    pair_check(pair, d ? d->status : -EIO);
    vi->pending--;
}

struct chempi_via_descriptor *vi_descriptor(struct pair *pair, struct vi *vi)
{
    if (vi->pending == VI_RECEIVES)
        take_sent(pair, vi,
                  false); /* queues complete in order: it is the oldest */
    return &vi->sends[vi->next_send++ % VI_RECEIVES];
}

void vi_post_descriptor(struct pair *pair, struct vi *vi,
                        struct chempi_via_descriptor *d)
{
    pair_check(pair, chempi_via_post_send(vi->vi, d));
    vi->pending++;
}

void vi_post(struct pair *pair, struct vi *vi, enum chempi_via_op op,
             size_t len)
{
    struct chempi_via_descriptor *d = vi_descriptor(pair, vi);

    *d = (struct chempi_via_descriptor){
        .op = op,
        .segment_count = 1,
        .segments = {{.addr = vi->out,
                      .handle = vi->out_handle,
                      .len = (uint32_t)len}},
        .remote_addr = (uint64_t)(uintptr_t)vi->window,
        .remote_handle = vi->window_handle,
    };
    vi_post_descriptor(pair, vi, d);
}

void vi_finish(struct pair *pair, struct vi *vi, bool does_sleep)
{
    while (vi->pending > 0)
        take_sent(pair, vi, does_sleep);
}

/* --- receiving --- */

struct chempi_via_descriptor *vi_take(struct pair *pair, struct vi *vi,
                                      bool does_sleep)
{
    struct chempi_via_descriptor *d;
    uint32_t looks = 0;

    if (does_sleep) {
        d = chempi_via_recv_wait(vi->vi, -1);
    } else {
        while (!(d = chempi_via_recv_done(vi->vi)))
            pair_relax(&looks);
    }
    if (!d || d->status < 0)
        pair_die(pair, "a message was not received");
    return d;
}

void vi_repost(struct pair *pair, struct vi *vi,
               struct chempi_via_descriptor *d)
{
    size_t index = (size_t)(d - vi->receives);

    *d = (struct chempi_via_descriptor){
        .op = CHEMPI_VIA_RECEIVE,
        .segment_count = 1,
        .segments = {{.addr = vi->in + index * VI_RECEIVE_BYTES,
                      .handle = vi->in_handle,
                      .len = VI_RECEIVE_BYTES}},
    };
    pair_check(pair, chempi_via_post_recv(vi->vi, d));
}
