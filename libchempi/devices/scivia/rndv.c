/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transfers of more than one line. The sender asks; the payload stays in its
 * memory until the receiver has named a place and a way:
 *
 *   RING  pieces through the ring of bytes in the receiver's segment
 *   SEND  one-copy VIA: pieces into receive descriptors that the receiver
 *         keeps posted, as many as told.posted says
 *   RDMA  zero-copy VIA: written into the receiver's registered buffer; what
 *         may not be registered at once goes in windows, each with GO and DONE
 *
 *   outgoing: ASKED -> PUMPING -> sent            (RING, SEND)
 *             ASKED -> PUMPING -> ENDING -> sent  (RDMA: DONE must go)
 *             ENDING -> BETWEEN -> PUMPING        (there are more windows)
 *             ASKED -> sent                       (FIN)
 *   incoming: LEFT -> CONTROL(GO) -> WAITING -> delivered
 *             WAITING -> CONTROL(GO) -> WAITING (the next window)
 *             LEFT -> CONTROL(FIN) -> free
 *
 *   X1  an id that comes back is looked up and checked against the endpoint,
 *       the generation and the state before it is believed
 *   X2  owed lines that find no room wait in ep->control, in the transfer
 *       itself: answering needs no memory, so taking never waits for sending
 *   X3  a region is in use from GO until the card has finished; a transfer
 *       whose descriptors the card has is not freed before they come back,
 *       except with its endpoint, when the stages forget it
 */
#include <errno.h>
#include <stdlib.h>

#include "common/base/sys.h"
#include "libchempi/devices/scivia/internal.h"

#define PUMP_BUDGET 8 /* pieces per endpoint and progress */

/* --- transfers and their ids --- */

static struct scivia_xfer *xfer_get(struct scivia_ep *ep,
                                    enum scivia_state state)
{
    struct scivia_xfer *xfer = chempi_sys->malloc(sizeof(*xfer));

    if (!xfer)
        return NULL;
    *xfer = (struct scivia_xfer){.ep = ep, .state = state};
    chempi_list_init(&xfer->link);
    if (chempi_slots_put(&scivia_dev_of(ep)->xfers, xfer, &xfer->id) == 0)
        return xfer;
    free(xfer);
    return NULL;
}

static void put_region(struct scivia_xfer *xfer)
{
    chempi_scivia_memory_put(scivia_dev_of(xfer->ep), xfer->region);
    xfer->region = NULL;
}

static void xfer_put(struct scivia_xfer *xfer)
{
    struct scivia_dev *dev = scivia_dev_of(xfer->ep);

    dev->outgoing -= xfer->tx != NULL;
    put_region(xfer);
    chempi_list_remove(&xfer->link);
    (void)chempi_slots_take(&dev->xfers, xfer->id);
    free(xfer);
    dev->has_work |= dev->is_over_share; /* something may be idle now */
}

static struct scivia_xfer *find(struct scivia_ep *ep, uint64_t id,
                                enum scivia_state state)
{
    struct scivia_xfer *xfer = chempi_slots_get(&scivia_dev_of(ep)->xfers, id);

    return xfer && xfer->ep == ep && xfer->state == state ? xfer : NULL;
}

void chempi_scivia_rndv_fini(struct scivia_dev *dev)
{
    struct scivia_xfer *xfer;

    while ((xfer = chempi_slots_pop(&dev->xfers)) != NULL)
        free(xfer);
    chempi_slots_fini(&dev->xfers);
}

static void report_sent(struct scivia_xfer *xfer, int status)
{
    const struct chempi_dev_params *params = &xfer->ep->base.dev->params;
    struct chempi_tx *tx = xfer->tx;

    xfer_put(xfer);
    params->sink->sent(params->sink_arg, tx, status);
}

static void report_delivered(struct scivia_xfer *xfer, int status)
{
    const struct chempi_dev_params *params = &xfer->ep->base.dev->params;
    struct chempi_rx *rx = xfer->rx;

    if (status == 0)
        chempi_dev_count(xfer->ep->base.dev, xfer->taken, xfer->len);
    xfer_put(xfer);
    params->sink->delivered(params->sink_arg, rx, status);
}

/* The card may still have descriptors of it: they are nobody's now (X3). */
static void forget_stages(struct scivia_dev *dev,
                          const struct scivia_xfer *xfer)
{
    for (uint32_t i = 0; i < SCIVIA_STAGES; i++) {
        if (dev->stages[i].xfer == xfer)
            dev->stages[i].xfer = NULL;
    }
}

