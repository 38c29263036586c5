/* SPDX-License-Identifier: BSD-3-Clause */
/* The shm device's table of operations; see doc/devices-shm.md. */
#include "libchempi/devices/shm/shm.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/sys.h"
#include "libchempi/devices/shm/internal.h"

static const char *const protocol_names[SHM_PROTOCOL_COUNT] = {
    [SHM_PROTOCOL_SHORT] = "short",
    [SHM_PROTOCOL_EAGER] = "eager",
    [SHM_PROTOCOL_SINGLE_COPY] = "single-copy",
    [SHM_PROTOCOL_PIPELINE] = "pipeline",
};
static const uint64_t protocol_max[SHM_PROTOCOL_COUNT] = {
    [SHM_PROTOCOL_SHORT] = SHM_INLINE_MAX,
    [SHM_PROTOCOL_EAGER] = SHM_EAGER_BEST,
    [SHM_PROTOCOL_SINGLE_COPY] = UINT64_MAX,
    [SHM_PROTOCOL_PIPELINE] = UINT64_MAX,
};

static const struct chempi_dev_caps shm_caps = {
    .protocols = protocol_names,
    .protocol_count = SHM_PROTOCOL_COUNT,
    .flags = CHEMPI_DEV_SAME_NODE,
    .inject_max = SHM_EAGER_BEST,
    .protocol_max = protocol_max,
    .eager_max = SHM_EAGER_MAX,
};

static const struct chempi_dev_panel shm_panel = {
    .text = "messages between processes of one node",
    .protocols = protocol_names,
    .protocol_count = SHM_PROTOCOL_COUNT,
};

static struct shm_dev *to_shm(struct chempi_dev *dev)
{
    return (struct shm_dev *)dev;
}

static void shm_close(struct chempi_dev *base)
{
    struct shm_dev *dev = to_shm(base);

    if (!dev)
        return;
    chempi_shm_rndv_fini(dev);
    if (dev->eps)
        (void)chempi_sys->munmap(dev->eps, dev->eps_len);
    free(dev->proc_of_local);
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
    dev->base.caps = &shm_caps;
    dev->base.params = *params;
    chempi_list_init(&dev->busy);
    chempi_list_init(&dev->copying);
    chempi_list_init(&dev->helping);
    chempi_list_init(&dev->xfer_free);
    rc = chempi_shm_area_init(dev, err);
    if (rc < 0) {
        shm_close(&dev->base);
        return rc;
    }
    *out = &dev->base;
    return 0;
}

static int shm_card(struct chempi_dev *dev, void *buf, size_t *len)
{
    (void)dev;
    (void)buf;
    *len = 0;
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
    *out = &chempi_shm_area_ep(dev, services->local_rank_of_proc[proc])->base;
    return 0;
}

static int shm_card_arrived(struct chempi_ep *ep, const void *card, size_t len,
                            struct chempi_err *err)
{
    (void)ep;
    (void)card;
    (void)len;
    return chempi_err_set(err, -EINVAL, "the shm device takes no address");
}

static int shm_send(struct chempi_ep *base, struct chempi_tx *tx)
{
    uint64_t len = tx->env.len;

    if (len == 0 || (tx->protocol <= SHM_PROTOCOL_EAGER &&
                     len <= SHM_EAGER_MAX && !tx->needs_consent)) {
        if (tx->iter && len > 0)
            return chempi_shm_ring_inject_iter((struct shm_ep *)base, &tx->env,
                                               tx->iter, (size_t)len);
        return chempi_shm_ring_inject(base, &tx->env, tx->buf, (size_t)len);
    }
    return chempi_shm_rndv_send((struct shm_ep *)base, tx, tx->protocol);
}

static int shm_accept(struct chempi_ep *ep, const uint64_t token[2],
                      struct chempi_rx *rx)
{
    return chempi_shm_rndv_accept((struct shm_ep *)ep, token[0], rx);
}

static void shm_drop(struct chempi_ep *ep, const uint64_t token[2])
{
    chempi_shm_rndv_drop((struct shm_ep *)ep, token[0]);
}

static int CHEMPI_NOINLINE work(struct shm_dev *dev)
{
    int events = chempi_shm_ring_serve(dev) + chempi_shm_copy_advance(dev);

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
        if (chempi_shm_ring_has_line(dev->hot[i]))
            events += chempi_shm_ring_drain(dev->hot[i], SHM_DRAIN_BUDGET);
    }
    if (CHEMPI_UNLIKELY(atomic_load_explicit(&dev->inbox->summary,
                                             memory_order_relaxed) != 0))
        events += chempi_shm_area_hear(dev);
    if (CHEMPI_UNLIKELY(dev->has_work))
        events += work(dev);
    return events;
}

static bool shm_is_ready(struct chempi_dev *base)
{
    struct shm_dev *dev = to_shm(base);

    return chempi_shm_area_is_ready(dev) || chempi_shm_copy_is_ready(dev) ||
           chempi_shm_ring_can_serve(dev);
}

static bool shm_is_drained(struct chempi_dev *base)
{
    struct shm_dev *dev = to_shm(base);

    return dev->outgoing == 0 && chempi_list_is_empty(&dev->busy) &&
           chempi_list_is_empty(&dev->copying);
}

const struct chempi_dev_ops chempi_shm_ops = {
    .abi = CHEMPI_DEV_ABI,
    .name = "shm",
    .panel = &shm_panel,
    .open = shm_open,
    .card = shm_card,
    .connect = shm_connect,
    .card_arrived = shm_card_arrived,
    .inject = chempi_shm_ring_inject,
    .send = shm_send,
    .accept = shm_accept,
    .drop = shm_drop,
    .progress = shm_progress,
    .is_ready = shm_is_ready,
    .is_drained = shm_is_drained,
    .close = shm_close,
};
