/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Explaining one decision; see explain.h. The chosen way is the one that the
 * tables hold; the alternatives are found apart from the compiler, by trying
 * ways of few stages one by one, so that this is a second opinion on it.
 */
#include "mdconfig/explain.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mdconfig/show.h"
#include "mdconfig/text.h"

#define STAGES_MAX 4u /* of an alternative */
#define ALTERNATIVES_MAX 4096u
#define SHOWN_MAX 12u

struct alternative {
    struct chempi_route_stage stages[STAGES_MAX];
    uint32_t count;
    double us;        /* infinite: a protocol does not take the size */
    bool is_shut_out; /* by the rule of `ways` */
};

struct trying {
    const struct chempi_graph *graph;
    uint32_t source;
    uint32_t target;
    uint64_t len;
    struct alternative now;
    struct alternative *list;
    size_t count;
    size_t room;
    bool has_direct;
};

/* ---- alternatives ------------------------------------------------------- */

static const struct chempi_desc_protocol *
protocol_of(const struct chempi_graph *g, const struct chempi_route_stage *s)
{
    return &g->desc->networks[s->network].protocols[s->protocol];
}

static bool takes(const struct chempi_desc_protocol *p, uint64_t len)
{
    return len >= p->min_len && len <= p->max_len;
}

static void keep(struct trying *t)
{
    struct alternative *a = &t->now;

    if (t->count == ALTERNATIVES_MAX)
        return;
    a->us = chempi_route_time(t->graph, a->stages, a->count, t->len);
    for (uint32_t i = 0; i < a->count; i++) {
        if (!takes(protocol_of(t->graph, &a->stages[i]), t->len))
            a->us = INFINITY;
    }
    if (a->count == 1)
        t->has_direct = true;
    t->list = chempi_mem_grow(t->list, t->count, &t->room, sizeof(*t->list));
    t->list[t->count++] = *a;
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
    if (node_class == t->source || node_class == t->target)
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

    for (uint32_t i = g->in_first[network]; i < g->in_first[network + 1]; i++) {
        uint32_t c = g->in[i];

        *s = (struct chempi_route_stage){network, protocol, c};
        if (c == t->target) {
            t->now.count++;
            keep(t);
            t->now.count--;
        } else if (t->now.count + 1 < STAGES_MAX && !passes(t, c) &&
                   chempi_graph_forwards(g, c) && t->count < ALTERNATIVES_MAX) {
            t->now.count++;
            try_from(t, c);
            t->now.count--;
        }
    }
}

/* Depth first, at most STAGES_MAX deep: recursion is bounded by that. */
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

static void shut_out(struct trying *t)
{
    enum chempi_desc_ways ways = t->graph->desc->ways;

    for (size_t i = 0; i < t->count; i++)
        t->list[i].is_shut_out =
            t->list[i].count > 1 &&
            (ways == CHEMPI_DESC_DIRECT ||
             (ways == CHEMPI_DESC_NEEDED && t->has_direct));
}

static int order_alternatives(const void *a, const void *b)
{
    const struct alternative *x = a;
    const struct alternative *y = b;

    if (x->us < y->us || x->us > y->us)
        return x->us < y->us ? -1 : 1;
    return (x->count > y->count) - (x->count < y->count);
}

/* Ways inside a node: every protocol of its networks for that. */
static void try_own(struct trying *t)
{
    const struct chempi_graph *g = t->graph;
    const struct chempi_desc_node *n = chempi_graph_model(g, t->source);

    for (size_t i = 0; i < n->attachment_count; i++) {
        uint32_t network = n->attachments[i].network;
        const struct chempi_desc_network *net = &g->desc->networks[network];

        for (uint32_t p = 0; net->inside_node && p < net->protocol_count; p++) {
            t->now.stages[0] =
                (struct chempi_route_stage){network, p, t->source};
            t->now.count = 1;
            keep(t);
        }
    }
}

/* ---- words -------------------------------------------------------------- */

static void put_way(const struct chempi_graph *g,
                    const struct chempi_route_stage *stages, uint32_t count,
                    FILE *out)
{
    char names[128];

    for (uint32_t i = 0; i < count; i++) {
        const struct chempi_desc_network *n =
            &g->desc->networks[stages[i].network];

        (void)fprintf(out, "%s%s %s on %s", i ? ", then " : "", n->device,
                      protocol_of(g, &stages[i])->name, n->name);
        if (i + 1 < count)
            (void)fprintf(out, " to %s",
                          chempi_show_members(g, stages[i].end_class, names,
                                              sizeof(names)));
    }
}

static void put_part(FILE *out, const char *what, const char *where, double us)
{
    char time[CHEMPI_TEXT_QUANTITY_MAX];

    (void)fprintf(out, "  %12s  %s%s\n", chempi_text_put_time(time, us), what,
                  where);
}

