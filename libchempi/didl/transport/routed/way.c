/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ways: which gateways a flow's frames take. The table has sets of gateways;
 * flows are spread over those that are equally good by a hash of the pair of
 * processes, and go on over others when one is lost.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "common/words/fold.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/control/daemon.h"
#include "libchempi/didl/error/fatal.h"
#include "libchempi/didl/transport/routed/internal.h"

#define NAMED_MAX 64u  /* nodes in one sentence, before they are folded */
#define NODES_TEXT 320 /* bytes of them in words */

static uint32_t hash_pair(uint32_t src, uint32_t dst)
{
    uint64_t x = (uint64_t)src << 32 | dst;

    x = (x ^ x >> 31) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
    return (uint32_t)(x >> 32);
}

/* The job's gateway process on a node of the table, in this state at worst,
 * or NONE. */
static uint32_t gateway_at(const struct chempi_routed *routed, uint32_t node,
                           enum chempi_routed_state worst)
{
    const struct chempi_services *s = routed->dev.params.services;
    const char *name = chempi_table_node_name(s->table, node);

    for (uint32_t p = routed->rank_count; p < s->proc_count; p++)
        if (routed->gateways[p - routed->rank_count] <= worst &&
            strcmp(s->node_names[s->node_of_proc[p]], name) == 0)
            return p;
    return CHEMPI_TABLE_NONE;
}

/* One of the gateways at the end of a stage, beginning with the hash among
 * those that are equally good. */
static uint32_t pick(const struct chempi_routed *routed,
                     const struct chempi_table_range *range, uint32_t stage,
                     uint32_t hash)
{
    const struct chempi_table_stage *s = &range->stages[stage];
    const uint32_t share = chempi_table_share(range, stage);
    static const enum chempi_routed_state turns[] = {CHEMPI_ROUTED_UP,
                                                     CHEMPI_ROUTED_DRAINED};

    for (size_t t = 0; t < CHEMPI_ARRAY_LEN(turns); t++)
        for (uint32_t i = 0; i < s->hop_count; i++) {
            uint32_t k = i < share ? (i + hash) % share : i;
            uint32_t proc = gateway_at(routed, s->hops[k], turns[t]);

            if (proc != CHEMPI_TABLE_NONE)
                return proc;
        }
    return CHEMPI_TABLE_NONE;
}

/* 0 or -EHOSTUNREACH: some stage has no gateway. */
static int choose_gateways(const struct chempi_routed_flow *flow,
                           struct chempi_routed_way *way)
{
    const struct chempi_routed *routed = chempi_routed_of(flow);
    const struct chempi_table_range *range = way->range;
    uint32_t hash = hash_pair(routed->dev.params.services->proc, flow->ep.proc);

    way->gateway_count = 0;
    for (uint32_t i = 0; i + 1 < range->stage_count; i++) {
        uint32_t proc = pick(routed, range, i, hash);

        if (proc == CHEMPI_TABLE_NONE) {
            way->gateway_count = 0;
            return -EHOSTUNREACH;
        }
        way->gateways[way->gateway_count++] = proc;
    }
    return 0;
}

int chempi_routed_way_choose(struct chempi_routed_flow *flow)
{
    bool is_any = false;

    for (uint32_t i = 0; i < flow->way_count; i++) {
        struct chempi_routed_way *way = &flow->ways[i];

        if (way->range) {
            (void)choose_gateways(flow, way); /* none: it has no gateway */
            way->is_direct = false;
        }
        is_any |= way->gateway_count > 0 || way->is_direct;
    }
    if (is_any || !flow->has_direct)
        return is_any ? 0 : -EHOSTUNREACH;
    flow->ways[0].is_direct = true;
    return 0;
}

