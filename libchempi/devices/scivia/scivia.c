/* SPDX-License-Identifier: BSD-3-Clause */
/* The scivia device's table of operations; see doc/scivia.md. */
#define _GNU_SOURCE /* timerfd */
#include "libchempi/devices/scivia/scivia.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/sys.h"
#include "libchempi/devices/scivia/internal.h"

/* How long lines may stay untold before they are rung again, ms. */
#define AGAIN_MIN_MS 2u
#define AGAIN_MAX_MS 1000u
/* How long who sleeps may miss what it was not called for, ms. */
#define LOOK_MAX_MS 100u
/* Every how many polls in vain that is looked at; a power of two. */
#define AGAIN_POLLS 64u

static struct scivia_dev *to_scivia(struct chempi_dev *dev)
{
    return (struct scivia_dev *)dev;
}

/* --- open and close --- */

static void scivia_close(struct chempi_dev *base)
{
    struct scivia_dev *dev = to_scivia(base);

    if (!dev)
        return;
    if (dev->is_watched)
        chempi_pollset_remove(dev->base.params.services->pollset, &dev->item);
    if (dev->is_timed)
        chempi_pollset_remove(dev->base.params.services->pollset, &dev->timer);
    if (dev->timer.fd >= 0)
        (void)close(dev->timer.fd); /* nothing is buffered */
    chempi_scivia_pair_fini(dev);
    chempi_scivia_via_eager_free(dev);
    chempi_scivia_memory_fini(dev);
    if (dev->cq)
        (void)chempi_via_cq_destroy(dev->cq); /* its VIs are gone */
    chempi_adapter_close(dev->adapter);
    free(dev->own_inbox);
    free(dev);
}

static void serve_adapter(struct scivia_dev *dev)
{
    (void)chempi_adapter_service(dev->adapter);
    chempi_scivia_pair_accept_vis(dev);
    dev->is_armed = false;
    dev->has_work = true;
}

static void adapter_ready(struct chempi_poll_item *item, uint32_t events)
{
    (void)events;
    serve_adapter(CHEMPI_CONTAINER_OF(item, struct scivia_dev, item));
}

static bool is_untold(const struct scivia_ep *ep)
{
    return ep->in && ep->is_tx_open && !ep->is_broken && !ep->is_gone &&
           atomic_load_explicit(&ep->in->told.lines, memory_order_relaxed) !=
               ep->tx_head;
}

/* Lines are still not told: perhaps an interrupt was lost. (Who sleeps has told
 * all that it has taken, so nobody is waked for nothing.) Were there any? */
static bool ring_again(struct scivia_dev *dev)
{
    bool is_any = false;

    CHEMPI_LIST_FOR (node, &dev->used) {
        struct scivia_ep *ep =
            CHEMPI_CONTAINER_OF(node, struct scivia_ep, used_link);

        if (!is_untold(ep))
            continue;
        is_any = true;
        chempi_scivia_sci_eager_wake(ep);
    }
    return is_any;
}

static uint32_t twice(uint32_t ms, uint32_t max_ms)
{
    return ms < max_ms / 2 ? ms * 2 : max_ms;
}

static void timer_ready(struct chempi_poll_item *item, uint32_t events)
{
    struct scivia_dev *dev =
        CHEMPI_CONTAINER_OF(item, struct scivia_dev, timer);
    uint64_t count;

    (void)events;
    (void)chempi_sys->read(item->fd, &count, sizeof(count));
    if (ring_again(dev))
        dev->timer_ms = twice(dev->timer_ms, AGAIN_MAX_MS);
    else if (dev->attributes.loses_interrupts)
        dev->timer_ms = twice(dev->timer_ms, LOOK_MAX_MS);
    else
        dev->timer_ms = AGAIN_MIN_MS;
}

static int watch(struct scivia_dev *dev, struct chempi_err *err)
{
    struct chempi_pollset *set = dev->base.params.services->pollset;
    int rc;

    dev->item.fd = chempi_adapter_fd(dev->adapter);
    dev->item.ready = adapter_ready;
    dev->timer.ready = timer_ready;
    dev->timer_ms = AGAIN_MIN_MS;
    dev->again_ms = AGAIN_MIN_MS;
    rc = chempi_pollset_add(set, &dev->item, EPOLLIN);
    dev->is_watched = rc == 0;
    if (rc == 0) {
        dev->timer.fd =
            timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
        rc = dev->timer.fd < 0 ? -errno
                               : chempi_pollset_add(set, &dev->timer, EPOLLIN);
        dev->is_timed = rc == 0;
    }
    return rc < 0 ? chempi_err_set(err, rc, "cannot watch the adapter: %s",
                                   chempi_err_name(rc))
                  : 0;
}