void chempi_scivia_rndv_fail(struct scivia_ep *ep, int status)
{
    struct scivia_dev *dev = scivia_dev_of(ep);
    struct scivia_xfer *xfer;
    uint32_t place = 0;

    while ((xfer = chempi_slots_next(&dev->xfers, &place)) != NULL) {
        if (xfer->ep != ep || xfer->state == SCIVIA_STATE_LEFT)
            continue; /* what was left is answered at accept() or drop() */
        forget_stages(dev, xfer);
        if (xfer->tx)
            report_sent(xfer, status);
        else if (xfer->rx)
            report_delivered(xfer, status);
        else
            xfer_put(xfer);
    }
}

/* --- lines that are owed --- */

/* There is a line free; send what xfer owes. */
static void send_owed(struct scivia_xfer *xfer)
{
    struct scivia_ep *ep = xfer->ep;
    struct scivia_line line = {.kind = (uint8_t)xfer->owed};

    if (xfer->owed == SCIVIA_KIND_GO)
        line.body.go = (struct scivia_go){
            .id = xfer->peer_id,
            .peer_id = xfer->id,
            .want = xfer->want,
            .window = xfer->end - xfer->done,
            .addr = xfer->addr,
            .handle = xfer->handle,
            .way = xfer->way,
        };
    else
        line.body.id = xfer->peer_id;
    if (chempi_scivia_line_send(ep, &line) < 0)
        return; /* broken: reported with the endpoint */
    chempi_list_remove(&xfer->link);
    if (xfer->owed == SCIVIA_KIND_GO)
        xfer->state = SCIVIA_STATE_WAITING;
    else if (xfer->owed == SCIVIA_KIND_DONE && xfer->end < xfer->want)
        xfer->state = SCIVIA_STATE_BETWEEN;
    else if (xfer->owed == SCIVIA_KIND_DONE)
        report_sent(xfer, 0);
    else
        xfer_put(xfer);
}

static void owe(struct scivia_xfer *xfer, enum scivia_kind kind)
{
    struct scivia_ep *ep = xfer->ep;

    xfer->owed = kind;
    xfer->state =
        kind == SCIVIA_KIND_DONE ? SCIVIA_STATE_ENDING : SCIVIA_STATE_CONTROL;
    chempi_list_remove(&xfer->link);
    chempi_list_append(&ep->control, &xfer->link);
    /* From progress: an upcall may follow, and the caller may be one. */
    chempi_scivia_endpoint_mark(ep);
}

int chempi_scivia_rndv_flush(struct scivia_ep *ep)
{
    int events = 0;

    while (!chempi_list_is_empty(&ep->control) && !ep->is_broken &&
           ep->is_tx_open && chempi_scivia_line_is_free(ep)) {
        send_owed(CHEMPI_CONTAINER_OF(chempi_list_first(&ep->control),
                                      struct scivia_xfer, link));
        events++;
    }
    return events;
}

/* --- sender --- */

int chempi_scivia_rndv_send(struct scivia_ep *ep, struct chempi_tx *tx)
{
    struct scivia_line line = {.kind = SCIVIA_KIND_ASK};
    uint32_t protocol = tx->protocol;
    struct scivia_xfer *xfer;
    int rc;

    rc = chempi_scivia_line_room(ep, 0);
    if (rc < 0)
        return rc;
    if (protocol > SCIVIA_PROTOCOL_SEND) {
        rc = chempi_scivia_connect_via(ep);
        if (rc < 0) {
            ep->wants_room = true;
            ep->wanted = 0;
            chempi_scivia_endpoint_mark(ep);
            return rc;
        }
        if (!ep->tx_vi || ep->is_via_refused) {
            scivia_dev_of(ep)->memory_user.degraded +=
                !scivia_dev_of(ep)->stage_handle;
            protocol = SCIVIA_PROTOCOL_SEND;
        } else if (tx->iter) {
            protocol = SCIVIA_PROTOCOL_ONE_COPY;
        }
    }
    if (protocol <= SCIVIA_PROTOCOL_SEND)
        protocol = scivia_line_protocol(ep);
    xfer = xfer_get(ep, SCIVIA_STATE_ASKED);
    if (!xfer)
        return chempi_err_set(&ep->base.dev->err, -ENOMEM,
                              "out of memory for a message to rank %u",
                              (unsigned)ep->base.proc);
    xfer->tx = tx;
    xfer->len = tx->env.len;
    xfer->protocol = protocol;
    scivia_dev_of(ep)->outgoing++;
    tx->ep = &ep->base;
    line.body.ask.env = tx->env;
    line.body.ask.id = xfer->id;
    line.body.ask.protocol = protocol;
    rc = chempi_scivia_line_send(ep, &line);
    if (rc < 0) {
        xfer_put(xfer);
        return rc;
    }
    return CHEMPI_PENDING;
}

