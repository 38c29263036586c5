/* SPDX-License-Identifier: BSD-3-Clause */
/* Where ranks go; see place.h. */
#include "chempid/plan/place.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "common/control/client.h"

static uint32_t free_of(const struct chempi_place_node *node)
{
    return node->slots > node->busy ? node->slots - node->busy : 0;
}

static uint64_t all_slots(const struct chempi_place_node *nodes, uint32_t count)
{
    uint64_t total = 0;

    for (uint32_t i = 0; i < count; i++)
        total += nodes[i].slots;
    return total;
}

/* What is over when all free slots are taken goes to all nodes in equal
 * measure; in blocks, before the first ones get one round more. */
static void add_rounds(const struct chempi_place_node *nodes, uint32_t count,
                       uint64_t rest, bool is_block, uint32_t *room)
{
    const uint64_t total = all_slots(nodes, count);
    const uint32_t rounds = (uint32_t)(rest / total);
    const bool is_uneven = rest % total != 0;

    rest %= total;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t slots = nodes[i].slots;
        uint32_t more = is_uneven ? slots : 0;

        if (is_block && rest < more)
            more = (uint32_t)rest;
        room[i] += slots * rounds + more;
        rest -= is_block ? more : 0;
    }
}

/* Free slots of all nodes, as far as ppn lets them be taken, and the rest only
 * where that is not enough. */
static void take_free(const struct chempi_place_node *nodes, uint32_t count,
                      uint32_t size, uint32_t ppn, uint32_t *room)
{
    uint64_t total = 0;

    for (uint32_t i = 0; i < count; i++)
        total += free_of(&nodes[i]) < ppn ? free_of(&nodes[i]) : ppn;
    for (uint32_t i = 0; i < count && total >= size; i++)
        if (free_of(&nodes[i]) < ppn)
            room[i] = free_of(&nodes[i]);
}

/* How many ranks each node may get; the sum is at least size. */
static int find_room(const struct chempi_place_node *nodes, uint32_t count,
                     uint32_t size, uint32_t ppn, bool is_block, uint32_t *room,
                     struct chempi_err *err)
{
    const bool is_known = all_slots(nodes, count) > 0;
    uint64_t total = 0;

