/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tcp device's operations; see ddi.h for what they owe, internal.h for the
 * invariants, doc/devices-tcp.md for the whole.
 */
#define _GNU_SOURCE /* TCP_QUICKACK */
#include "libchempi/devices/tcp/tcp.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "common/base/clock.h"
#include "common/base/sys.h"
#include "common/containers/sparse.h"
#include "libchempi/devices/tcp/internal.h"

/* How often acknowledgements are looked at: less and less often, for who owes
 * them may compute. */
#define DRAIN_TICK_NS 1000000L
#define DRAIN_TICK_MAX_NS 64000000L
#define LAST_READS 64 /* reads of what nobody wants any more */
/* A hot link that finds nothing is read at every 8th, then at every 64th call
 * only; epoll finds it in between. */
#define WARM_MASK 7u
#define COOL_MASK 63u

static struct chempi_tcp_dev *dev_of(struct chempi_dev *dev)
{
    return (struct chempi_tcp_dev *)(void *)dev;
}

static struct chempi_tcp_ep *ep_of(struct chempi_ep *ep)
{
    return (struct chempi_tcp_ep *)(void *)ep;
}

static void tcp_close(struct chempi_dev *dev);

/* Gateways have the job's secret, too, and not the key of ranks: they prove who
 * they are to ranks, and none of them can pose as a rank. */
static int make_keys(struct chempi_tcp_dev *dev)
{
    const struct chempi_services *s = dev->dev.params.services;

    if (s->bonds) /* each has its own */
        return 0;
    dev->keys = chempi_tcp_proof_make_keys(s->secret);
    if (!s->rank_key || !dev->keys)
        return dev->keys ? 0 : -ENOMEM;
    dev->rank_keys = chempi_tcp_proof_make_rank_keys(s->rank_key);
    return dev->rank_keys ? 0 : -ENOMEM;
}

static int tcp_open(const struct chempi_dev_params *params,
                    struct chempi_dev **out, struct chempi_err *err)
{
    struct chempi_tcp_dev *dev = chempi_sys->calloc(1, sizeof(*dev));
    int rc;

    if (!dev)
        return chempi_err_set(err, -ENOMEM, "out of memory for device tcp");
    dev->dev = (struct chempi_dev){.ops = &chempi_tcp_ops, .params = *params};
    chempi_tcp_panel_take(dev);
    chempi_list_init(&dev->left);
    chempi_list_init(&dev->flush);
    chempi_list_init(&dev->done);
    chempi_list_init(&dev->room);
    chempi_list_init(&dev->broken);
    chempi_list_init(&dev->lost);
    chempi_list_init(&dev->awaited);
    chempi_list_init(&dev->guests);
    chempi_rndv_init(&dev->rndv, &chempi_tcp_rndv_ops, &dev->dev);
    dev->reserve_fd = -1;
    dev->timer.fd = -1;
    dev->watch.fd = -1;
    dev->eps = chempi_sparse_alloc(chempi_tcp_tie_max(params->services),
                                   sizeof(struct chempi_tcp_ep *));
    if (chempi_dev_setting(&dev->dev, CHEMPI_TCP_SET_SECURE) &&
        make_keys(dev)) {
        tcp_close(&dev->dev);
        return chempi_err_set(err, -ENOMEM,
                              "no memory for the keys of device tcp");
    }
    rc = dev->eps ? chempi_tcp_listen_open(dev, err)
                  : chempi_err_set(err, -ENOMEM,
                                   "out of memory for device "
                                   "tcp");
    if (rc) {
        tcp_close(&dev->dev);
        return rc;
    }
    *out = &dev->dev;
    return 0;
}

static int tcp_card(struct chempi_dev *dev, void *buf, size_t *len)
{
    uint8_t card[CHEMPI_TCP_CARD_BYTES];
    size_t n = chempi_tcp_card_put(&dev_of(dev)->card, card);

    if (n > *len)
        return -ENOSPC;
    memcpy(buf, card, n);
    *len = n;
    return 0;
}

static int tcp_connect(struct chempi_dev *dev, uint32_t proc,
                       struct chempi_ep **out, struct chempi_err *err)
{
    struct chempi_tcp_ep *ep;
    int rc = chempi_tcp_endpoint_get(dev_of(dev), proc, &ep, err);

    if (rc)
        return rc;
    *out = &ep->ep;
    return 0;
}

static int tcp_card_arrived(struct chempi_ep *ep, const void *card, size_t len,
                            struct chempi_err *err)
{
    struct chempi_tcp_ep *e = ep_of(ep);
    struct chempi_tcp_card parsed;
    char who[CHEMPI_TCP_WHO_MAX];

    if (e->card_len)
        return 0;
    if (chempi_tcp_card_get(card, len, &parsed) != 0)
        return chempi_err_set(
            err, -EBADMSG, "the tcp address of %s is malformed",
            chempi_tcp_tie_words(ep->dev->params.services, ep->proc, who));
    memcpy(e->card, card, len); /* at most what it may have */
    e->card_len = len;
    chempi_tcp_link_owe_room(e);
    return 0;
}

