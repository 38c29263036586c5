/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lower envelopes of ways; see route.h and doc/routing.md.
 *
 * Between two sizes at which a protocol's limits begin or end, and on either
 * side of the chunk size, the set of ways and the form of their costs do not
 * change: such an interval is treated as a whole. Up to the chunk size costs
 * are lines over size, so their envelope is concave, and a line that is
 * optimal at two sizes is optimal between them: searches at both ends, then
 * where the lines found so far meet, until nothing new turns up. Above it,
 * one search per bandwidth threshold.
 */
#include "mdconfig/route.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/table/envelope.h"

struct interval {
    uint64_t from;
    uint64_t to;
};

struct finding {
    const struct chempi_graph *graph;
    uint32_t source;
    bool *wanted; /* [class] searched for ways through gateways */
    struct chempi_search *searches;
    struct interval *valid; /* [search] */
    size_t search_count;
    size_t search_room;
    size_t valid_room;
    struct chempi_arena scratch;
};

/* A candidate of an envelope: a direct protocol or a search's result. */
struct candidate {
    uint32_t network; /* of a direct way */
    uint32_t protocol;
    size_t search; /* SIZE_MAX: direct */
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

/* ---- searches ----------------------------------------------------------- */

static const struct chempi_search *
add_search(struct finding *f, const struct chempi_search_condition *condition,
           const struct interval *valid)
{
    f->searches = chempi_mem_grow(f->searches, f->search_count, &f->search_room,
                                  sizeof(*f->searches));
    f->valid = chempi_mem_grow(f->valid, f->search_count, &f->valid_room,
                               sizeof(*f->valid));
    chempi_search_run(f->graph, f->source, condition, &f->scratch,
                      &f->searches[f->search_count]);
    f->valid[f->search_count] = *valid;
    return &f->searches[f->search_count++];
}

/* A label as a line over size. */
static struct chempi_line line_of(const struct chempi_search_label *label,
                                  const struct chempi_search_condition *c,
                                  uint32_t chunk)
{
    bool streams = c->threshold > 0;

    return (struct chempi_line){
        .base_us = streams ? label->key - chunk / label->bw_min : label->base,
        .slope_us = streams ? 1.0 / label->bw_min : label->slope,
        .max_len = UINT64_MAX,
        .rank = label->stages,
    };
}

struct sizes {
    uint64_t *list;
    size_t count;
    size_t room;
};

static void add_size(struct sizes *s, uint64_t len)
{
    s->list = chempi_mem_grow(s->list, s->count, &s->room, sizeof(*s->list));
    s->list[s->count++] = len;
}

static int order_sizes(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static void sort_sizes(struct sizes *s)
{
    size_t kept = 0;

    if (s->count)
        qsort(s->list, s->count, sizeof(*s->list), order_sizes);
    for (size_t i = 0; i < s->count; i++) {
        if (kept == 0 || s->list[kept - 1] != s->list[i])
            s->list[kept++] = s->list[i];
    }
    s->count = kept;
}

/* The two sizes around the point where two lines meet, unless they are the
 * ends p and q themselves or one line serves both ends. */
static void add_meeting(struct sizes *wanted, const struct chempi_line *at_p,
                        const struct chempi_line *at_q, uint64_t p, uint64_t q)
{
    double p_at_q = chempi_line_at(at_p, q);
    double q_at_q = chempi_line_at(at_q, q);
    double meet;
    uint64_t x;

    if (p_at_q <= q_at_q * (1 + 1e-12) || at_q->slope_us >= at_p->slope_us)
        return;
    meet = (at_q->base_us - at_p->base_us) / (at_p->slope_us - at_q->slope_us);
    if (meet < (double)p)
        meet = (double)p;
    x = meet >= (double)(q - 1) ? q : (uint64_t)meet + 1;
    if (x <= p)
        x = p + 1;
    if (x - 1 > p)
        add_size(wanted, x - 1);
    if (x < q)
        add_size(wanted, x);
}

/* Sizes to search at next: where the lines of neighbouring searches meet. */
static void find_meetings(const struct finding *f, const size_t *searched,
                          size_t count, struct sizes *wanted)
{
    const struct chempi_graph *g = f->graph;

    for (size_t i = 0; i + 1 < count; i++) {
        const struct chempi_search *a = &f->searches[searched[i]];
        const struct chempi_search *b = &f->searches[searched[i + 1]];
        uint64_t p = (uint64_t)a->condition.weigh_len;
        uint64_t q = (uint64_t)b->condition.weigh_len;

        if (q - p < 2)
            continue;
        for (uint32_t c = 0; c < g->class_count; c++) {
            const struct chempi_search_label *la = chempi_search_of(g, a, c);
            const struct chempi_search_label *lb = chempi_search_of(g, b, c);
            struct chempi_line x;
            struct chempi_line y;

            if (!f->wanted[c] || isinf(la->key) || isinf(lb->key))
                continue;
            x = line_of(la, &a->condition, 0);
            y = line_of(lb, &b->condition, 0);
            add_meeting(wanted, &x, &y, p, q);
        }
    }
}

/* Put a search into the list ordered by size. */
static void insert_searched(const struct finding *f, size_t **searched,
                            size_t *count, size_t *room, size_t search)
{
    double len = f->searches[search].condition.weigh_len;
    size_t at = *count;

    *searched = chempi_mem_grow(*searched, *count, room, sizeof(**searched));
    while (at > 0 &&
           f->searches[(*searched)[at - 1]].condition.weigh_len > len) {
        (*searched)[at] = (*searched)[at - 1];
        at--;
    }
    (*searched)[at] = search;
    (*count)++;
}

static void search_small(struct finding *f, const struct interval *interval)
{
    struct sizes wanted = {.count = 0};
    size_t *searched = NULL;
    size_t count = 0;
    size_t room = 0;

    add_size(&wanted, interval->from);
    if (interval->to > interval->from)
        add_size(&wanted, interval->to);
    while (wanted.count > 0) {
        for (size_t i = 0; i < wanted.count; i++) {
            struct chempi_search_condition c = {
                .len = wanted.list[i], .weigh_len = (double)wanted.list[i]};

            (void)add_search(f, &c, interval);
            insert_searched(f, &searched, &count, &room, f->search_count - 1);
        }
        wanted.count = 0;
        find_meetings(f, searched, count, &wanted);
        sort_sizes(&wanted);
    }
    free(searched);
    free(wanted.list);
}

/* The least bandwidth above `above` of protocols that take `len` bytes; 0
 * when there is none. */
static double next_bandwidth(const struct chempi_graph *g, uint64_t len,
                             double above)
{
    double next = 0;

    for (uint32_t n = 0; n < g->network_count; n++) {
        const struct chempi_desc_network *net = &g->desc->networks[n];

        for (size_t i = 0; i < net->protocol_count && !net->inside_node; i++) {
            const struct chempi_desc_protocol *p = &net->protocols[i];
            double bw = p->bw_bytes_per_us;

            if (len >= p->min_len && len <= p->max_len && bw > above &&
                (!(next > 0) || bw < next))
                next = bw;
        }
    }
    return next;
}

/* The slowest stage of any way found: thresholds up to it change nothing. */
static double slowest_found(const struct finding *f,
                            const struct chempi_search *s)
{
    double slowest = INFINITY;

    for (uint32_t c = 0; c < f->graph->class_count; c++) {
        const struct chempi_search_label *label =
            chempi_search_of(f->graph, s, c);

        if (f->wanted[c] && !isinf(label->key) && label->bw_min < slowest)
            slowest = label->bw_min;
    }
    return slowest;
}

static void search_large(struct finding *f, const struct interval *interval)
{
    struct chempi_search_condition c = {.len = interval->from,
                                        .weigh_len = f->graph->desc->chunk};
    double threshold = next_bandwidth(f->graph, interval->from, 0);

    while (threshold > 0) {
        const struct chempi_search *s;

        c.threshold = threshold;
        s = add_search(f, &c, interval);
        threshold = slowest_found(f, s);
        if (isinf(threshold))
            return;
        threshold = next_bandwidth(f->graph, interval->from, threshold);
    }
}

/* Last sizes of all intervals, ascending. */
static void find_interval_ends(const struct chempi_graph *g, struct sizes *ends)
{
    for (uint32_t n = 0; n < g->network_count; n++) {
        const struct chempi_desc_network *net = &g->desc->networks[n];

        for (size_t i = 0; i < net->protocol_count && !net->inside_node; i++) {
            if (net->protocols[i].min_len > 0)
                add_size(ends, net->protocols[i].min_len - 1);
            add_size(ends, net->protocols[i].max_len);
        }
    }
    add_size(ends, g->desc->chunk);
    add_size(ends, UINT64_MAX);
    sort_sizes(ends);
}

static void search_all(struct finding *f)
{
    struct sizes ends = {.count = 0};
    struct interval interval = {.from = 0};

    find_interval_ends(f->graph, &ends);
    for (size_t i = 0; i < ends.count; i++) {
        interval.to = ends.list[i];
        if (interval.to <= f->graph->desc->chunk)
            search_small(f, &interval);
        else
            search_large(f, &interval);
        interval.from = interval.to + 1; /* wraps after the last one */
    }
    free(ends.list);
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
        struct candidate candidate = {
            .network = network, .protocol = (uint32_t)i, .search = SIZE_MAX};

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

static void add_found(const struct finding *f, uint32_t node_class,
                      struct candidates *c)
{
    for (size_t i = 0; i < f->search_count; i++) {
        const struct chempi_search *s = &f->searches[i];
        const struct chempi_search_label *label =
            chempi_search_of(f->graph, s, node_class);
        struct candidate candidate = {.search = i};
        struct chempi_line line;

        if (isinf(label->key) || label->stages < 2)
            continue;
        line = line_of(label, &s->condition, f->graph->desc->chunk);
        line.min_len = f->valid[i].from;
        line.max_len = f->valid[i].to;
        add_candidate(c, &line, &candidate);
    }
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

static void put_stages(const struct finding *f, const struct candidate *c,
                       uint32_t node_class, struct chempi_routes *out,
                       struct chempi_route *route)
{
    const struct chempi_graph *g = f->graph;
    const struct chempi_search *s;
    uint32_t at = node_class;

    if (c->search == SIZE_MAX) {
        route->stage_count = 1;
        route->stages =
            chempi_arena_get(&out->arena, 1, sizeof(*route->stages));
        route->stages[0] =
            (struct chempi_route_stage){c->network, c->protocol, node_class};
        return;
    }
    s = &f->searches[c->search];
    route->stage_count = chempi_search_of(g, s, node_class)->stages;
    route->stages = chempi_arena_get(&out->arena, route->stage_count,
                                     sizeof(*route->stages));
    for (uint32_t i = route->stage_count; i-- > 0;) {
        uint32_t network = chempi_search_of(g, s, at)->from;
        const struct chempi_search_label *label = &s->labels[network];

        route->stages[i] =
            (struct chempi_route_stage){network, label->protocol, at};
        at = label->from - g->network_count;
    }
}

static bool is_same_way(const struct chempi_route *a,
                        const struct chempi_route *b)
{
    return a->stage_count == b->stage_count &&
           memcmp(a->stages, b->stages, a->stage_count * sizeof(*a->stages)) ==
               0;
}

/* The envelope of the candidates becomes a list. */
static void put_list(const struct finding *f, const struct candidates *c,
                     uint32_t node_class, struct chempi_routes *out,
                     struct chempi_route_list *list)
{
    struct chempi_piece *pieces;
    size_t count;

    if (c->count == 0)
        return;
    if (chempi_envelope(c->lines, c->count, &pieces, &count) != 0)
        chempi_mem_exhausted(c->count * sizeof(*c->lines));
    list->routes = chempi_arena_get(&out->arena, count, sizeof(*list->routes));
    for (size_t i = 0; i < count; i++) {
        struct chempi_route *route = &list->routes[list->count];

        /* A network takes every size (D3), so there are no holes. */
        assert(pieces[i].line != CHEMPI_ENVELOPE_NONE);
        route->max_len = pieces[i].max_len;
        put_stages(f, &c->list[pieces[i].line], node_class, out, route);
        if (list->count > 0 && is_same_way(route - 1, route))
            (route - 1)->max_len = route->max_len;
        else
            list->count++;
    }
    free(pieces);
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

void chempi_route_source(const struct chempi_graph *graph, uint32_t source,
                         struct chempi_routes *out)
{
    struct finding f = {.graph = graph, .source = source};
    struct candidates c = {.count = 0};
    bool any = false;

    *out = (struct chempi_routes){.source = source};
    out->lists = chempi_arena_get(&out->arena, (size_t)graph->class_count + 1,
                                  sizeof(*out->lists));
    f.wanted =
        chempi_arena_get(&f.scratch, graph->class_count, sizeof(*f.wanted));
    for (uint32_t i = 0; i < graph->class_count; i++) {
        f.wanted[i] = wants_search(&f, i);
        any = any || f.wanted[i];
    }
    if (any && has_gateways(graph))
        search_all(&f);
    for (uint32_t i = 0; i < graph->class_count; i++) {
        c.count = 0;
        add_all_direct(&f, i, &c);
        if (f.wanted[i])
            add_found(&f, i, &c);
        put_list(&f, &c, i, out, &out->lists[i]);
    }
    c.count = 0;
    add_own(&f, &c);
    put_list(&f, &c, source, out, &out->lists[graph->class_count]);
    out->search_count = f.search_count;
    free(c.lines);
    free(c.list);
    free(f.searches);
    free(f.valid);
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

double chempi_route_time(const struct chempi_graph *graph,
                         const struct chempi_route_stage *stages,
                         uint32_t count, uint64_t len)
{
    const struct chempi_desc *d = graph->desc;
    double chunk = len < d->chunk ? (double)len : (double)d->chunk;
    double slowest = INFINITY;
    double us = 0;

    for (uint32_t i = 0; i < count; i++) {
        const struct chempi_desc_protocol *p =
            &d->networks[stages[i].network].protocols[stages[i].protocol];

        us += p->latency_us + p->cost_us + chunk / p->bw_bytes_per_us;
        if (i > 0)
            us +=
                chempi_graph_model(graph, stages[i - 1].end_class)->forward_us;
        slowest = fmin(slowest, p->bw_bytes_per_us);
    }
    return us + ((double)len - chunk) / slowest;
}