/* Whether what GO names is a part of what was asked for. */
static bool is_window(const struct scivia_xfer *xfer,
                      const struct scivia_go *go)
{
    if (go->want == 0 || go->want > xfer->len || go->window == 0 ||
        go->window > go->want - xfer->done)
        return false;
    if (go->way != SCIVIA_WAY_RDMA && go->window != go->want - xfer->done)
        return false;
    return xfer->state == SCIVIA_STATE_ASKED ||
           (go->want == xfer->want && go->peer_id == xfer->peer_id);
}

/* Make the window's memory ready for the card: at once, or piece by piece
 * where that is too much, or through the library's buffers. */
static void prepare(struct scivia_xfer *xfer)
{
    struct scivia_dev *dev = scivia_dev_of(xfer->ep);
    const char *from = xfer->tx->buf;

    if (xfer->way == SCIVIA_WAY_RING)
        return;
    if (!xfer->tx->iter)
        xfer->region = chempi_scivia_memory_get(
            dev, from + xfer->done, (size_t)(xfer->end - xfer->done), 0);
    xfer->is_staged = xfer->region == NULL;
    xfer->is_piecewise =
        xfer->is_staged && !xfer->tx->iter && xfer->way == SCIVIA_WAY_RDMA;
    if (!xfer->is_staged || xfer->tx->iter)
        return;
    if (xfer->is_piecewise)
        dev->windowed++;
    else
        dev->memory_user.degraded++;
}

const char *chempi_scivia_rndv_go(struct scivia_ep *ep,
                                  const struct scivia_line *line)
{
    const struct scivia_go *go = &line->body.go;
    struct scivia_xfer *xfer = find(ep, go->id, SCIVIA_STATE_ASKED);

    if (!xfer)
        xfer = find(ep, go->id, SCIVIA_STATE_BETWEEN);
    if (!xfer || go->want == 0 || go->want > xfer->len)
        return "an answer to nothing that was asked";
    if (!is_window(xfer, go))
        return "a window out of bounds";
    if (go->way < SCIVIA_WAY_RING || go->way > SCIVIA_WAY_RDMA ||
        (go->way != SCIVIA_WAY_RING && xfer->protocol <= SCIVIA_PROTOCOL_SEND))
        return "a way that was not offered";
    xfer->want = go->want;
    xfer->base = xfer->done;
    xfer->end = xfer->done + go->window;
    xfer->peer_id = go->peer_id;
    xfer->addr = go->addr;
    xfer->handle = go->handle;
    xfer->way = (enum scivia_way)go->way;
    xfer->state = SCIVIA_STATE_PUMPING;
    prepare(xfer);
    chempi_list_append(&ep->pumping, &xfer->link);
    chempi_scivia_endpoint_mark(ep);
    return NULL;
}

/* Move again what did not arrive by a connection that broke. */
static void rewind_xfer(struct scivia_xfer *xfer)
{
    struct scivia_ep *ep = xfer->ep;

    xfer->done = xfer->finished;
    if (xfer->tx->iter)
        chempi_iter_seek(xfer->tx->iter, xfer->done);
    if (chempi_list_is_empty(&xfer->link))
        chempi_list_append(&ep->pumping, &xfer->link);
    chempi_scivia_endpoint_mark(ep);
}

/* The next len bytes: where they lie, or packed into `room`. */
static const void *payload(struct scivia_xfer *xfer, void *room, uint32_t len)
{
    if (!xfer->tx->iter)
        return (const char *)xfer->tx->buf + xfer->done;
    (void)chempi_iter_pack(xfer->tx->iter, room, len);
    return room;
}

static uint32_t ring_piece(const struct scivia_ep *ep)
{
    return ep->framed ? SCIVIA_EAGER_MAX : SCIVIA_CHUNK;
}

