/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The self device: a process's messages to itself; the smallest device.
 *
 * Every message is an item. A small one carries a copy of its payload; a large
 * one names the chempi_tx and is copied once, from the user's buffer to the
 * user's buffer, when a receive is named.
 *
 *   S1  an item is in exactly one place: the free list, `ready` (not yet
 *       announced), or `left` (announced, waits for accept or drop)
 *   S2  item->tx is set for large messages only, until the copy is made
 *   S3  a tx that was copied outside of progress waits in `sent`
 */
#include "libchempi/devices/self/self.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"

#define COPY_MAX 4096u /* bytes of payload in an item */
#define SMALL_ROOM 64u /* bytes in an item that is kept for reuse */
#define FREE_MAX 64u   /* small items kept */
#define EVENTS_MAX 64  /* per progress */
#define RUNS_MAX 16u

struct item {
    struct chempi_list link;
    struct chempi_envelope env;
    struct chempi_tx *tx;
    size_t room; /* bytes of data[] */
    unsigned char data[];
};

struct self_dev {
    struct chempi_dev base;
    struct chempi_ep ep;
    struct chempi_list ready;
    struct chempi_list left;
    struct chempi_list free;
    struct chempi_list sent;
    uint32_t free_count;
};

enum { PROTOCOL_COPY, PROTOCOL_DIRECT };
static const char *const protocol_names[] = {"copy", "direct"};
static const uint64_t protocol_max[] = {COPY_MAX, UINT64_MAX};

static const struct chempi_dev_caps self_caps = {
    .protocols = protocol_names,
    .protocol_count = CHEMPI_ARRAY_LEN(protocol_names),
    .flags = CHEMPI_DEV_SAME_NODE | CHEMPI_DEV_SELF,
    .inject_max = COPY_MAX,
    .protocol_max = protocol_max,
    .eager_max = COPY_MAX,
};

static const struct chempi_dev_panel self_panel = {
    .text = "a process's messages to itself",
    .protocols = protocol_names,
    .protocol_count = CHEMPI_ARRAY_LEN(protocol_names),
};

static struct self_dev *to_self(struct chempi_dev *dev)
{
    return (struct self_dev *)dev;
}

static struct item *item_get(struct self_dev *self, size_t room)
{
    struct item *item;

    if (room <= SMALL_ROOM && !chempi_list_is_empty(&self->free)) {
        item = CHEMPI_CONTAINER_OF(chempi_list_first(&self->free), struct item,
                                   link);
        chempi_list_remove(&item->link);
        self->free_count--;
        return item;
    }
    room = room < SMALL_ROOM ? SMALL_ROOM : room;
    item = chempi_sys->malloc(sizeof(*item) + room);
    if (!item) {
        (void)chempi_err_set(&self->base.err, -ENOMEM,
                             "out of memory for a message to oneself");
        return NULL;
    }
    item->room = room;
    chempi_list_init(&item->link);
    return item;
}

static void item_put(struct self_dev *self, struct item *item)
{
    chempi_list_remove(&item->link);
    if (item->room > SMALL_ROOM || self->free_count == FREE_MAX) {
        free(item);
        return;
    }
    chempi_list_prepend(&self->free, &item->link);
    self->free_count++;
}

static int self_open(const struct chempi_dev_params *params,
                     struct chempi_dev **out, struct chempi_err *err)
{
    struct self_dev *self = chempi_sys->calloc(1, sizeof(*self));

    if (!self)
        return chempi_err_set(err, -ENOMEM, "out of memory");
    self->base.ops = &chempi_self_ops;
    self->base.caps = &self_caps;
    self->base.params = *params;
    self->ep.dev = &self->base;
    self->ep.proc = params->services->proc;
    chempi_list_init(&self->ready);
    chempi_list_init(&self->left);
    chempi_list_init(&self->free);
    chempi_list_init(&self->sent);
    *out = &self->base;
    return 0;
}

