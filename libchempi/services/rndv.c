/* SPDX-License-Identifier: BSD-3-Clause */
/* Rendezvous; see rndv.h. */
#include "libchempi/services/rndv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/compiler.h"
#include "common/base/copy.h"
#include "common/base/invariant.h"
#include "common/base/sys.h"

static const char nothing_asked[] = "an answer to nothing that was asked";

/* --- transfers and their ids --- */

void chempi_rndv_init(struct chempi_rndv *rndv,
                      const struct chempi_rndv_ops *ops, struct chempi_dev *dev)
{
    *rndv = (struct chempi_rndv){.ops = ops, .dev = dev};
}

void chempi_rndv_peer_init(struct chempi_rndv_peer *peer,
                           struct chempi_rndv *rndv, struct chempi_ep *ep)
{
    peer->rndv = rndv;
    peer->ep = ep;
    chempi_list_init(&peer->control);
    chempi_list_init(&peer->pumping);
}

static struct chempi_xfer *make(struct chempi_rndv_peer *peer,
                                enum chempi_rndv_state state, uint64_t len)
{
    struct chempi_rndv *rndv = peer->rndv;
    struct chempi_xfer *xfer = rndv->spare;

    rndv->spare = NULL;
    if (!xfer)
        xfer = chempi_sys->malloc(rndv->ops->xfer_size);
    if (!xfer)
        return NULL;
    memset(xfer, 0, rndv->ops->xfer_size);
    chempi_list_init(&xfer->link);
    xfer->peer = peer;
    xfer->state = state;
    xfer->len = len;
    if (chempi_handle_table_put(&rndv->xfers, xfer, &xfer->id) == 0)
        return xfer;
    free(xfer);
    return NULL;
}

/* For the next transfer. */
static bool has_spare(struct chempi_rndv *rndv)
{
    if (!rndv->spare)
        rndv->spare = chempi_sys->malloc(rndv->ops->xfer_size);
    return rndv->spare && chempi_handle_table_has_room(&rndv->xfers);
}

bool chempi_rndv_has_room(struct chempi_rndv *rndv)
{
    if (CHEMPI_UNLIKELY(!has_spare(rndv)))
        return !chempi_shortage_may_wait(&rndv->shortage);
    chempi_shortage_end(&rndv->shortage);
    return true;
}

void chempi_rndv_forget(struct chempi_xfer *xfer)
{
    struct chempi_rndv *rndv = xfer->peer->rndv;

    CHEMPI_CHECK_EVERY(16, chempi_rndv_check(rndv));
    rndv->outgoing -= xfer->tx != NULL;
    if (rndv->ops->release)
        rndv->ops->release(xfer);
    chempi_list_remove(&xfer->link);
    (void)chempi_handle_table_take(&rndv->xfers, xfer->id);
    xfer->peer = NULL; /* whoever goes on with it will fail */
    free(rndv->spare);
    rndv->spare = xfer;
}

void chempi_rndv_fini(struct chempi_rndv *rndv)
{
    struct chempi_xfer *xfer;
    uint32_t place = 0;

    while ((xfer = chempi_handle_table_next(&rndv->xfers, &place)) != NULL)
        chempi_rndv_forget(xfer);
    free(rndv->spare);
    chempi_handle_table_fini(&rndv->xfers);
}

struct chempi_xfer *chempi_rndv_find(const struct chempi_rndv_peer *peer,
                                     uint64_t id, enum chempi_rndv_state state)
{
    struct chempi_xfer *xfer = chempi_handle_table_get(&peer->rndv->xfers, id);

    return xfer && xfer->peer == peer && xfer->state == state ? xfer : NULL;
}

void chempi_rndv_pack(struct chempi_xfer *xfer, void *to, uint64_t len)
{
    struct chempi_tx *tx = xfer->tx;

    if (tx->iter)
        (void)chempi_segment_pack(tx->iter, to, len);
    else
        chempi_copy(to, (const char *)tx->buf + xfer->done, len);
    xfer->done += len;
}

void chempi_rndv_unpack(struct chempi_xfer *xfer, const void *from,
                        uint64_t len)
{
    struct chempi_rx *rx = xfer->rx;

    if (rx->iter)
        (void)chempi_segment_unpack(rx->iter, from, len);
    else
        chempi_copy((char *)rx->buf + xfer->done, from, len);
    xfer->done += len;
}

void chempi_rndv_end(struct chempi_xfer *xfer, int status)
{
    struct chempi_dev *dev = xfer->peer->rndv->dev;
    const struct chempi_sink *sink = dev->params.sink;
    struct chempi_tx *tx = xfer->tx;
    struct chempi_rx *rx = xfer->rx;

    if (rx && status == 0)
        chempi_dev_count(dev, xfer->took, xfer->len);
    chempi_rndv_forget(xfer);
    if (tx)
        sink->sent(dev->params.sink_arg, tx, status);
    else if (rx)
        sink->delivered(dev->params.sink_arg, rx, status);
}

