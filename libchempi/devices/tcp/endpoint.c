/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints: which networks lead to a process, by a link each. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "libchempi/devices/tcp/internal.h"

/* ---- routes ---------------------------------------------------------- */

static struct chempi_tcp_link *add_link(struct chempi_tcp_ep *ep,
                                        uint32_t network)
{
    struct chempi_tcp_link *link = chempi_tcp_endpoint_link(ep, network);

    if (link)
        return link;
    if (ep->link_count == CHEMPI_TCP_LINK_MAX)
        return ep->links[0];
    link = chempi_sys->calloc(1, sizeof(*link));
    if (!link)
        return NULL;
    link->item.fd = -1;
    link->yielded.fd = -1;
    link->ep = ep;
    link->network = network;
    link->peer.u.sa.sa_family = AF_UNSPEC;
    chempi_list_init(&link->flush_link);
    chempi_list_init(&link->left_link);
    chempi_rndv_peer_init(&link->rndv, &chempi_tcp_dev_of(link)->rndv, &ep->ep);
    ep->links[ep->link_count++] = link;
    return link;
}

static bool is_listening(const struct chempi_tcp_dev *dev, uint32_t network)
{
    for (uint32_t i = 0; i < dev->listener_count; i++) {
        if (dev->listeners[i].network == network)
            return true;
    }
    return false;
}

/* A network that both nodes are attached to and we listen on. */
static int common_network(const struct chempi_tcp_dev *dev, uint32_t node,
                          uint32_t *network)
{
    const struct chempi_table *table = dev->dev.params.services->table;
    uint32_t count = table && node != CHEMPI_TABLE_NONE
                         ? chempi_table_attachment_count(table, node)
                         : 0;

    for (uint32_t i = 0; i < count; i++) {
        struct chempi_table_attachment a;
        uint32_t id;

        chempi_table_attachment(table, node, i, &a);
        id = chempi_tcp_card_network(
            chempi_table_network(table, a.network)->name);
        if (is_listening(dev, id)) {
            *network = id;
            return 0;
        }
    }
    *network = CHEMPI_TCP_NETWORK_ANY;
    return is_listening(dev, CHEMPI_TCP_NETWORK_ANY) ? 0 : -EHOSTUNREACH;
}

/* The network that the table has for a range; else `otherwise`. */
static uint32_t range_network(const struct chempi_tcp_dev *dev,
                              const struct chempi_table_range *range,
                              uint32_t otherwise)
{
    const struct chempi_table *table = dev->dev.params.services->table;
    uint32_t id;

    if (strcmp(range->device, dev->dev.ops->name) != 0 ||
        range->stage_count > 1)
        return otherwise;
    id = chempi_tcp_card_network(
        chempi_table_network(table, range->network)->name);
    return is_listening(dev, id) ? id : otherwise;
}

static int add_route(struct chempi_tcp_ep *ep, uint64_t max_len,
                     uint32_t network)
{
    struct chempi_tcp_link *link = add_link(ep, network);
    struct chempi_tcp_route *last =
        ep->route_count ? &ep->routes[ep->route_count - 1] : NULL;

    if (!link)
        return -ENOMEM;
    if (last &&
        (last->link == link || ep->route_count == CHEMPI_TCP_ROUTE_MAX)) {
        last->max_len = max_len;
        return 0;
    }
    ep->routes[ep->route_count++] =
        (struct chempi_tcp_route){.max_len = max_len, .link = link};
    return 0;
}

static int find_routes(struct chempi_tcp_dev *dev, struct chempi_tcp_ep *ep)
{
    const struct chempi_services *s = dev->dev.params.services;
    const struct chempi_table_range *ranges = NULL;
    uint32_t count = 0;
    uint32_t otherwise;
    uint32_t at = CHEMPI_TABLE_NONE;
    int rc;

    if (s->table)
        at = chempi_table_find_node(
            s->table, s->node_names[s->node_of_proc[ep->ep.proc]]);
    rc = common_network(dev, at, &otherwise);
    if (rc)
        return rc;
    if (at != CHEMPI_TABLE_NONE)
        ranges = chempi_table_ranges(s->table, at, &count);
    for (uint32_t i = 0; i < count && !rc; i++)
        rc = add_route(ep, ranges[i].max_len,
                       range_network(dev, &ranges[i], otherwise));
    if (!rc && !count)
        rc = add_route(ep, UINT64_MAX, otherwise);
    return rc;
}

struct chempi_tcp_link *chempi_tcp_endpoint_link(const struct chempi_tcp_ep *ep,
                                                 uint32_t network)
{
    for (uint32_t i = 0; i < ep->link_count; i++) {
        if (ep->links[i]->network == network)
            return ep->links[i];
    }
    return NULL;
}

int chempi_tcp_endpoint_get(struct chempi_tcp_dev *dev, uint32_t proc,
                            struct chempi_tcp_ep **out, struct chempi_err *err)
{
    const struct chempi_services *s = dev->dev.params.services;
    struct chempi_tcp_ep *ep;
    char who[CHEMPI_TCP_WHO_MAX];
    int rc;

    if (!chempi_tcp_tie_leads_to(s, proc))
        return chempi_err_set(err, -EHOSTUNREACH,
                              "tcp does not lead to process %u",
                              (unsigned)proc);
    if (dev->eps[proc]) {
        *out = dev->eps[proc];
        return 0;
    }
    (void)chempi_tcp_tie_words(s, proc, who);
    ep = chempi_sys->calloc(1, sizeof(*ep));
    if (!ep)
        return chempi_err_set(err, -ENOMEM, "out of memory for %s", who);
    ep->ep = (struct chempi_ep){.dev = &dev->dev, .proc = proc};
    chempi_list_init(&ep->room_link);
    chempi_list_init(&ep->broken_link);
    chempi_list_init(&ep->lost_link);
    rc = find_routes(dev, ep);
    if (rc) {
        chempi_tcp_endpoint_destroy(ep);
        return chempi_err_set(
            err, rc, "%s %s%s%s",
            rc == -ENOMEM ? "out of memory for"
                          : "no network served by tcp is common with",
            who, s->bonds ? "" : " on node ",
            s->bonds ? "" : s->node_names[s->node_of_proc[proc]]);
    }
    dev->eps[proc] = ep;
    *out = ep;
    return 0;
}

static void destroy_link(struct chempi_tcp_link *link)
{
    chempi_tcp_link_cancel(link);
    chempi_tcp_link_close_fd(link);
    free(link->out.data);
    free(link->stash);
    free(link);
}

void chempi_tcp_endpoint_destroy(struct chempi_tcp_ep *ep)
{
    if (!ep)
        return;
    for (uint32_t i = 0; i < ep->link_count; i++)
        destroy_link(ep->links[i]);
    free(ep);
}
