/* SPDX-License-Identifier: BSD-3-Clause */
/* The shm device's table of operations; see doc/devices-shm.md. */
#include "libchempi/devices/shm/shm.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "common/base/sys.h"
#include "libchempi/devices/shm/internal.h"

static const char *const protocol_names[SHM_PROTOCOL_COUNT] = {
    [SHM_PROTOCOL_SHORT] = "short",
    [SHM_PROTOCOL_EAGER] = "eager",
    [SHM_PROTOCOL_PIPELINE] = "pipeline",
    [SHM_PROTOCOL_SINGLE_COPY] = "single-copy",
};

static const struct chempi_setting settings[SHM_SET_COUNT] = {
    [SHM_SET_EAGER_MAX] =
        {"shm", "eager_max",
         "Up to which size messages go eagerly where no connection table says "
         "otherwise, in bytes.",
         8192, 64, SHM_EAGER_MAX, NULL, CHEMPI_SETTING_LOCAL, true, true},
    [SHM_SET_PIPELINE_MAX] =
        {"shm", "pipeline_max",
         "Up to which size both sides may copy a message through the ring at "
         "the same time where no connection table says otherwise, in bytes: "
         "where that has cost less of late. Else, and above it, the receiver "
         "reads the sender's memory.",
         262144, 0, UINT64_MAX, NULL, CHEMPI_SETTING_LOCAL, true, true},
    [SHM_SET_SINGLE_COPY] =
        {"shm", "single_copy",
         "Whether large messages are read from the sender's memory, where the "
         "kernel allows it.",
         1, 0, 1, &chempi_words_switch, CHEMPI_SETTING_LOCAL, true, true},
    [SHM_SET_SHARE_MIN] =
        {"shm", "share_min",
         "From which size on the sender may help the receiver to copy, in "
         "bytes.",
         65536, 4096, UINT64_MAX, NULL, CHEMPI_SETTING_LOCAL, false, false},
    [SHM_SET_SLICE] = {"shm", "slice",
                       "How much of a single copy is done at a time, in bytes.",
                       1 << 20, 4096, 1 << 30, NULL, CHEMPI_SETTING_LOCAL,
                       false, false},
    [SHM_SET_DRAIN] =
        {"shm", "drain",
         "How many lines of one ring are taken at a time, a count.", 64, 1,
         1 << 20, NULL, CHEMPI_SETTING_LOCAL, true, false},
    [SHM_SET_PUMP] =
        {"shm", "pump",
         "How many pieces of pipelined messages to one process are sent at a "
         "time, a count.",
         8, 1, 1 << 20, NULL, CHEMPI_SETTING_LOCAL, false, false},
    [SHM_SET_CONTEST] =
        {"shm", "contest",
         "How often a process must ring its bell before its ring may be "
         "polled in place of another's, a count.",
         256, 1, 1 << 30, NULL, CHEMPI_SETTING_LOCAL, false, false},
};

static struct shm_dev *to_shm(struct chempi_dev *dev)
{
    return (struct shm_dev *)dev;
}

static uint64_t read_refused(struct chempi_dev *dev)
{
    return to_shm(dev)->refused;
}

static uint64_t read_shared(struct chempi_dev *dev)
{
    return to_shm(dev)->shared;
}

static uint64_t read_bells(struct chempi_dev *dev)
{
    return to_shm(dev)->bells;
}

static uint64_t read_polled(struct chempi_dev *dev)
{
    return to_shm(dev)->hot_count;
}

static uint64_t read_transfers(struct chempi_dev *dev)
{
    return to_shm(dev)->rndv.outgoing;
}

static const struct chempi_gauge gauges[] = {
    {"single_copy_refused",
     "Processes whose large messages are copied twice, because reading their "
     "memory was refused or is turned off, a count.",
     CHEMPI_GAUGE_COUNTER, read_refused},
    {"copies_shared",
     "Single copies in which the sender was asked to help, a count.",
     CHEMPI_GAUGE_COUNTER, read_shared},
    {"bells",
     "Times that a process rang because its ring is not polled, a "
     "count.",
     CHEMPI_GAUGE_COUNTER, read_bells},
    {"rings_polled", "Processes whose ring is polled, a count.",
     CHEMPI_GAUGE_LEVEL, read_polled},
    {"transfers", "Large messages on their way from here, a count.",
     CHEMPI_GAUGE_LEVEL, read_transfers},
};

static const struct chempi_dev_panel shm_panel = {
    .text = "messages between processes of one node",
    .protocols = protocol_names,
    .protocol_count = SHM_PROTOCOL_COUNT,
    .settings = settings,
    .setting_count = SHM_SET_COUNT,
    .gauges = gauges,
    .gauge_count = CHEMPI_ARRAY_LEN(gauges),
};

static void take_settings(struct shm_dev *dev)
{
    uint64_t eager_max = chempi_dev_setting(&dev->base, SHM_SET_EAGER_MAX);
    uint64_t pipeline_max =
        chempi_dev_setting(&dev->base, SHM_SET_PIPELINE_MAX);

    dev->drain_budget = (int)chempi_dev_setting(&dev->base, SHM_SET_DRAIN);
    dev->protocol_max[SHM_PROTOCOL_SHORT] = SHM_INLINE_MAX;
    dev->protocol_max[SHM_PROTOCOL_EAGER] = eager_max;
    dev->protocol_max[SHM_PROTOCOL_PIPELINE] =
        pipeline_max > eager_max ? pipeline_max : eager_max;
    dev->protocol_max[SHM_PROTOCOL_SINGLE_COPY] = UINT64_MAX;
    dev->caps = (struct chempi_dev_caps){
        .protocols = protocol_names,
        .protocol_count = SHM_PROTOCOL_COUNT,
        .flags = CHEMPI_DEV_SAME_NODE,
        .inject_max = eager_max,
        .protocol_max = dev->protocol_max,
        .eager_max = SHM_EAGER_MAX,
    };
    dev->base.caps = &dev->caps;
}

static void shm_close(struct chempi_dev *base)
{
    struct shm_dev *dev = to_shm(base);

    if (!dev)
        return;
    chempi_rndv_fini(&dev->rndv);
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
    dev->base.params = *params;
    take_settings(dev);
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
        return chempi_shm_eager_inject(base, &tx->env, tx->buf, (size_t)len);
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
        if (chempi_shm_eager_has_line(dev->hot[i]))
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

static void shm_ended(struct chempi_dev *base, uint32_t proc)
{
    const struct chempi_services *services = base->params.services;
    struct shm_ep *ep;

    if (services->node_of_proc[proc] != services->node)
        return;
    (void)chempi_shm_drain_hear(to_shm(base)); /* what it had sent before */
    ep = chempi_shm_endpoint_ep(to_shm(base),
                                services->local_rank_of_proc[proc]);
    if (ep->rx_head != 0 && !ep->is_broken) /* else nothing is reserved there */
        (void)chempi_shm_drain_ring(ep, INT_MAX);
    (void)chempi_err_set(&base->err, -EPIPE, "its process has ended");
    chempi_shm_eager_give_up(ep, -EPIPE);
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
    .panel = &shm_panel,
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
