/* SPDX-License-Identifier: BSD-3-Clause */
/* What tools may see and set of the scivia device. */
#include "libchempi/devices/scivia/internal.h"

static const char *const protocol_names[SCIVIA_PROTOCOL_COUNT] = {
    [SCIVIA_PROTOCOL_SHARED_MEMORY] = "shared-memory",
    [SCIVIA_PROTOCOL_SEND] = "send",
    [SCIVIA_PROTOCOL_ONE_COPY] = "one-copy",
    [SCIVIA_PROTOCOL_ZERO_COPY] = "zero-copy",
};
static const uint64_t protocol_max[SCIVIA_PROTOCOL_COUNT] = {
    [SCIVIA_PROTOCOL_SHARED_MEMORY] = SCIVIA_EAGER_MAX,
    [SCIVIA_PROTOCOL_SEND] = SCIVIA_EAGER_MAX,
    [SCIVIA_PROTOCOL_ONE_COPY] = 32768,
    [SCIVIA_PROTOCOL_ZERO_COPY] = UINT64_MAX,
};

/* What serves a protocol on a card without an SCI half, and without a VIA
 * half. */
static const uint32_t without_sci[SCIVIA_PROTOCOL_COUNT] = {
    SCIVIA_PROTOCOL_SEND, SCIVIA_PROTOCOL_SEND, SCIVIA_PROTOCOL_ONE_COPY,
    SCIVIA_PROTOCOL_ZERO_COPY};
static const uint32_t without_via[SCIVIA_PROTOCOL_COUNT] = {
    SCIVIA_PROTOCOL_SHARED_MEMORY, SCIVIA_PROTOCOL_SHARED_MEMORY,
    SCIVIA_PROTOCOL_SHARED_MEMORY, SCIVIA_PROTOCOL_SHARED_MEMORY};

static const struct chempi_setting settings[] = {
    [SCIVIA_SETTING_REGISTERED_MAX] =
        {
            .module = "scivia",
            .name = "registered_max",
            .text = "Memory that a process may have registered with its "
                    "adapter, in bytes; RLIMIT_MEMLOCK bounds it as well.",
            .initial = UINT64_C(256) << 20,
            .min = 0,
            .max = UINT64_C(1) << 40,
            .is_fixed = true,
        },
    [SCIVIA_SETTING_CACHE] =
        {
            .module = "scivia",
            .name = "cache",
            .text = "Whether registrations of user memory are kept after use "
                    "(on), or the memory is unlocked after each transfer.",
            .initial = 1,
            .min = 0,
            .max = 1,
            .words = &chempi_words_switch,
        },
};

static const struct chempi_adapter_counters *counters(struct chempi_dev *dev)
{
    return chempi_adapter_counters(((struct scivia_dev *)dev)->adapter);
}

static uint64_t read_packets(struct chempi_dev *dev)
{
    return counters(dev)->packets;
}

static uint64_t read_lost(struct chempi_dev *dev)
{
    return counters(dev)->packets_lost;
}

static uint64_t read_interrupts(struct chempi_dev *dev)
{
    return counters(dev)->interrupts;
}

static uint64_t read_moved(struct chempi_dev *dev)
{
    return counters(dev)->bytes_moved;
}

static uint64_t read_bounced(struct chempi_dev *dev)
{
    return counters(dev)->bytes_bounced;
}

static uint64_t read_denied(struct chempi_dev *dev)
{
    const struct scivia_dev *scivia = (struct scivia_dev *)dev;

    return scivia->cache.counters.denied + scivia->library_denied;
}

static uint64_t read_registrations(struct chempi_dev *dev)
{
    return counters(dev)->registrations;
}

static uint64_t read_deregistrations(struct chempi_dev *dev)
{
    return counters(dev)->deregistrations;
}

static uint64_t read_locked(struct chempi_dev *dev)
{
    return chempi_lmm_locked_bytes(
        chempi_adapter_lmm(((struct scivia_dev *)dev)->adapter));
}

static uint64_t read_budget(struct chempi_dev *dev)
{
    return chempi_lmm_budget(
        chempi_adapter_lmm(((struct scivia_dev *)dev)->adapter));
}

static uint64_t read_over_share(struct chempi_dev *dev)
{
    uint64_t locked = read_locked(dev);
    uint64_t granted = ((struct scivia_dev *)dev)->granted;

    return locked > granted ? locked - granted : 0;
}