static int open_adapter(struct scivia_dev *dev, struct chempi_err *err)
{
    const struct chempi_services *services = dev->base.params.services;
    const char *personality = getenv("CHEMPI_SCIVIA_PERSONALITY");
    const char *faults = getenv("CHEMPI_SCIVIA_FAULTS");
    struct chempi_personality model;
    struct chempi_adapter_params params = {
        .user = services->proc,
        .is_registered = services->is_wake_registered,
        .without_sci = !chempi_scivia_endpoint_has_sci(
            services, services->node_names[services->node],
            services->node_names[services->node]),
        .lock_budget_bytes =
            chempi_dev_setting(&dev->base, SCIVIA_SETTING_REGISTERED_MAX),
        .events = &chempi_scivia_pair_events,
        .arg = dev,
    };
    int rc = 0;

    if (personality && *personality) {
        rc = chempi_personality_load(personality, &model, err);
        params.personality = &model;
    }
    if (rc == 0 && faults)
        rc = chempi_faults_parse(faults, &params.faults, err);
    if (rc == 0)
        rc = chempi_adapter_open(&params, &dev->adapter, err);
    if (rc < 0)
        return rc;
    chempi_adapter_attributes(dev->adapter, &dev->attributes);
    if (!dev->attributes.has_sci && !dev->attributes.has_via)
        return chempi_err_set(err, -ENOTSUP, "adapter %s has neither half",
                              dev->attributes.name);
    chempi_scivia_panel_take(dev);
    return 0;
}

/* What the others connect to first, and the interrupt that wakes us. */
static int export_inbox(struct scivia_dev *dev)
{
    const struct chempi_services *services = dev->base.params.services;
    uint64_t len = sizeof(struct scivia_inbox) +
                   (uint64_t)services->proc_count * sizeof(uint32_t);
    int rc;

    memcpy(&dev->tag, services->secret, sizeof(dev->tag));
    rc = chempi_sci_segment_create(dev->adapter, SCIVIA_SEGMENT_INBOX, len,
                                   dev->tag, &dev->inbox_segment);
    if (rc == 0)
        rc = chempi_sci_segment_prepare(dev->inbox_segment);
    if (rc == 0)
        rc = chempi_sci_segment_set_available(dev->inbox_segment);
    if (rc == 0) {
        dev->inbox = chempi_sci_segment_memory(dev->inbox_segment);
        rc = chempi_sci_interrupt_create(dev->adapter, 0);
    }
    return rc;
}

/* Without an SCI half nobody rings, but the bells are looked at. */
static int make_inbox(struct scivia_dev *dev)
{
    size_t len = sizeof(struct scivia_inbox) +
                 dev->base.params.services->proc_count * sizeof(uint32_t);
    void *memory = NULL;
    int rc = 0;

    if (dev->attributes.has_sci) {
        rc = export_inbox(dev);
    } else if (chempi_sys->posix_memalign(&memory, CHEMPI_CACHE_LINE, len) ==
               0) {
        memset(memory, 0, len);
        dev->inbox = dev->own_inbox = memory;
    } else {
        rc = -ENOMEM;
    }
    if (rc == 0 && dev->attributes.has_via)
        rc = chempi_via_ptag_create(dev->adapter, &dev->ptag);
    if (rc == 0)
        rc = chempi_via_cq_create(dev->adapter, &dev->cq);
    return rc;
}

static int scivia_open(const struct chempi_dev_params *params,
                       struct chempi_dev **out, struct chempi_err *err)
{
    struct scivia_dev *dev = chempi_sys->calloc(1, sizeof(*dev));
    int rc;

    if (!dev)
        return chempi_err_set(err, -ENOMEM, "out of memory");
    dev->base.ops = &chempi_scivia_ops;
    dev->base.params = *params;
    dev->timer.fd = -1;
    dev->carriers[false] = &chempi_scivia_sci_eager;
    dev->carriers[true] = &chempi_scivia_via_eager;
    chempi_rndv_init(&dev->rndv, &chempi_scivia_rndv_ops, &dev->base);
    chempi_list_init(&dev->opening);
    chempi_list_init(&dev->busy);
    chempi_list_init(&dev->used);
    chempi_list_init(&dev->slot_free);
    dev->eps = chempi_sys->calloc(params->services->proc_count,
                                  sizeof(struct scivia_ep *));
    rc = dev->eps ? open_adapter(dev, err)
                  : chempi_err_set(err, -ENOMEM, "out of memory");
    if (rc == 0) {
        rc = make_inbox(dev);
        if (rc == 0)
            rc = chempi_scivia_memory_init(dev, err);
        else if (err)
            *err = *chempi_adapter_words(dev->adapter);
    }
    if (rc == 0)
        rc = watch(dev, err);
    if (rc < 0) {
        scivia_close(&dev->base);
        return rc;
    }
    *out = &dev->base;
    return 0;
}

