/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transfers of more than one line. The sender asks; the payload stays in its
 * memory until the receiver has named a place. Then it travels in DATA lines
 * (the receiver said GO) or the receiver fetches it (copy.c) and says FIN.
 *
 *   outgoing: ASKED -> PUMPING -> sent     (GO, all chunks put)
 *             ASKED -> sent                (FIN)
 *   incoming: LEFT -> WAITING or COPYING or CONTROL
 *             WAITING -> delivered         (all chunks taken)
 *             COPYING -> delivered, CONTROL(FIN) or, refused, CONTROL(GO)
 *             CONTROL(GO) -> WAITING, CONTROL(FIN) -> free
 *
 *   X1  an id that comes back is looked up and checked against the endpoint,
 *       the generation and the state before it is believed
 *   X2  control lines that find no room wait in ep->control, in the transfer
 *       itself, so that answering never needs memory
 */
#include <errno.h>
#include <stdlib.h>

#include "common/base/sys.h"
#include "libchempi/devices/shm/internal.h"

#define POOL_START 16u

/* --- the pool --- */

static bool grow_pool(struct shm_dev *dev)
{
    uint32_t room = dev->xfer_room ? dev->xfer_room * 2 : POOL_START;
    struct shm_xfer **xfers;

    if (dev->xfer_count < dev->xfer_room)
        return true;
    xfers =
        room > dev->xfer_room
            ? chempi_sys->realloc(dev->xfers, room * sizeof(struct shm_xfer *))
            : NULL;
    if (!xfers)
        return false;
    dev->xfers = xfers;
    dev->xfer_room = room;
    return true;
}

static struct shm_xfer *xfer_create(struct shm_dev *dev)
{
    struct shm_xfer *xfer;

    if (!grow_pool(dev))
        return NULL;
    xfer = chempi_sys->calloc(1, sizeof(*xfer));
    if (!xfer)
        return NULL;
    xfer->index = dev->xfer_count;
    dev->xfers[dev->xfer_count++] = xfer;
    return xfer;
}

static struct shm_xfer *xfer_get(struct shm_ep *ep, enum shm_state state)
{
    struct shm_dev *dev = shm_dev_of(ep);
    struct shm_xfer *xfer;

    if (!chempi_list_is_empty(&dev->xfer_free)) {
        xfer = CHEMPI_CONTAINER_OF(chempi_list_first(&dev->xfer_free),
                                   struct shm_xfer, link);
        chempi_list_remove(&xfer->link);
    } else {
        xfer = xfer_create(dev);
        if (!xfer)
            return NULL;
        chempi_list_init(&xfer->link);
    }
    xfer->ep = ep;
    xfer->generation++;
    xfer->state = state;
    xfer->tx = NULL;
    xfer->rx = NULL;
    xfer->want = 0;
    xfer->done = 0;
    xfer->addr = 0;
    xfer->share = SHM_HELP_SLOTS;
    xfer->mine = 0;
    xfer->status = 0;
    xfer->is_refused = false;
    xfer->is_shared = false;
    xfer->is_claimed = false;
    return xfer;
}

static void xfer_put(struct shm_xfer *xfer)
{
    struct shm_dev *dev = shm_dev_of(xfer->ep);

    if (xfer->tx) {
        dev->outgoing--;
        if (xfer->share < SHM_HELP_SLOTS)
            xfer->ep->shares_used &= ~(1u << xfer->share);
    }
    xfer->state = SHM_STATE_FREE;
    chempi_list_remove(&xfer->link);
    chempi_list_prepend(&dev->xfer_free, &xfer->link);
}

static uint64_t id_of(const struct shm_xfer *xfer)
{
    return (uint64_t)xfer->generation << 32 | xfer->index;
}

static struct shm_xfer *find(struct shm_ep *ep, uint64_t id,
                             enum shm_state state)
{
    struct shm_dev *dev = shm_dev_of(ep);
    uint32_t index = (uint32_t)id;
    struct shm_xfer *xfer;

    if (index >= dev->xfer_count)
        return NULL;
    xfer = dev->xfers[index];
    return xfer->generation == (uint32_t)(id >> 32) && xfer->ep == ep &&
                   xfer->state == state
               ? xfer
               : NULL;
}

void chempi_shm_rndv_fini(struct shm_dev *dev)
{
    for (uint32_t i = 0; i < dev->xfer_count; i++)
        free(dev->xfers[i]);
    free(dev->xfers);
}

static void report_sent(struct shm_xfer *xfer, int status)
{
    const struct chempi_dev_params *params = &xfer->ep->base.dev->params;
    struct chempi_tx *tx = xfer->tx;

    xfer_put(xfer);
    params->sink->sent(params->sink_arg, tx, status);
}