/* False: it must wait. */
static bool pump_ring(struct scivia_xfer *xfer)
{
    struct scivia_ep *ep = xfer->ep;
    struct scivia_line line = {.kind = SCIVIA_KIND_DATA};
    unsigned char packed[SCIVIA_CHUNK];
    uint64_t left = xfer->want - xfer->done;
    uint32_t max = ring_piece(ep);
    uint32_t len = left < max ? (uint32_t)left : max;

    if (chempi_scivia_line_try(ep, len) < 0)
        return false;
    line.body.data.id = xfer->peer_id;
    line.body.data.offset = xfer->done;
    xfer->finished = xfer->done; /* should nothing be taken */
    if (chempi_scivia_line_send_span(ep, &line, &line.body.data.span,
                                     payload(xfer, packed, len), len) < 0) {
        rewind_xfer(xfer);
        return false;
    }
    xfer->done += len;
    if (xfer->done == xfer->want)
        report_sent(xfer, 0);
    return true;
}

/* The rest takes the ring, from where it is; nothing is with the card. */
static void take_ring(struct scivia_xfer *xfer)
{
    rewind_xfer(xfer);
    put_region(xfer);
    xfer->end = xfer->want;
    xfer->way = SCIVIA_WAY_RING;
}

/* Are there stages, now or again? Otherwise the ring is taken. (They are given
 * back only when no descriptor is with the card.) */
static bool has_stages(struct scivia_xfer *xfer)
{
    struct scivia_dev *dev = scivia_dev_of(xfer->ep);

    if (chempi_scivia_memory_stage(dev))
        return true;
    if (xfer->posts == 0) {
        dev->memory_user.degraded++;
        take_ring(xfer);
    }
    return false;
}

/* Is there a connection for pieces? If there never will be, they take the
 * ring, from where they are. */
static bool has_vi(struct scivia_xfer *xfer)
{
    struct scivia_ep *ep = xfer->ep;

    if (ep->tx_vi && !ep->is_vi_broken &&
        chempi_via_vi_state(ep->tx_vi) == CHEMPI_VIA_CONNECTED)
        return true;
    if (ep->is_via_refused && xfer->posts == 0) {
        take_ring(xfer);
    } else {
        chempi_scivia_endpoint_mend(ep);
    }
    return false;
}

static bool has_credit(const struct scivia_ep *ep)
{
    return chempi_scivia_line_posted(ep) - ep->vi_sent - 1 < SCIVIA_RECEIVES;
}

/* A piece says what it is a piece of. */
static void put_head(struct scivia_xfer *xfer, struct scivia_stage *stage)
{
    struct chempi_via_descriptor *d = &stage->descriptor;
    struct scivia_piece *head = (struct scivia_piece *)(void *)stage->bytes;

    *head = (struct scivia_piece){.id = xfer->peer_id, .offset = xfer->done};
    d->segments[d->segment_count++] = (struct chempi_via_segment){
        .addr = head,
        .handle = scivia_dev_of(xfer->ep)->stage_handle,
        .len = SCIVIA_PIECE_HEAD,
    };
}

/* Where the card finds the next piece: registered as a whole, for itself, or
 * copied. False: other pieces must come back first. */
static bool place_piece(struct scivia_xfer *xfer, struct scivia_stage *stage,
                        uint64_t *len)
{
    struct scivia_dev *dev = scivia_dev_of(xfer->ep);
    struct chempi_via_descriptor *d = &stage->descriptor;
    struct chempi_via_segment *segment = &d->segments[d->segment_count];
    unsigned char *room = stage->bytes + SCIVIA_PIECE_HEAD;
    char *from = (char *)(uintptr_t)xfer->tx->buf + xfer->done;
    const void *packed;

    if (xfer->is_piecewise) {
        uint64_t max = chempi_scivia_memory_room(dev);
        uint64_t piece = *len < max ? *len : max & ~UINT64_C(4095);

        if (piece > 4096 && piece < *len)
            piece -= 4096; /* it need not begin with a page */
        stage->region =
            piece ? chempi_scivia_memory_get(dev, from, (size_t)piece, 0)
                  : NULL;
        if (!stage->region && xfer->posts > 0)
            return false;
        if (stage->region)
            *len = piece;
    }
    d->segment_count++;
    if (xfer->region || stage->region) {
        *segment = (struct chempi_via_segment){
            .addr = from,
            .handle =
                xfer->region ? xfer->region->handle : stage->region->handle,
            .len = (uint32_t)*len};
        return true;
    }
    if (!has_stages(xfer))
        return false;
    *len = *len < SCIVIA_PIECE ? *len : SCIVIA_PIECE;
    packed = payload(xfer, room, (uint32_t)*len);
    if (packed != room)
        memcpy(room, packed, (size_t)*len);
    *segment = (struct chempi_via_segment){
        .addr = room, .handle = dev->stage_handle, .len = (uint32_t)*len};
    return true;
}

