/* SPDX-License-Identifier: BSD-3-Clause */
/* What goes which way; see route_stats.h. */
#include "libchempi/neighbors/route_stats.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "common/containers/array.h"

#define LINE_MAX_LEN 768

static uint32_t hash(const struct chempi_route_stats_key *key)
{
    uint64_t x = (uint64_t)key->from << 32 | key->to;

    x = (x ^ (uint64_t)key->class << 16 ^ (uint64_t)key->at << 8) *
        UINT64_C(0x9e3779b97f4a7c15);
    for (uint32_t i = 0; i < key->gateway_count; i++)
        x = (x ^ x >> 31 ^ key->gateways[i]) * UINT64_C(0xbf58476d1ce4e5b9);
    return (uint32_t)(x >> 32);
}

static bool has_key(const void *elements, uint32_t number, const void *key)
{
    struct chempi_route_stats_way *const *at = elements;
    const struct chempi_route_stats_key *a = &at[number]->key;
    const struct chempi_route_stats_key *b = key;

    return a->from == b->from && a->to == b->to && a->class == b->class &&
           a->at == b->at && a->gateway_count == b->gateway_count &&
           memcmp(a->gateways, b->gateways,
                  a->gateway_count * sizeof(a->gateways[0])) == 0;
}

uint32_t chempi_route_stats_find(struct chempi_route_stats *tally,
                                 const struct chempi_route_stats_key *key,
                                 uint32_t peer)
{
    const uint32_t h = hash(key);
    const uint32_t known =
        chempi_index_find(&tally->index, h, has_key, tally->at, key);
    struct chempi_route_stats_way *way;

    if (known != CHEMPI_INDEX_NONE)
        return known + 1;
    way = tally->count < CHEMPI_ROUTE_STATS_MAX &&
                  CHEMPI_ARRAY_FIT(tally->at, tally->room, tally->count + 1)
              ? chempi_sys->calloc(1, sizeof(*way))
              : NULL;
    if (!way || !chempi_index_add(&tally->index, h, tally->count)) {
        free(way);
        tally->is_short = true; /* T2 */
        return 0;
    }
    way->key = *key;
    way->peer = peer;
    tally->at[tally->count++] = way;
    return tally->count;
}

struct chempi_route_stats_way *
chempi_route_stats_way(const struct chempi_route_stats *tally, uint32_t number)
{
    return number ? tally->at[number - 1] : NULL;
}

void chempi_route_stats_left(const struct chempi_route_stats *tally,
                             const struct chempi_neighbor_buf *buf)
{
    struct chempi_route_stats_way *way =
        chempi_route_stats_way(tally, buf->tally);
    struct chempi_route_stats_hop *hop;

    if (!way || buf->way == CHEMPI_NEIGHBOR_UNSENT)
        return;
    hop = &way->hops[buf->way];
    hop->frames++;
    hop->bytes += buf->len;
    hop->waits += buf->has_waited;
}

/* ---- reports ------------------------------------------------------------- */

static void put(struct chempi_writer *out, const char *line, int n)
{
    if (n > 0 && n < LINE_MAX_LEN)
        chempi_wire_put_raw(out, line, (size_t)n);
}

/* "2,5": the nodes of the gateways; "-": none. */
static void list_gates(const struct chempi_route_stats_key *key,
                       const struct chempi_services *s, char *text, size_t size)
{
    size_t len = 0;

    (void)snprintf(text, size, "-");
    for (uint32_t i = 0; i < key->gateway_count && len + 12 < size; i++)
        len += (size_t)snprintf(text + len, size - len, "%s%u", i ? "," : "",
                                s->node_of_proc[key->gateways[i]]);
}

static bool has_passed(const struct chempi_route_stats_way *way)
{
    for (uint32_t i = 0; i < CHEMPI_NEIGHBOR_WAYS_MAX; i++)
        if (way->hops[i].frames)
            return true;
    return false;
}

static void report_sender(struct chempi_route_stats_way *way, const char *via,
                          struct chempi_writer *out)
{
    const struct chempi_route_stats_key *key = &way->key;
    char line[LINE_MAX_LEN];

    if (!way->protocol ||
        (!has_passed(way) &&
         !(way->messages | way->bytes | way->waits | way->moved | way->resent)))
        return;
    put(out, line,
        snprintf(line, sizeof(line),
                 "route %u %u %u %" PRIu64 " %s gate %s %s %" PRIu64 " %" PRIu64
                 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
                 key->from, key->to, key->class, way->max_len, way->network,
                 way->protocol, via, way->messages, way->bytes, way->waits,
                 way->moved, way->resent));
    way->messages = way->bytes = way->waits = way->moved = way->resent = 0;
}

static void report_hop(const struct chempi_route_stats_way *way,
                       const struct chempi_neighbors *neighbors, uint32_t i,
                       const char *via, struct chempi_writer *out)
{
    const struct chempi_route_stats_key *key = &way->key;
    const struct chempi_route_stats_hop *h = &way->hops[i];
    const char *network;
    const char *device;
    char line[LINE_MAX_LEN];

    if (h->frames &&
        chempi_neighbors_way_names(neighbors, way->peer, i, &network, &device))
        put(out, line,
            snprintf(line, sizeof(line),
                     "hop %u %u %u %s %u %s %s %" PRIu64 " %" PRIu64 " %" PRIu64
                     "\n",
                     key->from, key->to, key->class, via, key->at, network,
                     device, h->frames, h->bytes, h->waits));
}

void chempi_route_stats_report(struct chempi_route_stats *tally,
                               const struct chempi_neighbors *neighbors,
                               struct chempi_writer *out)
{
    for (uint32_t i = 0; i < tally->count; i++) {
        struct chempi_route_stats_way *way = tally->at[i];
        char via[12 * CHEMPI_NEIGHBOR_GATEWAYS_MAX];

        list_gates(&way->key, neighbors->services, via, sizeof(via));
        report_sender(way, via, out);
        for (uint32_t k = 0; k < CHEMPI_NEIGHBOR_WAYS_MAX; k++)
            report_hop(way, neighbors, k, via, out);
        memset(way->hops, 0, sizeof(way->hops));
    }
    if (tally->is_short) {
        char line[64];

        put(out, line,
            snprintf(line, sizeof(line), "short %u\n",
                     neighbors->services->node));
    }
}

void chempi_route_stats_fini(struct chempi_route_stats *tally)
{
    for (uint32_t i = 0; i < tally->count; i++)
        free(tally->at[i]);
    free(tally->at);
    chempi_index_fini(&tally->index);
    *tally = (struct chempi_route_stats){0};
}
