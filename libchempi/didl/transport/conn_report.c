/* SPDX-License-Identifier: BSD-3-Clause */
/* What was sent over connections, in lines for the launcher; see conn.h. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libchempi/didl/transport/conn.h"
#include "libchempi/didl/transport/worlds/foreign.h"

enum { REPORT_LIMIT_MS = 100 };

struct chempi_dev_traffic chempi_conn_sent(const struct chempi_lane *lane,
                                           uint32_t device, uint32_t protocol)
{
    struct chempi_dev_traffic sum = {0};

    for (const struct chempi_peer *peer = lane->conn.made; peer;
         peer = peer->next_made) {
        for (uint32_t i = 0; i < peer->route_count; i++) {
            const struct chempi_conn_route *route = &peer->routes[i];

            if (route->device != device || route->protocol != protocol)
                continue;
            sum.messages += route->messages;
            sum.bytes += route->bytes;
        }
    }
    return sum;
}

/* Of its first stage; "-" without a table. */
static const char *network_of_route(const struct chempi_peer *peer,
                                    const struct chempi_conn_route *route)
{
    uint32_t i = route->range;
    const struct chempi_services *s = &chempi_ctx.services;
    const struct chempi_table_range *ranges;
    uint32_t count;
    uint32_t node;

    if (!s->table)
        return "-";
    node = chempi_table_find_node(s->table, s->node_names[peer->node]);
    if (node == CHEMPI_TABLE_NONE)
        return "-";
    ranges = chempi_table_ranges(s->table, node, &count);
    if (i >= count)
        return "-";
    return chempi_table_network(s->table, ranges[i].network)->name;
}

/* Of routes through gateways, the overlay knows which way was taken. */
static void report_route(uint32_t what, const struct chempi_peer *peer,
                         const struct chempi_conn_route *route,
                         struct chempi_writer *out)
{
    const struct chempi_dev *dev = peer->lane->conn.devices[route->device];
    const uint32_t node = chempi_ctx.services.node;
    const char *protocol = dev->caps->protocols[route->protocol];
    const char *network = network_of_route(peer, route);
    uint64_t messages = route->messages - route->told_messages;
    uint64_t bytes = route->bytes - route->told_bytes;
    const struct chempi_conn_overlay *overlay = chempi_conn_get_overlay();
    char line[768];

    if (what & CHEMPI_STATS_TRAFFIC) {
        (void)snprintf(line, sizeof(line),
                       "traffic %u %u %s %s %s %" PRIu64 " %" PRIu64 "\n", node,
                       peer->node, network, dev->ops->name, protocol, messages,
                       bytes);
        chempi_wire_put_raw(out, line, strlen(line));
    }
    if (!(what & CHEMPI_STATS_ROUTES) || (overlay && dev->ops == overlay->ops))
        return;
    (void)snprintf(line, sizeof(line),
                   "route %u %u %u %" PRIu64 " %s %s %s - %" PRIu64 " %" PRIu64
                   " %" PRIu64 " 0 0\n",
                   node, peer->node, CHEMPI_STATS_CLASS_DIRECT, route->max_len,
                   network, dev->ops->name, protocol, messages, bytes,
                   route->waits - route->told_waits);
    chempi_wire_put_raw(out, line, strlen(line));
}

static void report_lane(uint32_t what, struct chempi_lane *lane,
                        struct chempi_writer *out)
{
    for (uint32_t p = 0; lane->conn.peers && p < chempi_ctx.job->size; p++) {
        struct chempi_peer *peer = &lane->conn.peers[p];

        for (uint32_t i = 0; i < peer->route_count; i++) {
            struct chempi_conn_route *route = &peer->routes[i];

            if (route->messages == route->told_messages &&
                route->waits == route->told_waits)
                continue;
            report_route(what, peer, route, out);
            route->told_messages = route->messages;
            route->told_bytes = route->bytes;
            route->told_waits = route->waits;
        }
    }
}

int chempi_conn_report(uint32_t what, struct chempi_writer *out)
{
    const struct chempi_conn_overlay *overlay = chempi_conn_get_overlay();

    report_lane(what, &chempi_lane_main, out);
    CHEMPI_LANES_FOR_OTHERS(lane)
    {
        const bool is_mine = chempi_lane_is_mine(lane);

        /* At an end by error another thread may be stuck there. */
        if (!is_mine && !chempi_lane_lock_within(lane, REPORT_LIMIT_MS))
            continue;
        report_lane(what, lane, out);
        if (!is_mine)
            chempi_lane_drop(lane);
    }
    if (overlay)
        overlay->report(out);
    return out->error;
}
