/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transfers of more than one line (services/rndv.h). The receiver names a place
 * and a way:
 *
 *   RING  pieces through the ring of bytes in the receiver's segment
 *   SEND  one-copy VIA: pieces into receive descriptors that the receiver
 *         keeps posted, as many as told.posted says
 *   RDMA  zero-copy VIA: written into the receiver's registered buffer; what
 *         may not be registered at once goes in windows, each with CTS and DONE
 *
 * A transfer whose descriptors the card has is not freed before they come
 * back, except with its endpoint, when the stages forget it; a region is in use
 * from CTS until the card has finished.
 */
#include <errno.h>

#include "libchempi/devices/scivia/internal.h"

#define PUMP_BUDGET 8 /* pieces per endpoint and progress */

static void put_region(struct scivia_xfer *xfer)
{
    chempi_scivia_memory_put(scivia_dev_of(scivia_ep_of(xfer)), xfer->region);
    xfer->region = NULL;
}

/* The card may still have descriptors of it: they are nobody's now. */
static void release(struct chempi_xfer *base)
{
    struct scivia_xfer *xfer = (struct scivia_xfer *)base;
    struct scivia_dev *dev = scivia_dev_of(scivia_ep_of(xfer));

    for (uint32_t i = 0; i < SCIVIA_STAGES && xfer->posts > 0; i++) {
        if (dev->stages[i].xfer == xfer)
            dev->stages[i].xfer = NULL;
    }
    put_region(xfer);
    dev->has_work |= dev->is_over_share; /* something may be idle now */
}

/* --- words --- */

static int send_owed(struct chempi_xfer *base)
{
    struct scivia_xfer *xfer = (struct scivia_xfer *)base;
    struct scivia_ep *ep = scivia_ep_of(xfer);
    struct scivia_line line = {.kind = base->owed == CHEMPI_RNDV_DONE
                                           ? SCIVIA_KIND_DONE
                                           : SCIVIA_KIND_FIN};

    if (ep->is_broken || !ep->is_tx_open || !scivia_has_room(ep, 0))
        return -EAGAIN;
    line.body.id = base->peer_id;
    if (base->owed == CHEMPI_RNDV_CTS) {
        line.kind = SCIVIA_KIND_CTS;
        line.body.cts = (struct scivia_cts){
            .id = base->peer_id,
            .peer_id = base->id,
            .want = base->want,
            .window = base->until - base->done,
            .addr = xfer->addr,
            .handle = xfer->handle,
            .way = xfer->way,
        };
    }
    return ep->carrier->send(ep, &line, NULL, NULL, 0);
}

/* From progress: an upcall may follow, and the caller may be one. */
static void owes(struct chempi_rndv_peer *peer)
{
    chempi_scivia_endpoint_mark((struct scivia_ep *)peer->ep);
}

/* --- sender --- */

static int send_rts(struct chempi_xfer *xfer)
{
    struct scivia_ep *ep = (struct scivia_ep *)xfer->peer->ep;
    struct scivia_line line = {.kind = SCIVIA_KIND_RTS};

    line.body.rts = (struct scivia_rts){
        .env = xfer->tx->env, .id = xfer->id, .protocol = xfer->protocol};
    return ep->carrier->send(ep, &line, NULL, NULL, 0);
}

