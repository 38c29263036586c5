/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Endpoints: how two processes connect, and how that ends.
 *
 *   first message or card or the other's link
 *     -> our pair for the peer is exported, a link is asked for
 *     -> link up: the peer's pair for us and its inbox are connected
 *     -> open for sending; what was taken meanwhile is told
 *
 * The other side does the same as soon as our link has reached it, since what
 * it takes must be told. Where one of the two has no SCI half, lines travel in
 * frames (via_eager.c), and a VI is connected instead of segments.
 *
 * A link or a VI that breaks is replaced, and nothing is lost or doubled:
 *
 *   P1  each side mends what it has asked for: its link, its VIs, its
 *       connections to segments. It answers "no room" meanwhile
 *   P2  what the peer writes lies in our memory, so a ring goes on where it
 *       was. A line that may or may not have arrived is stored again as it was
 *   P3  of VIs, what had arrived is taken before they are dropped; the sender
 *       moves again what came back with an error, and the receiver knows by
 *       numbers and offsets what it had already
 *   P4  who cannot be dialled any more (its adapter listens no longer), or
 *       breaks again and again, is lost: what has arrived is still taken, then
 *       everything pending is reported
 */
#include <errno.h>
#include <stdlib.h>

#include "common/base/sys.h"
#include "libchempi/devices/scivia/internal.h"

#define PAGE 4096u
#define RECEIVE_BYTES ((size_t)SCIVIA_RECEIVES * SCIVIA_CHUNK)

/* --- opening --- */

/* Count a connection that broke; true: once too often, with nothing that went
 * through between (a line that is stored counts, a frame when it is told). */
static bool is_hopeless(struct scivia_ep *ep)
{
    scivia_dev_of(ep)->reconnects++;
    return ++ep->breaks > SCIVIA_BREAKS_MAX;
}

/* The link to the peer is gone, perhaps not its process. */
static void unlink_peer(struct scivia_ep *ep)
{
    chempi_scivia_endpoint_close(ep);
    chempi_sci_disconnect(ep->out);
    chempi_sci_disconnect(ep->bell);
    ep->out = NULL;
    ep->bell = NULL;
    chempi_scivia_rndv_drop_tx(ep);
    chempi_scivia_via_eager_drop_tx(ep);
    ep->at = NULL;
}

/* Replace VIs of ours that broke. */
static void mend_vis(struct scivia_ep *ep)
{
    if (ep->is_vi_broken) {
        chempi_scivia_rndv_drop_tx(ep);
        scivia_dev_of(ep)->reconnects++;
        if (++ep->vi_breaks > SCIVIA_BREAKS_MAX)
            ep->is_via_refused = true; /* the ring serves all */
    }
    if (ep->is_frame_broken) {
        chempi_scivia_endpoint_close(ep);
        chempi_scivia_via_eager_drop_tx(ep);
        if (is_hopeless(ep))
            chempi_scivia_endpoint_break(
                ep, -ECONNRESET,
                ep->is_frame_refused
                    ? "it refuses VIA connections, probably for lack of "
                      "memory that it may register (raise \"ulimit -l\" there, "
                      "or join the nodes by another network)"
                    : "its VIA connection breaks every time");
    }
}

/* Returns true when something has changed. */
static bool open_lines(struct scivia_ep *ep)
{
    bool is_first = !ep->was_up;
    int rc = ep->carrier->open(ep);

    if (rc == -EINPROGRESS || rc == -EAGAIN || rc == -ENOTCONN)
        return false; /* or the link's end will be told */
    if (rc < 0) {
        chempi_scivia_endpoint_break(
            ep, rc,
            rc == -ENOMEM ? "memory is missing to connect to it, here or there"
                          : "nothing can be sent to it");
        return true;
    }
    ep->was_up = true;
    ep->is_tx_open = true;
    chempi_scivia_eager_refresh(ep);
    if (!ep->is_broken)
        ep->carrier->reopen(ep, is_first);
    return true;
}

/* Is nothing missing of the VI for payload? */
static bool has_payload(const struct scivia_ep *ep)
{
    return !ep->tx_vi || ep->is_via_refused ||
           chempi_via_vi_state(ep->tx_vi) != CHEMPI_VIA_CONNECTING;
}

