/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Taking what has arrived: lines, what the card has finished, the bells that
 * tell which rings have lines, and the endpoints that wait for room (W1 to W3
 * in eager.c).
 */
#include <errno.h>
#include <limits.h>

#include "common/base/invariant.h"
#include "libchempi/devices/scivia/internal.h"

/* --- lines --- */

int chempi_scivia_drain_ring(struct scivia_ep *ep, int budget)
{
    int events = 0;

    while (events < budget && !ep->is_broken && scivia_has_line(ep)) {
        struct scivia_line line; /* a private copy */
        const char *why;

        /* Payload, if there is any, most likely begins here. */
        CHEMPI_PREFETCH(ep->in->data + (ep->rx_data & (SCIVIA_DATA_BYTES - 1)));
        memcpy(&line, &ep->in->lines[ep->rx_head % SCIVIA_LINES], sizeof(line));
        atomic_signal_fence(memory_order_seq_cst); /* read once */
        ep->rx_head++;
        why = chempi_scivia_take_line(ep, &line);
        if (CHEMPI_UNLIKELY(why == chempi_shortage_left)) {
            ep->rx_head--;
            break;
        }
        events++;
        if (CHEMPI_UNLIKELY(why != NULL)) {
            chempi_scivia_endpoint_break(ep, -EPROTO, why);
            break;
        }
        if (CHEMPI_UNLIKELY(ep->rx_head - ep->rx_told >= SCIVIA_LINES / 4 ||
                            ep->rx_data - ep->rx_data_told >=
                                SCIVIA_DATA_BYTES / 4))
            ep->carrier->tell(ep, true);
    }
    if (events > 0) {
        ep->last_heat = scivia_dev_of(ep)->heat;
        ep->breaks = 0;
    }
    return events;
}

/* --- what the card has finished --- */

static void completed(struct scivia_ep *ep, struct chempi_via_vi *vi,
                      bool is_recv)
{
    struct scivia_dev *dev = scivia_dev_of(ep);
    struct chempi_via_descriptor *d =
        is_recv ? chempi_via_recv_done(vi) : chempi_via_send_done(vi);

    if (!d)
        return;
    if (!is_recv)
        chempi_scivia_rndv_posted(ep, dev, d);
    else if (vi == ep->rx_vi)
        chempi_scivia_rndv_piece(ep, d);
    else
        chempi_scivia_via_eager_take(ep, d);
}

int chempi_scivia_drain_completed(struct scivia_dev *dev)
{
    struct chempi_via_vi *vi;
    bool is_recv;
    int events = 0;

    while (events < SCIVIA_DRAIN_BUDGET &&
           (vi = chempi_via_cq_done(dev->cq, &is_recv)) != NULL) {
        events++;
        completed(chempi_via_vi_user(vi), vi, is_recv);
    }
    return events;
}

/* --- bells --- */

/*
 * A ring that has rung often takes the place of the hot one that was quiet for
 * longest. Its sender may not have seen yet that it must ring again, so the
 * ring is looked at once more after the mode was stored: with a full fence on
 * either side, either we see the line or the sender the mode.
 */
static struct scivia_ep *find_cold(const struct scivia_dev *dev)
{
    struct scivia_ep *cold = dev->hot[0];

    for (uint32_t i = 1; i < dev->hot_count; i++) {
        if (dev->hot[i]->last_heat < cold->last_heat)
            cold = dev->hot[i];
    }
    return cold->is_tx_open && /* else it could not be told */
                   dev->heat - cold->last_heat >= SCIVIA_COLD_LINES
               ? cold
               : NULL;
}

/* Stop polling a ring; returns events. */
static int cool(struct scivia_ep *ep)
{
    chempi_scivia_endpoint_cool(ep);
    ep->is_mode_owed = true;
    ep->rings = 0;
    ep->carrier->tell(ep, false);
    chempi_adapter_order(scivia_dev_of(ep)->adapter); /* partner: wake's call */
    return chempi_scivia_drain_ring(ep, SCIVIA_DRAIN_BUDGET);
}

/* Returns events. */
static int make_hot(struct scivia_dev *dev, struct scivia_ep *ep)
{
    int events = 0;

    if (ep->is_hot || ep->is_broken)
        return 0;
    ep->rings++;
    if (dev->hot_count == SCIVIA_HOT_MAX) {
        struct scivia_ep *cold =
            ep->rings < SCIVIA_HOT_RINGS ? NULL : find_cold(dev);

        if (!cold)
            return 0;
        events = cool(cold);
        if (!cold->is_broken && scivia_has_line(cold))
            atomic_store(&dev->inbox->exist, 1); /* see `hear` */
    }
    dev->hot[dev->hot_count++] = ep;
    ep->is_hot = true;
    ep->is_mode_owed = true;
    ep->last_heat = dev->heat;
    ep->carrier->tell(ep, false);
    return events;
}