static const struct chempi_gauge gauges[] = {
    {"packets", "SCI packets stored remotely", CHEMPI_GAUGE_COUNTER, 0,
     read_packets},
    {"packets_lost", "packets for which the card raised its error counter",
     CHEMPI_GAUGE_COUNTER, 0, read_lost},
    {"interrupts", "remote interrupts that woke somebody", CHEMPI_GAUGE_COUNTER,
     0, read_interrupts},
    {"bytes_moved", "bytes moved by VIA descriptors and DMA",
     CHEMPI_GAUGE_COUNTER, 0, read_moved},
    {"bytes_bounced", "of these, bytes that were copied twice",
     CHEMPI_GAUGE_COUNTER, 0, read_bounced},
    {"bytes_copied", "payload bytes that the receiver's processor copied",
     CHEMPI_GAUGE_COUNTER, CHEMPI_GAUGE_AT(struct scivia_dev, bytes_copied),
     NULL},
    {"reconnects", "links and VIA connections that broke and were replaced",
     CHEMPI_GAUGE_COUNTER, CHEMPI_GAUGE_AT(struct scivia_dev, reconnects),
     NULL},
    {"cache_hits", "registrations found in the cache", CHEMPI_GAUGE_COUNTER,
     CHEMPI_GAUGE_AT(struct scivia_dev, cache.counters.hits), NULL},
    {"cache_misses", "registrations that were made", CHEMPI_GAUGE_COUNTER,
     CHEMPI_GAUGE_AT(struct scivia_dev, cache.counters.misses), NULL},
    {"cache_denied", "registrations that table or budget denied",
     CHEMPI_GAUGE_COUNTER, 0, read_denied},
    {"cache_evictions", "registrations that made room for others",
     CHEMPI_GAUGE_COUNTER,
     CHEMPI_GAUGE_AT(struct scivia_dev, cache.counters.evictions), NULL},
    {"cache_invalidations",
     "registrations dropped because the program unmapped or moved memory",
     CHEMPI_GAUGE_COUNTER,
     CHEMPI_GAUGE_AT(struct scivia_dev, cache.counters.invalidations), NULL},
    {"cache_unwatched",
     "registrations not kept because their memory cannot be watched",
     CHEMPI_GAUGE_COUNTER,
     CHEMPI_GAUGE_AT(struct scivia_dev, cache.counters.uncached), NULL},
    {"registrations", "regions entered in the card's table",
     CHEMPI_GAUGE_COUNTER, 0, read_registrations},
    {"deregistrations", "regions removed from the card's table",
     CHEMPI_GAUGE_COUNTER, 0, read_deregistrations},
    {"degraded",
     "transfers that took a slower way because memory was not granted",
     CHEMPI_GAUGE_COUNTER,
     CHEMPI_GAUGE_AT(struct scivia_dev, memory_user.degraded), NULL},
    {"windowed", "transfers whose memory was registered in several windows",
     CHEMPI_GAUGE_COUNTER, CHEMPI_GAUGE_AT(struct scivia_dev, windowed), NULL},
    {"locked", "bytes of memory locked now", CHEMPI_GAUGE_LEVEL, 0,
     read_locked},
    {"budget", "bytes of memory that may be locked", CHEMPI_GAUGE_LEVEL, 0,
     read_budget},
    {"registered_user", "bytes of ordinary user memory registered",
     CHEMPI_GAUGE_LEVEL,
     CHEMPI_GAUGE_AT(struct scivia_dev, cache.bytes[CHEMPI_MEMORY_USER]), NULL},
    {"registered_persistent",
     "bytes of memory of persistent requests registered", CHEMPI_GAUGE_LEVEL,
     CHEMPI_GAUGE_AT(struct scivia_dev, cache.bytes[CHEMPI_MEMORY_PERSISTENT]),
     NULL},
    {"registered_library", "bytes of the library's memory registered",
     CHEMPI_GAUGE_LEVEL, CHEMPI_GAUGE_AT(struct scivia_dev, library_bytes),
     NULL},
    {"over_share",
     "bytes registered beyond the share, as they were in use when it shrank",
     CHEMPI_GAUGE_LEVEL, 0, read_over_share},
};

const struct chempi_dev_panel chempi_scivia_panel = {
    .text = "messages over emulated SCI and VIA adapters",
    .protocols = protocol_names,
    .protocol_count = SCIVIA_PROTOCOL_COUNT,
    .settings = settings,
    .setting_count = CHEMPI_ARRAY_LEN(settings),
    .gauges = gauges,
    .gauge_count = CHEMPI_ARRAY_LEN(gauges),
};

void chempi_scivia_panel_take(struct scivia_dev *dev)
{
    dev->caps = (struct chempi_dev_caps){
        .protocols = protocol_names,
        .protocol_count = SCIVIA_PROTOCOL_COUNT,
        .flags = CHEMPI_DEV_NEEDS_CARD | CHEMPI_DEV_HAS_FDS,
        .inject_max = SCIVIA_EAGER_MAX,
        .protocol_max = protocol_max,
        .eager_max = SCIVIA_EAGER_MAX,
        .instead = !dev->attributes.has_via   ? without_via
                   : !dev->attributes.has_sci ? without_sci
                                              : NULL,
    };
    dev->base.caps = &dev->caps;
}
