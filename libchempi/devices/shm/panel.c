/* SPDX-License-Identifier: BSD-3-Clause */
/* What tools may see and set of the shm device. */
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
         4 << 20, 0, UINT64_MAX, NULL, CHEMPI_SETTING_LOCAL, true, true},
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

static uint64_t read_polled(struct chempi_dev *dev)
{
    return ((struct shm_dev *)dev)->hot_count;
}

static uint64_t read_transfers(struct chempi_dev *dev)
{
    return ((struct shm_dev *)dev)->rndv.outgoing;
}

static const struct chempi_gauge gauges[] = {
    {"single_copy_refused",
     "Processes whose large messages are copied twice, because reading their "
     "memory was refused or is turned off, a count.",
     CHEMPI_GAUGE_COUNTER, CHEMPI_GAUGE_AT(struct shm_dev, refused), NULL},
    {"copies_shared",
     "Single copies in which the sender was asked to help, a count.",
     CHEMPI_GAUGE_COUNTER, CHEMPI_GAUGE_AT(struct shm_dev, shared), NULL},
    {"bells",
     "Times that a process rang because its ring is not polled, a "
     "count.",
     CHEMPI_GAUGE_COUNTER, CHEMPI_GAUGE_AT(struct shm_dev, bells), NULL},
    {"written_past_caches",
     "Pieces of messages that were written past the caches, because the "
     "receiver's core is far away, a count.",
     CHEMPI_GAUGE_COUNTER, CHEMPI_GAUGE_AT(struct shm_dev, past), NULL},
    {"rings_polled", "Processes whose ring is polled, a count.",
     CHEMPI_GAUGE_LEVEL, 0, read_polled},
    {"transfers", "Large messages on their way from here, a count.",
     CHEMPI_GAUGE_LEVEL, 0, read_transfers},
};

const struct chempi_dev_panel chempi_shm_panel = {
    .text = "messages between processes of one node",
    .protocols = protocol_names,
    .protocol_count = SHM_PROTOCOL_COUNT,
    .settings = settings,
    .setting_count = SHM_SET_COUNT,
    .gauges = gauges,
    .gauge_count = CHEMPI_ARRAY_LEN(gauges),
};

void chempi_shm_panel_take(struct shm_dev *dev)
{
    uint64_t eager_max = chempi_dev_setting(&dev->base, SHM_SET_EAGER_MAX);
    uint64_t pipeline_max =
        chempi_dev_setting(&dev->base, SHM_SET_PIPELINE_MAX);

    dev->drain_budget = (int)chempi_dev_setting(&dev->base, SHM_SET_DRAIN);
    dev->protocol_max[SHM_PROTOCOL_SHORT] =
        eager_max < SHM_SHORT_MAX ? eager_max : SHM_SHORT_MAX;
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
