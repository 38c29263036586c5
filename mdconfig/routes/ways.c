/* SPDX-License-Identifier: BSD-3-Clause */
/* Ways one by one; see ways.h. */
#include "mdconfig/routes/ways.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "mdconfig/routes/hops.h"

struct trying {
    const struct chempi_graph *graph;
    uint32_t source;
    uint32_t target;
    struct chempi_way now;
    struct chempi_ways *ways;
    bool has_direct;
};

const struct chempi_desc_protocol *
chempi_ways_protocol(const struct chempi_graph *graph,
                     const struct chempi_route_stage *stage)
{
    return &graph->desc->networks[stage->network].protocols[stage->protocol];
}

double chempi_ways_time(const struct chempi_graph *graph,
                        const struct chempi_way *way, uint64_t len)
{
    const struct chempi_desc *d = graph->desc;
    double least = INFINITY;

    for (uint32_t i = 0; i < way->count; i++) {
        const struct chempi_desc_protocol *p =
            chempi_ways_protocol(graph, &way->stages[i]);

        if (len < p->min_len || len > p->max_len)
            return INFINITY;
    }
    if (way->count == 1 || len <= d->chunk)
        least = chempi_route_time(graph, way->stages, way->count, 0, len);
    if (way->count == 1)
        return least;
    for (uint32_t c = 0; (c = chempi_interval_next_chunk(d, c)) != 0;) {
        if (len >= chempi_interval_least_cut(d, c))
            least = fmin(least, chempi_route_time(graph, way->stages,
                                                  way->count, c, len));
    }
    return least;
}

static void keep(struct trying *t)
{
    struct chempi_ways *w = t->ways;

    if (w->count == CHEMPI_WAYS_MAX)
        return;
    for (uint32_t i = 0; i + 1 < t->now.count; i++) {
        if (chempi_hops_first(t->graph, t->now.stages, i) !=
            t->now.stages[i].end_class)
            return; /* the same way in other words */
    }
    if (t->now.count == 1)
        t->has_direct = true;
    w->list = chempi_mem_grow(w->list, w->count, &w->room, sizeof(*w->list));
    w->list[w->count++] = t->now;
}

/* Using a network twice is never worth while. */
static bool uses(const struct trying *t, uint32_t network)
{
    for (uint32_t i = 0; i < t->now.count; i++) {
        if (t->now.stages[i].network == network)
            return true;
    }
    return false;
}

static bool passes(const struct trying *t, uint32_t node_class)
{
    if (node_class == t->source)
        return true;
    for (uint32_t i = 0; i < t->now.count; i++) {
        if (t->now.stages[i].end_class == node_class)
            return true;
    }
    return false;
}

static void try_from(struct trying *t, uint32_t node_class);

static void try_stage(struct trying *t, uint32_t network, uint32_t protocol)
{
    const struct chempi_graph *g = t->graph;
    struct chempi_route_stage *s = &t->now.stages[t->now.count];

    t->now.count++;
    for (uint32_t i = g->in_first[network]; i < g->in_first[network + 1]; i++) {
        uint32_t c = g->in[i];

        s->end_class = CHEMPI_SEARCH_NONE;
        if (c != t->target && (t->now.count == CHEMPI_WAYS_STAGES_MAX ||
                               passes(t, c) || !chempi_graph_forwards(g, c)))
            continue;
        *s = (struct chempi_route_stage){network, protocol, c};
        if (c == t->target)
            keep(t);
        else if (t->ways->count < CHEMPI_WAYS_MAX)
            try_from(t, c);
    }
    t->now.count--;
}

/* Depth first; the recursion is as deep as a way has stages. */
static void try_from(struct trying *t, uint32_t node_class)
{
    const struct chempi_graph *g = t->graph;

    for (uint32_t i = g->out_first[node_class];
         i < g->out_first[node_class + 1]; i++) {
        const struct chempi_desc_network *n = &g->desc->networks[g->out[i]];

        for (uint32_t p = 0; p < n->protocol_count && !uses(t, g->out[i]); p++)
            try_stage(t, g->out[i], p);
    }
}

/* Ways inside a node: every protocol of its networks for that. */
static void try_inside(struct trying *t)
{
    const struct chempi_graph *g = t->graph;
    const struct chempi_desc_node *n = chempi_graph_model(g, t->source);

    t->now.count = 1;
    for (size_t i = 0; i < n->attachment_count; i++) {
        uint32_t network = n->attachments[i].network;
        const struct chempi_desc_network *net = &g->desc->networks[network];

        for (uint32_t p = 0; net->inside_node && p < net->protocol_count; p++) {
            t->now.stages[0] =
                (struct chempi_route_stage){network, p, t->source};
            keep(t);
        }
    }
}

void chempi_ways_find(const struct chempi_graph *graph, uint32_t source,
                      uint32_t target, bool inside, struct chempi_ways *out)
{
    enum chempi_desc_ways rule = graph->desc->ways;
    struct trying t = {
        .graph = graph, .source = source, .target = target, .ways = out};

    *out = (struct chempi_ways){.count = 0};
    if (inside)
        try_inside(&t);
    else
        try_from(&t, source);
    for (size_t i = 0; i < out->count; i++)
        out->list[i].is_shut_out =
            out->list[i].count > 1 &&
            (rule == CHEMPI_DESC_DIRECT ||
             (rule == CHEMPI_DESC_NEEDED && t.has_direct));
}

void chempi_ways_fini(struct chempi_ways *ways)
{
    free(ways->list);
    *ways = (struct chempi_ways){.count = 0};
}

const char *chempi_ways_name(const struct chempi_graph *graph,
                             const struct chempi_route_stage *stages,
                             uint32_t count, char *buf, size_t len)
{
    char names[128];
    size_t at = 0;

    buf[0] = '\0';
    for (uint32_t i = 0; i < count && at < len; i++) {
        const struct chempi_desc_network *n =
            &graph->desc->networks[stages[i].network];
        bool last = i + 1 == count;
        int used = snprintf(
            buf + at, len - at, "%s%s %s on %s%s%s", i ? ", then " : "",
            n->device, chempi_ways_protocol(graph, &stages[i])->name, n->name,
            last ? "" : " to ",
            last ? ""
                 : chempi_hops_names(graph, stages, i, names, sizeof(names)));

        if (used < 0)
            break;
        at += (size_t)used;
    }
    return buf;
}

static void put_gateways(struct chempi_json *j, const struct chempi_graph *g,
                         const struct chempi_route_stage *stages, uint32_t i)
{
    size_t count;
    const char **names = chempi_hops_list(g, stages, i, &count);

    chempi_json_texts(j, "gateways", names, count);
    free(names);
}

void chempi_ways_json(struct chempi_json *j, const char *name,
                      const struct chempi_graph *graph,
                      const struct chempi_route_stage *stages, uint32_t count)
{
    chempi_json_open_list(j, name);
    for (uint32_t i = 0; i < count; i++) {
        const struct chempi_desc_network *n =
            &graph->desc->networks[stages[i].network];

        chempi_json_open(j, NULL);
        chempi_json_text(j, "device", n->device);
        chempi_json_text(j, "protocol",
                         chempi_ways_protocol(graph, &stages[i])->name);
        chempi_json_text(j, "network", n->name);
        if (i + 1 < count)
            put_gateways(j, graph, stages, i);
        chempi_json_close(j);
    }
    chempi_json_close_list(j);
}
