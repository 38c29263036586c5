/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The picture of a cluster; see draw.h. Every network is a bar with a colour
 * of its own, every class of nodes a column: its box stands below the bars and
 * a line leads up to each network that it is attached to. Networks inside
 * nodes are named in the box. Ways are drawn a little beside the lines.
 */
#include "mdconfig/pictures/draw.h"

#include <errno.h>
#include <string.h>

#include "mdconfig/description/text.h"
#include "mdconfig/pictures/show.h"
#include "mdconfig/pictures/svg.h"
#include "mdconfig/routes/ways.h"

static const double margin = 20;
static const double label_width = 190;
static const double column_width = 176;
static const double bar_height = 44;
static const double box_height = 62;
static const double title_height = 44;

struct drawing {
    const struct chempi_graph *graph;
    FILE *out;
    uint32_t bars[CHEMPI_DRAW_MAX]; /* networks that have a bar */
    uint32_t bar_count;
};

/* The bar of a network, or bar_count. */
static uint32_t bar_of(const struct drawing *d, uint32_t network)
{
    uint32_t i = 0;

    while (i < d->bar_count && d->bars[i] != network)
        i++;
    return i;
}

static double bar_y(uint32_t bar)
{
    return title_height + bar_height * (bar + 0.5);
}

static double box_y(const struct drawing *d)
{
    return title_height + bar_height * d->bar_count + 24;
}

static double column_x(uint32_t node_class)
{
    return margin + label_width + column_width * (node_class + 0.5);
}

/* Where the line from a class to a bar stands: lines to different networks
 * stand side by side. */
static double drop_x(const struct drawing *d, uint32_t node_class, uint32_t bar)
{
    double spread = column_width * 0.5;
    double step = d->bar_count > 1 ? spread / (d->bar_count - 1) : 0;

    return column_x(node_class) - (d->bar_count > 1 ? spread / 2 : 0) +
           step * bar;
}

/* ---- networks ----------------------------------------------------------- */

static void draw_bar(const struct drawing *d, uint32_t bar)
{
    const struct chempi_desc_network *n =
        &d->graph->desc->networks[d->bars[bar]];
    const struct chempi_svg_style style = {.stroke = chempi_svg_colour(bar),
                                           .width = 5};
    double y = bar_y(bar);
    char text[128];

    chempi_svg_line(
        d->out, (struct chempi_svg_point){margin + label_width, y},
        (struct chempi_svg_point){
            margin + label_width + column_width * d->graph->class_count, y},
        &style);
    (void)snprintf(text, sizeof(text), "%.28s", n->name);
    chempi_svg_text(d->out, (struct chempi_svg_point){margin, y}, 12,
                    CHEMPI_SVG_LEFT, chempi_svg_colour(bar), text);
    (void)snprintf(text, sizeof(text), "%s over %s", n->type, n->device);
    chempi_svg_text(d->out, (struct chempi_svg_point){margin, y + 13}, 10,
                    CHEMPI_SVG_LEFT, "#666666", text);
}

/* ---- nodes -------------------------------------------------------------- */

static void draw_drops(const struct drawing *d, uint32_t node_class)
{
    const struct chempi_desc_node *n = chempi_graph_model(d->graph, node_class);

    for (size_t i = 0; i < n->attachment_count; i++) {
        const struct chempi_desc_attachment *a = &n->attachments[i];
        uint32_t bar = bar_of(d, a->network);
        double x = drop_x(d, node_class, bar);
        bool one_way = !a->can_send || !a->can_receive;
        const struct chempi_svg_style line = {.stroke = chempi_svg_colour(bar),
                                              .width = 1.5,
                                              .dash = one_way ? "5 4" : NULL};
        const struct chempi_svg_style dot = {.fill = chempi_svg_colour(bar)};

        if (bar == d->bar_count)
            continue;
        chempi_svg_line(d->out, (struct chempi_svg_point){x, bar_y(bar)},
                        (struct chempi_svg_point){x, box_y(d)}, &line);
        chempi_svg_circle(d->out, (struct chempi_svg_point){x, bar_y(bar)}, 4,
                          &dot);
        if (one_way)
            chempi_svg_text(
                d->out, (struct chempi_svg_point){x + 5, bar_y(bar) + 18}, 9,
                CHEMPI_SVG_LEFT, "#666666", a->can_send ? "sends" : "receives");
    }
}

static void draw_box(const struct drawing *d, uint32_t node_class)
{
    const struct chempi_desc_node *n = chempi_graph_model(d->graph, node_class);
    const struct chempi_svg_style style = {.stroke = "#444444",
                                           .width = n->gateway ? 2.5 : 1,
                                           .fill = n->gateway ? "#fff3d6"
                                                              : "#f4f6fa"};
    uint32_t count = chempi_graph_size(d->graph, node_class);
    double x = column_x(node_class);
    double y = box_y(d);
    char text[32];

    chempi_svg_rect(d->out,
                    (struct chempi_svg_point){x - column_width / 2 + 6, y},
                    column_width - 12, box_height, &style);
    (void)chempi_graph_members(d->graph, node_class, text, 24);
    chempi_svg_text(d->out, (struct chempi_svg_point){x, y + 20}, 13,
                    CHEMPI_SVG_MIDDLE, "black", text);
    (void)snprintf(text, sizeof(text), "%u node%s", count,
                   chempi_text_plural(count));
    chempi_svg_text(d->out, (struct chempi_svg_point){x, y + 36}, 11,
                    CHEMPI_SVG_MIDDLE, "#444444", text);
    if (n->gateway)
        chempi_svg_text(d->out, (struct chempi_svg_point){x, y + 52}, 11,
                        CHEMPI_SVG_MIDDLE, "#a05a00", "gateway");
}