/* The same; ask for it, if somebody waits for it. */
static bool open_payload(struct scivia_ep *ep)
{
    if (!ep->tx_vi && !chempi_list_is_empty(&ep->rndv.pumping))
        (void)chempi_scivia_connect_via(ep); /* or the ring serves all */
    return has_payload(ep);
}

/* Returns true when something has changed. */
static bool advance(struct scivia_ep *ep)
{
    bool has_changed;
    int rc = 0;

    if (ep->is_broken || ep->is_gone) {
        chempi_list_remove(&ep->opening_link);
        return false;
    }
    if (!ep->at) {
        rc = ep->has_card ? chempi_scivia_connect_open(ep) : -EAGAIN;
        if (rc < 0 && rc != -EAGAIN && !ep->is_gone)
            chempi_scivia_endpoint_break(ep, rc, "it cannot be reached");
        return ep->at != NULL || ep->is_broken || ep->is_gone;
    }
    if (chempi_adapter_link_state(ep->at) != 0)
        return false; /* or its end will be told */
    ep->was_reached = true;
    mend_vis(ep);
    has_changed = !ep->is_tx_open && open_lines(ep);
    if (ep->is_broken || !ep->is_tx_open || !open_payload(ep))
        return has_changed;
    if (ep->is_vi_broken || ep->is_frame_broken)
        return true; /* again, at once */
    chempi_list_remove(&ep->opening_link);
    if (!chempi_list_is_empty(&ep->rndv.control) ||
        !chempi_list_is_empty(&ep->rndv.pumping) || ep->wants_room)
        chempi_scivia_endpoint_mark(ep);
    return true;
}

int chempi_scivia_pair_advance(struct scivia_dev *dev)
{
    int events = 0;

    CHEMPI_LIST_FOR_SAFE (node, &dev->opening)
        events +=
            advance(CHEMPI_CONTAINER_OF(node, struct scivia_ep, opening_link));
    return events;
}

/* What breaks while this process is about to sleep stands there, and nobody
 * tells it. */
static bool can_advance(const struct scivia_ep *ep)
{
    if (ep->is_broken || ep->is_gone)
        return true;
    if (!ep->at) /* what waits for memory is waked when there is some */
        return ep->has_card && !ep->awaits_memory;
    return chempi_adapter_link_state(ep->at) == 0 &&
           (ep->is_vi_broken || ep->is_frame_broken ||
            (chempi_shortage_is(&ep->shortage) &&
             ep->carrier->has_to_ask(ep)) ||
            (ep->is_tx_open && has_payload(ep)));
}

bool chempi_scivia_pair_can_advance(const struct scivia_dev *dev)
{
    CHEMPI_LIST_FOR (node, &dev->opening) {
        if (can_advance(
                CHEMPI_CONTAINER_OF(node, struct scivia_ep, opening_link)))
            return true;
    }
    return false;
}

/* --- VIA --- */

/* Buffers for one-copy messages of this peer, posted. */
static int post_receives(struct scivia_ep *ep)
{
    struct scivia_dev *dev = scivia_dev_of(ep);
    void *memory = NULL;
    int rc = 0;

    ep->rx_posted = 0; /* counted from the connection on */
    if (!ep->rx_buffers &&
        chempi_sys->posix_memalign(&memory, PAGE, RECEIVE_BYTES) != 0)
        return -ENOMEM;
    if (!ep->rx_buffers)
        ep->rx_buffers = memory;
    if (!ep->rx_handle)
        rc = chempi_scivia_memory_register(dev, ep->rx_buffers, RECEIVE_BYTES,
                                           &ep->rx_handle);
    return rc < 0 ? rc
                  : chempi_scivia_connect_post(ep->rx_vi, ep->receives,
                                               SCIVIA_RECEIVES, ep->rx_buffers,
                                               SCIVIA_CHUNK, ep->rx_handle,
                                               &ep->rx_posted);
}

void chempi_scivia_pair_post(struct scivia_dev *dev)
{
    CHEMPI_LIST_FOR (node, &dev->used) {
        struct scivia_ep *ep =
            CHEMPI_CONTAINER_OF(node, struct scivia_ep, used_link);

        if (ep->rx_vi && !ep->rx_handle && !ep->is_broken && !ep->is_gone &&
            post_receives(ep) == 0)
            ep->carrier->tell(ep, true);
    }
}