/* The link for len bytes, dialled if need be; 0, -EAGAIN or what broke. */
static int find_link(struct chempi_tcp_ep *ep, uint64_t len,
                     struct chempi_tcp_link **out)
{
    const struct chempi_tcp_route *route = ep->routes;

    while (CHEMPI_UNLIKELY(len > route->max_len))
        route++;
    *out = route->link;
    if (CHEMPI_LIKELY(route->link->state == CHEMPI_TCP_UP))
        return 0;
    if (ep->status)
        return chempi_err_set(&ep->ep.dev->err, ep->status, "%s", ep->why);
    if (route->link->state != CHEMPI_TCP_IDLE)
        return 0;
    if (!ep->card_len) {
        ep->is_starved = true;
        return -EAGAIN;
    }
    chempi_tcp_connect_start(route->link);
    return ep->status;
}

/* -EAGAIN is said. */
static void refuse(struct chempi_tcp_link *link)
{
    link->has_refused = true;
    link->ep->is_starved = true;
}

/* Nothing has been taken. Without memory there is no room, for a while. */
static CHEMPI_COLD int has_no_room(struct chempi_tcp_link *link, int rc)
{
    if (rc != -EAGAIN && rc != -ENOMEM)
        return rc;
    if (rc == -ENOMEM && !chempi_shortage_may_wait(&link->sending))
        return rc;
    refuse(link);
    if (rc == -ENOMEM)
        chempi_tcp_link_owe_room(link->ep);
    return -EAGAIN;
}

static int tcp_inject(struct chempi_ep *ep, const struct chempi_envelope *env,
                      const void *data, size_t len, bool may_keep)
{
    struct chempi_tcp_link *link;
    int rc = find_link(ep_of(ep), len, &link);

    if (CHEMPI_UNLIKELY(rc))
        return rc;
    rc = chempi_tcp_eager_inject(link, env, data, may_keep);
    return CHEMPI_UNLIKELY(rc < 0) ? has_no_room(link, rc) : rc;
}

static int tcp_send(struct chempi_ep *ep, struct chempi_tx *tx)
{
    struct chempi_tcp_link *link;
    int rc = find_link(ep_of(ep), tx->env.len, &link);

    if (CHEMPI_UNLIKELY(rc))
        return rc;
    tx->ep = ep;
    rc = chempi_tcp_eager_send(link, tx);
    if (rc == -EAGAIN)
        refuse(link);
    return rc;
}

/* ---- progress -------------------------------------------------------- */

/* Is it this link's turn to be read without asking epoll? */
static bool is_due(const struct chempi_tcp_dev *dev,
                   const struct chempi_tcp_link *link)
{
    if (link->misses < chempi_tcp_setting(link, CHEMPI_TCP_SET_WARM_MISSES))
        return true;
    return (dev->tick &
            (link->misses < chempi_tcp_setting(link, CHEMPI_TCP_SET_COOL_MISSES)
                 ? WARM_MASK
                 : COOL_MASK)) == 0;
}

static int tcp_progress(struct chempi_dev *d)
{
    struct chempi_tcp_dev *dev = dev_of(d);
    int events = 0;

    dev->tick++;
    for (size_t i = 0; i < CHEMPI_TCP_HOT_MAX; i++) {
        struct chempi_tcp_link *link = dev->hot[i];

        if (!link || !is_due(dev, link))
            continue;
        link->misses++;
        events += chempi_tcp_drain_poll(link);
        if (link->state == CHEMPI_TCP_UP && link->is_blocked &&
            !chempi_tcp_link_is_written(link))
            chempi_tcp_eager_flush(link);
    }
    if (dev->has_work)
        events += chempi_tcp_work(dev);
    return events;
}

static bool tcp_is_ready(struct chempi_dev *dev)
{
    return dev_of(dev)->has_work; /* the rest is epoll's */
}

/* ---- the end --------------------------------------------------------- */

/* Everything written on this link has reached the peer's kernel, where it
 * stays readable whatever becomes of this process. */
static bool is_link_drained(struct chempi_tcp_link *link)
{
    const int one = 1;
    int unacked;

    if (link->state >= CHEMPI_TCP_ENDED || link->ep->is_lost) /* T8 */
        return true;
    if (!chempi_tcp_link_is_written(link))
        return false;
    if (link->state != CHEMPI_TCP_UP)
        return true;
    /* The peer may be waiting for the same: acknowledge at once. */
    (void)setsockopt(link->item.fd, IPPROTO_TCP, TCP_QUICKACK, &one,
                     sizeof(one)); /* else it is some milliseconds later */
    if (!link->is_acked)
        link->is_acked =
            ioctl(link->item.fd, SIOCOUTQ, &unacked) < 0 || unacked == 0;
    return link->is_acked;
}

static void drain_ticked(struct chempi_poll_item *item, uint32_t events)
{
    struct chempi_tcp_dev *dev =
        CHEMPI_CONTAINER_OF(item, struct chempi_tcp_dev, timer);

    chempi_pollset_ticked(item, events);
    if (dev->timer_ns >= DRAIN_TICK_MAX_NS)
        return;
    dev->timer_ns += dev->timer_ns / 4;
    chempi_pollset_pace(item, dev->timer_ns);
}

