/* SPDX-License-Identifier: BSD-3-Clause */
/* Networks of nodes; see locality.h. Read from the table whenever asked. */
#include "libchempi/didl/locality/locality.h"

#include <string.h>

#include "common/table/network_types.h"
#include "libchempi/didl/base/ctx.h"

static const struct chempi_table *table(void)
{
    return chempi_ctx.services.table;
}

/* The table's index of a node of the job, or CHEMPI_TABLE_NONE. */
static uint32_t table_node(uint32_t node)
{
    return table() ? chempi_table_find_node(
                         table(), chempi_ctx.services.node_names[node])
                   : CHEMPI_TABLE_NONE;
}

bool chempi_locality_joins_nodes(uint32_t network)
{
    const struct chempi_network_types_type *type =
        chempi_network_types_type_find(
            chempi_table_network(table(), network)->type);

    return !type || !type->inside_node;
}

uint32_t chempi_locality_network_total(void)
{
    return table() ? chempi_table_network_count(table()) : 0;
}

uint32_t chempi_locality_find_network(const char *name)
{
    uint32_t count = table() ? chempi_table_network_count(table()) : 0;

    for (uint32_t i = 0; i < count; i++)
        if (strcmp(chempi_table_network(table(), i)->name, name) == 0)
            return chempi_locality_joins_nodes(i) ? i : CHEMPI_LOCALITY_NONE;
    return CHEMPI_LOCALITY_NONE;
}

const char *chempi_locality_network_name(uint32_t network)
{
    return chempi_table_network(table(), network)->name;
}

bool chempi_locality_is_attached(uint32_t node, uint32_t network)
{
    return chempi_table_is_attached(table(), table_node(node), network);
}

bool chempi_locality_attachment(uint32_t node, uint32_t i, uint32_t *network)
{
    const uint32_t at = table_node(node);
    struct chempi_table_attachment a;

    if (at == CHEMPI_TABLE_NONE ||
        i >= chempi_table_attachment_count(table(), at))
        return false;
    chempi_table_attachment(table(), at, i, &a);
    *network = chempi_locality_joins_nodes(a.network) ? a.network
                                                      : CHEMPI_LOCALITY_NONE;
    return true;
}

/* The n-th network of this node, or how many there are if that is too large,
 * by *count. */
static uint32_t walk(uint32_t n, uint32_t *count)
{
    uint32_t networks = table() ? chempi_table_network_count(table()) : 0;

    *count = 0;
    for (uint32_t i = 0; i < networks; i++)
        if (chempi_locality_joins_nodes(i) &&
            chempi_locality_is_attached(chempi_ctx.services.node, i) &&
            (*count)++ == n)
            return i;
    return CHEMPI_LOCALITY_NONE;
}

uint32_t chempi_locality_network_count(void)
{
    uint32_t count;

    (void)walk(UINT32_MAX, &count);
    return count;
}

uint32_t chempi_locality_network_at(uint32_t n)
{
    uint32_t count;

    return walk(n, &count);
}

uint32_t chempi_locality_fastest_network(void)
{
    uint32_t self = table_node(chempi_ctx.services.node);
    uint32_t best = CHEMPI_LOCALITY_NONE;
    double best_us = 0;

    for (uint32_t n = 0;
         self != CHEMPI_TABLE_NONE && n < chempi_table_node_count(table());
         n++) {
        uint32_t count;
        const struct chempi_table_range *range =
            chempi_table_ranges(table(), n, &count);

        if (n == self || count == 0)
            continue;
        range += count - 1;
        if (range->stage_count == 1 &&
            (best == CHEMPI_LOCALITY_NONE || range->cost_us < best_us)) {
            best = range->network;
            best_us = range->cost_us;
        }
    }
    return best;
}

/* ---- costs ---- */

/* The range for a length, or NULL. */
static const struct chempi_table_range *
range_for(const struct chempi_table_range *ranges, uint32_t count, uint64_t len)
{
    uint32_t i = 0;

    while (i + 1 < count && ranges[i].max_len < len)
        i++;
    return count > 0 ? &ranges[i] : NULL;
}

static double upper_end(const struct chempi_table_range *range)
{
    return range->max_len == CHEMPI_TABLE_SIZE_MAX ? (double)(1 << 20)
                                                   : (double)range->max_len;
}

/* The table has costs for the ends of its ranges; in between is a straight
 * line. */
static int64_t cost_in(const struct chempi_table_range *ranges,
                       const struct chempi_table_range *range, uint64_t len)
{
    double us = range->cost_us;

    if (range > ranges) {
        double low = (double)range[-1].max_len;
        double high = upper_end(range);
        double part = high > low ? ((double)len - low) / (high - low) : 1;

        us = range[-1].cost_us + part * (range->cost_us - range[-1].cost_us);
    }
    if (!(us > 0.001)) /* also what is no number */
        return 1;
    return us < 1e9 ? (int64_t)(us * 1000) : INT64_C(1000000000000);
}

int64_t chempi_locality_cost_ns(uint32_t node, uint64_t len)
{
    const struct chempi_table_range *ranges;
    const struct chempi_table_range *range;
    uint32_t at = table_node(node);
    uint32_t count;

    if (at == CHEMPI_TABLE_NONE)
        return CHEMPI_LOCALITY_COST_UNKNOWN;
    ranges = chempi_table_ranges(table(), at, &count);
    range = range_for(ranges, count, len);
    return range ? cost_in(ranges, range, len) : CHEMPI_LOCALITY_COST_UNKNOWN;
}

void chempi_locality_network_costs_ns(uint64_t len, uint32_t count,
                                      uint64_t *costs)
{
    const uint32_t self = table_node(chempi_ctx.services.node);

    for (uint32_t i = 0; i < count; i++)
        costs[i] = CHEMPI_LOCALITY_COST_UNKNOWN;
    for (uint32_t n = 0;
         self != CHEMPI_TABLE_NONE && n < chempi_table_node_count(table());
         n++) {
        uint32_t range_count;
        const struct chempi_table_range *ranges =
            chempi_table_ranges(table(), n, &range_count);
        const struct chempi_table_range *range =
            range_for(ranges, range_count, len);
        uint64_t cost;

        if (n == self || !range || range->stage_count != 1 ||
            range->network >= count)
            continue;
        cost = (uint64_t)cost_in(ranges, range, len);
        if (cost < costs[range->network])
            costs[range->network] = cost;
    }
}
