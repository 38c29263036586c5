/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets of gateways; see hops.h. */
#include "mdconfig/routes/hops.h"

#include <stdlib.h>

#include "common/words/fold.h"

static bool sends(const struct chempi_graph *g, uint32_t node_class,
                  uint32_t network)
{
    for (uint32_t i = g->out_first[node_class];
         i < g->out_first[node_class + 1]; i++) {
        if (g->out[i] == network)
            return true;
    }
    return false;
}

bool chempi_hops_fits(const struct chempi_graph *graph, uint32_t node_class,
                      const struct chempi_route_stage *stages, uint32_t i)
{
    return chempi_graph_forwards(graph, node_class) &&
           chempi_graph_receives(graph, node_class, stages[i].network) &&
           sends(graph, node_class, stages[i + 1].network);
}

static double forward_of(const struct chempi_graph *g, uint32_t node_class)
{
    return chempi_graph_model(g, node_class)->forward_us;
}

bool chempi_hops_is_equal(const struct chempi_graph *graph, uint32_t node_class,
                          const struct chempi_route_stage *stages, uint32_t i)
{
    double us = forward_of(graph, node_class);
    double named_us = forward_of(graph, stages[i].end_class);

    return us >= named_us && us <= named_us &&
           chempi_hops_fits(graph, node_class, stages, i);
}

/* Gateways that can end a stage, and how to tell them. */
struct choice {
    const struct chempi_graph *graph;
    const struct chempi_route_stage *stages;
    uint32_t stage_count;
    uint32_t stage;
    double forward_us; /* of those wanted */
    bool is_alternate;
};

static bool is_wanted(const struct choice *c, uint32_t node_class)
{
    double us = forward_of(c->graph, node_class);

    if (us < c->forward_us || us > c->forward_us ||
        !chempi_hops_fits(c->graph, node_class, c->stages, c->stage))
        return false;
    for (uint32_t i = 0; c->is_alternate && i + 1 < c->stage_count; i++) {
        if (i != c->stage &&
            chempi_hops_fits(c->graph, node_class, c->stages, i))
            return false;
    }
    return true;
}

static uint32_t count_wanted(const struct choice *c)
{
    const struct chempi_graph *g = c->graph;
    uint32_t network = c->stages[c->stage].network;
    uint32_t count = 0;

    for (uint32_t k = g->in_first[network]; k < g->in_first[network + 1]; k++) {
        if (is_wanted(c, g->in[k]))
            count += chempi_graph_size(g, g->in[k]);
    }
    return count;
}

/* Add those of `count` nodes that there is room for, beginning with number
 * `start` and going round. */
static void add_wanted(const struct choice *c, uint32_t count, uint32_t start,
                       struct chempi_hops *out)
{
    const struct chempi_graph *g = c->graph;
    uint32_t network = c->stages[c->stage].network;
    uint32_t room = CHEMPI_HOPS_MAX - out->count;
    uint32_t number = 0;

    for (uint32_t k = g->in_first[network]; k < g->in_first[network + 1]; k++) {
        uint32_t in = g->in[k];

        if (!is_wanted(c, in))
            continue;
        for (uint32_t m = g->member_first[in]; m < g->member_first[in + 1];
             m++) {
            uint32_t place = (number++ + count - start) % count;

            if (place < room)
                out->nodes[out->count + place] = g->members[m];
        }
    }
    out->count += count < room ? count : room;
}

/* Go on to the least cost above the present one; false when there is none. */
static bool next_cost(struct choice *c)
{
    const struct chempi_graph *g = c->graph;
    uint32_t network = c->stages[c->stage].network;
    double next_us = c->forward_us;

    for (uint32_t k = g->in_first[network]; k < g->in_first[network + 1]; k++) {
        double us = forward_of(g, g->in[k]);

        if (us > c->forward_us && (us < next_us || next_us <= c->forward_us) &&
            chempi_hops_fits(g, g->in[k], c->stages, c->stage))
            next_us = us;
    }
    if (next_us <= c->forward_us)
        return false;
    c->forward_us = next_us;
    c->is_alternate = true;
    return true;
}

void chempi_hops_find(const struct chempi_graph *graph, uint32_t source,
                      const struct chempi_route_stage *stages, uint32_t count,
                      uint32_t i, struct chempi_hops *out)
{
    struct choice c = {.graph = graph,
                       .stages = stages,
                       .stage_count = count,
                       .stage = i,
                       .forward_us = forward_of(graph, stages[i].end_class)};
    uint32_t n = count_wanted(&c);
    uint32_t start = 0;

    if (n > CHEMPI_HOPS_MAX)
        start = (uint32_t)((uint64_t)source * CHEMPI_HOPS_MAX % n);
    out->count = 0;
    add_wanted(&c, n, start, out);
    out->share_count = out->count;
    while (out->count < CHEMPI_HOPS_MAX && next_cost(&c)) {
        n = count_wanted(&c);
        if (n > 0)
            add_wanted(&c, n, 0, out);
    }
}

uint32_t chempi_hops_first(const struct chempi_graph *graph,
                           const struct chempi_route_stage *stages, uint32_t i)
{
    uint32_t k = graph->in_first[stages[i].network];

    while (!chempi_hops_is_equal(graph, graph->in[k], stages, i))
        k++; /* ends at the class that the way names */
    return graph->in[k];
}

const char **chempi_hops_list(const struct chempi_graph *graph,
                              const struct chempi_route_stage *stages,
                              uint32_t i, size_t *count)
{
    uint32_t network = stages[i].network;
    const char **names = NULL;
    size_t room = 0;

    *count = 0;
    for (uint32_t k = graph->in_first[network];
         k < graph->in_first[network + 1]; k++) {
        uint32_t c = graph->in[k];

        if (!chempi_hops_is_equal(graph, c, stages, i))
            continue;
        for (uint32_t m = graph->member_first[c];
             m < graph->member_first[c + 1]; m++) {
            names = chempi_mem_grow(names, *count, &room, sizeof(*names));
            names[(*count)++] = graph->desc->nodes[graph->members[m]].name;
        }
    }
    return names;
}

const char *chempi_hops_names(const struct chempi_graph *graph,
                              const struct chempi_route_stage *stages,
                              uint32_t i, char *buf, size_t len)
{
    size_t count;
    const char **names = chempi_hops_list(graph, stages, i, &count);

    chempi_fold_sorted(names, count, buf, len);
    free(names);
    return buf;
}