static void report_delivered(struct shm_ep *ep, struct chempi_rx *rx,
                             int status)
{
    const struct chempi_dev_params *params = &ep->base.dev->params;

    params->sink->delivered(params->sink_arg, rx, status);
}

void chempi_shm_rndv_fail(struct shm_ep *ep, int status)
{
    struct shm_dev *dev = shm_dev_of(ep);

    for (uint32_t i = 0; i < dev->xfer_count; i++) {
        struct shm_xfer *xfer = dev->xfers[i];
        struct chempi_rx *rx = xfer->rx;

        if (xfer->ep != ep || xfer->state == SHM_STATE_FREE ||
            xfer->state == SHM_STATE_LEFT)
            continue; /* what was left is answered at accept() or drop() */
        if (xfer->tx) {
            report_sent(xfer, status);
            continue;
        }
        xfer_put(xfer);
        if (rx)
            report_delivered(ep, rx, status);
    }
}

/* --- lines --- */

static void send_line(struct shm_ep *ep, struct shm_line *line)
{
    shm_publish(ep, line, ep->base.dev->params.services->is_wake_registered);
    shm_urge(ep);
}

/* There is a line free; send what xfer owes. */
static void send_owed(struct shm_xfer *xfer)
{
    struct shm_ep *ep = xfer->ep;
    struct shm_line *line = shm_next_line(ep);

    chempi_list_remove(&xfer->link);
    line->kind = xfer->owed;
    if (xfer->owed == SHM_KIND_GO) {
        line->body.go = (struct shm_go){
            .id = xfer->peer_id,
            .peer_id = id_of(xfer),
            .from = xfer->done,
            .want = xfer->want,
            .refused = xfer->is_refused,
        };
        xfer->state = SHM_STATE_WAITING;
    } else {
        line->body.fin.id = xfer->peer_id;
        xfer_put(xfer);
    }
    send_line(ep, line);
}

static bool has_line(const struct shm_ep *ep)
{
    return ep->tx_head - ep->tx_tail <= ep->line_mask;
}

static void owe(struct shm_xfer *xfer, uint32_t owed)
{
    struct shm_ep *ep = xfer->ep;
    int rc;

    xfer->owed = owed;
    xfer->state = SHM_STATE_CONTROL;
    rc = chempi_list_is_empty(&ep->control) ? chempi_shm_ring_try(ep, 0)
                                            : -EAGAIN;
    if (rc == 0) {
        send_owed(xfer);
        return;
    }
    chempi_list_remove(&xfer->link);
    chempi_list_append(&ep->control, &xfer->link);
    if (rc == -EAGAIN)
        chempi_shm_ring_wait(ep);
    else
        chempi_shm_ring_give_up(ep, rc);
}

int chempi_shm_rndv_flush(struct shm_ep *ep)
{
    int events = 0;

    while (!chempi_list_is_empty(&ep->control) && has_line(ep)) {
        send_owed(CHEMPI_CONTAINER_OF(chempi_list_first(&ep->control),
                                      struct shm_xfer, link));
        events++;
    }
    return events;
}

/* --- sender --- */

/* A slot to share the copying, SHM_HELP_SLOTS when all are in use. */
static uint32_t get_share(struct shm_ep *ep)
{
    for (uint32_t i = 0; i < SHM_HELP_SLOTS; i++) {
        struct shm_share *share = &ep->tx_pair->shares[i];

        if (ep->shares_used & (1u << i))
            continue;
        ep->shares_used |= 1u << i;
        atomic_store_explicit(&share->claimed, 0, memory_order_relaxed);
        atomic_store_explicit(&share->done, 0, memory_order_relaxed);
        atomic_store_explicit(&share->failed, 0, memory_order_relaxed);
        return i;
    }
    return SHM_HELP_SLOTS;
}

