/* SPDX-License-Identifier: BSD-3-Clause */
/* Networks of nodes; see place.h. Read from the table whenever asked. */
#include "libchempi/didl/place.h"

#include <string.h>

#include "common/table/known.h"
#include "libchempi/didl/ctx.h"

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

static bool joins_nodes(uint32_t network)
{
    const struct chempi_known_type *type =
        chempi_known_type_find(chempi_table_network(table(), network)->type);

    return !type || !type->inside_node;
}

uint32_t chempi_place_find_network(const char *name)
{
    uint32_t count = table() ? chempi_table_network_count(table()) : 0;

    for (uint32_t i = 0; i < count; i++)
        if (strcmp(chempi_table_network(table(), i)->name, name) == 0)
            return joins_nodes(i) ? i : CHEMPI_PLACE_NONE;
    return CHEMPI_PLACE_NONE;
}

const char *chempi_place_network_name(uint32_t network)
{
    return chempi_table_network(table(), network)->name;
}

bool chempi_place_is_attached(uint32_t node, uint32_t network)
{
    uint32_t at = table_node(node);
    uint32_t count = at == CHEMPI_TABLE_NONE
                         ? 0
                         : chempi_table_attachment_count(table(), at);

    for (uint32_t i = 0; i < count; i++) {
        struct chempi_table_attachment attachment;

        chempi_table_attachment(table(), at, i, &attachment);
        if (attachment.network == network)
            return true;
    }
    return false;
}

/* The n-th network of this node, or how many there are if that is too large,
 * by *count. */
static uint32_t walk(uint32_t n, uint32_t *count)
{
    uint32_t networks = table() ? chempi_table_network_count(table()) : 0;

    *count = 0;
    for (uint32_t i = 0; i < networks; i++)
        if (joins_nodes(i) &&
            chempi_place_is_attached(chempi_ctx.services.node, i) &&
            (*count)++ == n)
            return i;
    return CHEMPI_PLACE_NONE;
}

uint32_t chempi_place_network_count(void)
{
    uint32_t count;

    (void)walk(UINT32_MAX, &count);
    return count;
}

uint32_t chempi_place_network_at(uint32_t n)
{
    uint32_t count;

    return walk(n, &count);
}

uint32_t chempi_place_fastest_network(void)
{
    uint32_t self = table_node(chempi_ctx.services.node);
    uint32_t best = CHEMPI_PLACE_NONE;
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
            (best == CHEMPI_PLACE_NONE || range->cost_us < best_us)) {
            best = range->network;
            best_us = range->cost_us;
        }
    }
    return best;
}
