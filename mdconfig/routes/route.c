/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lower envelopes of ways; see route.h and doc/routing.md. What the searches
 * find, interval by interval, and the direct protocols are lines over size;
 * the envelope picks the lowest everywhere.
 */
#include "mdconfig/routes/route.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/table/lower_envelope.h"

struct finding {
    const struct chempi_graph *graph;
    uint32_t source;
    bool *wanted; /* [class] searched for ways through gateways */
    struct chempi_arena scratch;
};

/* A candidate of an envelope: a direct protocol or a search's result. */
struct candidate {
    uint32_t network; /* of a direct way */
    uint32_t protocol;
    const struct chempi_search_label *label; /* NULL: direct */
    uint32_t chunk;                          /* of a way through gateways */
};

struct candidates {
    struct chempi_line *lines;
    struct candidate *list;
    size_t count;
    size_t room;
    size_t line_room;
};

static void add_candidate(struct candidates *c, const struct chempi_line *line,
                          const struct candidate *candidate)
{
    c->lines =
        chempi_mem_grow(c->lines, c->count, &c->line_room, sizeof(*c->lines));
    c->list = chempi_mem_grow(c->list, c->count, &c->room, sizeof(*c->list));
    c->lines[c->count] = *line;
    c->list[c->count] = *candidate;
    c->count++;
}

/* ---- candidates --------------------------------------------------------- */

static void add_direct(const struct chempi_graph *g, uint32_t network,
                       struct candidates *c)
{
    const struct chempi_desc_network *net = &g->desc->networks[network];

    for (size_t i = 0; i < net->protocol_count; i++) {
        const struct chempi_desc_protocol *p = &net->protocols[i];
        struct chempi_line line = {
            .base_us = p->latency_us + p->cost_us,
            .slope_us = 1.0 / p->bw_bytes_per_us,
            .min_len = p->min_len,
            .max_len = p->max_len,
            .rank = 1,
        };
        struct candidate candidate = {.network = network,
                                      .protocol = (uint32_t)i};

        add_candidate(c, &line, &candidate);
    }
}

/* Networks on which the source sends and the destination receives. */
static void add_all_direct(const struct finding *f, uint32_t node_class,
                           struct candidates *c)
{
    const struct chempi_graph *g = f->graph;

    for (uint32_t i = g->out_first[f->source]; i < g->out_first[f->source + 1];
         i++) {
        if (chempi_graph_receives(g, node_class, g->out[i]))
            add_direct(g, g->out[i], c);
    }
}

/* A way that was found as a line over size, valid in its interval. */
static struct chempi_line line_of(const struct chempi_graph *g,
                                  const struct chempi_search_label *label,
                                  const struct chempi_interval *interval)
{
    double slowest = 0;
    struct chempi_line line = {.min_len = interval->from,
                               .max_len = interval->to,
                               .rank = label->stages};

    for (; label; label = label->before) {
        const struct chempi_desc_protocol *p =
            &g->desc->networks[label->network].protocols[label->protocol];
        const struct chempi_table_times times = {
            .forward_us =
                label->before
                    ? chempi_graph_model(g, label->from_class)->forward_us
                    : 0,
            .latency_us = p->latency_us,
            .cost_us = p->cost_us,
            .bw_bytes_per_us = p->bw_bytes_per_us,
        };

        line.base_us += times.latency_us;
        if (interval->streams) {
            const double busy = chempi_table_busy_us(&times, interval->chunk);

            line.base_us += busy;
            slowest = fmax(slowest, busy);
        } else {
            line.base_us += times.forward_us + times.cost_us;
            line.slope_us += 1 / times.bw_bytes_per_us;
        }
    }
    if (interval->streams) {
        line.base_us -= slowest;
        line.slope_us = slowest / interval->chunk;
    }
    return line;
}

static bool is_same_label(const struct chempi_search_label *a,
                          const struct chempi_search_label *b)
{
    while (a && b && a->network == b->network && a->protocol == b->protocol &&
           a->from_class == b->from_class) {
        a = a->before;
        b = b->before;
    }
    return !a && !b;
}

/* A way that was good in the interval before goes on: limits of networks that
 * it does not touch are no reason for a line of its own. */
static bool goes_on(struct candidates *c, const struct chempi_line *line,
                    const struct candidate *candidate)
{
    for (size_t i = c->count; i-- > 0 && c->list[i].label;) {
        struct chempi_line *before = &c->lines[i];

        if (before->max_len + 1 == line->min_len &&
            before->base_us == line->base_us &&
            before->slope_us == line->slope_us &&
            c->list[i].chunk == candidate->chunk &&
            is_same_label(c->list[i].label, candidate->label)) {
            before->max_len = line->max_len;
            return true;
        }
    }
    return false;
}

