/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Endpoints: what the device knows of a process, and the lists on which an
 * endpoint stands while something is to be done for it (D1, D2). How two of
 * them connect is pair.c's.
 */
#include <errno.h>
#include <stdlib.h>

#include "common/base/sys.h"
#include "libchempi/devices/scivia/internal.h"

/* --- who has which half --- */

static bool is_attached(const struct chempi_table *table, const char *name,
                        uint32_t network)
{
    return chempi_table_is_attached(table, chempi_table_find_node(table, name),
                                    network);
}

/* Networks of type sci have cards with both halves, others of this device
 * (myrinet, via) the VIA half only. Without a table the card itself says. */
bool chempi_scivia_endpoint_has_sci(const struct chempi_services *services,
                                    const char *node, const char *other)
{
    const struct chempi_table *table = services->table;
    bool is_any = false;

    for (uint32_t i = 0; table && i < chempi_table_network_count(table); i++) {
        const struct chempi_table_network *network =
            chempi_table_network(table, i);

        if (strcmp(network->device, "scivia") != 0 ||
            !is_attached(table, node, i) || !is_attached(table, other, i))
            continue;
        is_any = true;
        if (strcmp(network->type, "sci") == 0)
            return true;
    }
    return !is_any;
}

static bool is_framed(const struct scivia_dev *dev, uint32_t node)
{
    const struct chempi_services *services = dev->base.params.services;

    return !dev->attributes.has_sci ||
           !chempi_scivia_endpoint_has_sci(services,
                                           services->node_names[services->node],
                                           services->node_names[node]);
}

/* Have two nodes cards on a common network? Without a table, all have. */
static bool shares_network(const struct chempi_table *table, const char *node,
                           const char *other)
{
    for (uint32_t i = 0; table && i < chempi_table_network_count(table); i++) {
        if (strcmp(chempi_table_network(table, i)->device, "scivia") == 0 &&
            is_attached(table, node, i) && is_attached(table, other, i))
            return true;
    }
    return !table;
}

static uint32_t count_procs(const struct chempi_services *services,
                            uint32_t node)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < services->proc_count; i++)
        count += i != services->proc && services->node_of_proc[i] == node;
    return count;
}

uint32_t chempi_scivia_endpoint_count_framed(const struct scivia_dev *dev)
{
    const struct chempi_services *services = dev->base.params.services;
    const char *own = services->node_names[services->node];
    uint32_t count = 0;

    for (uint32_t i = 0; i < services->node_count; i++) {
        if ((services->table && i == services->node) || !is_framed(dev, i) ||
            !shares_network(services->table, own, services->node_names[i]))
            continue;
        count += count_procs(services, i);
    }
    return count;
}

/* How lines travel between the two. */
static int choose_carrier(struct scivia_ep *ep)
{
    struct scivia_dev *dev = scivia_dev_of(ep);

    ep->carrier = dev->carriers[is_framed(
        dev, dev->base.params.services->node_of_proc[ep->base.proc])];
    return ep->carrier->init(ep);
}

int chempi_scivia_endpoint_get(struct scivia_dev *dev, uint32_t proc,
                               struct scivia_ep **out, struct chempi_err *err)
{
    struct scivia_ep *ep = dev->eps[proc];

    if (ep) {
        *out = ep;
        return 0;
    }
    ep = chempi_sys->calloc(1, sizeof(*ep));
    if (!ep)
        return chempi_err_set(err, -ENOMEM, "out of memory");
    ep->base.dev = &dev->base;
    ep->base.proc = proc;
    ep->tx_tail = 0u - SCIVIA_LINES; /* closed */
    chempi_list_init(&ep->opening_link);
    chempi_list_init(&ep->busy_link);
    chempi_list_init(&ep->used_link);
    chempi_list_init(&ep->sending);
    chempi_list_init(&ep->kept);
    chempi_rndv_peer_init(&ep->rndv, &dev->rndv, &ep->base);
    if (choose_carrier(ep) < 0) {
        free(ep);
        return chempi_err_set(err, -ENOMEM, "out of memory");
    }
    dev->eps[proc] = ep;
    *out = ep;
    return 0;
}

static void close_tx(struct scivia_ep *ep)
{
    ep->is_tx_open = false;
    ep->tx_tail = ep->tx_head - SCIVIA_LINES;
}

void chempi_scivia_endpoint_close(struct scivia_ep *ep)
{
    close_tx(ep);
    chempi_scivia_endpoint_mend(ep);
}

void chempi_scivia_endpoint_end(struct scivia_ep *ep, bool is_clean)
{
    if (!ep->is_gone)
        ep->is_clean = is_clean;
    ep->is_gone = true;
    close_tx(ep);
    chempi_scivia_endpoint_mark(ep);
}

const char *chempi_scivia_endpoint_check(const struct scivia_ep *ep)
{
    bool is_waiting = ep->is_broken || ep->is_gone
                          ? !ep->is_reported
                          : !chempi_list_is_empty(&ep->rndv.control) ||
                                !chempi_list_is_empty(&ep->rndv.pumping) ||
                                ep->wants_room;

    if (ep->tx_head - ep->tx_tail > SCIVIA_LINES)
        return "scivia R3: more lines than there are";
    return !is_waiting || !chempi_list_is_empty(&ep->busy_link)
               ? NULL
               : "scivia D2: an endpoint that waits for room unnoticed";
}

/* --- what is to be done --- */

void chempi_scivia_endpoint_mark(struct scivia_ep *ep)
{
    struct scivia_dev *dev = scivia_dev_of(ep);

    if (chempi_list_is_empty(&ep->busy_link))
        chempi_list_append(&dev->busy, &ep->busy_link);
    dev->has_work = true;
}

void chempi_scivia_endpoint_mend(struct scivia_ep *ep)
{
    struct scivia_dev *dev = scivia_dev_of(ep);

    if (chempi_list_is_empty(&ep->opening_link))
        chempi_list_append(&dev->opening, &ep->opening_link);
    dev->has_work = true;
}

void chempi_scivia_endpoint_cool(struct scivia_ep *ep)
{
    struct scivia_dev *dev = scivia_dev_of(ep);

    for (uint32_t i = 0; i < dev->hot_count; i++) {
        if (dev->hot[i] == ep)
            dev->hot[i] = dev->hot[--dev->hot_count];
    }
    ep->is_hot = false;
}

void chempi_scivia_endpoint_break(struct scivia_ep *ep, int status,
                                  const char *why)
{
    if (ep->is_broken)
        return;
    ep->is_broken = true;
    ep->broken_status = status;
    ep->broken_why = why;
    close_tx(ep);
    chempi_scivia_endpoint_mark(ep);
}
