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

/* The link is up: connect to what the peer exports. */
static int import(struct scivia_ep *ep)
{
    struct scivia_dev *dev = scivia_dev_of(ep);
    uint32_t me = dev->base.params.services->proc;
    int rc = 0;

    if (!ep->out)
        rc = chempi_sci_connect(ep->at, SCIVIA_SEGMENT_PAIR(me), dev->tag,
                                &ep->out);
    if (rc == 0 && !ep->bell)
        rc = chempi_sci_connect(ep->at, SCIVIA_SEGMENT_INBOX, dev->tag,
                                &ep->bell);
    if (rc == 0)
        rc = chempi_sci_state(ep->out);
    if (rc == 0)
        rc = chempi_sci_state(ep->bell);
    if (rc == 0 && (chempi_sci_len(ep->out) < sizeof(struct scivia_pair) ||
                    chempi_sci_len(ep->bell) < sizeof(struct scivia_inbox) +
                                                   (me + 1) * sizeof(uint32_t)))
        rc = -EPROTO;
    return rc;
}

/* Count a connection that broke; true: once too often. Frames say themselves
 * when one went through; a line that is stored counts as gone, as the next one
 * that may be kept follows only when this one has arrived. */
static bool is_hopeless(struct scivia_ep *ep)
{
    uint32_t went = ep->tx_head + ep->rx_head;

    if (!ep->framed && went != ep->went)
        ep->breaks = 0;
    ep->went = went;
    scivia_dev_of(ep)->reconnects++;
    return ++ep->breaks > SCIVIA_BREAKS_MAX;
}

