/* SPDX-License-Identifier: BSD-3-Clause */
/* The graph behind a description; see graph.h. */
#include "mdconfig/routes/graph.h"

#include <stdlib.h>

#include "common/words/fold.h"
#include "mdconfig/description/mem.h"

const struct chempi_desc_node *
chempi_graph_model(const struct chempi_graph *graph, uint32_t node_class)
{
    uint32_t node = graph->members[graph->member_first[node_class]];

    return &graph->desc->nodes[node];
}

uint32_t chempi_graph_size(const struct chempi_graph *graph,
                           uint32_t node_class)
{
    return graph->member_first[node_class + 1] -
           graph->member_first[node_class];
}

bool chempi_graph_forwards(const struct chempi_graph *graph,
                           uint32_t node_class)
{
    return chempi_graph_model(graph, node_class)->gateway;
}

bool chempi_graph_receives(const struct chempi_graph *graph,
                           uint32_t node_class, uint32_t network)
{
    uint32_t node = graph->members[graph->member_first[node_class]];
    const struct chempi_desc_attachment *a =
        chempi_desc_attached(graph->desc, node, network);

    return a && a->can_receive;
}

/* Turn counts in first[i + 1] into offsets. */
static void sum_up(uint32_t *first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        first[i + 1] += first[i];
}

static void group_members(struct chempi_graph *g)
{
    const struct chempi_desc *d = g->desc;
    uint32_t *next;

    g->members =
        chempi_arena_get(&g->arena, d->node_count, sizeof(*g->members));
    g->member_first = chempi_arena_get(&g->arena, (size_t)g->class_count + 1,
                                       sizeof(*g->member_first));
    next = chempi_arena_get(&g->arena, g->class_count, sizeof(*next));
    for (uint32_t i = 0; i < d->node_count; i++)
        g->member_first[d->nodes[i].node_class + 1]++;
    sum_up(g->member_first, g->class_count);
    for (uint32_t i = 0; i < d->node_count; i++) {
        uint32_t c = d->nodes[i].node_class;

        g->members[g->member_first[c] + next[c]++] = i;
    }
}

static void count_edges(struct chempi_graph *g)
{
    for (uint32_t c = 0; c < g->class_count; c++) {
        const struct chempi_desc_node *n = chempi_graph_model(g, c);

        for (size_t i = 0; i < n->attachment_count; i++) {
            const struct chempi_desc_attachment *a = &n->attachments[i];

            if (g->desc->networks[a->network].inside_node)
                continue;
            g->out_first[c + 1] += a->can_send;
            g->in_first[a->network + 1] += a->can_receive;
        }
    }
    sum_up(g->out_first, g->class_count);
    sum_up(g->in_first, g->network_count);
}

static void fill_edges(struct chempi_graph *g)
{
    uint32_t *next =
        chempi_arena_get(&g->arena, g->network_count, sizeof(*next));
    uint32_t out = 0;

    for (uint32_t c = 0; c < g->class_count; c++) {
        const struct chempi_desc_node *n = chempi_graph_model(g, c);

        for (size_t i = 0; i < n->attachment_count; i++) {
            const struct chempi_desc_attachment *a = &n->attachments[i];

            if (g->desc->networks[a->network].inside_node)
                continue;
            if (a->can_send)
                g->out[out++] = a->network;
            if (a->can_receive)
                g->in[g->in_first[a->network] + next[a->network]++] = c;
        }
    }
}

void chempi_graph_init(struct chempi_graph *graph,
                       const struct chempi_desc *desc)
{
    *graph = (struct chempi_graph){.desc = desc,
                                   .class_count = desc->class_count,
                                   .network_count = desc->network_count};
    group_members(graph);
    graph->out_first =
        chempi_arena_get(&graph->arena, (size_t)graph->class_count + 1,
                         sizeof(*graph->out_first));
    graph->in_first =
        chempi_arena_get(&graph->arena, (size_t)graph->network_count + 1,
                         sizeof(*graph->in_first));
    count_edges(graph);
    graph->out =
        chempi_arena_get(&graph->arena, graph->out_first[graph->class_count],
                         sizeof(*graph->out));
    graph->in =
        chempi_arena_get(&graph->arena, graph->in_first[graph->network_count],
                         sizeof(*graph->in));
    fill_edges(graph);
    chempi_intervals_init(&graph->intervals, desc);
}

void chempi_graph_fini(struct chempi_graph *graph)
{
    chempi_intervals_fini(&graph->intervals);
    chempi_arena_fini(&graph->arena);
    *graph = (struct chempi_graph){.desc = NULL};
}

int chempi_graph_use(const struct chempi_command_line *line,
                     chempi_graph_fn *use, struct chempi_err *err)
{
    struct chempi_desc desc;
    struct chempi_graph graph;
    int rc;

    if (chempi_desc_open(line->arguments[0], &desc, err) != 0)
        return CHEMPI_COMMAND_FAILED;
    chempi_graph_init(&graph, &desc);
    rc = use(&graph, line, err);
    chempi_graph_fini(&graph);
    chempi_desc_fini(&desc);
    return rc;
}

const char *chempi_graph_members(const struct chempi_graph *graph,
                                 uint32_t node_class, char *buf, size_t len)
{
    uint32_t count = chempi_graph_size(graph, node_class);
    const char **names = chempi_mem_get(count, sizeof(*names));

    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = graph->member_first[node_class] + i;

        names[i] = graph->desc->nodes[graph->members[at]].name;
    }
    chempi_fold_sorted(names, count, buf, len);
    free(names);
    return buf;
}