static void free_stage(struct scivia_dev *dev, struct scivia_stage *stage)
{
    struct chempi_registration *region = stage->region;

    stage->xfer = NULL;
    stage->region = NULL;
    chempi_list_remove(&stage->link);
    chempi_list_append(&dev->stage_free, &stage->link);
    chempi_scivia_memory_put(dev, region); /* and what is above the share */
}

static bool pump_via(struct scivia_xfer *xfer)
{
    struct scivia_ep *ep = xfer->ep;
    struct scivia_dev *dev = scivia_dev_of(ep);
    bool is_rdma = xfer->way == SCIVIA_WAY_RDMA;
    uint64_t max = is_rdma ? SCIVIA_WRITE_MAX : SCIVIA_PIECE;
    uint64_t len = xfer->end - xfer->done;
    struct scivia_stage *stage;

    if (!has_vi(xfer) || chempi_list_is_empty(&dev->stage_free) ||
        (!is_rdma && (!has_credit(ep) || !has_stages(xfer))))
        return false;
    stage = CHEMPI_CONTAINER_OF(chempi_list_first(&dev->stage_free),
                                struct scivia_stage, link);
    len = len < max ? len : max;
    stage->descriptor = (struct chempi_via_descriptor){
        .op = is_rdma ? CHEMPI_VIA_RDMA_WRITE : CHEMPI_VIA_SEND,
        .remote_addr = xfer->addr + (xfer->done - xfer->base),
        .remote_handle = xfer->handle,
    };
    if (!is_rdma)
        put_head(xfer, stage);
    if (!place_piece(xfer, stage, &len))
        return false;
    chempi_list_remove(&stage->link);
    stage->xfer = xfer;
    stage->len = len;
    xfer->posts++;
    xfer->done += len;
    ep->vi_sent += !is_rdma;
    if (xfer->done == xfer->end)
        chempi_list_remove(&xfer->link); /* until the card has finished */
    if (chempi_via_post_send(ep->tx_vi, &stage->descriptor) == 0)
        return true;
    free_stage(dev, stage);
    xfer->posts--;
    rewind_xfer(xfer);
    ep->is_vi_broken = true;
    chempi_scivia_endpoint_mend(ep);
    return false;
}

int chempi_scivia_rndv_pump(struct scivia_ep *ep)
{
    int events = 0;

    CHEMPI_LIST_FOR_SAFE (node, &ep->pumping) {
        struct scivia_xfer *xfer =
            CHEMPI_CONTAINER_OF(node, struct scivia_xfer, link);
        bool is_ring = xfer->way == SCIVIA_WAY_RING;

        if (events >= PUMP_BUDGET || ep->is_broken)
            break;
        events += is_ring ? pump_ring(xfer) : pump_via(xfer);
    }
    return events;
}

bool chempi_scivia_rndv_can_pump(const struct scivia_ep *ep)
{
    struct scivia_dev *dev = scivia_dev_of(ep);

    for (struct chempi_list *node = ep->pumping.next; node != &ep->pumping;
         node = node->next) {
        struct scivia_xfer *xfer =
            CHEMPI_CONTAINER_OF(node, struct scivia_xfer, link);

        if (xfer->way == SCIVIA_WAY_RING) {
            if (chempi_scivia_line_try(xfer->ep, ring_piece(ep)) == 0)
                return true;
            continue;
        }
        if (!ep->tx_vi ||
            chempi_via_vi_state(ep->tx_vi) != CHEMPI_VIA_CONNECTED) {
            if (ep->is_via_refused && xfer->posts == 0)
                return true;
            continue;
        }
        switch (xfer->way) {
        case SCIVIA_WAY_RING:
            break;
        case SCIVIA_WAY_SEND:
            if (has_credit(ep) && !chempi_list_is_empty(&dev->stage_free))
                return true;
            break;
        case SCIVIA_WAY_RDMA:
            if (!chempi_list_is_empty(&dev->stage_free) &&
                !(xfer->is_piecewise && xfer->posts > 0))
                return true;
            break;
        }
    }
    return false;
}