static bool tcp_is_drained(struct chempi_dev *d)
{
    struct chempi_pollset *set = d->params.services->pollset;
    struct chempi_tcp_dev *dev = dev_of(d);
    const uint32_t end = chempi_tcp_tie_end(d->params.services);
    bool is_drained = !dev->has_work && dev->rndv.outgoing == 0;

    for (uint32_t p = 0; p < end; p++) {
        const struct chempi_tcp_ep *ep = dev->eps[p];

        for (uint32_t i = 0; ep && i < ep->link_count; i++)
            is_drained = is_link_drained(ep->links[i]) && is_drained;
    }
    /* No descriptor tells when the peer has acknowledged: look every so often;
     * without the timer, has_work keeps the process awake. */
    if (is_drained) {
        chempi_pollset_untick(set, &dev->timer);
        return true;
    }
    if (dev->timer.fd < 0)
        dev->timer_ns = DRAIN_TICK_NS;
    if (chempi_pollset_tick(set, &dev->timer, drain_ticked, dev->timer_ns))
        dev->has_work = true;
    return false;
}

/* What it had sent comes first, also over a connection for which it had just
 * given its last word. */
static enum chempi_remains tcp_ended(struct chempi_dev *d, uint32_t proc)
{
    struct chempi_tcp_ep *ep = dev_of(d)->eps[proc];
    enum chempi_remains end;

    if (!ep)
        return CHEMPI_REMAINS_NONE;
    ep->is_unread = false; /* it counts as lost already */
    chempi_tcp_link_lose(ep, -ECONNRESET, "its process has ended");
    end = chempi_tcp_work_rest(ep);
    if (end == CHEMPI_REMAINS_NONE && ep->is_lost && !ep->is_told)
        chempi_tcp_link_owe_reap(ep);
    return end;
}

/* Say BYE, and take what has come, so that the kernel ends the connection in
 * order instead of resetting it. */
static void leave(struct chempi_tcp_dev *dev, struct chempi_tcp_link *link)
{
    uint8_t frame[CHEMPI_TCP_FIXED_MAX];
    struct iovec bye;
    ssize_t n = 1;

    if (link->state != CHEMPI_TCP_UP)
        return;
    bye = (struct iovec){.iov_base = frame,
                         .iov_len = chempi_tcp_wire_put_bye(frame)};
    if (link->seal && chempi_tcp_link_is_written(link))
        (void)chempi_tcp_sealed_write(link, &bye, 1); /* a courtesy */
    else if (chempi_tcp_link_is_written(link))
        (void)chempi_sys->send(link->item.fd, bye.iov_base, bye.iov_len,
                               MSG_NOSIGNAL | MSG_DONTWAIT); /* the same */
    (void)shutdown(link->item.fd, SHUT_WR); /* close() follows anyway */
    for (int i = 0; i < LAST_READS && n > 0; i++)
        n = chempi_sys->recv(link->item.fd, dev->rbuf, sizeof(dev->rbuf),
                             MSG_DONTWAIT);
}

static void tcp_close(struct chempi_dev *d)
{
    struct chempi_tcp_dev *dev = dev_of(d);
    uint32_t count;

    if (!dev)
        return;
    count = chempi_tcp_tie_end(d->params.services);
    for (uint32_t p = 0; dev->eps && p < count; p++) {
        const struct chempi_tcp_ep *ep = dev->eps[p];

        for (uint32_t i = 0; ep && i < ep->link_count; i++)
            leave(dev, ep->links[i]);
    }
    chempi_rndv_fini(&dev->rndv); /* its transfers name links */
    for (uint32_t p = 0; dev->eps && p < count; p++)
        chempi_tcp_endpoint_destroy(dev->eps[p]);
    chempi_tcp_listen_close(dev);
    chempi_pollset_untick(d->params.services->pollset, &dev->timer);
    chempi_pollset_untick(d->params.services->pollset, &dev->watch);
    chempi_tcp_proof_forget_keys(dev->keys);
    chempi_tcp_proof_forget_keys(dev->rank_keys);
    chempi_sparse_free(dev->eps, chempi_tcp_tie_max(d->params.services),
                       sizeof(struct chempi_tcp_ep *));
    free(dev->spare.data);
    free(dev);
}

const struct chempi_dev_ops chempi_tcp_ops = {
    .abi = CHEMPI_DEV_ABI,
    .name = "tcp",
    .panel = &chempi_tcp_panel,
    .open = tcp_open,
    .card = tcp_card,
    .connect = tcp_connect,
    .card_arrived = tcp_card_arrived,
    .inject = tcp_inject,
    .send = tcp_send,
    .accept = chempi_rndv_accept,
    .drop = chempi_rndv_drop,
    .progress = tcp_progress,
    .is_ready = tcp_is_ready,
    .is_drained = tcp_is_drained,
    .close = tcp_close,
    .ended = tcp_ended,
};