/* Is a message from the peer under way over its VI for payload? */
static bool is_awaiting(const struct scivia_ep *ep)
{
    const struct scivia_dev *dev = scivia_dev_of(ep);
    const struct scivia_xfer *xfer;
    uint32_t place = 0;

    while ((xfer = chempi_handle_table_next(&dev->rndv.xfers, &place)) !=
           NULL) {
        if (scivia_ep_of(xfer) == ep && xfer->base.rx &&
            xfer->way != SCIVIA_WAY_RING &&
            (xfer->base.state == CHEMPI_RNDV_WAITING ||
             xfer->base.state == CHEMPI_RNDV_CONTROL))
            return true;
    }
    return false;
}

/*
 * Descriptors cannot be taken back but by ending their connection. The peer
 * asks for another one when it has something to send; without buffers it then
 * serves RDMA alone.
 */
static void withdraw(struct scivia_dev *dev)
{
    CHEMPI_LIST_FOR (node, &dev->used) {
        struct scivia_ep *ep =
            CHEMPI_CONTAINER_OF(node, struct scivia_ep, used_link);

        if (!chempi_scivia_memory_is_over(dev))
            return;
        if (!ep->rx_handle || is_awaiting(ep))
            continue;
        chempi_scivia_rndv_drop_rx(ep);
        chempi_scivia_memory_deregister(dev, ep->rx_handle, RECEIVE_BYTES);
        ep->rx_handle = 0;
        ep->rx_posted = 0;
    }
}

void chempi_scivia_pair_withdraw(struct scivia_dev *dev)
{
    chempi_scivia_memory_give(dev);
    withdraw(dev);
    chempi_scivia_memory_note_over(dev);
}

static int accept_vi(struct scivia_ep *ep, struct chempi_via_request *request)
{
    int rc;

    if (!scivia_dev_of(ep)->attributes.has_via)
        return -ENOTSUP;
    chempi_scivia_rndv_drop_rx(ep); /* the peer has given it up */
    rc = chempi_scivia_connect_receiver(ep, &ep->rx_vi);
    if (rc < 0)
        return rc;
    /* Without buffers RDMA still works; nothing is posted then. */
    (void)post_receives(ep);
    rc = chempi_via_connect_accept(request, ep->rx_vi);
    if (rc == 0)
        ep->carrier->tell(ep, true);
    return rc;
}

static int accept_request(struct scivia_ep *ep,
                          struct chempi_via_request *request)
{
    if (ep->is_broken || ep->is_gone)
        return -ECONNREFUSED;
    if (chempi_via_request_discriminator(request) ==
        SCIVIA_DISCRIMINATOR_FRAMES)
        return chempi_scivia_via_eager_accept(ep, request);
    return ep->told ? accept_vi(ep, request) : -ECONNREFUSED;
}

void chempi_scivia_pair_accept_vis(struct scivia_dev *dev)
{
    struct chempi_via_request *request;

    while ((request = chempi_via_connect_next(dev->adapter))) {
        uint32_t proc = chempi_via_request_user(request);
        struct scivia_ep *ep = proc < dev->base.params.services->proc_count
                                   ? dev->eps[proc]
                                   : NULL;

        int rc = ep ? accept_request(ep, request) : -EINVAL;

        if (rc == -EAGAIN) { /* it is still the oldest then */
            dev->is_awaiting = true;
            return;
        }
        if (rc < 0)
            chempi_via_connect_reject(request);
    }
}

/* --- what the adapter reports --- */

static bool reached(void *arg, uint32_t user, const void *address)
{
    struct scivia_dev *dev = arg;
    const struct chempi_services *services = dev->base.params.services;
    struct scivia_ep *ep = NULL;

    if (user >= services->proc_count || user == services->proc)
        return true; /* it finds nothing exported for it */
    if (chempi_scivia_endpoint_get(dev, user, &ep, &dev->base.err) < 0)
        return false;
    if (!ep->has_card)
        memcpy(ep->address, address, sizeof(ep->address));
    ep->has_card = true;
    ep->was_reached = true;
    if (!ep->is_tx_open && !ep->is_broken && !ep->is_gone)
        (void)chempi_scivia_connect_open(ep); /* tried again by advance() */
    return true;
}