/* A descriptor of the send queue has come back. */
void chempi_scivia_rndv_posted(struct scivia_ep *ep, struct scivia_dev *dev,
                               struct chempi_via_descriptor *d)
{
    struct scivia_stage *stage =
        CHEMPI_CONTAINER_OF(d, struct scivia_stage, descriptor);
    struct scivia_xfer *xfer = stage->xfer;

    free_stage(dev, stage);
    if (!xfer)
        return;
    xfer->posts--;
    if (d->status < 0) {
        rewind_xfer(xfer);
        ep->is_vi_broken = true;
        chempi_scivia_endpoint_mend(ep);
        return;
    }
    ep->vi_breaks = 0;
    ep->breaks = 0; /* the link carries pieces, too */
    xfer->finished += stage->len;
    if (xfer->finished < xfer->end) {
        if (xfer->is_piecewise)
            chempi_scivia_endpoint_mark(ep); /* there is room again */
        return;
    }
    put_region(xfer);
    if (xfer->way == SCIVIA_WAY_RDMA)
        owe(xfer, SCIVIA_KIND_DONE);
    else
        report_sent(xfer, 0);
}

/* --- receiver --- */

/* How much of len bytes to register at a time: all, or half of what there is
 * room for, so that other transfers find some, too. 0: too little for any. */
static uint64_t window_of(const struct scivia_dev *dev, uint64_t len)
{
    uint64_t room = chempi_scivia_memory_room(dev);
    uint64_t window = room / 2 & ~UINT64_C(4095);

    if (len + 2 * 4096 <= room) /* wherever its pages begin */
        return len;
    if (window < SCIVIA_WINDOW_MIN + 4096)
        return 0;
    window -= 4096;
    return window < len ? window : len;
}

/* Register the whole rest, or a window of it. */
static bool open_window(struct scivia_xfer *xfer)
{
    struct scivia_dev *dev = scivia_dev_of(xfer->ep);
    uint64_t left = xfer->want - xfer->done;
    char *at = (char *)xfer->rx->buf + xfer->done;
    uint64_t window;

    xfer->region = chempi_scivia_memory_get(dev, at, (size_t)left,
                                            CHEMPI_VIA_ENABLE_WRITE);
    window = left;
    if (!xfer->region) {
        window = window_of(dev, left);
        if (window)
            xfer->region = chempi_scivia_memory_get(dev, at, (size_t)window,
                                                    CHEMPI_VIA_ENABLE_WRITE);
    }
    if (!xfer->region)
        return false;
    xfer->end = xfer->done + window;
    xfer->addr = (uint64_t)(uintptr_t)at;
    xfer->handle = xfer->region->handle;
    if (window < left && !xfer->is_windowed) {
        xfer->is_windowed = true;
        dev->windowed++;
    }
    return true;
}

static enum scivia_way choose_way(struct scivia_xfer *xfer)
{
    struct scivia_ep *ep = xfer->ep;
    bool is_zero = xfer->protocol == SCIVIA_PROTOCOL_ZERO_COPY;

    xfer->end = xfer->want;
    if (xfer->protocol <= SCIVIA_PROTOCOL_SEND)
        return SCIVIA_WAY_RING;
    if (!ep->rx_vi) { /* withdrawn, and the peer did not know yet */
        scivia_dev_of(ep)->memory_user.degraded++;
        return SCIVIA_WAY_RING;
    }
    if (is_zero && !xfer->rx->iter && open_window(xfer))
        return SCIVIA_WAY_RDMA;
    if ((is_zero && !xfer->rx->iter) || !ep->rx_posted)
        scivia_dev_of(ep)->memory_user.degraded++;
    return ep->rx_posted ? SCIVIA_WAY_SEND : SCIVIA_WAY_RING;
}

