/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Explaining one decision; see explain.h. The chosen way is the one that the
 * tables hold; the alternatives are found apart from the compiler, by trying
 * ways of few stages one by one, so that this is a second opinion on it.
 */
#include "mdconfig/pictures/explain.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mdconfig/description/text.h"
#include "mdconfig/routes/hops.h"
#include "mdconfig/routes/ways.h"

#define SHOWN_MAX 12u
#define WAY_LEN 512 /* bytes of a way in words */

struct alternative {
    const struct chempi_way *way;
    double us; /* infinite: a protocol does not take the size */
};

struct explaining {
    const struct chempi_graph *graph;
    uint64_t len;
    const struct chempi_route *chosen; /* NULL: there is no way */
    struct alternative *list;
    size_t count;
};

static int order_alternatives(const void *a, const void *b)
{
    const struct alternative *x = a;
    const struct alternative *y = b;

    if (x->us < y->us || x->us > y->us)
        return x->us < y->us ? -1 : 1;
    return (x->way > y->way) - (x->way < y->way); /* as they were found */
}

/* ---- words -------------------------------------------------------------- */

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
        const struct chempi_desc_protocol *p = chempi_ways_protocol(g, s);
        const char *name = g->desc->networks[s->network].name;

        if (i > 0)
            put_part(
                out, "forwarding by ",
                chempi_hops_names(g, r->stages, i - 1, names, sizeof(names)),
                chempi_graph_model(g, r->stages[i - 1].end_class)->forward_us);
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

static bool is_chosen(const struct explaining *e, const struct chempi_way *way)
{
    const struct chempi_route *r = e->chosen;

    if (!r || r->stage_count != way->count)
        return false;
    for (uint32_t i = 0; i < way->count; i++) {
        uint32_t end = r->stages[i].end_class;

        if (i + 1 < way->count)
            end = chempi_hops_first(e->graph, r->stages, i);
        if (r->stages[i].network != way->stages[i].network ||
            r->stages[i].protocol != way->stages[i].protocol ||
            end != way->stages[i].end_class)
            return false;
    }
    return true;
}

/* The first protocol that does not take the size. */
static void put_limit(const struct explaining *e, const struct chempi_way *way,
                      FILE *out)
{
    char low[CHEMPI_TEXT_QUANTITY_MAX];
    char high[CHEMPI_TEXT_QUANTITY_MAX];

    for (uint32_t i = 0; i < way->count; i++) {
        const struct chempi_desc_protocol *p =
            chempi_ways_protocol(e->graph, &way->stages[i]);

        if (e->len >= p->min_len && e->len <= p->max_len)
            continue;
        (void)fprintf(out, "%s takes %s .. %s only\n", p->name,
                      chempi_text_put_size(low, p->min_len),
                      chempi_text_put_size(high, p->max_len));
        return;
    }
}

static void put_reason(const struct explaining *e, const struct alternative *a,
                       double chosen_us, FILE *out)
{
    char text[CHEMPI_TEXT_QUANTITY_MAX];
    char more[CHEMPI_TEXT_QUANTITY_MAX];

    if (isinf(a->us)) {
        put_limit(e, a->way, out);
        return;
    }
    (void)fprintf(out, "%s", chempi_text_put_time(text, a->us));
    if (a->way->is_shut_out)
        (void)fprintf(out, ", but gateways are used %s\n",
                      e->graph->desc->ways == CHEMPI_DESC_DIRECT
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

static void put_rejected(const struct explaining *e, FILE *out)
{
    const struct chempi_route *r = e->chosen;
    double us =
        r ? chempi_route_time(e->graph, r->stages, r->stage_count, e->len)
          : INFINITY;
    size_t shown = 0;
    char name[WAY_LEN];

    for (size_t i = 0; i < e->count; i++) {
        const struct alternative *a = &e->list[i];

        if (is_chosen(e, a->way))
            continue;
        if (shown == 0)
            (void)fprintf(out, "rejected:\n");
        if (shown++ == SHOWN_MAX) {
            (void)fprintf(out, "  and %zu more\n", e->count - i);
            return;
        }
        (void)fprintf(out, "  %s: ",
                      chempi_ways_name(e->graph, a->way->stages, a->way->count,
                                       name, sizeof(name)));
        put_reason(e, a, us, out);
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

static void put_chosen(const struct explaining *e,
                       const struct chempi_route_list *list, FILE *out)
{
    const struct chempi_route *r = e->chosen;
    char name[WAY_LEN];
    char time[CHEMPI_TEXT_QUANTITY_MAX];

    if (!r) {
        (void)fprintf(out, "no way\n");
        return;
    }
    (void)fprintf(
        out, "%s; %s\n",
        chempi_ways_name(e->graph, r->stages, r->stage_count, name,
                         sizeof(name)),
        chempi_text_put_time(time, chempi_route_time(e->graph, r->stages,
                                                     r->stage_count, e->len)));
    put_parts(e->graph, r, e->len, out);
    put_bounds(list, r, out);
}

bool chempi_explain(const struct chempi_graph *graph, uint32_t from,
                    uint32_t to, uint64_t len, FILE *out)
{
    const struct chempi_desc *d = graph->desc;
    uint32_t source = d->nodes[from].node_class;
    uint32_t target = d->nodes[to].node_class;
    struct explaining e = {.graph = graph, .len = len};
    const struct chempi_route_list *list;
    struct chempi_routes routes;
    struct chempi_ways ways;
    char size[CHEMPI_TEXT_QUANTITY_MAX];

    chempi_route_source(graph, source, &routes);
    list = &routes.lists[from == to ? graph->class_count : target];
    e.chosen = chempi_route_for(list, len);
    chempi_ways_find(graph, source, target, from == to, &ways);
    e.count = ways.count;
    e.list = chempi_mem_get(e.count, sizeof(*e.list));
    for (size_t i = 0; i < e.count; i++)
        e.list[i] = (struct alternative){
            &ways.list[i], chempi_ways_time(graph, &ways.list[i], len)};
    qsort(e.list, e.count, sizeof(*e.list), order_alternatives);
    (void)fprintf(out, "%s from %s to %s: ", chempi_text_put_size(size, len),
                  d->nodes[from].name, d->nodes[to].name);
    put_chosen(&e, list, out);
    put_rejected(&e, out);
    free(e.list);
    chempi_ways_fini(&ways);
    chempi_routes_fini(&routes);
    return e.chosen != NULL;
}