static void add_line(const struct finding *f,
                     const struct chempi_search_label *label,
                     const struct chempi_interval *interval,
                     struct candidates *c)
{
    struct candidate candidate = {.label = label, .chunk = interval->chunk};
    struct chempi_line line = line_of(f->graph, label, interval);

    if (!goes_on(c, &line, &candidate))
        add_candidate(c, &line, &candidate);
}

/* The same way with all smaller chunks. */
static void add_finer(const struct finding *f,
                      const struct chempi_search_label *label,
                      const struct chempi_interval *interval,
                      struct candidates *to)
{
    const struct chempi_desc *d = f->graph->desc;
    struct chempi_interval finer = *interval;

    finer.streams = true;
    for (uint32_t c = 0; (c = chempi_interval_next_chunk(d, c)) < d->chunk;) {
        uint64_t least = chempi_interval_least_cut(d, c);

        finer.chunk = c;
        finer.from = interval->from > least ? interval->from : least;
        if (finer.from <= finer.to)
            add_line(f, label, &finer, to);
    }
}

/* Ways through gateways, in one interval, to every class that wants them. */
static void add_found(const struct finding *f,
                      const struct chempi_search *search,
                      const struct chempi_interval *interval,
                      struct candidates *all)
{
    for (uint32_t c = 0; c < f->graph->class_count; c++) {
        for (size_t i = 0; f->wanted[c] && i < search->classes[c].count; i++) {
            const struct chempi_search_label *label =
                chempi_search_label_of(search, c, i);

            if (label->stages < 2)
                continue;
            add_line(f, label, interval, &all[c]);
            if (f->graph->intervals.is_coarse)
                add_finer(f, label, interval, &all[c]);
        }
    }
}

static void search_all(struct finding *f, struct candidates *all)
{
    const struct chempi_intervals *intervals = &f->graph->intervals;
    struct chempi_search search;

    chempi_search_init(&search, f->graph);
    for (size_t i = 0; i < intervals->count; i++) {
        chempi_search_run(&search, f->source, &intervals->list[i], &f->scratch);
        add_found(f, &search, &intervals->list[i], all);
    }
    chempi_search_fini(&search);
}

/* Inside a node: networks made for it; without one, any that leads back. */
static void add_own(const struct finding *f, struct candidates *c)
{
    const struct chempi_graph *g = f->graph;
    const struct chempi_desc_node *n = chempi_graph_model(g, f->source);

    for (size_t i = 0; i < n->attachment_count; i++) {
        if (g->desc->networks[n->attachments[i].network].inside_node)
            add_direct(g, n->attachments[i].network, c);
    }
    for (size_t i = 0; c->count == 0 && i < n->attachment_count; i++) {
        if (n->attachments[i].can_send && n->attachments[i].can_receive)
            add_direct(g, n->attachments[i].network, c);
    }
}

/* ---- results ------------------------------------------------------------ */

static void put_stages(const struct candidate *c, uint32_t node_class,
                       struct chempi_routes *out, struct chempi_route *route)
{
    const struct chempi_search_label *label = c->label;
    uint32_t at = node_class;

    route->stage_count = label ? label->stages : 1;
    route->chunk = label ? c->chunk : 0;
    route->stages = chempi_arena_get(&out->arena, route->stage_count,
                                     sizeof(*route->stages));
    if (!label) {
        route->stages[0] =
            (struct chempi_route_stage){c->network, c->protocol, node_class};
        return;
    }
    for (uint32_t i = route->stage_count; i-- > 0; label = label->before) {
        route->stages[i] =
            (struct chempi_route_stage){label->network, label->protocol, at};
        at = label->from_class;
    }
}

bool chempi_route_is_same_way(const struct chempi_route *a,
                              const struct chempi_route *b)
{
    return a->stage_count == b->stage_count &&
           memcmp(a->stages, b->stages, a->stage_count * sizeof(*a->stages)) ==
               0;
}

/* More than a table takes: let the chunks of neighbours go that differ by
 * nothing else. */
static void thin_out(struct chempi_route_list *list)
{
    size_t kept = 0;

    for (size_t i = 1; i < list->count; i++) {
        if (!chempi_route_is_same_way(&list->routes[kept], &list->routes[i]))
            kept++;
        list->routes[kept] = list->routes[i];
    }
    list->count = kept + 1;
}

/* The envelope of the candidates becomes a list. */
static void put_list(const struct candidates *c, uint32_t node_class,
                     struct chempi_routes *out, struct chempi_route_list *list)
{
    struct chempi_piece *pieces;
    size_t count;

