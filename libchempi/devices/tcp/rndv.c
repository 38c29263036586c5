/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages whose payload waits for its receiver (services/rndv.h); FIN is DROP
 * here. They stay with the link that they were
 * announced on; their payload leaves in DATA frames (eager.c).
 */
#include <errno.h>

#include "libchempi/devices/tcp/internal.h"

static struct chempi_tcp_link *link_of(struct chempi_rndv_peer *peer)
{
    return CHEMPI_CONTAINER_OF(peer, struct chempi_tcp_link, rndv);
}

static int status(struct chempi_ep *base)
{
    const struct chempi_tcp_ep *ep = (struct chempi_tcp_ep *)(void *)base;

    return ep->status
               ? chempi_err_set(&base->dev->err, ep->status, "%s", ep->why)
               : 0;
}

static int send_rts(struct chempi_xfer *xfer)
{
    struct chempi_tcp_link *link = link_of(xfer->peer);
    uint8_t frame[CHEMPI_TCP_FIXED_MAX];
    const int rc = chempi_tcp_eager_control(
        link, frame, chempi_tcp_wire_put_rts(frame, &xfer->tx->env, xfer->id));

    return CHEMPI_UNLIKELY(rc == -ENOMEM) &&
                   chempi_shortage_may_wait(&link->sending)
               ? -EAGAIN
               : rc;
}

/* For a word that is owed: again, when there is some, but not for too long. */
static CHEMPI_COLD void miss_memory(struct chempi_tcp_link *link)
{
    char who[CHEMPI_TCP_WHO_MAX];

    if (chempi_shortage_may_wait(&link->sending))
        chempi_tcp_link_owe_flush(link);
    else
        chempi_tcp_link_break(
            link, -ENOMEM, "out of memory for an answer to %s",
            chempi_tcp_tie_words(link->ep->ep.dev->params.services,
                                 link->ep->ep.proc, who));
}

static int send_owed(struct chempi_xfer *xfer)
{
    struct chempi_tcp_link *link = link_of(xfer->peer);
    uint8_t frame[CHEMPI_TCP_FIXED_MAX];
    size_t len;

    if (xfer->owed == CHEMPI_RNDV_CTS) {
        link->is_bulky = xfer->want >= CHEMPI_TCP_BULKY;
        len =
            chempi_tcp_wire_put_cts(frame, xfer->peer_id, xfer->id, xfer->want);
    } else {
        len = chempi_tcp_wire_put_drop(frame, xfer->peer_id);
    }
    if (chempi_tcp_eager_control(link, frame, len)) {
        miss_memory(link);
        return -EAGAIN;
    }
    return 0;
}

static void owes(struct chempi_rndv_peer *peer)
{
    (void)chempi_rndv_flush(peer);
}

const struct chempi_rndv_ops chempi_tcp_rndv_ops = {
    .xfer_size = sizeof(struct chempi_xfer),
    .protocol = CHEMPI_TCP_PROTO_RENDEZVOUS,
    .status = status,
    .send_rts = send_rts,
    .send_owed = send_owed,
    .owes = owes,
};