static void put_parts(const struct chempi_graph *g,
                      const struct chempi_route *r, uint64_t len, FILE *out)
{
    uint64_t chunk = len < g->desc->chunk ? len : g->desc->chunk;
    uint64_t first = r->stage_count > 1 ? chunk : len;
    double slowest = INFINITY;
    const char *slow_name = "";
    char names[128];

    for (uint32_t i = 0; i < r->stage_count; i++) {
        const struct chempi_route_stage *s = &r->stages[i];
        const struct chempi_desc_protocol *p = protocol_of(g, s);
        const char *name = g->desc->networks[s->network].name;

        if (i > 0) {
            uint32_t c = r->stages[i - 1].end_class;

            put_part(out, "forwarding by ",
                     chempi_show_members(g, c, names, sizeof(names)),
                     chempi_graph_model(g, c)->forward_us);
        }
        put_part(out, "latency of ", name, p->latency_us);
        if (p->cost_us > 0)
            put_part(out, "per-message cost of ", name, p->cost_us);
        put_part(out, len > first ? "the first chunk over " : "the bytes over ",
                 name, (double)first / p->bw_bytes_per_us);
        if (p->bw_bytes_per_us < slowest) {
            slowest = p->bw_bytes_per_us;
            slow_name = name;
        }
    }
    if (len > first)
        put_part(out, "the rest at the speed of ", slow_name,
                 (double)(len - first) / slowest);
}

static bool is_chosen(const struct chempi_route *r, const struct alternative *a)
{
    return r->stage_count == a->count &&
           memcmp(r->stages, a->stages, a->count * sizeof(*a->stages)) == 0;
}

static void put_reason(const struct trying *t, const struct alternative *a,
                       double chosen_us, FILE *out)
{
    char text[CHEMPI_TEXT_QUANTITY_MAX];
    char more[CHEMPI_TEXT_QUANTITY_MAX];

    if (isinf(a->us)) {
        for (uint32_t i = 0; i < a->count; i++) {
            const struct chempi_desc_protocol *p =
                protocol_of(t->graph, &a->stages[i]);

            if (takes(p, t->len))
                continue;
            (void)fprintf(out, "%s takes %s .. %s only\n", p->name,
                          chempi_text_put_size(text, p->min_len),
                          chempi_text_put_size(more, p->max_len));
            return;
        }
    }
    (void)fprintf(out, "%s", chempi_text_put_time(text, a->us));
    if (a->is_shut_out)
        (void)fprintf(out, ", but gateways are used %s\n",
                      t->graph->desc->ways == CHEMPI_DESC_DIRECT
                          ? "never (forwarding: ways: direct)"
                          : "only where no network is shared (forwarding: "
                            "ways: needed)");
    else if (a->us > chosen_us)
        (void)fprintf(out, ", %s more\n",
                      chempi_text_put_time(more, a->us - chosen_us));
    else
        (void)fprintf(out, ", as fast: ties go to fewer stages, then to the "
                           "order of the description\n");
}

static void put_rejected(const struct trying *t, const struct chempi_route *r,
                         FILE *out)
{
    double us =
        r ? chempi_route_time(t->graph, r->stages, r->stage_count, t->len)
          : INFINITY;
    size_t shown = 0;

    for (size_t i = 0; i < t->count; i++) {
        const struct alternative *a = &t->list[i];

        if (r && is_chosen(r, a))
            continue;
        if (shown == 0)
            (void)fprintf(out, "rejected:\n");
        if (shown++ == SHOWN_MAX) {
            (void)fprintf(out, "  and %zu more\n", t->count - i);
            return;
        }
        (void)fprintf(out, "  ");
        put_way(t->graph, a->stages, a->count, out);
        (void)fprintf(out, ": ");
        put_reason(t, a, us, out);
    }
}

/* The sizes between which the chosen way stays the same. */
static void put_bounds(const struct chempi_route_list *list,
                       const struct chempi_route *r, FILE *out)
{
    uint64_t from = r == list->routes ? 0 : (r - 1)->max_len + 1;
    char low[CHEMPI_TEXT_QUANTITY_MAX];
    char high[CHEMPI_TEXT_QUANTITY_MAX];

    (void)fprintf(out, "the same way serves %s .. %s\n",
                  chempi_text_put_size(low, from),
                  chempi_text_put_size(high, r->max_len));
}

bool chempi_explain(const struct chempi_graph *graph, uint32_t from,
                    uint32_t to, uint64_t len, FILE *out)
{
    const struct chempi_desc *d = graph->desc;
    struct trying t = {.graph = graph,
                       .source = d->nodes[from].node_class,
                       .target = d->nodes[to].node_class,
                       .len = len};
    const struct chempi_route_list *list;
    const struct chempi_route *r;
    struct chempi_routes routes;
    char size[CHEMPI_TEXT_QUANTITY_MAX];
    char time[CHEMPI_TEXT_QUANTITY_MAX];

    chempi_route_source(graph, t.source, &routes);
    list = &routes.lists[from == to ? graph->class_count : t.target];
    r = chempi_route_for(list, len);
    if (from == to)
        try_own(&t);
    else
        try_from(&t, t.source);
    shut_out(&t);
    if (t.count)
        qsort(t.list, t.count, sizeof(*t.list), order_alternatives);
    (void)fprintf(out, "%s from %s to %s: ", chempi_text_put_size(size, len),
                  d->nodes[from].name, d->nodes[to].name);
    if (r) {
        put_way(graph, r->stages, r->stage_count, out);
        (void)fprintf(
            out, "; %s\n",
            chempi_text_put_time(time, chempi_route_time(graph, r->stages,
                                                         r->stage_count, len)));
        put_parts(graph, r, len, out);
        put_bounds(list, r, out);
    } else {
        (void)fprintf(out, "no way\n");
    }
    put_rejected(&t, r, out);
    free(t.list);
    chempi_routes_fini(&routes);
    return r != NULL;
}