/* ---- ways --------------------------------------------------------------- */

/* The way's line: up from a box, along a bar, down to the next box. */
static void draw_way(const struct drawing *d, uint32_t source,
                     const struct chempi_route *r, uint32_t number)
{
    const struct chempi_svg_style style = {
        .stroke = "#222222", .width = 1.6, .dash = "6 3"};
    const struct chempi_svg_style end = {.fill = "#222222"};
    double shift = 6 + 4 * (double)(number % 5);
    uint32_t at = source;

    for (uint32_t i = 0; i < r->stage_count; i++) {
        const struct chempi_route_stage *s = &r->stages[i];
        uint32_t bar = bar_of(d, s->network);
        double from = drop_x(d, at, bar) + shift;
        double to = drop_x(d, s->end_class, bar) + shift;
        double y = bar_y(bar) + shift;
        struct chempi_svg_point points[4] = {
            {from, box_y(d)}, {from, y}, {to, y}, {to, box_y(d)}};

        if (at == s->end_class) { /* another node of the same class */
            points[2].x += 8;
            points[3].x += 8;
        }
        chempi_svg_polyline(d->out, points, 4, &style);
        chempi_svg_circle(d->out, points[3], 3, &end);
        at = s->end_class;
    }
}

static void label_way(const struct drawing *d, uint32_t target,
                      const struct chempi_route *r, uint64_t len)
{
    double x = column_x(target);
    double y = box_y(d) + box_height + 16;
    char text[64];

    if (!r) {
        chempi_svg_text(d->out, (struct chempi_svg_point){x, y}, 11,
                        CHEMPI_SVG_MIDDLE, "#b00000", "cannot be reached");
        return;
    }
    chempi_svg_text(
        d->out, (struct chempi_svg_point){x, y}, 11, CHEMPI_SVG_MIDDLE, "black",
        chempi_text_put_time(chempi_route_time(d->graph, r->stages,
                                               r->stage_count, r->chunk, len))
            .text);
    for (uint32_t i = 0; i < r->stage_count && i < 4; i++) {
        const struct chempi_route_stage *s = &r->stages[i];

        (void)snprintf(text, sizeof(text), "%.16s: %.14s",
                       d->graph->desc->networks[s->network].name,
                       chempi_ways_protocol(d->graph, s)->name);
        y += 13;
        chempi_svg_text(d->out, (struct chempi_svg_point){x, y}, 10,
                        CHEMPI_SVG_MIDDLE,
                        chempi_svg_colour(bar_of(d, s->network)), text);
    }
}

static void draw_ways(const struct drawing *d, uint32_t source, uint64_t len)
{
    struct chempi_routes routes;
    uint32_t number = 0;

    chempi_route_source(d->graph, source, &routes);
    for (uint32_t c = 0; c < d->graph->class_count; c++) {
        const struct chempi_route *r = chempi_route_for(&routes.lists[c], len);

        if (c == source && chempi_graph_size(d->graph, c) == 1)
            continue;
        if (r)
            draw_way(d, source, r, number++);
        label_way(d, c, r, len);
    }
    chempi_routes_fini(&routes);
}

static void draw_title(const struct drawing *d, uint32_t from, uint64_t len)
{
    const struct chempi_desc *desc = d->graph->desc;
    char text[256];

    if (from == CHEMPI_SEARCH_NONE)
        (void)snprintf(text, sizeof(text), "%s%s%u node%s", desc->cluster,
                       *desc->cluster ? ": " : "", desc->node_count,
                       chempi_text_plural(desc->node_count));
    else
        (void)snprintf(text, sizeof(text), "%s%sthe ways of %s from %s",
                       desc->cluster, *desc->cluster ? ": " : "",
                       chempi_text_put_size(len).text, desc->nodes[from].name);
    chempi_svg_text(d->out, (struct chempi_svg_point){margin, 24}, 15,
                    CHEMPI_SVG_LEFT, "black", text);
}

int chempi_draw(const struct chempi_graph *graph, uint32_t from, uint64_t len,
                FILE *out)
{
    struct drawing d = {.graph = graph, .out = out};
    double room = from == CHEMPI_SEARCH_NONE ? margin : 90;

    if (graph->class_count > CHEMPI_DRAW_MAX)
        return -E2BIG;
    for (uint32_t i = 0; i < graph->network_count; i++) {
        if (graph->desc->networks[i].inside_node)
            continue;
        if (d.bar_count == CHEMPI_DRAW_MAX)
            return -E2BIG;
        d.bars[d.bar_count++] = i;
    }
    chempi_svg_begin(
        out, 2 * margin + label_width + column_width * graph->class_count,
        box_y(&d) + box_height + room);
    draw_title(&d, from, len);
    for (uint32_t i = 0; i < d.bar_count; i++)
        draw_bar(&d, i);
    for (uint32_t c = 0; c < graph->class_count; c++)
        draw_drops(&d, c);
    for (uint32_t c = 0; c < graph->class_count; c++)
        draw_box(&d, c);
    if (from != CHEMPI_SEARCH_NONE)
        draw_ways(&d, graph->desc->nodes[from].node_class, len);
    chempi_svg_end(out);
    return 0;
}
