/* SPDX-License-Identifier: BSD-3-Clause */
/* What an event sets off: connections that come into use, what may be written
 * and read, and the upcalls that are owed (T3). */
#include <sys/epoll.h>

#include "common/base/invariant.h"
#include "libchempi/devices/tcp/internal.h"

#define REST_TICK_NS 50000000L /* how often the rest is looked for */

static void watch_ticked(struct chempi_poll_item *item, uint32_t events)
{
    struct chempi_tcp_dev *dev =
        CHEMPI_CONTAINER_OF(item, struct chempi_tcp_dev, watch);

    chempi_pollset_ticked(item, events);
    chempi_list_splice(&dev->broken, &dev->awaited);
    dev->has_work = true;
    (void)chempi_tcp_work(dev);
}

enum chempi_remains chempi_tcp_work_rest(struct chempi_tcp_ep *ep)
{
    struct chempi_tcp_dev *dev = (struct chempi_tcp_dev *)(void *)ep->ep.dev;
    enum chempi_remains end = chempi_tcp_rest_take(ep);

    if (end == CHEMPI_REMAINS_COMING) {
        chempi_list_remove(&ep->broken_link);
        chempi_list_append(&dev->awaited, &ep->broken_link); /* T6 */
        if (chempi_pollset_tick(dev->dev.params.services->pollset, &dev->watch,
                                watch_ticked, REST_TICK_NS))
            end = CHEMPI_REMAINS_LEFT;
    }
    if (end == CHEMPI_REMAINS_LEFT)
        chempi_tcp_link_owe_reap(ep);
    return end;
}

static int work_broken(struct chempi_tcp_dev *dev)
{
    struct chempi_list now;
    int events = 0;

    chempi_list_init(&now);
    chempi_list_splice(&now, &dev->broken);
    while (!chempi_list_is_empty(&now)) {
        struct chempi_tcp_ep *ep = CHEMPI_CONTAINER_OF(
            chempi_list_first(&now), struct chempi_tcp_ep, broken_link);

        chempi_list_remove(&ep->broken_link);
        if (ep->is_lost && chempi_tcp_work_rest(ep) != CHEMPI_REMAINS_NONE)
            continue;
        chempi_tcp_link_reap(ep);
        if ((ep->is_lost || ep->has_finished) && !ep->is_told)
            chempi_list_append(&dev->lost, &ep->lost_link);
        ep->is_told = ep->is_lost || ep->has_finished;
        events++;
    }
    if (dev->watch.fd >= 0 && chempi_list_is_empty(&dev->awaited))
        chempi_pollset_untick(dev->dev.params.services->pollset, &dev->watch);
    return events;
}

static int work_flush(struct chempi_tcp_dev *dev)
{
    struct chempi_list now;
    int events = 0;

    chempi_list_init(&now);
    chempi_list_splice(&now, &dev->flush); /* each once: it may come again */
    while (!chempi_list_is_empty(&now)) {
        struct chempi_tcp_link *link = CHEMPI_CONTAINER_OF(
            chempi_list_first(&now), struct chempi_tcp_link, flush_link);

        chempi_list_remove(&link->flush_link);
        if (link->state == CHEMPI_TCP_IDLE) /* it waits to connect */
            link->item.ready(&link->item, 0);
        (void)chempi_rndv_flush(&link->rndv);
        chempi_tcp_eager_flush(link);
        events += !chempi_shortage_is(&link->sending);
    }
    return events;
}

static int work_done(struct chempi_tcp_dev *dev)
{
    const struct chempi_dev_params *p = &dev->dev.params;
    int events = 0;

    while (!chempi_list_is_empty(&dev->done)) {
        struct chempi_tx *tx = CHEMPI_CONTAINER_OF(
            chempi_list_first(&dev->done), struct chempi_tx, link);

        chempi_list_remove(&tx->link);
        p->sink->sent(p->sink_arg, tx,
                      (int)(int64_t)tx->priv[CHEMPI_TCP_TX_STATUS]);
        events++;
    }
    return events;
}