void chempi_rndv_fail(struct chempi_rndv_peer *peer, int status)
{
    struct chempi_xfer *xfer;
    uint32_t place = 0;

    while ((xfer = chempi_handle_table_next(&peer->rndv->xfers, &place)) !=
           NULL) {
        if (xfer->peer == peer && xfer->state != CHEMPI_RNDV_LEFT) /* X4 */
            chempi_rndv_end(xfer, status);
    }
}

const char *chempi_rndv_check(const struct chempi_rndv *rndv)
{
    const struct chempi_xfer *xfer;
    uint32_t place = 0;

    while ((xfer = chempi_handle_table_next(&rndv->xfers, &place)) != NULL) {
        bool is_out = xfer->state <= CHEMPI_RNDV_BETWEEN;

        if (is_out != (xfer->tx != NULL) || (is_out && xfer->rx))
            return "rndv X3: a transfer in a state of the other direction";
        if (xfer->done > xfer->want || xfer->want > xfer->len ||
            (is_out && (xfer->done > xfer->until || xfer->until > xfer->want)))
            return "rndv X3: more is done than wanted, or wanted than there is";
    }
    return NULL;
}

/* --- words that are owed --- */

void chempi_rndv_owe(struct chempi_xfer *xfer, enum chempi_rndv_word word)
{
    struct chempi_rndv_peer *peer = xfer->peer;

    xfer->owed = word;
    xfer->state =
        word == CHEMPI_RNDV_DONE ? CHEMPI_RNDV_ENDING : CHEMPI_RNDV_CONTROL;
    chempi_list_remove(&xfer->link);
    chempi_list_append(&peer->control, &xfer->link);
    peer->rndv->ops->owes(peer);
}

int chempi_rndv_flush(struct chempi_rndv_peer *peer)
{
    int events = 0;

    while (!chempi_list_is_empty(&peer->control)) {
        struct chempi_xfer *xfer = CHEMPI_CONTAINER_OF(
            chempi_list_first(&peer->control), struct chempi_xfer, link);

        if (peer->rndv->ops->send_owed(xfer) < 0)
            break;
        chempi_list_remove(&xfer->link);
        if (xfer->owed == CHEMPI_RNDV_CTS)
            xfer->state = CHEMPI_RNDV_WAITING;
        else if (xfer->owed == CHEMPI_RNDV_DONE && xfer->until < xfer->want)
            xfer->state = CHEMPI_RNDV_BETWEEN;
        else
            chempi_rndv_end(xfer, 0);
        events++;
    }
    return events;
}

/* --- sender --- */

int chempi_rndv_send(struct chempi_rndv_peer *peer, struct chempi_tx *tx,
                     uint32_t protocol)
{
    struct chempi_rndv *rndv = peer->rndv;
    struct chempi_xfer *xfer = make(peer, CHEMPI_RNDV_ASKED, tx->env.len);
    int rc;

    if (!xfer)
        return chempi_err_set(&rndv->dev->err, -ENOMEM,
                              "out of memory for a message to rank %u",
                              (unsigned)peer->ep->proc);
    xfer->tx = tx;
    xfer->protocol = protocol;
    rndv->outgoing++;
    tx->ep = peer->ep;
    rc = rndv->ops->send_rts(xfer);
    if (rc < 0) {
        chempi_rndv_forget(xfer);
        return rc;
    }
    return CHEMPI_PENDING;
}

struct chempi_xfer *
chempi_rndv_find_for_cts(const struct chempi_rndv_peer *peer, uint64_t id)
{
    struct chempi_xfer *xfer = chempi_rndv_find(peer, id, CHEMPI_RNDV_ASKED);

    return xfer ? xfer : chempi_rndv_find(peer, id, CHEMPI_RNDV_BETWEEN);
}

const char *chempi_rndv_cts(struct chempi_xfer *xfer, uint64_t peer_id,
                            uint64_t want, uint64_t from, uint64_t until)
{
    if (!xfer || want == 0 || want > xfer->len)
        return nothing_asked;
    if (from >= until || until > want ||
        (xfer->state == CHEMPI_RNDV_BETWEEN &&
         (want != xfer->want || peer_id != xfer->peer_id)))
        return "a window out of bounds";
    xfer->peer_id = peer_id;
    xfer->want = want;
    xfer->until = until;
    xfer->done = from;
    xfer->state = CHEMPI_RNDV_PUMPING;
    chempi_list_remove(&xfer->link);
    chempi_list_append(&xfer->peer->pumping, &xfer->link);
    return NULL;
}

