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

#include "common/table/parts.h"
#include "mdconfig/description/text.h"
#include "mdconfig/routes/check.h"
#include "mdconfig/routes/hops.h"
#include "mdconfig/routes/ways.h"

#define SHOWN_MAX 12u
#define WAY_LEN 512   /* bytes of a way in words */
#define NAMES_LEN 128 /* of gateways */

struct alternative {
    const struct chempi_way *way;
    double us; /* infinite: a protocol does not take the size */
};

struct explaining {
    const struct chempi_graph *graph;
    uint32_t from;
    uint32_t to;
    uint64_t len;
    struct chempi_routes routes;
    struct chempi_ways ways;
    const struct chempi_route_list *routes_to;
    const struct chempi_route *chosen; /* of these; NULL: there is no way */
    double us;                         /* of the chosen one, or infinite */
    const char *remedy;                /* where there is none; of the arena */
    struct chempi_arena arena;
    struct alternative *list;
    size_t count;
};

/* For parts of the time. */
struct printing {
    const struct explaining *e;
    FILE *out; /* words, or */
    struct chempi_json *json;
};

static int order_alternatives(const void *a, const void *b)
{
    const struct alternative *x = a;
    const struct alternative *y = b;

    if (x->us < y->us || x->us > y->us)
        return x->us < y->us ? -1 : 1;
    return (x->way > y->way) - (x->way < y->way); /* as they were found */
}

/* ---- what was rejected --------------------------------------------------- */

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

enum reason { TOO_SHORT_OR_LONG, SHUT_OUT, SLOWER, AS_FAST };

static enum reason reason_of(const struct explaining *e,
                             const struct alternative *a)
{
    if (isinf(a->us))
        return TOO_SHORT_OR_LONG;
    if (a->way->is_shut_out)
        return SHUT_OUT;
    return a->us > e->us ? SLOWER : AS_FAST;
}

/* The first protocol that does not take the size; there is one. */
static const struct chempi_desc_protocol *limit_of(const struct explaining *e,
                                                   const struct chempi_way *way)
{
    const struct chempi_desc_protocol *p;
    uint32_t i = 0;

    do
        p = chempi_ways_protocol(e->graph, &way->stages[i++]);
    while (i < way->count && e->len >= p->min_len && e->len <= p->max_len);
    return p;
}

/* ---- words -------------------------------------------------------------- */

static const char *network_of(const struct explaining *e, uint32_t stage)
{
    return e->graph->desc->networks[e->chosen->stages[stage].network].name;
}

/* Whom a part's words are of: a network, or gateways. Returns a name, or buf.
 */
static const char *name_part(const struct explaining *e,
                             enum chempi_table_part part, uint32_t stage,
                             char *buf, size_t len)
{
    if (part != CHEMPI_TABLE_FORWARDING)
        return network_of(e, stage);
    return chempi_hops_names(e->graph, e->chosen->stages, stage - 1, buf, len);
}

static void each_part(const struct explaining *e, chempi_table_part_fn *put,
                      void *arg)
{
    const struct chempi_route *r = e->chosen;
    struct chempi_table_times times[CHEMPI_TABLE_STAGES_MAX];

    for (uint32_t i = 0; i < r->stage_count; i++)
        times[i] = chempi_route_times(e->graph, r->stages, i);
    chempi_table_each_part(times, r->stage_count, r->chunk, e->len, put, arg);
}

static void put_part(void *arg, enum chempi_table_part part, uint32_t stage,
                     double us)
{
    const struct printing *p = arg;
    char names[NAMES_LEN];

    (void)fprintf(p->out, "  %12s  %s%s%s\n", chempi_text_put_time(us).text,
                  chempi_table_part_words(part),
                  part == CHEMPI_TABLE_FORWARDING ? " by " : "",
                  name_part(p->e, part, stage, names, sizeof(names)));
}

static void put_limit(const struct chempi_desc_protocol *p, FILE *out)
{
    (void)fprintf(out, "%s takes %s .. %s only\n", p->name,
                  chempi_text_put_size(p->min_len).text,
                  chempi_text_put_size(p->max_len).text);
}

