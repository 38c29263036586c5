/* SPDX-License-Identifier: BSD-3-Clause */
/* What tools may see and set of the tcp device; see ddi.h. */
#define _GNU_SOURCE /* struct tcp_info */
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "libchempi/devices/tcp/internal.h"

static const char *const protocol_names[CHEMPI_TCP_PROTO_COUNT] = {
    [CHEMPI_TCP_PROTO_EAGER] = "eager",
    [CHEMPI_TCP_PROTO_RENDEZVOUS] = "rendezvous",
};

static const struct chempi_setting settings[CHEMPI_TCP_SET_COUNT] = {
    [CHEMPI_TCP_SET_EAGER_MAX] =
        {"tcp", "eager_max",
         "Up to which size messages go eagerly where no connection table says "
         "otherwise, in bytes.",
         CHEMPI_TCP_EAGER_MAX, 64, CHEMPI_TCP_EAGER_MAX, NULL,
         CHEMPI_SETTING_LOCAL, true, true},
    [CHEMPI_TCP_SET_CHUNK] =
        {"tcp", "chunk",
         "How much of a large message is sent before others have their turn, "
         "in bytes; four times as much while none waits.",
         256u << 10, 4096, CHEMPI_TCP_CHUNK_MAX, NULL, CHEMPI_SETTING_LOCAL,
         false, false},
    [CHEMPI_TCP_SET_QUEUE] =
        {"tcp", "queue",
         "How much of small messages is kept for a connection that takes no "
         "more, in bytes.",
         64u << 10, 4096, 1u << 30, NULL, CHEMPI_SETTING_LOCAL, false, false},
    [CHEMPI_TCP_SET_FLUSH] =
        {"tcp", "flush",
         "How much is written to one connection at a time, "
         "in bytes.",
         2u << 20, 4096, 1u << 30, NULL, CHEMPI_SETTING_LOCAL, false, false},
    [CHEMPI_TCP_SET_KEEP] =
        {"tcp", "keep",
         "How much of small non-blocking messages that are posted one after "
         "the other is gathered for one write, in bytes; 0: each leaves at "
         "once.",
         32u << 10, 0, 1u << 20, NULL, CHEMPI_SETTING_LOCAL, false, false},
    [CHEMPI_TCP_SET_KEEP_NS] =
        {"tcp", "keep_ns",
         "How long others may follow until what is gathered leaves, in "
         "nanoseconds.",
         20000, 0, UINT64_C(1000000000), NULL, CHEMPI_SETTING_LOCAL, false,
         false},
    [CHEMPI_TCP_SET_READ] =
        {"tcp", "read",
         "How much is read from one connection at a time, in bytes.", 1u << 20,
         4096, 1u << 30, NULL, CHEMPI_SETTING_LOCAL, false, false},
    [CHEMPI_TCP_SET_DIAL_AGAIN] =
        {"tcp", "dial_again",
         "How often a connection that ended while it was made is tried again, "
         "a count.",
         8, 0, 1000, NULL, CHEMPI_SETTING_LOCAL, false, false},
    [CHEMPI_TCP_SET_WARM_MISSES] =
        {"tcp", "warm_misses",
         "After how many reads in vain a connection that was busy is read at "
         "every 8th poll only, a count.",
         64, 0, 1u << 30, NULL, CHEMPI_SETTING_LOCAL, false, false},
    [CHEMPI_TCP_SET_COOL_MISSES] =
        {"tcp", "cool_misses",
         "After how many it is read at every 64th poll only, a count.", 2048, 0,
         1u << 30, NULL, CHEMPI_SETTING_LOCAL, false, false},
    [CHEMPI_TCP_SET_KEEPALIVE_IDLE] =
        {"tcp", "keepalive_idle_s",
         "After how long a silence a host is asked whether it is there, in "
         "seconds.",
         30, 1, 32767, NULL, CHEMPI_SETTING_LOCAL, true, false},
    [CHEMPI_TCP_SET_KEEPALIVE_EVERY] =
        {"tcp", "keepalive_every_s",
         "How long after that it is asked again, in seconds.", 10, 1, 32767,
         NULL, CHEMPI_SETTING_LOCAL, true, false},
    [CHEMPI_TCP_SET_KEEPALIVE_COUNT] =
        {"tcp", "keepalive_count",
         "After how many questions without an answer it is lost, a count.", 6,
         1, 127, NULL, CHEMPI_SETTING_LOCAL, true, false},
    [CHEMPI_TCP_SET_ENDED] =
        {"tcp", "ended_ms",
         "How long nothing may come over the connection of a process that has "
         "died until its end is not waited for any more, in milliseconds.",
         3000, 0, 3600000, NULL, CHEMPI_SETTING_LOCAL, false, false},
    [CHEMPI_TCP_SET_SECURE] =
        {"tcp", "secure",
         "Whether what processes say to each other over this device is "
         "encrypted and authenticated; chempirun --secure sets it.",
         0, 0, 1, &chempi_words_switch, CHEMPI_SETTING_ALL, true, true},
};