static bool is_poor(const struct chempi_tcp_ep *ep)
{
    bool is_poor = false;

    for (uint32_t i = 0; i < ep->link_count; i++)
        is_poor |= chempi_shortage_is(&ep->links[i]->sending);
    return is_poor;
}

static int work_room(struct chempi_tcp_dev *dev)
{
    const struct chempi_dev_params *p = &dev->dev.params;
    struct chempi_list now;
    int events = 0;

    chempi_list_init(&now);
    chempi_list_splice(&now, &dev->room);
    while (!chempi_list_is_empty(&now)) {
        struct chempi_tcp_ep *ep = CHEMPI_CONTAINER_OF(
            chempi_list_first(&now), struct chempi_tcp_ep, room_link);

        chempi_list_remove(&ep->room_link);
        ep->is_starved = false;
        for (uint32_t i = 0; i < ep->link_count; i++)
            ep->links[i]->has_refused = false;
        p->sink->room(p->sink_arg, &ep->ep);
        events += !chempi_rndv_is_poor(&dev->rndv) && !is_poor(ep);
    }
    return events;
}

/* lost() comes after everything of the endpoint has been reported. */
static int work_lost(struct chempi_tcp_dev *dev)
{
    const struct chempi_dev_params *p = &dev->dev.params;
    int events = 0;

    while (!chempi_list_is_empty(&dev->lost)) {
        struct chempi_tcp_ep *ep = CHEMPI_CONTAINER_OF(
            chempi_list_first(&dev->lost), struct chempi_tcp_ep, lost_link);

        chempi_list_remove(&ep->lost_link);
        if (ep->has_finished)
            p->sink->finished(p->sink_arg, ep->ep.proc, ep->why);
        else
            p->sink->lost(p->sink_arg, ep->ep.proc, ep->status, ep->why);
        events++;
    }
    return events;
}

int chempi_tcp_work(struct chempi_tcp_dev *dev)
{
    int events = 0;

    if (dev->is_working)
        return 0;
    dev->is_working = true;
    if (dev->has_work) {
        dev->has_work = false; /* whoever appends sets it again */
        events += chempi_tcp_drain_left(dev);
        events += work_flush(dev);
        events += work_broken(dev);
        events += work_done(dev);
        events += work_lost(dev);
        events += work_room(dev);
    }
    dev->is_working = false;
    return events;
}

/* ---- links ----------------------------------------------------------- */

static void link_ready(struct chempi_poll_item *item, uint32_t events)
{
    struct chempi_tcp_link *link =
        CHEMPI_CONTAINER_OF(item, struct chempi_tcp_link, item);
    struct chempi_tcp_dev *dev = chempi_tcp_dev_of(link);
    struct chempi_pollset *set = dev->dev.params.services->pollset;
    int done = 0;

    if (events & EPOLLOUT) {
        if ((link->state != CHEMPI_TCP_UP ||
             chempi_tcp_link_is_written(link)) &&
            chempi_pollset_modify(set, item, EPOLLIN) == 0)
            link->is_armed = false;
        chempi_tcp_eager_flush(link);
        done++;
    }
    if (events & ~(uint32_t)EPOLLOUT)
        done += chempi_tcp_drain_poll(link);
    done += chempi_tcp_work(dev);
    if (!done) /* what has been read waits for memory */
        chempi_pollset_in_vain(set);
    CHEMPI_CHECK(chempi_tcp_link_check(link));
}

void chempi_tcp_work_up(struct chempi_tcp_link *link, struct chempi_seal *seal)
{
    link->seal = seal;
    link->item.ready = link_ready;
    link->state = link->ep->is_lost ? CHEMPI_TCP_MUTE : CHEMPI_TCP_UP; /* T8 */
    chempi_shortage_end(&link->sending);
    chempi_tcp_dev_of(link)->opened++;
    link->is_blocked = false;
    link->is_armed = false;
    chempi_tcp_link_heat(link);
    if (!chempi_tcp_link_is_written(link))
        chempi_tcp_link_owe_flush(link); /* T5 */
    chempi_tcp_link_owe_room(link->ep);
}