    for (uint32_t i = 0; i < count; i++) {
        room[i] = ppn        ? ppn
                  : is_known ? free_of(&nodes[i])
                             : size / count + (i < size % count);
        total += room[i];
    }
    if (!ppn) {
        if (total < size)
            add_rounds(nodes, count, size - total, is_block, room);
        return 0;
    }
    if (total < size)
        return chempi_err_set(err, -ENOSPC,
                              "%u ranks do not fit on %u node%s with %u per "
                              "node; use more nodes or a larger --ppn",
                              size, count, count > 1 ? "s" : "", ppn);
    if (is_known)
        take_free(nodes, count, size, ppn, room);
    return 0;
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

/* Nodes that are full leave the round. */
static void map_cyclic(uint32_t count, uint32_t size, uint32_t *room,
                       uint32_t *round, uint32_t *node_of_rank)
{
    uint32_t placed = 0;

    for (uint32_t i = 0; i < count; i++)
        round[i] = i;
    while (placed < size) {
        uint32_t left = 0;

        for (uint32_t i = 0; i < count && placed < size; i++) {
            const uint32_t node = round[i];

            if (room[node] == 0)
                continue;
            room[node]--;
            node_of_rank[placed++] = node;
            round[left++] = node;
        }
        count = left;
    }
}

/* ---- by load -------------------------------------------------------------
 */

/* Nodes with room, as a heap: at its top the least loaded one, of several the
 * first. */
struct heap {
    const struct chempi_place_node *nodes;
    const uint32_t *taken;
    uint32_t *at;
    uint32_t count;
};

/* With one rank more. */
static double load_of(const struct heap *h, uint32_t node)
{
    const struct chempi_place_node *p = &h->nodes[node];
    const double now = p->load > p->busy ? p->load : p->busy;

    return (now + h->taken[node] + 1) / (p->slots ? p->slots : 1);
}

static bool is_before(const struct heap *h, uint32_t a, uint32_t b)
{
    const double load_a = load_of(h, a);
    const double load_b = load_of(h, b);

    return load_a < load_b || (load_a <= load_b && a < b);
}

/* Let what stands at i go down to its place. */
static void sink(struct heap *h, uint32_t i)
{
    const uint32_t node = h->at[i];

    for (uint32_t child; (child = 2 * i + 1) < h->count; i = child) {
        if (child + 1 < h->count &&
            is_before(h, h->at[child + 1], h->at[child]))
            child++;
        if (!is_before(h, h->at[child], node))
            break;
        h->at[i] = h->at[child];
    }
    h->at[i] = node;
}

/* Each rank counts on the least loaded node, and so does one of another job,
 * which may sleep now; then they are put in blocks. */
static void map_load(const struct chempi_place_node *nodes, uint32_t count,
                     uint32_t size, const uint32_t *room, uint32_t *taken,
                     uint32_t *scratch, uint32_t *node_of_rank)
{
    struct heap h = {.nodes = nodes, .taken = taken, .at = scratch};

    for (uint32_t i = 0; i < count; i++)
        if (room[i] > 0)
            h.at[h.count++] = i;
    for (uint32_t i = h.count / 2; i-- > 0;)
        sink(&h, i);
    for (uint32_t i = 0; i < size; i++) {
        const uint32_t node = h.at[0];

        if (++taken[node] == room[node])
            h.at[0] = h.at[--h.count];
        if (h.count > 0)
            sink(&h, 0);
    }
    map_block(size, taken, node_of_rank);
}

int chempi_place_ranks(const struct chempi_place_node *nodes, uint32_t count,
                       uint32_t size, uint32_t ppn, enum chempi_map map,
                       uint32_t *node_of_rank, struct chempi_err *err)
{
    uint32_t *room = chempi_sys->calloc(3 * (size_t)count, sizeof(*room));
    int rc;

    if (!room)
        return chempi_err_set(err, -ENOMEM, "out of memory");
    rc = find_room(nodes, count, size, ppn, map == CHEMPI_MAP_BLOCK, room, err);
    if (!rc && map == CHEMPI_MAP_BLOCK)
        map_block(size, room, node_of_rank);
    else if (!rc && map == CHEMPI_MAP_CYCLIC)
        map_cyclic(count, size, room, room + count, node_of_rank);
    else if (!rc)
        map_load(nodes, count, size, room, room + count,
                 room + 2 * (size_t)count, node_of_rank);
    free(room);
    return rc;
}

int chempi_place_check(const struct chempi_place_node *nodes,
                       const char *const *names, uint32_t count, uint32_t size,
                       uint32_t ppn, struct chempi_err *err)
{
    char text[CHEMPI_ERR_TEXT_MAX / 2] = "";
    uint64_t total = 0;

    for (uint32_t i = 0; i < count; i++) {
        const uint32_t most = free_of(&nodes[i]);
        const size_t len = strlen(text);

        if (!nodes[i].slots)
            return 0;
        total += ppn && ppn < most ? ppn : most;
        if (len + CHEMPI_NODE_NAME_MAX + 32 < sizeof(text))
            (void)snprintf(text + len, sizeof(text) - len, "%s%s %u of %u",
                           len ? ", " : "", names[i], most, nodes[i].slots);
        else if (len < sizeof(text) - 4)
            (void)snprintf(text + len, sizeof(text) - len, "...");
    }
    if (total >= size)
        return 0;
    return chempi_err_set(err, -EDQUOT,
                          "the job does not fit: it has %u rank%s, and so many "
                          "slots are free: %s; wait until other jobs have "
                          "ended, or start it without --no-oversubscribe",
                          size, size > 1 ? "s" : "", text);
}
