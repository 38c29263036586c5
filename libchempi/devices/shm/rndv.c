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

#include "common/base/copy.h"
#include "common/base/sys.h"
#include "libchempi/devices/shm/internal.h"

#define LONG_MIN_BYTES (UINT64_C(64) << 10)

static void report_sent(struct shm_xfer *xfer, int status)
{
    const struct chempi_dev_params *params = &xfer->ep->base.dev->params;
    struct chempi_tx *tx = xfer->tx;

    chempi_shm_xfer_put(xfer);
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
    struct shm_xfer *xfer;
    uint32_t place = 0;

    while ((xfer = chempi_slots_next(&dev->xfers, &place)) != NULL) {
        struct chempi_rx *rx = xfer->rx;

        if (xfer->ep != ep || xfer->state == SHM_STATE_LEFT)
            continue; /* what was left is answered at accept() or drop() */
        if (xfer->tx) {
            report_sent(xfer, status);
            continue;
        }
        chempi_shm_xfer_put(xfer);
        if (rx)
            report_delivered(ep, rx, status);
    }
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

/* Offer the payload for single copy: its address and form. Without a connection
 * table's choice the receiver may take the ring all the same (choice.c). */
static void offer(struct shm_xfer *xfer, uint32_t protocol, struct shm_ask *ask)
{
    struct chempi_dev *dev = xfer->ep->base.dev;
    const struct chempi_tx *tx = xfer->tx;
    bool is_chosen = protocol == SHM_PROTOCOL_SINGLE_COPY;
    bool is_fixed = dev->params.services->table != NULL;
    uint32_t form_len = 0;

    if (xfer->ep->peer_refuses_cma ||
        !chempi_dev_setting(dev, SHM_SET_SINGLE_COPY))
        return;
    if (!tx->iter && (is_chosen || !is_fixed))
        ask->addr = (uint64_t)(uintptr_t)tx->buf;
    else if (tx->iter && is_chosen)
        ask->addr = chempi_shm_form_tell(xfer, tx->iter, &form_len);
    if (ask->addr == 0)
        return;
    ask->form = (uint16_t)form_len;
    if (is_fixed || !tx->iter)
        ask->protocol = protocol;
    if (xfer->len >= chempi_dev_setting(dev, SHM_SET_SHARE_MIN))
        xfer->share = get_share(xfer->ep);
    ask->help = (uint16_t)xfer->share;
}

int chempi_shm_rndv_send(struct shm_ep *ep, struct chempi_tx *tx,
                         uint32_t protocol)
{
    struct shm_ask ask = {.help = SHM_HELP_SLOTS,
                          .protocol = SHM_PROTOCOL_PIPELINE};
    struct shm_xfer *xfer;
    struct shm_line *line;
    int rc;

    rc = chempi_shm_ring_room(ep, 0);
    if (rc < 0)
        return rc;
    xfer = chempi_shm_xfer_get(ep, SHM_STATE_ASKED);
    if (!xfer)
        return chempi_err_set(&ep->base.dev->err, -ENOMEM,
                              "out of memory for a message to rank %u",
                              (unsigned)ep->base.proc);
    xfer->tx = tx;
    xfer->len = tx->env.len;
    shm_dev_of(ep)->outgoing++;
    ask.id = xfer->id;
    offer(xfer, protocol, &ask);
    tx->ep = &ep->base;
    line = shm_next_line(ep);
    line->kind = SHM_KIND_ASK;
    line->body.msg.env = tx->env;
    line->body.msg.u.ask = ask;
    shm_send_line(ep, line);
    return CHEMPI_PENDING;
}

/* Chunks of a long message are large: which share of a core it takes to fill
 * and to announce one matters, not when the first arrives. */
static bool is_long(const struct shm_xfer *xfer)
{
    return xfer->want > LONG_MIN_BYTES;
}

/* Bytes of the next chunk; a quarter of the data at most. */
static uint32_t chunk_len(const struct shm_xfer *xfer)
{
    uint64_t left = xfer->want - xfer->done;
    uint32_t max =
        is_long(xfer) ? shm_dev_of(xfer->ep)->data_size / 4 : SHM_CHUNK_MIN;

    return left < max ? (uint32_t)left : max;
}

static struct shm_xfer *first_pumping(struct shm_ep *ep)
{
    return CHEMPI_CONTAINER_OF(chempi_list_first(&ep->pumping), struct shm_xfer,
                               link);
}

bool chempi_shm_rndv_can_pump(struct shm_ep *ep)
{
    return !chempi_list_is_empty(&ep->pumping) &&
           shm_has_room(ep, chunk_len(first_pumping(ep)));
}

static void put_chunk(struct shm_xfer *xfer, uint32_t len)
{
    struct shm_ep *ep = xfer->ep;
    struct chempi_tx *tx = xfer->tx;
    struct shm_line *line = shm_next_line(ep);
    uint64_t start = chempi_shm_choice_start(xfer);
    unsigned char *dst;

    line->kind = SHM_KIND_DATA;
    line->body.data.id = xfer->peer_id;
    dst = chempi_shm_ring_span(ep, len, &line->body.data.span);
    xfer->spent = 0;
    if (tx->iter)
        (void)chempi_iter_pack(tx->iter, dst, len);
    else
        chempi_copy(dst, (const char *)tx->buf + xfer->done, len);
    xfer->done += len;
    chempi_shm_choice_stop(xfer, start);
    line->body.data.spent = (uint32_t)xfer->spent;
    shm_send_line(ep, line);
    if (!is_long(xfer))
        chempi_shm_ring_warm(ep, len);
}

int chempi_shm_rndv_pump(struct shm_ep *ep)
{
    int budget = (int)chempi_dev_setting(ep->base.dev, SHM_SET_PUMP);
    int events = 0;

    while (!chempi_list_is_empty(&ep->pumping) && events < budget) {
        struct shm_xfer *xfer = first_pumping(ep);
        uint32_t len = chunk_len(xfer);

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
    xfer = chempi_shm_xfer_find(ep, go.id, SHM_STATE_ASKED);
    if (!xfer || go.want > xfer->len || go.from >= go.want)
        return "a request for data that does not exist";
    if (go.refused)
        ep->peer_refuses_cma = true;
    xfer->state = SHM_STATE_PUMPING;
    xfer->peer_id = go.peer_id;
    xfer->want = go.want;
    xfer->done = go.from;
    xfer->is_timed = go.timed != 0;
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
    xfer = chempi_shm_xfer_find(ep, help.id, SHM_STATE_ASKED);
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
    xfer = chempi_shm_xfer_find(ep, fin.id, SHM_STATE_ASKED);
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
        chempi_shm_ring_owe(xfer, SHM_KIND_FIN);
        return false;
    }
    if (xfer->addr && chempi_shm_copy_is_possible(xfer->ep)) {
        chempi_shm_copy_start(xfer);
        return true;
    }
    xfer->is_refused = xfer->addr != 0;
    chempi_shm_ring_owe(xfer, SHM_KIND_GO);
    return true;
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
    xfer = chempi_shm_xfer_get(ep, SHM_STATE_LEFT);
    if (!xfer)
        return "more messages than memory can hold";
    xfer->len = arrival.env.len;
    xfer->peer_id = ask.id;
    xfer->form_len = ask.form;
    xfer->share = ask.help;
    if (ask.addr &&
        (ask.protocol == SHM_PROTOCOL_SINGLE_COPY ||
         (chempi_shm_copy_is_possible(ep) && chempi_shm_choice_is_copy(xfer))))
        xfer->addr = ask.addr;
    arrival.token[0] = xfer->id;
    arrival.protocol =
        xfer->addr ? SHM_PROTOCOL_SINGLE_COPY : SHM_PROTOCOL_PIPELINE;
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
        chempi_copy((char *)rx->buf + xfer->done, src, len);
    xfer->done += len;
}

const char *chempi_shm_rndv_data(struct shm_ep *ep, const struct shm_line *line)
{
    struct shm_data data = line->body.data;
    const unsigned char *src;
    struct shm_xfer *xfer;
    struct chempi_rx *rx;
    uint64_t start_ns;

    atomic_signal_fence(memory_order_seq_cst); /* read once */
    xfer = chempi_shm_xfer_find(ep, data.id, SHM_STATE_WAITING);
    src = chempi_shm_ring_take_span(ep, &data.span);
    if (!xfer || !src || data.span.len > xfer->want - xfer->done)
        return "data that nobody asked for";
    start_ns = chempi_shm_choice_start(xfer);
    store(xfer, src, data.span.len);
    chempi_shm_choice_stop(xfer, start_ns);
    xfer->peer_spent += data.spent;
    if (xfer->done < xfer->want)
        return NULL;
    chempi_shm_choice_learn(xfer, 0);
    rx = xfer->rx;
    chempi_shm_xfer_put(xfer);
    report_delivered(ep, rx, 0);
    return NULL;
}

int chempi_shm_rndv_accept(struct shm_ep *ep, uint64_t token,
                           struct chempi_rx *rx)
{
    struct shm_xfer *xfer = chempi_shm_xfer_find(ep, token, SHM_STATE_LEFT);

    if (!xfer)
        return -EINVAL;
    if (ep->is_broken) {
        chempi_shm_xfer_put(xfer);
        return chempi_shm_ring_refuse(ep);
    }
    return start(xfer, rx) ? CHEMPI_PENDING : CHEMPI_DONE;
}

void chempi_shm_rndv_drop(struct shm_ep *ep, uint64_t token)
{
    struct shm_xfer *xfer = chempi_shm_xfer_find(ep, token, SHM_STATE_LEFT);

    if (!xfer)
        return;
    if (ep->is_broken)
        chempi_shm_xfer_put(xfer);
    else
        chempi_shm_ring_owe(xfer, SHM_KIND_FIN);
}