int chempi_shm_rndv_send(struct shm_ep *ep, struct chempi_tx *tx,
                         uint32_t protocol)
{
    bool is_offered = protocol == SHM_PROTOCOL_SINGLE_COPY && !tx->iter &&
                      !ep->peer_refuses_cma &&
                      chempi_dev_setting(ep->base.dev, SHM_SET_SINGLE_COPY);
    struct shm_xfer *xfer;
    struct shm_line *line;
    int rc;

    rc = chempi_shm_ring_room(ep, 0);
    if (rc < 0)
        return rc;
    xfer = xfer_get(ep, SHM_STATE_ASKED);
    if (!xfer)
        return chempi_err_set(&ep->base.dev->err, -ENOMEM,
                              "out of memory for a message to rank %u",
                              (unsigned)ep->base.proc);
    xfer->tx = tx;
    xfer->len = tx->env.len;
    shm_dev_of(ep)->outgoing++;
    if (is_offered &&
        xfer->len >= chempi_dev_setting(ep->base.dev, SHM_SET_SHARE_MIN))
        xfer->share = get_share(ep);
    tx->ep = &ep->base;
    line = shm_next_line(ep);
    line->kind = SHM_KIND_ASK;
    line->body.msg.env = tx->env;
    line->body.msg.u.ask = (struct shm_ask){
        .id = id_of(xfer),
        .addr = is_offered ? (uint64_t)(uintptr_t)tx->buf : 0,
        .help = xfer->share,
        .protocol =
            is_offered ? SHM_PROTOCOL_SINGLE_COPY : SHM_PROTOCOL_PIPELINE,
    };
    send_line(ep, line);
    return CHEMPI_PENDING;
}

static void put_chunk(struct shm_xfer *xfer, uint32_t len)
{
    struct shm_ep *ep = xfer->ep;
    struct chempi_tx *tx = xfer->tx;
    struct shm_line *line = shm_next_line(ep);
    unsigned char *dst;

    line->kind = SHM_KIND_DATA;
    line->body.data.id = xfer->peer_id;
    dst = chempi_shm_ring_span(ep, len, &line->body.data.span);
    if (tx->iter)
        (void)chempi_iter_pack(tx->iter, dst, len);
    else
        memcpy(dst, (const char *)tx->buf + xfer->done, len);
    xfer->done += len;
    send_line(ep, line);
    chempi_shm_ring_warm(ep, len);
}

int chempi_shm_rndv_pump(struct shm_ep *ep)
{
    int budget = (int)chempi_dev_setting(ep->base.dev, SHM_SET_PUMP);
    int events = 0;

    while (!chempi_list_is_empty(&ep->pumping) && events < budget) {
        struct shm_xfer *xfer = CHEMPI_CONTAINER_OF(
            chempi_list_first(&ep->pumping), struct shm_xfer, link);
        uint64_t left = xfer->want - xfer->done;
        uint32_t len = left < SHM_CHUNK_MAX ? (uint32_t)left : SHM_CHUNK_MAX;

        if (chempi_shm_ring_try(ep, len) < 0)
            break;
        put_chunk(xfer, len);
        events++;
        if (xfer->done == xfer->want)
            report_sent(xfer, 0);
    }
    if (!chempi_list_is_empty(&ep->pumping))
        chempi_shm_ring_wait(ep);
    return events;
}

const char *chempi_shm_rndv_go(struct shm_ep *ep, const struct shm_line *line)
{
    struct shm_go go = line->body.go;
    struct shm_xfer *xfer;

    atomic_signal_fence(memory_order_seq_cst); /* read once */
    xfer = find(ep, go.id, SHM_STATE_ASKED);
    if (!xfer || go.want > xfer->len || go.from >= go.want)
        return "a request for data that does not exist";
    if (go.refused)
        ep->peer_refuses_cma = true;
    xfer->state = SHM_STATE_PUMPING;
    xfer->peer_id = go.peer_id;
    xfer->want = go.want;
    xfer->done = go.from;
    if (xfer->tx->iter)
        chempi_iter_seek(xfer->tx->iter, go.from);
    chempi_list_remove(&xfer->link); /* dev->helping, perhaps */
    chempi_list_append(&ep->pumping, &xfer->link);
    (void)chempi_shm_rndv_pump(ep);
    return NULL;
}

const char *chempi_shm_rndv_help(struct shm_ep *ep, const struct shm_line *line)
{
    struct shm_help help = line->body.help;
    struct shm_xfer *xfer;

    atomic_signal_fence(memory_order_seq_cst); /* read once */
    xfer = find(ep, help.id, SHM_STATE_ASKED);
    if (!xfer || xfer->share >= SHM_HELP_SLOTS || xfer->is_shared ||
        help.want == 0 || help.want > xfer->len)
        return "a request for help that nobody offered";
    xfer->is_shared = true;
    chempi_shm_copy_help(xfer, &help);
    return NULL;
}

const char *chempi_shm_rndv_fin(struct shm_ep *ep, const struct shm_line *line)
{
    struct shm_fin fin = line->body.fin;
    struct shm_xfer *xfer;

    atomic_signal_fence(memory_order_seq_cst); /* read once */
    xfer = find(ep, fin.id, SHM_STATE_ASKED);
    if (!xfer)
        return "an end to a transfer that does not exist";
    report_sent(xfer, 0);
    return NULL;
}

/* --- receiver --- */