/* A receive is known. False: nothing is wanted, so it is finished. */
static bool start(struct scivia_xfer *xfer, struct chempi_rx *rx)
{
    xfer->want = xfer->len < rx->cap ? xfer->len : rx->cap;
    if (xfer->want == 0) {
        chempi_dev_count(xfer->ep->base.dev, scivia_line_protocol(xfer->ep), 0);
        owe(xfer, SCIVIA_KIND_FIN);
        return false;
    }
    xfer->rx = rx;
    xfer->way = choose_way(xfer);
    owe(xfer, SCIVIA_KIND_GO);
    return true;
}

const char *chempi_scivia_rndv_asked(struct scivia_ep *ep,
                                     const struct scivia_line *line)
{
    const struct chempi_dev_params *params = &ep->base.dev->params;
    const struct scivia_ask *ask = &line->body.ask;
    struct chempi_arrival arrival = {.ep = &ep->base, .env = ask->env};
    struct chempi_rx *rx = NULL;
    struct scivia_xfer *xfer;

    if (ask->env.len == 0 || ask->protocol >= SCIVIA_PROTOCOL_COUNT ||
        !chempi_envelope_is_known(&ask->env))
        return "an announcement of nothing";
    xfer = xfer_get(ep, SCIVIA_STATE_LEFT);
    if (!xfer)
        return "more messages than memory can hold";
    xfer->len = ask->env.len;
    xfer->peer_id = ask->id;
    xfer->protocol = ask->protocol;
    arrival.token[0] = xfer->id;
    arrival.protocol = ask->protocol;
    xfer->taken = SCIVIA_PROTOCOL_ZERO_COPY; /* until some of it is copied */
    if (params->sink->arrived(params->sink_arg, &arrival, &rx) ==
            CHEMPI_ACCEPT &&
        !start(xfer, rx))
        params->sink->delivered(params->sink_arg, rx, 0);
    return NULL;
}

int chempi_scivia_rndv_accept(struct scivia_ep *ep, uint64_t token,
                              struct chempi_rx *rx)
{
    struct scivia_xfer *xfer = find(ep, token, SCIVIA_STATE_LEFT);

    if (!xfer)
        return -EINVAL;
    if (ep->is_broken) {
        xfer_put(xfer);
        return chempi_scivia_line_refuse(ep);
    }
    return start(xfer, rx) ? CHEMPI_PENDING : CHEMPI_DONE;
}

void chempi_scivia_rndv_drop(struct scivia_ep *ep, uint64_t token)
{
    struct scivia_xfer *xfer = find(ep, token, SCIVIA_STATE_LEFT);

    if (!xfer)
        return;
    if (ep->is_broken)
        xfer_put(xfer);
    else
        owe(xfer, SCIVIA_KIND_FIN);
}

/*
 * A piece for a transfer that waits; false: it is for none. Of a piece that is
 * sent again nothing is stored twice; after RDMA writes the rest may come in
 * pieces, when no VIA connection is left.
 */
static bool store(struct scivia_xfer *xfer, uint64_t offset,
                  const unsigned char *src, uint64_t len)
{
    struct chempi_rx *rx;

    if (!xfer || !src || offset > xfer->want || len > xfer->want - offset)
        return false;
    rx = xfer->rx;
    if (offset < xfer->done) { /* other ways cut other pieces */
        uint64_t had = xfer->done - offset;

        if (len <= had)
            return true;
        src += had;
        len -= had;
        offset = xfer->done;
    }
    if (offset > xfer->done && xfer->way != SCIVIA_WAY_RDMA)
        return false;
    xfer->done = offset;
    if (rx->iter)
        (void)chempi_iter_unpack(rx->iter, src, (size_t)len);
    else
        chempi_adapter_host_copy(scivia_dev_of(xfer->ep)->adapter,
                                 (char *)rx->buf + offset, src, (size_t)len);
    xfer->done += len;
    if (xfer->way == SCIVIA_WAY_RING)
        xfer->taken = scivia_line_protocol(xfer->ep);
    else if (xfer->taken == SCIVIA_PROTOCOL_ZERO_COPY)
        xfer->taken = SCIVIA_PROTOCOL_ONE_COPY;
    scivia_dev_of(xfer->ep)->bytes_copied += len;
    if (xfer->done == xfer->want)
        report_delivered(xfer, 0);
    return true;
}

/*
 * A receive descriptor has come back. A piece whose transfer is over had
 * arrived before the connection broke, and is sent again.
 */
