/* SPDX-License-Identifier: BSD-3-Clause */
/* Where ranks go; see place.h. */
#include "chempid/launcher/place.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/sys.h"

/* How many ranks each node may get; the sum is at least size. */
static int find_room(const struct chempi_place_node *nodes, uint32_t count,
                     uint32_t size, uint32_t ppn, uint32_t *room,
                     struct chempi_err *err)
{
    uint64_t total = 0;
    uint32_t times;

    for (uint32_t i = 0; i < count; i++)
        total += nodes[i].slots;
    times = total ? (uint32_t)((size + total - 1) / total) : 0;
    for (uint32_t i = 0; i < count; i++) {
        if (ppn)
            room[i] = ppn;
        else if (total)
            room[i] = nodes[i].slots * times;
        else
            room[i] = size / count + (i < size % count);
    }
    if (ppn && (uint64_t)ppn * count < size)
        return chempi_err_set(err, -ENOSPC,
                              "%u ranks do not fit on %u node%s with %u per "
                              "node; use more nodes or a larger --ppn",
                              size, count, count > 1 ? "s" : "", ppn);
    return 0;
}

/* With more ranks than slots, all nodes are filled equally often before the
 * first ones get one round more. */
static void even_out(const struct chempi_place_node *nodes, uint32_t count,
                     uint32_t size, uint32_t *room)
{
    uint64_t total = 0;
    uint64_t rest;
    uint32_t rounds;

    for (uint32_t i = 0; i < count; i++)
        total += nodes[i].slots;
    if (total == 0 || total >= size)
        return;
    rounds = (uint32_t)(size / total);
    rest = size % total;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t slots = nodes[i].slots;
        const uint32_t more = rest < slots ? (uint32_t)rest : slots;

        room[i] = slots * rounds + more;
        rest -= more;
    }
}

static void map_block(uint32_t size, uint32_t *room, uint32_t *node_of_rank)
{
    uint32_t node = 0;

    for (uint32_t i = 0; i < size; i++) {
        while (room[node] == 0)
            node++;
        room[node]--;
        node_of_rank[i] = node;
    }
}

static void map_cyclic(uint32_t count, uint32_t size, uint32_t *room,
                       uint32_t *node_of_rank)
{
    uint32_t node = 0;

    for (uint32_t i = 0; i < size; i++) {
        while (room[node] == 0)
            node = (node + 1) % count;
        room[node]--;
        node_of_rank[i] = node;
        node = (node + 1) % count;
    }
}

/* Each rank counts on the least loaded node; then they are put in blocks. */
static void map_load(const struct chempi_place_node *nodes, uint32_t count,
                     uint32_t size, uint32_t *room, uint32_t *taken,
                     uint32_t *node_of_rank)
{
    for (uint32_t i = 0; i < size; i++) {
        uint32_t best = count;
        double best_load = 0;

        for (uint32_t k = 0; k < count; k++) {
            const double slots = nodes[k].slots ? nodes[k].slots : 1;
            const double load = (nodes[k].load + taken[k] + 1) / slots;

            if (taken[k] < room[k] && (best == count || load < best_load)) {
                best = k;
                best_load = load;
            }
        }
        taken[best]++;
    }
    map_block(size, taken, node_of_rank);
}

int chempi_place_ranks(const struct chempi_place_node *nodes, uint32_t count,
                       uint32_t size, uint32_t ppn, enum chempi_map map,
                       uint32_t *node_of_rank, struct chempi_err *err)
{
    uint32_t *room = chempi_sys->calloc(2 * (size_t)count, sizeof(*room));
    int rc;

    if (!room)
        return chempi_err_set(err, -ENOMEM, "out of memory");
    rc = find_room(nodes, count, size, ppn, room, err);
    if (!rc && !ppn && map == CHEMPI_MAP_BLOCK)
        even_out(nodes, count, size, room);
    if (!rc && map == CHEMPI_MAP_BLOCK)
        map_block(size, room, node_of_rank);
    else if (!rc && map == CHEMPI_MAP_CYCLIC)
        map_cyclic(count, size, room, node_of_rank);
    else if (!rc)
        map_load(nodes, count, size, room, room + count, node_of_rank);
    free(room);
    return rc;
}