    if (c->count == 0)
        return;
    if (chempi_lower_envelope(c->lines, c->count, &pieces, &count) != 0)
        chempi_mem_exhausted(c->count * sizeof(*c->lines));
    list->routes = chempi_arena_get(&out->arena, count, sizeof(*list->routes));
    for (size_t i = 0; i < count; i++) {
        struct chempi_route *route = &list->routes[list->count];

        /* A network takes every size (D3), so there are no holes. */
        assert(pieces[i].line != CHEMPI_LOWER_ENVELOPE_NONE);
        route->max_len = pieces[i].max_len;
        put_stages(&c->list[pieces[i].line], node_class, out, route);
        if (list->count > 0 && (route - 1)->chunk == route->chunk &&
            chempi_route_is_same_way(route - 1, route))
            (route - 1)->max_len = route->max_len;
        else
            list->count++;
    }
    free(pieces);
    if (list->count > CHEMPI_TABLE_RANGES_MAX)
        thin_out(list);
}

/* Is a way through gateways of interest for this destination? */
static bool wants_search(const struct finding *f, uint32_t node_class)
{
    const struct chempi_graph *g = f->graph;

    switch (g->desc->ways) {
    case CHEMPI_DESC_FASTEST:
        return true;
    case CHEMPI_DESC_NEEDED:
        for (uint32_t i = g->out_first[f->source];
             i < g->out_first[f->source + 1]; i++) {
            if (chempi_graph_receives(g, node_class, g->out[i]))
                return false;
        }
        return true;
    default:
        return false;
    }
}

static bool has_gateways(const struct chempi_graph *g)
{
    for (uint32_t c = 0; c < g->class_count; c++) {
        if (chempi_graph_forwards(g, c))
            return true;
    }
    return false;
}

static bool wants_any_search(struct finding *f)
{
    bool any = false;

    f->wanted = chempi_arena_get(&f->scratch, f->graph->class_count,
                                 sizeof(*f->wanted));
    for (uint32_t i = 0; i < f->graph->class_count; i++) {
        f->wanted[i] = wants_search(f, i);
        any = any || f->wanted[i];
    }
    return any && has_gateways(f->graph);
}

void chempi_route_source(const struct chempi_graph *graph, uint32_t source,
                         struct chempi_routes *out)
{
    struct finding f = {.graph = graph, .source = source};
    uint32_t own = graph->class_count;
    struct candidates *all = chempi_mem_get((size_t)own + 1, sizeof(*all));

    *out = (struct chempi_routes){.source = source};
    out->lists =
        chempi_arena_get(&out->arena, (size_t)own + 1, sizeof(*out->lists));
    for (uint32_t i = 0; i < own; i++)
        add_all_direct(&f, i, &all[i]);
    add_own(&f, &all[own]);
    if (wants_any_search(&f))
        search_all(&f, all);
    for (uint32_t i = 0; i <= own; i++) {
        put_list(&all[i], i < own ? i : source, out, &out->lists[i]);
        free(all[i].lines);
        free(all[i].list);
    }
    free(all);
    chempi_arena_fini(&f.scratch);
}

void chempi_routes_fini(struct chempi_routes *routes)
{
    chempi_arena_fini(&routes->arena);
    *routes = (struct chempi_routes){.lists = NULL};
}

const struct chempi_route *
chempi_route_for(const struct chempi_route_list *list, uint64_t len)
{
    for (size_t i = 0; i < list->count; i++) {
        if (len <= list->routes[i].max_len)
            return &list->routes[i];
    }
    return NULL;
}

struct chempi_table_times
chempi_route_times(const struct chempi_graph *graph,
                   const struct chempi_route_stage *stages, uint32_t i)
{
    const struct chempi_desc_protocol *p =
        &graph->desc->networks[stages[i].network].protocols[stages[i].protocol];

    return (struct chempi_table_times){
        .forward_us =
            i ? chempi_graph_model(graph, stages[i - 1].end_class)->forward_us
              : 0,
        .latency_us = p->latency_us,
        .cost_us = p->cost_us,
        .bw_bytes_per_us = p->bw_bytes_per_us,
    };
}

double chempi_route_time(const struct chempi_graph *graph,
                         const struct chempi_route_stage *stages,
                         uint32_t count, uint32_t chunk, uint64_t len)
{
    struct chempi_table_times times[CHEMPI_TABLE_STAGES_MAX];

    for (uint32_t i = 0; i < count; i++)
        times[i] = chempi_route_times(graph, stages, i);
    return chempi_table_way_us(times, count, chunk, len);
}