/* --- connections --- */

static int scivia_card(struct chempi_dev *base, void *buf, size_t *len)
{
    if (*len < CHEMPI_ADAPTER_ADDRESS_BYTES)
        return -ENOSPC;
    chempi_adapter_address(to_scivia(base)->adapter, buf);
    *len = CHEMPI_ADAPTER_ADDRESS_BYTES;
    return 0;
}

static int scivia_connect(struct chempi_dev *base, uint32_t proc,
                          struct chempi_ep **out, struct chempi_err *err)
{
    const struct chempi_services *services = base->params.services;
    struct scivia_ep *ep;
    int rc;

    if (proc >= services->proc_count || proc == services->proc)
        return chempi_err_set(err, -EHOSTUNREACH,
                              "process %u is not another one of this job",
                              (unsigned)proc);
    rc = chempi_scivia_endpoint_get(to_scivia(base), proc, &ep, err);
    if (rc == 0)
        *out = &ep->base;
    return rc;
}

static int scivia_card_arrived(struct chempi_ep *base, const void *card,
                               size_t len, struct chempi_err *err)
{
    struct scivia_ep *ep = (struct scivia_ep *)base;

    if (len != CHEMPI_ADAPTER_ADDRESS_BYTES)
        return chempi_err_set(err, -EPROTO,
                              "rank %u sent no address of an SCI adapter",
                              (unsigned)base->proc);
    if (ep->has_card)
        return 0; /* its link was faster */
    memcpy(ep->address, card, len);
    ep->has_card = true;
    /* Who waits for room is opened from progress. */
    scivia_dev_of(ep)->has_work = true;
    return 0;
}

/* --- messages --- */

static int scivia_send(struct chempi_ep *base, struct chempi_tx *tx)
{
    uint64_t len = tx->env.len;

    if (len == 0 || (tx->protocol <= SCIVIA_PROTOCOL_SEND &&
                     len <= SCIVIA_EAGER_MAX && !tx->needs_consent)) {
        if (tx->iter && len > 0)
            return chempi_scivia_eager_inject_iter(
                (struct scivia_ep *)base, &tx->env, tx->iter, (size_t)len);
        return chempi_scivia_eager_inject(base, &tx->env, tx->buf, (size_t)len,
                                          tx->may_keep);
    }
    return chempi_scivia_rndv_send((struct scivia_ep *)base, tx);
}

/* --- progress --- */

static bool is_drained(const struct scivia_dev *dev)
{
    return dev->rndv.outgoing == 0 && dev->unsent == 0 &&
           chempi_list_is_empty(&dev->busy);
}

static int CHEMPI_NOINLINE work(struct scivia_dev *dev)
{
    bool was_drained = is_drained(dev);
    int events;

    if (dev->is_over_share)
        chempi_scivia_pair_withdraw(dev);
    if (dev->has_new_share) {
        dev->has_new_share = false;
        if (dev->stage_handle)
            chempi_scivia_pair_post(dev);
    }
    if (dev->is_awaiting) {
        dev->is_awaiting = false;
        chempi_scivia_pair_accept_vis(dev);
    }
    /* First, so that what the card finishes now is taken back below: who
     * sleeps after this finds the card idle and nothing left with it. */
    if (chempi_adapter_is_busy(dev->adapter))
        serve_adapter(dev);
    events = chempi_scivia_pair_advance(dev);
    events += chempi_scivia_drain_serve(dev);
    /* Whoever waits for that must look again. A frame that is sent here may be
     * with the peer at once, and an endpoint may have nothing to do any more
     * without anything that has happened. */
    events += !was_drained && is_drained(dev);
    dev->has_work = !chempi_list_is_empty(&dev->busy) ||
                    !chempi_list_is_empty(&dev->opening) ||
                    chempi_adapter_has_posts(dev->adapter) ||
                    chempi_adapter_is_busy(dev->adapter);
    return events;
}

/* Lines told and taken, by this endpoint. */
static uint32_t went_by(const struct scivia_ep *ep)
{
    return ep->rx_head + (ep->in ? atomic_load_explicit(&ep->in->told.lines,
                                                        memory_order_relaxed)
                                 : 0);
}

/* Who only polls sets no timer, and waits for those that sleep as well. Whoever
 * computes is rung ever more rarely. */