/* A receive is named. False: nothing is wanted of the payload. */
static bool start(struct shm_xfer *xfer, struct chempi_rx *rx)
{
    xfer->rx = rx;
    xfer->want = xfer->len < rx->cap ? xfer->len : rx->cap;
    rx->ep = &xfer->ep->base;
    if (xfer->want == 0) {
        xfer->rx = NULL;
        owe(xfer, SHM_KIND_FIN);
        return false;
    }
    if (xfer->addr && chempi_shm_copy_is_possible(xfer->ep)) {
        chempi_shm_copy_start(xfer);
        return true;
    }
    xfer->is_refused = xfer->addr != 0;
    owe(xfer, SHM_KIND_GO);
    return true;
}

void chempi_shm_rndv_finish(struct shm_xfer *xfer)
{
    struct chempi_rx *rx = xfer->rx;
    struct shm_ep *ep = xfer->ep;

    xfer->rx = NULL;
    owe(xfer, SHM_KIND_FIN);
    report_delivered(ep, rx, 0);
}

void chempi_shm_rndv_fall_back(struct shm_xfer *xfer)
{
    owe(xfer, SHM_KIND_GO);
}

const char *chempi_shm_rndv_asked(struct shm_ep *ep,
                                  const struct shm_line *line)
{
    const struct chempi_dev_params *params = &ep->base.dev->params;
    struct chempi_arrival arrival = {.ep = &ep->base};
    struct shm_ask ask = line->body.msg.u.ask;
    struct chempi_rx *rx = NULL;
    struct shm_xfer *xfer;

    arrival.env = line->body.msg.env;
    atomic_signal_fence(memory_order_seq_cst); /* read once */
    if (arrival.env.len == 0 || !chempi_envelope_is_known(&arrival.env))
        return "an announcement of nothing";
    xfer = xfer_get(ep, SHM_STATE_LEFT);
    if (!xfer)
        return "more messages than memory can hold";
    xfer->len = arrival.env.len;
    xfer->peer_id = ask.id;
    xfer->addr = ask.addr;
    xfer->share = ask.help;
    arrival.token[0] = id_of(xfer);
    arrival.protocol =
        ask.addr ? SHM_PROTOCOL_SINGLE_COPY : SHM_PROTOCOL_PIPELINE;
    chempi_dev_count(ep->base.dev, arrival.protocol, arrival.env.len);
    if (params->sink->arrived(params->sink_arg, &arrival, &rx) ==
            CHEMPI_ACCEPT &&
        !start(xfer, rx))
        report_delivered(ep, rx, 0);
    return NULL;
}

static void store(struct shm_xfer *xfer, const unsigned char *src, uint32_t len)
{
    struct chempi_rx *rx = xfer->rx;

    if (rx->iter)
        (void)chempi_iter_unpack(rx->iter, src, len);
    else
        memcpy((char *)rx->buf + xfer->done, src, len);
    xfer->done += len;
}

const char *chempi_shm_rndv_data(struct shm_ep *ep, const struct shm_line *line)
{
    struct shm_data data = line->body.data;
    const unsigned char *src;
    struct shm_xfer *xfer;
    struct chempi_rx *rx;

    atomic_signal_fence(memory_order_seq_cst); /* read once */
    xfer = find(ep, data.id, SHM_STATE_WAITING);
    src = chempi_shm_ring_take_span(ep, &data.span);
    if (!xfer || !src || data.span.len > xfer->want - xfer->done)
        return "data that nobody asked for";
    store(xfer, src, data.span.len);
    if (xfer->done < xfer->want)
        return NULL;
    rx = xfer->rx;
    xfer_put(xfer);
    report_delivered(ep, rx, 0);
    return NULL;
}

int chempi_shm_rndv_accept(struct shm_ep *ep, uint64_t token,
                           struct chempi_rx *rx)
{
    struct shm_xfer *xfer = find(ep, token, SHM_STATE_LEFT);

    if (!xfer)
        return -EINVAL;
    if (ep->is_broken) {
        xfer_put(xfer);
        return chempi_err_set(&ep->base.dev->err, -ECONNRESET,
                              "rank %u broke the rules of shared memory",
                              (unsigned)ep->base.proc);
    }
    return start(xfer, rx) ? CHEMPI_PENDING : CHEMPI_DONE;
}

void chempi_shm_rndv_drop(struct shm_ep *ep, uint64_t token)
{
    struct shm_xfer *xfer = find(ep, token, SHM_STATE_LEFT);

    if (!xfer)
        return;
    if (ep->is_broken)
        xfer_put(xfer);
    else
        owe(xfer, SHM_KIND_FIN);
}