uint32_t
chempi_routed_way_to_gateway(const struct chempi_routed *routed, uint32_t proc,
                             uint32_t gateways[CHEMPI_NEIGHBOR_GATEWAYS_MAX])
{
    const struct chempi_services *s = routed->dev.params.services;
    const uint32_t hash = hash_pair(s->proc, proc);
    const struct chempi_table_range *ranges;
    uint32_t node =
        chempi_table_find_node(s->table, s->node_names[s->node_of_proc[proc]]);
    uint32_t count = 0;

    if (node == CHEMPI_TABLE_NONE)
        return 0;
    ranges = chempi_table_ranges(s->table, node, &count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t n = 0;

        while (n + 1 < ranges[i].stage_count &&
               n + 1 < CHEMPI_NEIGHBOR_GATEWAYS_MAX) {
            gateways[n] = pick(routed, &ranges[i], n, hash);
            if (gateways[n] == CHEMPI_TABLE_NONE)
                break;
            n++;
        }
        if (n + 1 != (ranges[i].stage_count ? ranges[i].stage_count : 1))
            continue;
        gateways[n] = proc;
        return n + 1;
    }
    return 0;
}

static uint32_t chunk_of(const struct chempi_table_range *range)
{
    if (range->switch_len < CHEMPI_ROUTED_CHUNK_MIN)
        return CHEMPI_ROUTED_CHUNK_MIN;
    return range->switch_len < CHEMPI_NEIGHBOR_CHUNK_MAX
               ? range->switch_len
               : CHEMPI_NEIGHBOR_CHUNK_MAX;
}

int chempi_routed_way_open(struct chempi_routed_flow *flow)
{
    const struct chempi_services *s = flow->ep.dev->params.services;
    const struct chempi_table_range *ranges;
    uint32_t count = 0;
    uint32_t routed = 0;
    uint32_t node;

    if (!s->table)
        return -EHOSTUNREACH;
    node = chempi_table_find_node(
        s->table, s->node_names[s->node_of_proc[flow->ep.proc]]);
    if (node == CHEMPI_TABLE_NONE)
        return -EHOSTUNREACH;
    ranges = chempi_table_ranges(s->table, node, &count);
    for (uint32_t i = 0; i < count; i++)
        routed += ranges[i].stage_count > 1;
    flow->has_direct = routed < count;
    if (!routed)
        return -EHOSTUNREACH;
    flow->ways = chempi_sys->calloc(routed, sizeof(*flow->ways));
    if (!flow->ways)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        if (ranges[i].stage_count < 2)
            continue;
        flow->ways[flow->way_count++] = (struct chempi_routed_way){
            .max_len = ranges[i].max_len,
            .range = &ranges[i],
            .chunk = chunk_of(&ranges[i]),
        };
    }
    return chempi_routed_way_choose(flow);
}

void chempi_routed_way_learn(struct chempi_routed_flow *flow,
                             const struct chempi_neighbor_frame *f)
{
    struct chempi_routed_way *way;

    if (!flow->ways)
        flow->ways = chempi_sys->calloc(1, sizeof(*flow->ways));
    if (!flow->ways)
        return; /* the next frame tries again */
    way = &flow->ways[0];
    flow->way_count = 1;
    *way = (struct chempi_routed_way){
        .max_len = UINT64_MAX,
        .chunk = CHEMPI_NEIGHBOR_CHUNK_MAX,
        .is_direct = f->gateway_count == 0,
        .gateway_count = f->gateway_count,
    };
    for (uint32_t i = 0; i < f->gateway_count; i++)
        way->gateways[i] = f->gateways[f->gateway_count - 1 - i];
}

const struct chempi_routed_way *
chempi_routed_way_find(const struct chempi_routed_flow *flow, uint64_t len)
{
    const struct chempi_routed_way *usable = NULL;

    for (uint32_t i = 0; i < flow->way_count; i++) {
        const struct chempi_routed_way *way = &flow->ways[i];

        if (!way->gateway_count && !way->is_direct)
            continue;
        usable = way;
        if (len <= way->max_len)
            break;
    }
    return usable;
}

/* ---- lost for good ------------------------------------------------------ */