static void put_reason(const struct explaining *e, const struct alternative *a,
                       FILE *out)
{
    const enum reason reason = reason_of(e, a);

    if (reason == TOO_SHORT_OR_LONG) {
        put_limit(limit_of(e, a->way), out);
        return;
    }
    (void)fprintf(out, "%s", chempi_text_put_time(a->us).text);
    if (reason == SHUT_OUT)
        (void)fprintf(out, ", but gateways are used %s\n",
                      e->graph->desc->ways == CHEMPI_DESC_DIRECT
                          ? "never (forwarding: ways: direct)"
                          : "only where no network is shared (forwarding: "
                            "ways: needed)");
    else if (reason == SLOWER)
        (void)fprintf(out, ", %s more\n",
                      chempi_text_put_time(a->us - e->us).text);
    else
        (void)fprintf(out, ", as fast: ties go to fewer stages, then to the "
                           "order of the description\n");
}

static void put_rejected(const struct explaining *e, FILE *out)
{
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
        put_reason(e, a, out);
    }
}

/* The sizes between which the chosen way stays the same, in whatever chunks. */
static void find_bounds(const struct explaining *e, uint64_t *least,
                        uint64_t *most)
{
    const struct chempi_route *first = e->chosen;
    const struct chempi_route *last = e->chosen;

    while (first > e->routes_to->routes &&
           chempi_route_is_same_way(first - 1, e->chosen))
        first--;
    while (last + 1 < e->routes_to->routes + e->routes_to->count &&
           chempi_route_is_same_way(last + 1, e->chosen))
        last++;
    *least = first > e->routes_to->routes ? (first - 1)->max_len + 1 : 0;
    *most = last->max_len;
}

static void put_bounds(const struct explaining *e, FILE *out)
{
    uint64_t least;
    uint64_t most;

    find_bounds(e, &least, &most);
    if (e->chosen->chunk && e->len > e->chosen->chunk)
        (void)fprintf(out, "it is cut into chunks of %s\n",
                      chempi_text_put_size(e->chosen->chunk).text);
    (void)fprintf(out, "the same way serves %s .. %s\n",
                  chempi_text_put_size(least).text,
                  chempi_text_put_size(most).text);
}

static void put_chosen(const struct explaining *e, FILE *out)
{
    const struct chempi_route *r = e->chosen;
    char name[WAY_LEN];

    if (!r) {
        (void)fprintf(out, "no way: %s\n", e->remedy);
        return;
    }
    (void)fprintf(out, "%s; %s\n",
                  chempi_ways_name(e->graph, r->stages, r->stage_count, name,
                                   sizeof(name)),
                  chempi_text_put_time(e->us).text);
    each_part(e, put_part, &(struct printing){.e = e, .out = out});
    put_bounds(e, out);
}

/* ---- JSON --------------------------------------------------------------- */

static void part_json(void *arg, enum chempi_table_part part, uint32_t stage,
                      double us)
{
    const struct printing *p = arg;
    char names[NAMES_LEN];

    chempi_json_open(p->json, NULL);
    chempi_json_text(p->json, "part", chempi_table_part_name(part));
    chempi_json_text(p->json, "of",
                     name_part(p->e, part, stage, names, sizeof(names)));
    chempi_json_real(p->json, "us", us);
    chempi_json_close(p->json);
}

static void chosen_json(const struct explaining *e, struct chempi_json *j)
{
    const struct chempi_route *r = e->chosen;
    uint64_t least;
    uint64_t most;

    if (!r) {
        chempi_json_text(j, "way", NULL);
        chempi_json_text(j, "remedy", e->remedy);
        return;
    }
    find_bounds(e, &least, &most);
    chempi_ways_json(j, "way", e->graph, r->stages, r->stage_count);
    chempi_json_real(j, "us", e->us);
    chempi_json_open_list(j, "parts");
    each_part(e, part_json, &(struct printing){.e = e, .json = j});
    chempi_json_close_list(j);
    if (r->chunk && e->len > r->chunk)
        chempi_json_number(j, "chunk_bytes", r->chunk);
    chempi_json_number(j, "min_bytes", least);
    chempi_json_limit(j, "max_bytes", most);
}