static int self_connect(struct chempi_dev *dev, uint32_t proc,
                        struct chempi_ep **out, struct chempi_err *err)
{
    struct self_dev *self = to_self(dev);

    if (proc != self->ep.proc)
        return chempi_err_set(err, -EHOSTUNREACH,
                              "the self device does not reach process %u",
                              (unsigned)proc);
    *out = &self->ep;
    return 0;
}

static int self_inject(struct chempi_ep *ep, const struct chempi_envelope *env,
                       const void *data, size_t len, bool may_keep)
{
    struct self_dev *self = to_self(ep->dev);
    struct item *item = item_get(self, len);

    (void)may_keep;
    if (!item)
        return -ENOMEM;
    item->env = *env;
    item->tx = NULL;
    if (len)
        memcpy(item->data, data, len);
    chempi_list_append(&self->ready, &item->link);
    return CHEMPI_DONE;
}

static int self_send(struct chempi_ep *ep, struct chempi_tx *tx)
{
    struct self_dev *self = to_self(ep->dev);
    bool is_copied =
        tx->env.len == 0 || (tx->protocol == PROTOCOL_COPY &&
                             tx->env.len <= COPY_MAX && !tx->needs_consent);
    size_t len = is_copied ? (size_t)tx->env.len : 0;
    struct item *item;

    if (is_copied && !tx->iter)
        return self_inject(ep, &tx->env, tx->buf, len, false);
    item = item_get(self, len);
    if (!item)
        return -ENOMEM;
    item->env = tx->env;
    item->tx = is_copied ? NULL : tx;
    if (is_copied)
        (void)chempi_segment_pack(tx->iter, item->data, len);
    chempi_list_append(&self->ready, &item->link);
    return is_copied ? CHEMPI_DONE : CHEMPI_PENDING;
}

static void store(struct chempi_rx *rx, uint64_t at, const void *data,
                  size_t len)
{
    if (rx->iter)
        (void)chempi_segment_unpack(rx->iter, data, len);
    else
        memmove((char *)rx->buf + at, data, len);
}

/* The one copy; discards what exceeds rx->cap. */
static void copy(struct chempi_tx *tx, struct chempi_rx *rx)
{
    uint64_t left = tx->env.len < rx->cap ? tx->env.len : rx->cap;
    uint64_t at = 0;

    if (!tx->iter) {
        if (left)
            store(rx, 0, tx->buf, (size_t)left);
        return;
    }
    while (left > 0) {
        struct iovec runs[RUNS_MAX];
        size_t count = chempi_segment_runs(tx->iter, runs, RUNS_MAX, left);

        if (count == 0)
            return; /* the layout is shorter than env.len */
        for (size_t i = 0; i < count; i++) {
            store(rx, at, runs[i].iov_base, runs[i].iov_len);
            at += runs[i].iov_len;
            left -= runs[i].iov_len;
        }
    }
}

static int self_accept(struct chempi_ep *ep, const uint64_t token[2],
                       struct chempi_rx *rx)
{
    struct self_dev *self = to_self(ep->dev);
    struct item *item = (struct item *)(uintptr_t)token[0];

    copy(item->tx, rx);
    chempi_list_append(&self->sent, &item->tx->link);
    item_put(self, item);
    return CHEMPI_DONE;
}

static void self_drop(struct chempi_ep *ep, const uint64_t token[2])
{
    struct self_dev *self = to_self(ep->dev);
    struct item *item = (struct item *)(uintptr_t)token[0];

    chempi_list_append(&self->sent, &item->tx->link);
    item_put(self, item);
}