static void down(void *arg, struct chempi_adapter_link *link, bool is_clean,
                 int status)
{
    struct scivia_ep *ep = chempi_adapter_link_tag(link);
    bool is_awaited;

    (void)arg;
    if (is_clean) {
        chempi_scivia_endpoint_end(ep, true);
        return;
    }
    unlink_peer(ep);
    chempi_adapter_link_close(link);
    /* It may lack memory. */
    is_awaited =
        status == -ECONNREFUSED && chempi_shortage_may_wait(&ep->shortage);
    if (is_hopeless(ep) && !is_awaited)
        chempi_scivia_endpoint_end(ep, false);
}

/* The peer mends its link. Whether there is still a peer is found out by
 * dialling it, if we have no link of our own that would tell. */
static void left(void *arg, uint32_t user, bool is_clean)
{
    struct scivia_dev *dev = arg;
    struct scivia_ep *ep =
        user < dev->base.params.services->proc_count ? dev->eps[user] : NULL;

    if (!ep)
        return;
    chempi_scivia_rndv_drop_rx(ep);
    chempi_scivia_via_eager_drop_rx(ep);
    if (is_clean)
        chempi_scivia_endpoint_end(ep, true);
    else if (!ep->at && !ep->is_broken && !ep->is_gone)
        chempi_scivia_endpoint_mend(ep);
}

static void error(void *arg, struct chempi_via_vi *vi, int status,
                  const char *text)
{
    struct scivia_ep *ep = chempi_via_vi_user(vi);

    (void)arg;
    (void)text;
    if (vi == ep->tx_vi && status == -ECONNREFUSED)
        ep->is_via_refused = true; /* the ring serves all */
    else if (vi == ep->tx_vi)
        ep->is_vi_broken = true;
    else if (vi == ep->frame_tx) {
        ep->is_frame_broken = true;
        ep->is_frame_refused = status == -ECONNREFUSED;
    }
    chempi_scivia_endpoint_mend(ep);
}

const struct chempi_adapter_events chempi_scivia_pair_events = {
    .reached = reached,
    .down = down,
    .left = left,
    .error = error,
};

/* --- the end --- */

int chempi_scivia_pair_report(struct scivia_ep *ep)
{
    struct scivia_dev *dev = scivia_dev_of(ep);
    const struct chempi_dev_params *params = &dev->base.params;
    bool is_lost = !ep->is_gone || !ep->is_clean;
    int status;

    if (ep->is_reported) {
        chempi_list_remove(&ep->busy_link);
        return 0;
    }
    ep->is_reported = true;
    chempi_list_remove(&ep->busy_link);
    chempi_list_remove(&ep->opening_link);
    chempi_scivia_endpoint_cool(ep);
    status = ep->is_gone && ep->is_clean ? -ESHUTDOWN
             : ep->is_broken             ? ep->broken_status
                                         : -ECONNRESET;
    if (!ep->is_broken)
        chempi_scivia_endpoint_break(ep, status, "its process has ended");
    chempi_list_remove(&ep->busy_link);
    if (ep->tx_vi)
        chempi_via_disconnect(ep->tx_vi); /* the card lets go of memory */
    if (ep->rx_vi)
        chempi_via_disconnect(ep->rx_vi);
    ep->carrier->fail(ep);
    (void)chempi_err_set(&dev->broken, status, "the SCI connection is gone: %s",
                         ep->broken_why);
    dev->base.err = dev->broken;
    chempi_rndv_fail(&ep->rndv, status);
    if (is_lost)
        params->sink->lost(params->sink_arg, ep->base.proc, status,
                           dev->broken.text);
    if (ep->wants_room) { /* whoever waits learns of it by trying */
        ep->wants_room = false;
        params->sink->room(params->sink_arg, &ep->base);
    }
    return 1;
}

void chempi_scivia_pair_fini(struct scivia_dev *dev)
{
    uint32_t count = dev->base.params.services->proc_count;

    for (uint32_t i = 0; dev->eps && i < count; i++) {
        struct scivia_ep *ep = dev->eps[i];

        if (!ep)
            continue;
        chempi_via_vi_destroy(ep->tx_vi);
        chempi_via_vi_destroy(ep->rx_vi); /* nothing is posted any more */
        chempi_scivia_memory_deregister(dev, ep->rx_handle, RECEIVE_BYTES);
        chempi_scivia_via_eager_fini(ep);
        free(ep->rx_buffers);
    }
    chempi_rndv_fini(&dev->rndv);
    for (uint32_t i = 0; dev->eps && i < count; i++)
        free(dev->eps[i]);
    free(dev->eps);
}
