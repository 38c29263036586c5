/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Dijkstra's algorithm with a binary heap; see search.h. Classes that do not
 * forward are ends and never enter the heap, so its size is bounded by
 * networks and gateway classes.
 */
#include "mdconfig/search.h"

#include <math.h>
#include <stdlib.h>

#include "common/table/table.h"

/* What crossing a network costs under the condition. */
struct crossing {
    double key;
    double base;
    double slope;
    double bw;
    uint16_t protocol;
};

struct run {
    const struct chempi_graph *graph;
    const struct chempi_search_condition *condition;
    struct chempi_search_label *labels;
    uint32_t *heap;  /* vertices by key */
    uint32_t *place; /* [vertex] index in heap + 1, or 0 */
    uint32_t heap_count;
};

/* ---- heap --------------------------------------------------------------- */

static bool is_less(const struct run *r, uint32_t a, uint32_t b)
{
    const struct chempi_search_label *x = &r->labels[a];
    const struct chempi_search_label *y = &r->labels[b];

    if (x->key < y->key || x->key > y->key)
        return x->key < y->key;
    if (x->stages != y->stages)
        return x->stages < y->stages;
    return a < b;
}

static void set_place(struct run *r, uint32_t at, uint32_t vertex)
{
    r->heap[at] = vertex;
    r->place[vertex] = at + 1;
}

static void sift_up(struct run *r, uint32_t at)
{
    uint32_t vertex = r->heap[at];

    while (at > 0 && is_less(r, vertex, r->heap[(at - 1) / 2])) {
        set_place(r, at, r->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    set_place(r, at, vertex);
}

static void sift_down(struct run *r, uint32_t at)
{
    uint32_t vertex = r->heap[at];

    for (;;) {
        uint32_t child = 2 * at + 1;

        if (child >= r->heap_count)
            break;
        if (child + 1 < r->heap_count &&
            is_less(r, r->heap[child + 1], r->heap[child]))
            child++;
        if (!is_less(r, r->heap[child], vertex))
            break;
        set_place(r, at, r->heap[child]);
        at = child;
    }
    set_place(r, at, vertex);
}

static void push_or_raise(struct run *r, uint32_t vertex)
{
    if (r->place[vertex] == 0)
        set_place(r, r->heap_count++, vertex);
    sift_up(r, r->place[vertex] - 1);
}

static uint32_t pop(struct run *r)
{
    uint32_t top = r->heap[0];

    r->heap_count--;
    if (r->heap_count > 0) {
        set_place(r, 0, r->heap[r->heap_count]);
        sift_down(r, 0);
    }
    r->place[top] = 0;
    return top;
}

/* ---- edges -------------------------------------------------------------- */

/* The cheapest protocol of a network; false when none may be used. */
static bool cross(const struct run *r, uint32_t network, struct crossing *out)
{
    const struct chempi_desc_network *n = &r->graph->desc->networks[network];
    const struct chempi_search_condition *c = r->condition;
    bool found = false;

    for (size_t i = 0; i < n->protocol_count; i++) {
        const struct chempi_desc_protocol *p = &n->protocols[i];
        double base = p->latency_us + p->cost_us;
        double key = base + c->weigh_len / p->bw_bytes_per_us;

        if (c->len < p->min_len || c->len > p->max_len ||
            p->bw_bytes_per_us < c->threshold || (found && key >= out->key))
            continue;
        *out = (struct crossing){.key = key,
                                 .base = base,
                                 .slope = 1.0 / p->bw_bytes_per_us,
                                 .bw = p->bw_bytes_per_us,
                                 .protocol = (uint16_t)i};
        found = true;
    }
    return found;
}

/* Keep the better label of a vertex. */
static bool improve(struct run *r, uint32_t vertex,
                    const struct chempi_search_label *label)
{
    struct chempi_search_label *old = &r->labels[vertex];

    if (label->key > old->key ||
        (!(label->key < old->key) && label->stages >= old->stages))
        return false;
    *old = *label;
    return true;
}

/* From a class onto the networks that it sends on. */
static void leave_class(struct run *r, uint32_t node_class, bool is_source)
{
    const struct chempi_graph *g = r->graph;
    const struct chempi_search_label *at =
        &r->labels[g->network_count + node_class];
    double forward =
        is_source ? 0 : chempi_graph_model(g, node_class)->forward_us;

    if (at->stages == CHEMPI_TABLE_STAGES_MAX)
        return;
    for (uint32_t i = g->out_first[node_class];
         i < g->out_first[node_class + 1]; i++) {
        struct crossing c = {.key = 0};
        struct chempi_search_label label;

        if (!cross(r, g->out[i], &c))
            continue;
        label = (struct chempi_search_label){
            .key = at->key + forward + c.key,
            .base = at->base + forward + c.base,
            .slope = at->slope + c.slope,
            .bw_min = c.bw < at->bw_min ? c.bw : at->bw_min,
            .from = g->network_count + node_class,
            .stages = (uint16_t)(at->stages + 1),
            .protocol = c.protocol,
        };
        if (improve(r, g->out[i], &label))
            push_or_raise(r, g->out[i]);
    }
}

/* From a network to the classes that receive from it. */
static void leave_network(struct run *r, uint32_t network, uint32_t source)
{
    const struct chempi_graph *g = r->graph;
    struct chempi_search_label label = r->labels[network];

    label.from = network;
    for (uint32_t i = g->in_first[network]; i < g->in_first[network + 1]; i++) {
        uint32_t vertex = g->network_count + g->in[i];

        if (improve(r, vertex, &label) && g->in[i] != source &&
            chempi_graph_forwards(g, g->in[i]))
            push_or_raise(r, vertex);
    }
}

void chempi_search_run(const struct chempi_graph *graph, uint32_t source,
                       const struct chempi_search_condition *condition,
                       struct chempi_arena *arena, struct chempi_search *out)
{
    size_t vertices = (size_t)graph->network_count + graph->class_count;
    struct run r = {.graph = graph, .condition = condition};
    uint32_t start = graph->network_count + source;

    r.labels = chempi_arena_get(arena, vertices, sizeof(*r.labels));
    r.heap = chempi_mem_get(vertices, sizeof(*r.heap));
    r.place = chempi_mem_get(vertices, sizeof(*r.place));
    for (size_t i = 0; i < vertices; i++)
        r.labels[i] = (struct chempi_search_label){
            .key = INFINITY, .bw_min = INFINITY, .from = CHEMPI_SEARCH_NONE};
    r.labels[start].key = 0;
    leave_class(&r, source, true);
    r.labels[start].key = INFINITY; /* the other nodes of the class */
    while (r.heap_count > 0) {
        uint32_t vertex = pop(&r);

        if (vertex < graph->network_count)
            leave_network(&r, vertex, source);
        else
            leave_class(&r, vertex - graph->network_count, false);
    }
    free(r.heap);
    free(r.place);
    *out = (struct chempi_search){.condition = *condition, .labels = r.labels};
}

const struct chempi_search_label *
chempi_search_of(const struct chempi_graph *graph,
                 const struct chempi_search *search, uint32_t node_class)
{
    return &search->labels[graph->network_count + node_class];
}
