/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Graphviz; see dot.h. Names of nodes, networks and clusters hold no quote and
 * no backslash, so they can stand in quotes as they are.
 */
#include "mdconfig/pictures/dot.h"

#include "mdconfig/description/text.h"
#include "mdconfig/pictures/show.h"
#include "mdconfig/pictures/svg.h"
#include "mdconfig/routes/ways.h"

static void put_network(const struct chempi_graph *g, uint32_t network,
                        FILE *out)
{
    const struct chempi_desc_network *n = &g->desc->networks[network];
    const char *colour = chempi_svg_colour(network);

    (void)fprintf(out,
                  "  n%u [shape=ellipse, color=\"%s\", fontcolor=\"%s\", "
                  "penwidth=2, label=\"%s\\n%s over %s\"];\n",
                  network, colour, colour, n->name, n->type, n->device);
}

static void put_class(const struct chempi_graph *g, uint32_t node_class,
                      const char *time, FILE *out)
{
    const struct chempi_desc_node *n = chempi_graph_model(g, node_class);
    uint32_t count = chempi_graph_size(g, node_class);
    char names[64];

    (void)fprintf(out,
                  "  c%u [shape=box, style=filled, fillcolor=\"%s\", "
                  "penwidth=%d, label=\"%s\\n%u node%s%s%s%s\"];\n",
                  node_class, n->gateway ? "#fff3d6" : "#f4f6fa",
                  n->gateway ? 2 : 1,
                  chempi_graph_members(g, node_class, names, sizeof(names)),
                  count, chempi_text_plural(count),
                  n->gateway ? ", gateway" : "", *time ? "\\n" : "", time);
}

static void put_attachments(const struct chempi_graph *g, uint32_t node_class,
                            FILE *out)
{
    const struct chempi_desc_node *n = chempi_graph_model(g, node_class);

    for (size_t i = 0; i < n->attachment_count; i++) {
        const struct chempi_desc_attachment *a = &n->attachments[i];
        bool one_way = !a->can_send || !a->can_receive;

        if (g->desc->networks[a->network].inside_node)
            continue;
        (void)fprintf(out, "  c%u -> n%u [dir=%s, color=\"%s\"%s];\n",
                      node_class, a->network,
                      !one_way      ? "none"
                      : a->can_send ? "forward"
                                    : "back",
                      chempi_svg_colour(a->network),
                      one_way ? ", style=dashed" : "");
    }
}

/* Every step of a way once, however many ways have it in common. */
static void put_way(const struct chempi_graph *g, const struct chempi_route *r,
                    uint32_t source, struct chempi_names *known,
                    struct chempi_arena *arena, FILE *out)
{
    uint32_t at = source;

    for (uint32_t i = 0; i < r->stage_count; i++) {
        const struct chempi_route_stage *s = &r->stages[i];
        const char *colour = chempi_svg_colour(s->network);
        char *steps[] = {
            chempi_arena_format(
                arena,
                "c%u -> n%u [label=\"%s\", fontcolor=\"%s\", color=\"%s\"", at,
                s->network, chempi_ways_protocol(g, s)->name, colour, colour),
            chempi_arena_format(arena, "n%u -> c%u [color=\"%s\"", s->network,
                                s->end_class, colour)};

        for (int k = 0; k < 2; k++) {
            if (chempi_names_find(known, steps[k]) != CHEMPI_NAMES_NONE)
                continue;
            chempi_names_add(known, steps[k], 0);
            (void)fprintf(out, "  %s, penwidth=3, constraint=false];\n",
                          steps[k]);
        }
        at = s->end_class;
    }
}

/* Classes with the times from the source, and the ways. */
static void put_ways(const struct chempi_graph *g, uint32_t source,
                     uint64_t len, FILE *out)
{
    struct chempi_arena arena = {.blocks = NULL};
    struct chempi_names known = {.count = 0};
    struct chempi_routes routes;

    chempi_route_source(g, source, &routes);
    for (uint32_t c = 0; c < g->class_count; c++) {
        const struct chempi_route *r = chempi_route_for(&routes.lists[c], len);
        bool alone = c == source && chempi_graph_size(g, c) == 1;

        put_class(g, c,
                  alone ? ""
                  : !r  ? "cannot be reached"
                        : chempi_text_put_time(chempi_route_time(g, r->stages,
                                                                 r->stage_count,
                                                                 r->chunk, len))
                             .text,
                  out);
        if (r && !alone)
            put_way(g, r, source, &known, &arena, out);
    }
    chempi_routes_fini(&routes);
    chempi_names_fini(&known);
    chempi_arena_fini(&arena);
}

static void put_title(const struct chempi_desc *d, uint32_t from, uint64_t len,
                      FILE *out)
{
    (void)fprintf(out, "digraph cluster {\n  graph [labelloc=t, label=\"%s%s",
                  d->cluster, *d->cluster ? ": " : "");
    if (from == CHEMPI_SEARCH_NONE)
        (void)fprintf(out, "%u node%s", d->node_count,
                      chempi_text_plural(d->node_count));
    else
        (void)fprintf(out, "the ways of %s from %s",
                      chempi_text_put_size(len).text, d->nodes[from].name);
    (void)fputs("\", fontname=\"sans-serif\"];\n"
                "  node [fontname=\"sans-serif\", fontsize=11];\n"
                "  edge [fontname=\"sans-serif\", fontsize=10];\n",
                out);
}

void chempi_dot(const struct chempi_graph *graph, uint32_t from, uint64_t len,
                FILE *out)
{
    put_title(graph->desc, from, len, out);
    for (uint32_t i = 0; i < graph->network_count; i++) {
        if (!graph->desc->networks[i].inside_node)
            put_network(graph, i, out);
    }
    if (from != CHEMPI_SEARCH_NONE)
        put_ways(graph, graph->desc->nodes[from].node_class, len, out);
    for (uint32_t c = 0; c < graph->class_count; c++) {
        if (from == CHEMPI_SEARCH_NONE)
            put_class(graph, c, "", out);
        put_attachments(graph, c, out);
    }
    (void)fputs("}\n", out);
}