/* Is a node of the job a gateway that this process has lost? */
static bool is_lost(struct chempi_routed *routed, uint32_t node)
{
    const struct chempi_services *s = routed->dev.params.services;

    for (uint32_t p = routed->rank_count; p < s->proc_count; p++)
        if (s->node_of_proc[p] == node &&
            routed->gateways[p - routed->rank_count] == CHEMPI_ROUTED_DEAD)
            return true;
    return false;
}

/* A node with a rank that this process cannot reach any more, whether it has
 * sent something there or not. */
static bool is_cut_off(struct chempi_routed *routed, uint32_t node)
{
    const struct chempi_services *s = routed->dev.params.services;
    struct chempi_routed_flow flow = {.ep = {.dev = &routed->dev}};
    uint32_t proc = 0;
    bool is_cut;

    while (proc < routed->rank_count && s->node_of_proc[proc] != node)
        proc++;
    if (node == s->node || proc == routed->rank_count)
        return false;
    if (routed->flows[proc])
        return !chempi_routed_way_find(routed->flows[proc], 0);
    flow.ep.proc = proc;
    (void)chempi_routed_way_open(&flow); /* what it finds is asked next */
    is_cut =
        flow.way_count && !flow.has_direct && !chempi_routed_way_find(&flow, 0);
    free(flow.ways);
    return is_cut;
}

/* Nodes of the job of one kind, by name. */
static void list_nodes(struct chempi_routed *routed,
                       bool (*is_of_kind)(struct chempi_routed *, uint32_t),
                       char *text, size_t size)
{
    const struct chempi_services *s = routed->dev.params.services;
    const char *names[NAMED_MAX] = {NULL};
    uint32_t count = 0;
    size_t len;

    for (uint32_t n = 0; n < s->node_count; n++) {
        if (!is_of_kind(routed, n))
            continue;
        if (count < NAMED_MAX)
            names[count] = s->node_names[n];
        count++;
    }
    chempi_fold_names(names, count < NAMED_MAX ? count : NAMED_MAX, text,
                      size - 24);
    len = strlen(text);
    if (count > NAMED_MAX)
        (void)snprintf(text + len, size - len, " and %u more",
                       count - NAMED_MAX);
}

int chempi_routed_way_none(struct chempi_routed *routed, uint32_t node,
                           struct chempi_err *err)
{
    const struct chempi_services *s = routed->dev.params.services;
    char lost[NODES_TEXT];

    list_nodes(routed, is_lost, lost, sizeof(lost));
    if (!lost[0])
        return chempi_err_set(err, -EHOSTUNREACH,
                              "no gateway between node %s and node %s runs; "
                              "see mdconfig explain",
                              s->node_names[s->node], s->node_names[node]);
    return chempi_err_set(err, -EHOSTUNREACH,
                          "no way leads from node %s to node %s any more: lost "
                          "are the gateways on %s; chempictl nodes tells "
                          "whether they are back for another job",
                          s->node_names[s->node], s->node_names[node], lost);
}

void chempi_routed_way_cut(struct chempi_routed *routed, uint32_t proc,
                           const char *why)
{
    const struct chempi_services *s = routed->dev.params.services;
    char nodes[NODES_TEXT];

    list_nodes(routed, is_cut_off, nodes, sizeof(nodes));
    chempi_daemon_cut(proc, why); /* the launcher knows all nodes' ways */
    for (uint32_t p = routed->rank_count; p < s->proc_count; p++)
        if (p != proc &&
            routed->gateways[p - routed->rank_count] == CHEMPI_ROUTED_DEAD)
            chempi_daemon_cut(p, "its connections are gone");
    chempi_fatal_die("the gateway on node %s is lost (%s), and no other way "
                     "leads from node %s to %s; describe a second gateway, or "
                     "use nodes with a common network",
                     s->node_names[s->node_of_proc[proc]], why,
                     s->node_names[s->node], nodes);
}