/* ---- counters ---- */

typedef uint64_t link_fn(struct chempi_tcp_link *link);

static uint64_t sum_links(struct chempi_dev *base, link_fn *fn)
{
    struct chempi_tcp_dev *dev = (struct chempi_tcp_dev *)(void *)base;
    const uint32_t end = chempi_tcp_tie_end(base->params.services);
    uint64_t sum = 0;

    for (uint32_t p = 0; p < end; p++) {
        const struct chempi_tcp_ep *ep = dev->eps[p];

        for (uint32_t i = 0; ep && i < ep->link_count; i++)
            if (ep->links[i]->state == CHEMPI_TCP_UP)
                sum += fn(ep->links[i]);
    }
    return sum;
}

static uint64_t one(struct chempi_tcp_link *link)
{
    (void)link;
    return 1;
}

static uint64_t retransmits(struct chempi_tcp_link *link)
{
    struct tcp_info info = {0};
    socklen_t len = sizeof(info);

    if (getsockopt(link->item.fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0)
        return 0; /* it has just been closed by the peer */
    return info.tcpi_total_retrans;
}

static uint64_t read_connections(struct chempi_dev *dev)
{
    return sum_links(dev, one);
}

static uint64_t read_retransmits(struct chempi_dev *dev)
{
    return sum_links(dev, retransmits);
}

static const struct chempi_gauge gauges[] = {
    {"connections_opened", "Connections that became usable, a count.",
     CHEMPI_GAUGE_COUNTER, CHEMPI_GAUGE_AT(struct chempi_tcp_dev, opened),
     NULL},
    {"connections", "Connections that can be used, a count.",
     CHEMPI_GAUGE_LEVEL, 0, read_connections},
    {"redials", "Attempts to connect that were made again, a count.",
     CHEMPI_GAUGE_COUNTER, CHEMPI_GAUGE_AT(struct chempi_tcp_dev, redials),
     NULL},
    {"blocked", "Times that the kernel took no more for a connection, a count.",
     CHEMPI_GAUGE_COUNTER, CHEMPI_GAUGE_AT(struct chempi_tcp_dev, blocked),
     NULL},
    {"retransmits",
     "Segments that the kernel has sent again on the connections that can be "
     "used, a count.",
     CHEMPI_GAUGE_LEVEL, 0, read_retransmits},
};

const struct chempi_dev_panel chempi_tcp_panel = {
    .text = "messages over any network that speaks TCP/IP",
    .protocols = protocol_names,
    .protocol_count = CHEMPI_TCP_PROTO_COUNT,
    .settings = settings,
    .setting_count = CHEMPI_TCP_SET_COUNT,
    .gauges = gauges,
    .gauge_count = CHEMPI_ARRAY_LEN(gauges),
};

void chempi_tcp_panel_take(struct chempi_tcp_dev *dev)
{
    dev->protocol_max[CHEMPI_TCP_PROTO_EAGER] =
        chempi_dev_setting(&dev->dev, CHEMPI_TCP_SET_EAGER_MAX);
    dev->protocol_max[CHEMPI_TCP_PROTO_RENDEZVOUS] = UINT64_MAX;
    dev->caps = (struct chempi_dev_caps){
        .protocols = protocol_names,
        .protocol_count = CHEMPI_TCP_PROTO_COUNT,
        .flags = CHEMPI_DEV_NEEDS_CARD | CHEMPI_DEV_HAS_FDS |
                 (chempi_dev_setting(&dev->dev, CHEMPI_TCP_SET_SECURE)
                      ? CHEMPI_DEV_SEALS
                      : 0),
        .inject_max = CHEMPI_TCP_INJECT_MAX,
        .protocol_max = dev->protocol_max,
        .eager_max = CHEMPI_TCP_EAGER_MAX,
    };
    dev->dev.caps = &dev->caps;
}