/* Announce one item and do what the sink says. False: there is NO_ROOM. */
static bool announce(struct self_dev *self, struct item *item)
{
    const struct chempi_sink *sink = self->base.params.sink;
    void *arg = self->base.params.sink_arg;
    struct chempi_arrival arrival = {
        .ep = &self->ep,
        .env = item->env,
        .data = item->tx ? NULL : item->data,
        .avail = item->tx ? 0 : item->env.len,
        .token = {(uint64_t)(uintptr_t)item, 0},
        .protocol = item->tx ? PROTOCOL_DIRECT : PROTOCOL_COPY,
    };
    struct chempi_rx *rx = NULL;
    struct chempi_tx *tx = item->tx;

    chempi_dev_count(&self->base, arrival.protocol, item->env.len);
    /* Out of `ready` first: the sink may send, and even accept, from here. */
    chempi_list_remove(&item->link);
    chempi_list_append(&self->left, &item->link);
    switch (sink->arrived(arg, &arrival, &rx)) {
    case CHEMPI_TAKEN:
        item_put(self, item);
        break;
    case CHEMPI_ACCEPT:
        copy(tx, rx);
        item_put(self, item);
        sink->delivered(arg, rx, 0);
        sink->sent(arg, tx, 0);
        break;
    case CHEMPI_LATER:
    case CHEMPI_REFUSED: /* never: nobody breaks rules towards itself */
        break;
    case CHEMPI_NO_ROOM:
        chempi_dev_uncount(&self->base, arrival.protocol, item->env.len);
        chempi_list_remove(&item->link);
        chempi_list_prepend(&self->ready, &item->link);
        return false;
    }
    return true;
}

static CHEMPI_NOINLINE int advance(struct self_dev *self)
{
    const struct chempi_dev *dev = &self->base;
    int events = 0;

    while (!chempi_list_is_empty(&self->sent) && events < EVENTS_MAX) {
        struct chempi_tx *tx = CHEMPI_CONTAINER_OF(
            chempi_list_first(&self->sent), struct chempi_tx, link);

        chempi_list_remove(&tx->link);
        dev->params.sink->sent(dev->params.sink_arg, tx, 0);
        events++;
    }
    while (!chempi_list_is_empty(&self->ready) && events < EVENTS_MAX) {
        if (!announce(self, CHEMPI_CONTAINER_OF(chempi_list_first(&self->ready),
                                                struct item, link)))
            break;
        events++;
    }
    return events;
}

/* Most ranks send themselves nothing, and each of their polls asks. */
static int self_progress(struct chempi_dev *dev)
{
    struct self_dev *self = to_self(dev);

    if (CHEMPI_LIKELY(chempi_list_is_empty(&self->sent) &&
                      chempi_list_is_empty(&self->ready)))
        return 0;
    return advance(self);
}

static bool self_is_ready(struct chempi_dev *dev)
{
    struct self_dev *self = to_self(dev);

    return !chempi_list_is_empty(&self->ready) ||
           !chempi_list_is_empty(&self->sent);
}

static bool self_is_drained(struct chempi_dev *dev)
{
    struct self_dev *self = to_self(dev);

    return !self_is_ready(dev) && chempi_list_is_empty(&self->left);
}

static void free_items(struct chempi_list *head)
{
    CHEMPI_LIST_FOR_SAFE (node, head)
        free(CHEMPI_CONTAINER_OF(node, struct item, link));
}

static void self_close(struct chempi_dev *dev)
{
    struct self_dev *self = to_self(dev);

    if (!dev)
        return;
    free_items(&self->ready);
    free_items(&self->left);
    free_items(&self->free);
    free(self);
}

const struct chempi_dev_ops chempi_self_ops = {
    .abi = CHEMPI_DEV_ABI,
    .name = "self",
    .panel = &self_panel,
    .open = self_open,
    .card = chempi_dev_no_card,
    .connect = self_connect,
    .card_arrived = chempi_dev_no_card_arrived,
    .inject = self_inject,
    .send = self_send,
    .accept = self_accept,
    .drop = self_drop,
    .progress = self_progress,
    .is_ready = self_is_ready,
    .is_drained = self_is_drained,
    .close = self_close,
};