static void CHEMPI_NOINLINE look_again(struct scivia_dev *dev)
{
    uint64_t now_ns = chempi_clock_ns();
    uint32_t went = 0;

    if (now_ns - dev->again_ns < dev->again_ms * UINT64_C(1000000))
        return;
    CHEMPI_LIST_FOR (node, &dev->used)
        went += went_by(CHEMPI_CONTAINER_OF(node, struct scivia_ep, used_link));
    if (went != dev->again_went)
        dev->again_ms = AGAIN_MIN_MS; /* a new wait, not a longer one */
    dev->again_went = went;
    dev->again_ns = now_ns;
    dev->again_ms =
        ring_again(dev) ? twice(dev->again_ms, AGAIN_MAX_MS) : AGAIN_MIN_MS;
}

static int scivia_progress(struct chempi_dev *base)
{
    struct scivia_dev *dev = to_scivia(base);
    int events = 0;

    if (CHEMPI_UNLIKELY(dev->is_armed)) {
        chempi_adapter_disarm(dev->adapter);
        dev->is_armed = false;
    }
    for (uint32_t i = 0; i < dev->hot_count; i++) {
        if (scivia_has_line(dev->hot[i]))
            events +=
                chempi_scivia_drain_ring(dev->hot[i], SCIVIA_DRAIN_BUDGET);
    }
    if (CHEMPI_UNLIKELY(atomic_load_explicit(&dev->inbox->exist,
                                             memory_order_relaxed) != 0))
        events += chempi_scivia_drain_hear(dev);
    events += chempi_scivia_drain_completed(dev);
    if (CHEMPI_UNLIKELY(dev->has_work))
        events += work(dev);
    if (events == 0 && CHEMPI_UNLIKELY(++dev->polls % AGAIN_POLLS == 0))
        look_again(dev);
    return events;
}

/* Something is awaited for which a lost interrupt could have been: lines that
 * were not heard of are rung again, and what has come or was told is looked at
 * again. */
static void set_timer(struct scivia_dev *dev)
{
    struct itimerspec when = {0};

    when.it_value.tv_sec = (time_t)(dev->timer_ms / 1000);
    when.it_value.tv_nsec = (long)(dev->timer_ms % 1000) * 1000000;
    (void)timerfd_settime(dev->timer.fd, 0, &when, NULL); /* cannot fail */
}

static bool scivia_is_ready(struct chempi_dev *base)
{
    struct scivia_dev *dev = to_scivia(base);
    /* Where interrupts get lost, who sleeps may have been called in vain, by
     * somebody who does not call MPI again before it has got an answer. */
    bool is_awaiting =
        dev->attributes.loses_interrupts || !chempi_list_is_empty(&dev->busy);
    uint32_t went = 0;
    bool is_recv;

    CHEMPI_LIST_FOR (node, &dev->used) {
        struct scivia_ep *ep =
            CHEMPI_CONTAINER_OF(node, struct scivia_ep, used_link);

        if (ep->in && (ep->rx_told != ep->rx_head || ep->is_mode_owed))
            ep->carrier->tell(ep, false);
        is_awaiting |= is_untold(ep);
        went += went_by(ep);
    }
    if (went != dev->went)
        dev->timer_ms = AGAIN_MIN_MS; /* a new wait, not a longer one */
    dev->went = went;
    dev->is_armed = true;
    chempi_adapter_arm(dev->adapter);
    for (uint32_t i = 0; i < dev->hot_count; i++) {
        if (scivia_has_line(dev->hot[i]))
            return true;
    }
    if (atomic_load_explicit(&dev->inbox->exist, memory_order_acquire) ||
        chempi_scivia_drain_can_serve(dev) ||
        chempi_scivia_pair_can_advance(dev) || dev->has_new_share ||
        chempi_via_cq_done(dev->cq, &is_recv) ||
        chempi_adapter_is_busy(dev->adapter))
        return true;
    if (is_awaiting)
        set_timer(dev);
    return false;
}

/* The adapter says that it has ended; this may be known earlier. */
static enum chempi_remains scivia_ended(struct chempi_dev *base, uint32_t proc)
{
    struct scivia_ep *ep = to_scivia(base)->eps[proc];

    return !ep || chempi_scivia_drain_rest(ep) ? CHEMPI_REMAINS_NONE
                                               : CHEMPI_REMAINS_LEFT;
}

static bool scivia_is_drained(struct chempi_dev *base)
{
    return is_drained(to_scivia(base));
}

const struct chempi_dev_ops chempi_scivia_ops = {
    .abi = CHEMPI_DEV_ABI,
    .name = "scivia",
    .panel = &chempi_scivia_panel,
    .open = scivia_open,
    .card = scivia_card,
    .connect = scivia_connect,
    .card_arrived = scivia_card_arrived,
    .inject = chempi_scivia_eager_inject,
    .send = scivia_send,
    .accept = chempi_rndv_accept,
    .drop = chempi_rndv_drop,
    .progress = scivia_progress,
    .is_ready = scivia_is_ready,
    .is_drained = scivia_is_drained,
    .close = scivia_close,
    .ended = scivia_ended,
};