const char *chempi_rndv_fin(struct chempi_rndv_peer *peer, uint64_t id)
{
    struct chempi_xfer *xfer = chempi_rndv_find(peer, id, CHEMPI_RNDV_ASKED);

    if (!xfer)
        return nothing_asked;
    chempi_rndv_end(xfer, 0);
    return NULL;
}

/* --- receiver --- */

/* Payload may come, or is fetched. */
static void go_on(struct chempi_xfer *xfer)
{
    const struct chempi_rndv_ops *ops = xfer->peer->rndv->ops;

    if (ops->start)
        ops->start(xfer);
    else
        chempi_rndv_owe(xfer, CHEMPI_RNDV_CTS);
}

/* A receive is named. False: nothing is wanted of the payload. */
static bool start(struct chempi_xfer *xfer, struct chempi_rx *rx)
{
    const struct chempi_rndv *rndv = xfer->peer->rndv;

    rx->ep = xfer->peer->ep;
    xfer->want = xfer->len < rx->cap ? xfer->len : rx->cap;
    xfer->until = xfer->want;
    if (xfer->want == 0) {
        chempi_dev_count(rndv->dev, xfer->took, 0);
        chempi_rndv_owe(xfer, CHEMPI_RNDV_FIN);
        return false;
    }
    xfer->rx = rx;
    go_on(xfer);
    return true;
}

const char *chempi_rndv_rts(struct chempi_rndv_peer *peer,
                            const struct chempi_envelope *env, uint64_t peer_id,
                            const void *rts)
{
    const struct chempi_dev_params *params = &peer->rndv->dev->params;
    const struct chempi_rndv_ops *ops = peer->rndv->ops;
    struct chempi_arrival arrival = {.ep = peer->ep, .env = *env};
    enum chempi_verdict verdict;
    struct chempi_rx *rx = NULL;
    struct chempi_xfer *xfer;

    if (env->len == 0 || !chempi_envelope_is_known(env))
        return "an announcement of nothing";
    if (!chempi_rndv_has_room(peer->rndv))
        return chempi_shortage_left;
    xfer = make(peer, CHEMPI_RNDV_LEFT, env->len);
    if (!xfer)
        return "more messages than memory can hold";
    xfer->peer_id = peer_id;
    xfer->protocol = ops->protocol;
    xfer->took = ops->protocol;
    if (ops->take_rts)
        ops->take_rts(xfer, rts);
    arrival.token[0] = xfer->id;
    arrival.token[1] = (uintptr_t)peer; /* stays in this process */
    arrival.protocol = xfer->protocol;
    verdict = params->sink->arrived(params->sink_arg, &arrival, &rx);
    if (CHEMPI_UNLIKELY(verdict >= CHEMPI_NO_ROOM)) {
        chempi_rndv_forget(xfer);
        return verdict == CHEMPI_NO_ROOM ? chempi_shortage_left
                                         : "an announcement that is refused";
    }
    if (verdict == CHEMPI_ACCEPT && !start(xfer, rx))
        params->sink->delivered(params->sink_arg, rx, 0);
    return NULL;
}

/* What an arrival's token names. */
static struct chempi_xfer *find_left(const uint64_t token[2])
{
    return chempi_rndv_find((void *)(uintptr_t)token[1], token[0],
                            CHEMPI_RNDV_LEFT);
}

int chempi_rndv_accept(struct chempi_ep *ep, const uint64_t token[2],
                       struct chempi_rx *rx)
{
    struct chempi_xfer *xfer = find_left(token);
    int rc;

    if (!xfer)
        return -EINVAL;
    rc = xfer->peer->rndv->ops->status(ep);
    if (rc == 0)
        return start(xfer, rx) ? CHEMPI_PENDING : CHEMPI_DONE;
    chempi_rndv_forget(xfer);
    return rc;
}

void chempi_rndv_drop(struct chempi_ep *ep, const uint64_t token[2])
{
    struct chempi_xfer *xfer = find_left(token);

    if (xfer && xfer->peer->rndv->ops->status(ep) == 0)
        chempi_rndv_owe(xfer, CHEMPI_RNDV_FIN);
    else if (xfer)
        chempi_rndv_forget(xfer);
}

void chempi_rndv_done(struct chempi_xfer *xfer)
{
    xfer->done = xfer->until;
    if (xfer->done == xfer->want)
        chempi_rndv_end(xfer, 0);
    else
        go_on(xfer);
}

void chempi_rndv_fetched(struct chempi_xfer *xfer)
{
    struct chempi_dev *dev = xfer->peer->rndv->dev;
    struct chempi_rx *rx = xfer->rx;

    chempi_dev_count(dev, xfer->took, xfer->len);
    xfer->rx = NULL;
    chempi_rndv_owe(xfer, CHEMPI_RNDV_FIN);
    dev->params.sink->delivered(dev->params.sink_arg, rx, 0);
}
