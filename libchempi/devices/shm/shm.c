/* SPDX-License-Identifier: BSD-3-Clause */
/* The shm device's table of operations; see doc/devices-shm.md. */
#include "libchempi/devices/shm/shm.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "common/base/sys.h"
#include "libchempi/devices/shm/internal.h"

static struct shm_dev *to_shm(struct chempi_dev *dev)
{
    return (struct shm_dev *)dev;
}

static void shm_close(struct chempi_dev *base)
{
    struct shm_dev *dev = to_shm(base);

    if (!dev)
        return;
    chempi_rndv_fini(&dev->rndv);
    chempi_shm_endpoint_fini(dev);
    free(dev);
}

static int shm_open(const struct chempi_dev_params *params,
                    struct chempi_dev **out, struct chempi_err *err)
{
    struct shm_dev *dev = chempi_sys->calloc(1, sizeof(*dev));
    int rc;

    if (!dev)
        return chempi_err_set(err, -ENOMEM, "out of memory");
    dev->base.ops = &chempi_shm_ops;
    dev->base.params = *params;
    chempi_shm_panel_take(dev);
    dev->is_fixed = chempi_shm_choice_is_fixed(params->services->table);
    chempi_rndv_init(&dev->rndv, &chempi_shm_rndv_ops, &dev->base);
    chempi_list_init(&dev->busy);
    chempi_list_init(&dev->copying);
    chempi_list_init(&dev->helping);
    rc = chempi_shm_endpoint_init(dev, err);
    if (rc < 0) {
        shm_close(&dev->base);
        return rc;
    }
    *out = &dev->base;
    return 0;
}

static int shm_connect(struct chempi_dev *base, uint32_t proc,
                       struct chempi_ep **out, struct chempi_err *err)
{
    const struct chempi_services *services = base->params.services;
    struct shm_dev *dev = to_shm(base);

    if (proc >= services->proc_count || proc == services->proc ||
        services->node_of_proc[proc] != services->node ||
        services->local_rank_of_proc[proc] >= dev->local_size)
        return chempi_err_set(err, -EHOSTUNREACH,
                              "rank %u is not another process of this node",
                              (unsigned)proc);
    *out =
        &chempi_shm_endpoint_ep(dev, services->local_rank_of_proc[proc])->base;
    return 0;
}

static int shm_send(struct chempi_ep *base, struct chempi_tx *tx)
{
    uint64_t len = tx->env.len;

    if (len == 0 || (tx->protocol <= SHM_PROTOCOL_EAGER &&
                     len <= SHM_EAGER_MAX && !tx->needs_consent)) {
        if (tx->iter && len > 0)
            return chempi_shm_eager_inject_iter((struct shm_ep *)base, &tx->env,
                                                tx->iter, (size_t)len);
        return chempi_shm_eager_inject(base, &tx->env, tx->buf, (size_t)len,
                                       true);
    }
    return chempi_shm_rndv_send((struct shm_ep *)base, tx);
}

static int CHEMPI_NOINLINE work(struct shm_dev *dev)
{
    int events = chempi_shm_drain_serve(dev) + chempi_shm_copy_advance(dev);

    dev->has_work = !chempi_list_is_empty(&dev->busy) ||
                    !chempi_list_is_empty(&dev->copying) ||
                    !chempi_list_is_empty(&dev->helping);
    return events;
}

static int shm_progress(struct chempi_dev *base)
{
    struct shm_dev *dev = to_shm(base);
    int events = 0;

    for (uint32_t i = 0; i < dev->hot_count; i++) {
        if (chempi_shm_eager_has_any(dev->hot[i]))
            events += chempi_shm_drain_ring(dev->hot[i], dev->drain_budget);
    }
    if (CHEMPI_UNLIKELY(atomic_load_explicit(&dev->inbox->summary,
                                             memory_order_relaxed) != 0))
        events += chempi_shm_drain_hear(dev);
    if (CHEMPI_UNLIKELY(dev->has_work))
        events += work(dev);
    return events;
}

static bool shm_is_ready(struct chempi_dev *base)
{
    struct shm_dev *dev = to_shm(base);

    return chempi_shm_endpoint_is_ready(dev) || chempi_shm_copy_is_ready(dev) ||
           chempi_shm_drain_can_serve(dev);
}

/* Else nothing is reserved where its lines would be. */
static bool has_sent(const struct shm_dev *dev, const struct shm_ep *ep)
{
    return ep->rx_head != 0 || ep->is_hot ||
           chempi_shm_endpoint_has_rung(dev->inbox, ep->peer);
}

static enum chempi_remains shm_ended(struct chempi_dev *base, uint32_t proc)
{
    const struct chempi_services *services = base->params.services;
    struct shm_ep *ep;

    if (services->node_of_proc[proc] != services->node)
        return CHEMPI_REMAINS_NONE;
    (void)chempi_shm_drain_hear(to_shm(base)); /* what it had sent before */
    ep = chempi_shm_endpoint_ep(to_shm(base),
                                services->local_rank_of_proc[proc]);
    if (ep->is_broken)
        return CHEMPI_REMAINS_NONE;
    if (has_sent(to_shm(base), ep)) {
        (void)chempi_shm_drain_ring(ep, INT_MAX);
        if (!ep->is_broken && chempi_shm_eager_has_any(ep))
            return CHEMPI_REMAINS_LEFT;
    }
    (void)chempi_err_set(&base->err, -EPIPE, "its process has ended");
    chempi_shm_eager_give_up(ep, -EPIPE);
    return CHEMPI_REMAINS_NONE;
}

static bool shm_is_drained(struct chempi_dev *base)
{
    struct shm_dev *dev = to_shm(base);

    return dev->rndv.outgoing == 0 && chempi_list_is_empty(&dev->busy) &&
           chempi_list_is_empty(&dev->copying);
}

const struct chempi_dev_ops chempi_shm_ops = {
    .abi = CHEMPI_DEV_ABI,
    .name = "shm",
    .panel = &chempi_shm_panel,
    .open = shm_open,
    .card = chempi_dev_no_card,
    .connect = shm_connect,
    .card_arrived = chempi_dev_no_card_arrived,
    .inject = chempi_shm_eager_inject,
    .send = shm_send,
    .accept = chempi_rndv_accept,
    .drop = chempi_rndv_drop,
    .progress = shm_progress,
    .is_ready = shm_is_ready,
    .is_drained = shm_is_drained,
    .close = shm_close,
    .ended = shm_ended,
};