static void rejected_json(const struct explaining *e, struct chempi_json *j)
{
    static const char *const words[] = {
        [TOO_SHORT_OR_LONG] = "size",
        [SHUT_OUT] = "forwarding rule",
        [SLOWER] = "slower",
        [AS_FAST] = "as fast",
    };

    chempi_json_open_list(j, "rejected");
    for (size_t i = 0; i < e->count; i++) {
        const struct alternative *a = &e->list[i];
        const enum reason reason = reason_of(e, a);

        if (is_chosen(e, a->way))
            continue;
        chempi_json_open(j, NULL);
        chempi_ways_json(j, "way", e->graph, a->way->stages, a->way->count);
        chempi_json_real(j, "us", a->us);
        chempi_json_text(j, "reason", words[reason]);
        if (reason == TOO_SHORT_OR_LONG) {
            const struct chempi_desc_protocol *p = limit_of(e, a->way);

            chempi_json_text(j, "protocol", p->name);
            chempi_json_number(j, "min_bytes", p->min_len);
            chempi_json_limit(j, "max_bytes", p->max_len);
        }
        chempi_json_close(j);
    }
    chempi_json_close_list(j);
}

/* ---- both --------------------------------------------------------------- */

/* Of `check`, which may have many more findings. */
static const char *find_remedy(struct explaining *e, uint32_t source,
                               uint32_t target)
{
    struct chempi_routes back;
    const char *words;

    if (e->from == e->to)
        return "no network joins the processes of this node, and it is "
               "attached to none both ways";
    chempi_route_source(e->graph, target, &back);
    words = chempi_check_remedy(
        e->graph, source, target,
        chempi_route_for(&back.lists[source], e->len) != NULL, &e->arena);
    chempi_routes_fini(&back);
    return words;
}

static void begin(struct explaining *e)
{
    const struct chempi_graph *g = e->graph;
    const bool is_inside = e->from == e->to;
    uint32_t source = g->desc->nodes[e->from].node_class;
    uint32_t target = g->desc->nodes[e->to].node_class;

    chempi_route_source(g, source, &e->routes);
    e->routes_to = &e->routes.lists[is_inside ? g->class_count : target];
    e->chosen = chempi_route_for(e->routes_to, e->len);
    e->us = e->chosen ? chempi_route_time(g, e->chosen->stages,
                                          e->chosen->stage_count,
                                          e->chosen->chunk, e->len)
                      : INFINITY;
    if (!e->chosen)
        e->remedy = find_remedy(e, source, target);
    chempi_ways_find(g, source, target, is_inside, &e->ways);
    e->count = e->ways.count;
    e->list = chempi_mem_get(e->count, sizeof(*e->list));
    for (size_t i = 0; i < e->count; i++)
        e->list[i] = (struct alternative){
            &e->ways.list[i], chempi_ways_time(g, &e->ways.list[i], e->len)};
    qsort(e->list, e->count, sizeof(*e->list), order_alternatives);
}

/* Was there a way? */
static bool end(struct explaining *e)
{
    const bool found = e->chosen != NULL;

    free(e->list);
    chempi_ways_fini(&e->ways);
    chempi_routes_fini(&e->routes);
    chempi_arena_fini(&e->arena);
    return found;
}

bool chempi_explain(const struct chempi_graph *graph, uint32_t from,
                    uint32_t to, uint64_t len, FILE *out)
{
    struct explaining e = {.graph = graph, .from = from, .to = to, .len = len};

    begin(&e);
    (void)fprintf(out, "%s from %s to %s: ", chempi_text_put_size(len).text,
                  graph->desc->nodes[from].name, graph->desc->nodes[to].name);
    put_chosen(&e, out);
    put_rejected(&e, out);
    return end(&e);
}

bool chempi_explain_json(const struct chempi_graph *graph, uint32_t from,
                         uint32_t to, uint64_t len, FILE *out)
{
    struct explaining e = {.graph = graph, .from = from, .to = to, .len = len};
    struct chempi_json j = {.file = out};

    begin(&e);
    chempi_json_open(&j, NULL);
    chempi_json_number(&j, "bytes", len);
    chempi_json_text(&j, "from", graph->desc->nodes[from].name);
    chempi_json_text(&j, "to", graph->desc->nodes[to].name);
    chosen_json(&e, &j);
    rejected_json(&e, &j);
    chempi_json_close(&j);
    chempi_json_end(&j);
    return end(&e);
}