void chempi_scivia_rndv_piece(struct scivia_ep *ep,
                              struct chempi_via_descriptor *d)
{
    const unsigned char *bytes = d->segments[0].addr;
    struct scivia_piece head;
    struct scivia_xfer *xfer;
    bool is_good;

    if (d->status < 0)
        return; /* the connection is broken */
    ep->breaks = 0;
    memcpy(&head, bytes, sizeof(head));
    xfer = find(ep, head.id, SCIVIA_STATE_WAITING);
    is_good = d->length > SCIVIA_PIECE_HEAD && d->length <= SCIVIA_CHUNK &&
              (xfer ? store(xfer, head.offset, bytes + SCIVIA_PIECE_HEAD,
                            d->length - SCIVIA_PIECE_HEAD)
                    : chempi_slots_is_past(&scivia_dev_of(ep)->xfers, head.id));
    if (!is_good) {
        chempi_scivia_endpoint_break(ep, -EPROTO, "data that nobody asked for");
        return;
    }
    if (ep->is_broken || chempi_via_post_recv(ep->rx_vi, d) < 0)
        return;
    ep->rx_posted++;
    if (ep->rx_posted - ep->rx_posted_told >= SCIVIA_RECEIVES / 2)
        chempi_scivia_line_tell(ep, true);
}

/* What has arrived at the VI for payload. */
static void take_pieces(struct scivia_ep *ep)
{
    struct chempi_via_descriptor *d;

    while (ep->rx_vi && (d = chempi_via_recv_done(ep->rx_vi)))
        chempi_scivia_rndv_piece(ep, d);
}

const char *chempi_scivia_rndv_data(struct scivia_ep *ep,
                                    const struct scivia_line *line)
{
    const struct scivia_data *data = &line->body.data;
    const unsigned char *src = chempi_scivia_line_take_span(ep, &data->span);
    struct scivia_xfer *xfer = find(ep, data->id, SCIVIA_STATE_WAITING);
    bool is_good;

    if (xfer && xfer->way == SCIVIA_WAY_SEND) {
        take_pieces(ep); /* the ring has taken over from a VI */
        xfer = find(ep, data->id, SCIVIA_STATE_WAITING);
    }
    is_good =
        xfer ? store(xfer, data->offset, src, data->span.len)
             : src && chempi_slots_is_past(&scivia_dev_of(ep)->xfers, data->id);
    return is_good ? NULL : "data that nobody asked for";
}

const char *chempi_scivia_rndv_ended(struct scivia_ep *ep,
                                     const struct scivia_line *line)
{
    struct scivia_xfer *xfer;

    if (line->kind == SCIVIA_KIND_FIN) {
        xfer = find(ep, line->body.id, SCIVIA_STATE_ASKED);
        if (!xfer)
            return "an answer to nothing that was asked";
        report_sent(xfer, 0);
        return NULL;
    }
    xfer = find(ep, line->body.id, SCIVIA_STATE_WAITING);
    if (!xfer || xfer->way != SCIVIA_WAY_RDMA)
        return "an end of nothing that was awaited";
    put_region(xfer);
    xfer->done = xfer->end;
    if (xfer->done == xfer->want) {
        report_delivered(xfer, 0);
        return NULL;
    }
    xfer->way = choose_way(xfer);
    owe(xfer, SCIVIA_KIND_GO);
    return NULL;
}

void chempi_scivia_rndv_drop_tx(struct scivia_ep *ep)
{
    struct chempi_via_descriptor *d;

    ep->is_vi_broken = false;
    ep->vi_sent = 0;
    if (!ep->tx_vi)
        return;
    chempi_via_disconnect(ep->tx_vi); /* all comes back */
    while ((d = chempi_via_send_done(ep->tx_vi))) {
        if (chempi_scivia_rma_is_post(scivia_dev_of(ep), d))
            chempi_scivia_rma_finish(scivia_dev_of(ep), d);
        else
            chempi_scivia_rndv_posted(ep, scivia_dev_of(ep), d);
    }
    chempi_via_vi_destroy(ep->tx_vi);
    ep->tx_vi = NULL;
    ep->is_vi_broken = false;
}

void chempi_scivia_rndv_drop_rx(struct scivia_ep *ep)
{
    if (!ep->rx_vi)
        return;
    chempi_via_disconnect(ep->rx_vi); /* what had arrived comes first */
    take_pieces(ep);
    chempi_via_vi_destroy(ep->rx_vi);
    ep->rx_vi = NULL;
}