int chempi_scivia_rndv_send(struct scivia_ep *ep, struct chempi_tx *tx)
{
    uint32_t protocol = tx->protocol;
    int rc;

    rc = chempi_scivia_eager_room(ep, 0);
    if (rc < 0)
        return rc;
    if (!chempi_rndv_has_room(ep->rndv.rndv)) {
        chempi_scivia_eager_want(ep, 0);
        return -EAGAIN;
    }
    if (protocol > SCIVIA_PROTOCOL_SEND) {
        rc = chempi_scivia_connect_via(ep);
        if (rc < 0) {
            chempi_scivia_eager_want(ep, 0);
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
        protocol = ep->carrier->protocol;
    return chempi_rndv_send(&ep->rndv, tx, protocol);
}

/* Make the window's memory ready for the card: at once, or piece by piece
 * where that is too much, or through the library's buffers. */
static void prepare(struct scivia_xfer *xfer)
{
    struct scivia_dev *dev = scivia_dev_of(scivia_ep_of(xfer));
    const char *from = xfer->base.tx->buf;

    if (xfer->way == SCIVIA_WAY_RING)
        return;
    if (!xfer->base.tx->iter)
        xfer->region = chempi_scivia_memory_get(
            dev, from + xfer->base.done,
            (size_t)(xfer->base.until - xfer->base.done), 0);
    xfer->is_staged = xfer->region == NULL;
    xfer->is_piecewise =
        xfer->is_staged && !xfer->base.tx->iter && xfer->way == SCIVIA_WAY_RDMA;
    if (!xfer->is_staged || xfer->base.tx->iter)
        return;
    if (xfer->is_piecewise)
        dev->windowed++;
    else
        dev->memory_user.degraded++;
}

const char *chempi_scivia_rndv_cts(struct scivia_ep *ep,
                                   const struct scivia_line *line)
{
    const struct scivia_cts *cts = &line->body.cts;
    struct chempi_xfer *base = chempi_rndv_find_for_cts(&ep->rndv, cts->id);
    struct scivia_xfer *xfer = (struct scivia_xfer *)base;
    uint64_t from = base ? base->done : 0;
    const char *why;

    why = chempi_rndv_cts(base, cts->peer_id, cts->want, from,
                          from + cts->window);
    if (why)
        return why;
    if (cts->way < SCIVIA_WAY_RING || cts->way > SCIVIA_WAY_RDMA ||
        (cts->way != SCIVIA_WAY_RING &&
         xfer->base.protocol <= SCIVIA_PROTOCOL_SEND))
        return "a way that was not offered";
    if (cts->way != SCIVIA_WAY_RDMA && xfer->base.until != cts->want)
        return "a window out of bounds";
    xfer->window = xfer->base.done;
    xfer->addr = cts->addr;
    xfer->handle = cts->handle;
    xfer->way = (enum scivia_way)cts->way;
    prepare(xfer);
    chempi_scivia_endpoint_mark(ep);
    return NULL;
}

/* Move again what did not arrive by a connection that broke. */
static void rewind_xfer(struct scivia_xfer *xfer)
{
    struct scivia_ep *ep = scivia_ep_of(xfer);

    xfer->base.done = xfer->finished;
    if (xfer->base.tx->iter)
        chempi_segment_seek(xfer->base.tx->iter, xfer->base.done);
    if (chempi_list_is_empty(&xfer->base.link))
        chempi_list_append(&ep->rndv.pumping, &xfer->base.link);
    chempi_scivia_endpoint_mark(ep);
}

/* The next len bytes: where they lie, or packed into `room`. */
static const void *payload(struct scivia_xfer *xfer, void *room, uint32_t len)
{
    if (!xfer->base.tx->iter)
        return (const char *)xfer->base.tx->buf + xfer->base.done;
    (void)chempi_segment_pack(xfer->base.tx->iter, room, len);
    return room;
}

/* False: it must wait. */
static bool pump_ring(struct scivia_xfer *xfer)
{
    struct scivia_ep *ep = scivia_ep_of(xfer);
    struct scivia_line line = {.kind = SCIVIA_KIND_DATA};
    unsigned char packed[SCIVIA_CHUNK];
    uint64_t left = xfer->base.want - xfer->base.done;
    uint32_t max = ep->carrier->piece_max;
    uint32_t len = left < max ? (uint32_t)left : max;

    if (chempi_scivia_eager_try(ep, len) < 0)
        return false;
    line.body.data.id = xfer->base.peer_id;
    line.body.data.offset = xfer->base.done;
    xfer->finished = xfer->base.done; /* should nothing be taken */
    if (ep->carrier->send(ep, &line, &line.body.data.span,
                          payload(xfer, packed, len), len) < 0) {
        rewind_xfer(xfer);
        return false;
    }
    xfer->base.done += len;
    if (xfer->base.done == xfer->base.want)
        chempi_rndv_end(&xfer->base, 0);
    return true;
}

/* The rest takes the ring, from where it is; nothing is with the card. */
static void take_ring(struct scivia_xfer *xfer)
{
    rewind_xfer(xfer);
    put_region(xfer);
    xfer->base.until = xfer->base.want;
    xfer->way = SCIVIA_WAY_RING;
}

/* Are there stages, now or again? Otherwise the ring is taken. (They are given
 * back only when no descriptor is with the card.) */
static bool has_stages(struct scivia_xfer *xfer)
{
    struct scivia_dev *dev = scivia_dev_of(scivia_ep_of(xfer));

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
    struct scivia_ep *ep = scivia_ep_of(xfer);

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
    return atomic_load_explicit(&ep->told->posted, memory_order_acquire) -
               ep->vi_sent - 1 <
           SCIVIA_RECEIVES;
}

/* A piece says what it is a piece of. */
static void put_head(struct scivia_xfer *xfer, struct scivia_stage *stage)
{
    struct chempi_via_descriptor *d = &stage->descriptor;
    struct scivia_piece *head = (struct scivia_piece *)(void *)stage->bytes;

    *head = (struct scivia_piece){.id = xfer->base.peer_id,
                                  .offset = xfer->base.done};
    d->segments[d->segment_count++] = (struct chempi_via_segment){
        .addr = head,
        .handle = scivia_dev_of(scivia_ep_of(xfer))->stage_handle,
        .len = SCIVIA_PIECE_HEAD,
    };
}

/* Where the card finds the next piece: registered as a whole, for itself, or
 * copied. False: other pieces must come back first. */
static bool place_piece(struct scivia_xfer *xfer, struct scivia_stage *stage,
                        uint64_t *len)
{
    struct scivia_dev *dev = scivia_dev_of(scivia_ep_of(xfer));
    struct chempi_via_descriptor *d = &stage->descriptor;
    struct chempi_via_segment *segment = &d->segments[d->segment_count];
    unsigned char *room = stage->bytes + SCIVIA_PIECE_HEAD;
    char *from = (char *)(uintptr_t)xfer->base.tx->buf + xfer->base.done;
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
    struct scivia_ep *ep = scivia_ep_of(xfer);
    struct scivia_dev *dev = scivia_dev_of(ep);
    bool is_rdma = xfer->way == SCIVIA_WAY_RDMA;
    uint64_t max = is_rdma ? SCIVIA_WRITE_MAX : SCIVIA_PIECE;
    uint64_t len = xfer->base.until - xfer->base.done;
    struct scivia_stage *stage;

    if (!has_vi(xfer) || chempi_list_is_empty(&dev->stage_free) ||
        (!is_rdma && (!has_credit(ep) || !has_stages(xfer))))
        return false;
    stage = CHEMPI_CONTAINER_OF(chempi_list_first(&dev->stage_free),
                                struct scivia_stage, link);
    len = len < max ? len : max;
    stage->descriptor = (struct chempi_via_descriptor){
        .op = is_rdma ? CHEMPI_VIA_RDMA_WRITE : CHEMPI_VIA_SEND,
        .remote_addr = xfer->addr + (xfer->base.done - xfer->window),
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
    xfer->base.done += len;
    ep->vi_sent += !is_rdma;
    if (xfer->base.done == xfer->base.until)
        chempi_list_remove(&xfer->base.link); /* until the card has finished */
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

    CHEMPI_LIST_FOR_SAFE (node, &ep->rndv.pumping) {
        struct scivia_xfer *xfer =
            CHEMPI_CONTAINER_OF(node, struct scivia_xfer, base.link);
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

    for (struct chempi_list *node = ep->rndv.pumping.next;
         node != &ep->rndv.pumping; node = node->next) {
        struct scivia_xfer *xfer =
            CHEMPI_CONTAINER_OF(node, struct scivia_xfer, base.link);

        if (xfer->way == SCIVIA_WAY_RING) {
            if (chempi_scivia_eager_try(scivia_ep_of(xfer),
                                        ep->carrier->piece_max) == 0)
                return true;
            continue;
        }
        if (!ep->tx_vi ||
            chempi_via_vi_state(ep->tx_vi) != CHEMPI_VIA_CONNECTED) {
            if (ep->is_via_refused && xfer->posts == 0)
                return true;
            continue;
        }
        if (!chempi_list_is_empty(&dev->stage_free) &&
            (xfer->way == SCIVIA_WAY_SEND
                 ? has_credit(ep)
                 : !xfer->is_piecewise || xfer->posts == 0))
            return true;
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
    if (xfer->finished < xfer->base.until) {
        if (xfer->is_piecewise)
            chempi_scivia_endpoint_mark(ep); /* there is room again */
        return;
    }
    put_region(xfer);
    if (xfer->way == SCIVIA_WAY_RDMA)
        chempi_rndv_owe(&xfer->base, CHEMPI_RNDV_DONE);
    else
        chempi_rndv_end(&xfer->base, 0);
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
    struct scivia_dev *dev = scivia_dev_of(scivia_ep_of(xfer));
    uint64_t left = xfer->base.want - xfer->base.done;
    char *at = (char *)xfer->base.rx->buf + xfer->base.done;
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
    xfer->base.until = xfer->base.done + window;
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
    struct scivia_ep *ep = scivia_ep_of(xfer);
    bool is_zero = xfer->base.protocol == SCIVIA_PROTOCOL_ZERO_COPY;

    xfer->base.until = xfer->base.want;
    if (xfer->base.protocol <= SCIVIA_PROTOCOL_SEND)
        return SCIVIA_WAY_RING;
    if (!ep->rx_vi) { /* withdrawn, and the peer did not know yet */
        scivia_dev_of(ep)->memory_user.degraded++;
        return SCIVIA_WAY_RING;
    }
    if (is_zero && !xfer->base.rx->iter && open_window(xfer))
        return SCIVIA_WAY_RDMA;
    if ((is_zero && !xfer->base.rx->iter) || !ep->rx_posted)
        scivia_dev_of(ep)->memory_user.degraded++;
    return ep->rx_posted ? SCIVIA_WAY_SEND : SCIVIA_WAY_RING;
}

static void take_rts(struct chempi_xfer *xfer, const void *p)
{
    const struct scivia_rts *rts = p;

    xfer->protocol = rts->protocol;
    xfer->took = scivia_ep_of((struct scivia_xfer *)xfer)->carrier->protocol;
}

static void start(struct chempi_xfer *base)
{
    struct scivia_xfer *xfer = (struct scivia_xfer *)base;

    if (base->done == 0)
        base->took = SCIVIA_PROTOCOL_ZERO_COPY; /* until some is copied */
    xfer->way = choose_way(xfer);
    chempi_rndv_owe(base, CHEMPI_RNDV_CTS);
}

const struct chempi_rndv_ops chempi_scivia_rndv_ops = {
    .xfer_size = sizeof(struct scivia_xfer),
    .status = chempi_scivia_eager_status,
    .send_rts = send_rts,
    .send_owed = send_owed,
    .owes = owes,
    .take_rts = take_rts,
    .start = start,
    .release = release,
};

const char *chempi_scivia_rndv_rts(struct scivia_ep *ep,
                                   const struct scivia_line *line)
{
    const struct scivia_rts *rts = &line->body.rts;

    return rts->protocol < SCIVIA_PROTOCOL_COUNT
               ? chempi_rndv_rts(&ep->rndv, &rts->env, rts->id, rts)
               : "an announcement of nothing";
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

    if (!xfer || !src || offset > xfer->base.want ||
        len > xfer->base.want - offset)
        return false;
    rx = xfer->base.rx;
    if (offset < xfer->base.done) { /* other ways cut other pieces */
        uint64_t had = xfer->base.done - offset;

        if (len <= had)
            return true;
        src += had;
        len -= had;
        offset = xfer->base.done;
    }
    if (offset > xfer->base.done && xfer->way != SCIVIA_WAY_RDMA)
        return false;
    xfer->base.done = offset;
    if (rx->iter)
        (void)chempi_segment_unpack(rx->iter, src, (size_t)len);
    else
        chempi_adapter_host_copy(scivia_dev_of(scivia_ep_of(xfer))->adapter,
                                 (char *)rx->buf + offset, src, (size_t)len);
    xfer->base.done += len;
    if (xfer->way == SCIVIA_WAY_RING)
        xfer->base.took = scivia_ep_of(xfer)->carrier->protocol;
    else if (xfer->base.took == SCIVIA_PROTOCOL_ZERO_COPY)
        xfer->base.took = SCIVIA_PROTOCOL_ONE_COPY;
    scivia_dev_of(scivia_ep_of(xfer))->bytes_copied += len;
    if (xfer->base.done == xfer->base.want)
        chempi_rndv_end(&xfer->base, 0);
    return true;
}

static struct scivia_xfer *find_waiting(struct scivia_ep *ep, uint64_t id)
{
    return (struct scivia_xfer *)chempi_rndv_find(&ep->rndv, id,
                                                  CHEMPI_RNDV_WAITING);
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
    xfer = find_waiting(ep, head.id);
    is_good = d->length > SCIVIA_PIECE_HEAD && d->length <= SCIVIA_CHUNK &&
              (xfer ? store(xfer, head.offset, bytes + SCIVIA_PIECE_HEAD,
                            d->length - SCIVIA_PIECE_HEAD)
                    : chempi_handle_table_is_past(
                          &scivia_dev_of(ep)->rndv.xfers, head.id));
    if (!is_good) {
        chempi_scivia_endpoint_break(ep, -EPROTO, "data that nobody asked for");
        return;
    }
    if (ep->is_broken || chempi_via_post_recv(ep->rx_vi, d) < 0)
        return;
    ep->rx_posted++;
    if (ep->rx_posted - ep->rx_posted_told >= SCIVIA_RECEIVES / 2)
        ep->carrier->tell(ep, true);
}

void chempi_scivia_rndv_take_pieces(struct scivia_ep *ep)
{
    struct chempi_via_descriptor *d;

    while (ep->rx_vi && (d = chempi_via_recv_done(ep->rx_vi)))
        chempi_scivia_rndv_piece(ep, d);
}

const char *chempi_scivia_rndv_data(struct scivia_ep *ep,
                                    const struct scivia_line *line)
{
    const struct scivia_data *data = &line->body.data;
    const unsigned char *src = ep->carrier->take_span(ep, &data->span);
    struct scivia_xfer *xfer = find_waiting(ep, data->id);
    bool is_good;

    if (xfer && xfer->way == SCIVIA_WAY_SEND) {
        chempi_scivia_rndv_take_pieces(
            ep); /* the ring has taken over from a VI */
        xfer = find_waiting(ep, data->id);
    }
    is_good = xfer ? store(xfer, data->offset, src, data->span.len)
                   : src && chempi_handle_table_is_past(
                                &scivia_dev_of(ep)->rndv.xfers, data->id);
    return is_good ? NULL : "data that nobody asked for";
}

const char *chempi_scivia_rndv_done(struct scivia_ep *ep,
                                    const struct scivia_line *line)
{
    struct scivia_xfer *xfer = find_waiting(ep, line->body.id);

    if (!xfer || xfer->way != SCIVIA_WAY_RDMA)
        return "an end of nothing that was awaited";
    put_region(xfer);
    chempi_rndv_done(&xfer->base);
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
    while ((d = chempi_via_send_done(ep->tx_vi)))
        chempi_scivia_rndv_posted(ep, scivia_dev_of(ep), d);
    chempi_via_vi_destroy(ep->tx_vi);
    ep->tx_vi = NULL;
    ep->is_vi_broken = false;
}

void chempi_scivia_rndv_drop_rx(struct scivia_ep *ep)
{
    if (!ep->rx_vi)
        return;
    chempi_via_disconnect(ep->rx_vi); /* what had arrived comes first */
    chempi_scivia_rndv_take_pieces(ep);
    chempi_via_vi_destroy(ep->rx_vi);
    ep->rx_vi = NULL;
}