/* The link to the peer is gone, perhaps not its process. */
static void unlink_peer(struct scivia_ep *ep)
{
    chempi_scivia_eager_close(ep);
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
        chempi_scivia_eager_close(ep);
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

/* Returns true when something has changed, with *is_done when nothing is
 * missing any more. */
static bool open_lines(struct scivia_ep *ep, bool *is_done)
{
    int rc;

    *is_done = ep->is_tx_open;
    if (ep->is_tx_open)
        return false;
    rc = ep->framed ? chempi_scivia_via_eager_open(ep) : import(ep);
    if (rc == -EINPROGRESS || rc == -EAGAIN)
        return false;
    if (rc == -ENOTCONN)
        return false; /* the link's end will be told */
    if (rc < 0) {
        chempi_scivia_endpoint_break(ep, rc, "it exports nothing for us");
        return true;
    }
    chempi_scivia_eager_reopen(ep);
    *is_done = ep->is_tx_open;
    return true;
}

/* The VI for payload, if somebody waits for it. True: nothing is missing. */
static bool open_payload(struct scivia_ep *ep)
{
    if (!ep->tx_vi && !chempi_list_is_empty(&ep->rndv.pumping))
        (void)chempi_scivia_connect_via(ep); /* or the ring serves all */
    return !ep->tx_vi || ep->is_via_refused ||
           chempi_via_vi_state(ep->tx_vi) != CHEMPI_VIA_CONNECTING;
}

/* Returns true when something has changed. */
static bool advance(struct scivia_ep *ep)
{
    bool has_changed;
    bool is_done;
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
    if (chempi_link_state(ep->at) != 0)
        return false; /* or its end will be told */
    ep->was_reached = true;
    mend_vis(ep);
    has_changed = open_lines(ep, &is_done);
    if (ep->is_broken || !is_done || !open_payload(ep))
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

/* --- VIA --- */

/* Buffers for one-copy messages of this peer, posted. */
static int post_receives(struct scivia_ep *ep)
{
    struct scivia_dev *dev = scivia_dev_of(ep);
    void *memory = NULL;
    int rc = 0;

    ep->rx_posted = 0; /* should nothing be */
    if (!ep->rx_buffers &&
        chempi_sys->posix_memalign(&memory, PAGE, RECEIVE_BYTES) != 0)
        return -ENOMEM;
    if (!ep->rx_buffers)
        ep->rx_buffers = memory;
    if (!ep->rx_handle)
        rc = chempi_scivia_memory_register(dev, ep->rx_buffers, RECEIVE_BYTES,
                                           &ep->rx_handle);
    if (rc < 0)
        return rc;
    ep->rx_posted = 0; /* counted from the connection on */
    for (uint32_t i = 0; rc == 0 && i < SCIVIA_RECEIVES; i++) {
        ep->receives[i] = (struct chempi_via_descriptor){
            .op = CHEMPI_VIA_RECEIVE,
            .segment_count = 1,
            .segments = {{.addr = ep->rx_buffers + i * SCIVIA_CHUNK,
                          .handle = ep->rx_handle,
                          .len = SCIVIA_CHUNK}},
        };
        rc = chempi_via_post_recv(ep->rx_vi, &ep->receives[i]);
        ep->rx_posted += rc == 0;
    }
    return rc;
}

void chempi_scivia_pair_post(struct scivia_dev *dev)
{
    CHEMPI_LIST_FOR (node, &dev->used) {
        struct scivia_ep *ep =
            CHEMPI_CONTAINER_OF(node, struct scivia_ep, used_link);

        if (ep->rx_vi && !ep->rx_handle && !ep->is_broken && !ep->is_gone &&
            post_receives(ep) == 0)
            chempi_scivia_eager_tell(ep, true);
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
    struct scivia_dev *dev = scivia_dev_of(ep);
    struct chempi_via_attributes attributes = {
        .ptag = dev->ptag,
        .reliability = CHEMPI_VIA_RELIABLE_RECEPTION,
        .recv_cq = dev->cq,
        .user = ep,
    };
    int rc;

    if (!dev->attributes.has_via)
        return -ENOTSUP;
    chempi_scivia_rndv_drop_rx(ep); /* the peer has given it up */
    rc = chempi_via_vi_create(dev->adapter, &attributes, &ep->rx_vi);
    if (rc < 0)
        return rc;
    /* Without buffers RDMA still works; nothing is posted then. */
    (void)post_receives(ep);
    rc = chempi_via_connect_accept(request, ep->rx_vi);
    if (rc == 0)
        chempi_scivia_eager_tell(ep, true);
    return rc;
}

/* Without memory for frames nothing can be received from the peer, ever. */
static int accept_frames(struct scivia_ep *ep,
                         struct chempi_via_request *request)
{
    struct scivia_dev *dev = scivia_dev_of(ep);
    int rc;

    if (!ep->framed)
        return -EINVAL; /* its lines come by remote stores */
    rc = chempi_scivia_via_eager_init(ep);
    if (rc == 0)
        return chempi_scivia_take_accept(ep, request);
    if (rc == -EAGAIN)
        return rc;
    dev->refusal = dev->base.err;
    chempi_scivia_endpoint_break(ep, rc, dev->refusal.text);
    return rc;
}

static int accept_request(struct scivia_ep *ep,
                          struct chempi_via_request *request)
{
    if (ep->is_broken || ep->is_gone || (!ep->in && !ep->framed))
        return -ECONNREFUSED;
    if (chempi_via_request_discriminator(request) ==
        SCIVIA_DISCRIMINATOR_FRAMES)
        return accept_frames(ep, request);
    return accept_vi(ep, request);
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

static void reached(void *arg, uint32_t user, const void *address)
{
    struct scivia_dev *dev = arg;
    const struct chempi_services *services = dev->base.params.services;
    struct scivia_ep *ep = NULL;

    if (user >= services->proc_count || user == services->proc ||
        chempi_scivia_endpoint_get(dev, user, &ep, &dev->base.err) < 0)
        return; /* it finds nothing exported for it */
    if (!ep->has_card)
        memcpy(ep->address, address, sizeof(ep->address));
    ep->has_card = true;
    ep->was_reached = true;
    if (!ep->is_tx_open && !ep->is_broken && !ep->is_gone)
        (void)chempi_scivia_connect_open(ep); /* tried again by advance() */
}

static void down(void *arg, struct chempi_link *link, bool is_clean, int status)
{
    struct scivia_ep *ep = chempi_link_tag(link);

    (void)arg;
    (void)status;
    if (is_clean) {
        chempi_scivia_endpoint_end(ep, true);
        return;
    }
    unlink_peer(ep);
    chempi_link_close(link);
    if (is_hopeless(ep))
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
    chempi_scivia_take_drop_frames(ep);
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
    else if (ep->framed && vi == ep->framed->tx) {
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

static void forget_hot(struct scivia_ep *ep)
{
    struct scivia_dev *dev = scivia_dev_of(ep);

    for (uint32_t i = 0; i < dev->hot_count; i++) {
        if (dev->hot[i] == ep)
            dev->hot[i] = dev->hot[--dev->hot_count];
    }
    ep->is_hot = false;
}

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
    forget_hot(ep);
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
    if (ep->framed)
        chempi_scivia_via_eager_fail(ep);
    dev->unsent -= ep->has_unsent;
    ep->has_unsent = false;
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
        chempi_scivia_memory_deregister(dev, ep->rx_handle, RECEIVE_BYTES);
        chempi_via_vi_destroy(ep->tx_vi);
        chempi_via_vi_destroy(ep->rx_vi);
        chempi_scivia_via_eager_fini(ep);
        free(ep->rx_buffers);
    }
    chempi_rndv_fini(&dev->rndv);
    for (uint32_t i = 0; dev->eps && i < count; i++)
        free(dev->eps[i]);
    free(dev->eps);
}