/* Hear the bells: drain the rings of all that rang. */
int chempi_scivia_drain_hear(struct scivia_dev *dev)
{
    int events = 0;

    /* Cleared before the bells are looked at: partner of R4. */
    (void)atomic_exchange(&dev->inbox->exist, 0);
    CHEMPI_LIST_FOR (node, &dev->used) {
        struct scivia_ep *ep =
            CHEMPI_CONTAINER_OF(node, struct scivia_ep, used_link);
        uint32_t rung = atomic_load_explicit(&dev->inbox->bells[ep->base.proc],
                                             memory_order_acquire);
        int n;

        if (ep->is_broken || !ep->in ||
            (rung == ep->heard && (ep->is_hot || !scivia_has_line(ep))))
            continue;
        n = chempi_scivia_drain_ring(ep, SCIVIA_DRAIN_BUDGET);
        events += n;
        dev->heat += (uint64_t)n;
        if (n < SCIVIA_DRAIN_BUDGET)
            ep->heard = rung;
        if (!ep->is_broken && scivia_has_line(ep))
            atomic_store(&dev->inbox->exist, 1); /* there is more */
        events += make_hot(dev, ep);
    }
    return events;
}

/* --- endpoints that wait --- */

bool chempi_scivia_drain_rest(struct scivia_ep *ep)
{
    if (ep->is_reported || ep->is_broken)
        return true;
    (void)chempi_scivia_drain_completed(scivia_dev_of(ep));
    /* Others may go on filling the queue. */
    chempi_scivia_via_eager_take_all(ep);
    chempi_scivia_rndv_take_pieces(ep);
    (void)chempi_scivia_via_eager_retake(ep);
    if (ep->in)
        (void)chempi_scivia_drain_ring(ep, INT_MAX);
    return ep->is_broken || (!(ep->in && scivia_has_line(ep)) &&
                             !chempi_scivia_via_eager_has_left(ep));
}

/* What has arrived counts, although nothing can be answered. */
static int report(struct scivia_ep *ep)
{
    return chempi_scivia_drain_rest(ep) ? chempi_scivia_pair_report(ep) : 0;
}

static int serve(struct scivia_ep *ep)
{
    const struct chempi_dev_params *params = &ep->base.dev->params;
    int events = 0;

    if (ep->is_tx_open && !ep->is_broken && !ep->is_gone)
        chempi_scivia_eager_refresh(ep);
    if (ep->is_broken || ep->is_gone)
        return report(ep);
    if (chempi_scivia_via_eager_has_left(ep)) {
        events += chempi_scivia_via_eager_retake(ep);
        if (!chempi_scivia_via_eager_has_left(ep)) /* its sender may ask */
            chempi_scivia_pair_accept_vis(scivia_dev_of(ep));
    }
    events += chempi_scivia_via_eager_reap(ep);
    if (!ep->is_tx_open)
        return events;
    if (ep->is_tell_owed)
        ep->carrier->tell(ep, true);
    events += chempi_rndv_flush(&ep->rndv);
    events += chempi_scivia_rndv_pump(ep);
    if (ep->wants_room && scivia_has_room(ep, ep->wanted) &&
        chempi_list_is_empty(&ep->opening_link)) {
        ep->wants_room = false;
        params->sink->room(params->sink_arg, &ep->base);
        events += !chempi_rndv_is_poor(ep->rndv.rndv);
    }
    if (chempi_list_is_empty(&ep->rndv.control) &&
        chempi_list_is_empty(&ep->rndv.pumping) && !ep->wants_room &&
        !ep->is_broken && !ep->is_tell_owed &&
        !chempi_scivia_via_eager_has_left(ep) &&
        chempi_list_is_empty(&ep->sending))
        chempi_list_remove(&ep->busy_link);
    CHEMPI_CHECK(chempi_scivia_endpoint_check(ep));
    return events;
}

int chempi_scivia_drain_serve(struct scivia_dev *dev)
{
    int events = 0;

    CHEMPI_LIST_FOR_SAFE (node, &dev->busy)
        events += serve(CHEMPI_CONTAINER_OF(node, struct scivia_ep, busy_link));
    return events;
}

/* Would serve() get anywhere? */
static bool can_serve(struct scivia_ep *ep)
{
    const struct scivia_told *told = ep->told;

    if (ep->is_broken || ep->is_gone)
        return true;
    if (!ep->is_tx_open)
        return chempi_scivia_via_eager_has_left(ep);
    return chempi_scivia_via_eager_has_left(ep) ||
           atomic_load_explicit(&told->lines, memory_order_acquire) !=
               ep->tx_tail ||
           atomic_load_explicit(&told->data, memory_order_acquire) !=
               ep->data_tail ||
           (!chempi_list_is_empty(&ep->rndv.control) &&
            scivia_has_room(ep, 0)) ||
           chempi_scivia_rndv_can_pump(ep) ||
           (ep->wants_room && scivia_has_room(ep, ep->wanted) &&
            chempi_list_is_empty(&ep->opening_link));
}

bool chempi_scivia_drain_can_serve(struct scivia_dev *dev)
{
    CHEMPI_LIST_FOR (node, &dev->busy) {
        if (can_serve(CHEMPI_CONTAINER_OF(node, struct scivia_ep, busy_link)))
            return true;
    }
    return false;
}
