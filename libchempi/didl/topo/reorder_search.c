/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Placing vertices: some simple ways to lay a sequence of vertices over the
 * nodes, the cheapest of them improved by swaps.
 *
 *   P1  a layout gives each node as many vertices as it has places; vertices
 *       from g->count on have no edges and stand for places left over
 *   P2  slots[first[n]..first[n + 1]) are the vertices on node n, node[v] the
 *       node of v
 *   P3  a swap is made only if it lowers the cost, so the search ends
 */
#include "libchempi/didl/topo/reorder_search.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"

/* Vertices looked at, at most: growing costs vertices times frontier. */
#define GROW_MAX UINT64_C(100000000)
#define SWAP_MAX UINT64_C(20000000)

struct arc {
    int to;
    int weight;
};

struct search {
    const struct chempi_reorder_graph *g;
    const struct chempi_reorder_nodes *nodes;
    int n;             /* places, and vertices with those that have no edges */
    size_t *arc_first; /* [n + 1] */
    struct arc *arcs;  /* every edge at both its ends */
    int *first;        /* [node_count + 1]: slots of a node */
    int *node_order;   /* near ones next to each other */
    int *slots;        /* [n] */
    int *node;         /* [n] */
    int *best;         /* [n]: node[] of the cheapest layout so far */
    int *sequence;     /* [n] */
    uint64_t *gain;    /* [n] growing */
    uint64_t best_cost;
    uint64_t work;
};

static uint64_t distance(const struct chempi_reorder_nodes *nodes, int a, int b)
{
    size_t row = (size_t)nodes->class_count + 1;
    size_t x = (size_t)nodes->class_of[a];
    size_t y = (size_t)nodes->class_of[b];

    if (a == b)
        return 2 * nodes->costs[x * row + row - 1];
    return nodes->costs[x * row + y] + nodes->costs[y * row + x];
}

uint64_t chempi_reorder_cost(const struct chempi_reorder_graph *g,
                             const struct chempi_reorder_nodes *nodes,
                             const int *order)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < g->edge_count; i++) {
        const struct chempi_reorder_edge *e = &g->edges[i];
        int a = order ? order[e->from] : e->from;
        int b = order ? order[e->to] : e->to;

        sum += (uint64_t)e->weight *
               distance(nodes, nodes->node_of[a], nodes->node_of[b]);
    }
    return sum;
}

static void search_fini(struct search *s)
{
    free(s->arc_first);
    free(s->arcs);
    free(s->first);
    free(s->node_order);
    free(s->slots);
    free(s->node);
    free(s->best);
    free(s->sequence);
    free(s->gain);
}

static void fill_arcs(struct search *s)
{
    const struct chempi_reorder_graph *g = s->g;
    size_t *next = s->arc_first + 1; /* moves on to what it should be */

    for (size_t i = 0; i < g->edge_count; i++) {
        s->arc_first[g->edges[i].from + 2]++;
        s->arc_first[g->edges[i].to + 2]++;
    }
    for (int v = 0; v <= s->n; v++)
        s->arc_first[v + 1] += s->arc_first[v];
    for (size_t i = 0; i < g->edge_count; i++) {
        const struct chempi_reorder_edge *e = &g->edges[i];

        s->arcs[next[e->from]++] = (struct arc){e->to, e->weight};
        s->arcs[next[e->to]++] = (struct arc){e->from, e->weight};
    }
}

/* Begin with the node of place 0; go on with the nearest one to the last. */
static void order_nodes(struct search *s)
{
    const struct chempi_reorder_nodes *nodes = s->nodes;

    for (int i = 0; i < nodes->node_count; i++)
        s->node_order[i] = i;
    for (int i = 1; i < nodes->node_count; i++) {
        int last = s->node_order[i - 1];
        int nearest = i;
        int node;

        for (int j = i + 1; j < nodes->node_count && s->work < GROW_MAX; j++) {
            if (distance(nodes, last, s->node_order[j]) <
                distance(nodes, last, s->node_order[nearest]))
                nearest = j;
            s->work++;
        }
        node = s->node_order[nearest];
        memmove(s->node_order + i + 1, s->node_order + i,
                (size_t)(nearest - i) * sizeof(int));
        s->node_order[i] = node;
    }
}

static int search_init(struct search *s, const struct chempi_reorder_graph *g,
                       const struct chempi_reorder_nodes *nodes)
{
    size_t n = (size_t)nodes->place_count;
    size_t nodes_n = (size_t)nodes->node_count;

    *s = (struct search){
        .g = g,
        .nodes = nodes,
        .n = nodes->place_count,
        .arc_first = chempi_sys->calloc(n + 3, sizeof(size_t)),
        .arcs =
            chempi_sys->malloc((2 * g->edge_count + 1) * sizeof(struct arc)),
        .first = chempi_sys->calloc(nodes_n + 1, sizeof(int)),
        .node_order = chempi_sys->malloc(nodes_n * sizeof(int)),
        .slots = chempi_sys->malloc(n * sizeof(int)),
        .node = chempi_sys->malloc(n * sizeof(int)),
        .best = chempi_sys->malloc(n * sizeof(int)),
        .sequence = chempi_sys->malloc(n * sizeof(int)),
        .gain = chempi_sys->malloc(n * sizeof(uint64_t)),
    };
    if (!s->arc_first || !s->arcs || !s->first || !s->node_order || !s->slots ||
        !s->node || !s->best || !s->sequence || !s->gain) {
        search_fini(s);
        return -ENOMEM;
    }
    fill_arcs(s);
    for (int p = 0; p < s->n; p++)
        s->first[nodes->node_of[p] + 1]++;
    for (size_t i = 0; i < nodes_n; i++)
        s->first[i + 1] += s->first[i];
    order_nodes(s);
    return 0;
}

static int capacity(const struct search *s, int node)
{
    return s->first[node + 1] - s->first[node];
}

/* What vertex v costs if it were on `node` and the others where they are. */
static uint64_t cost_at(struct search *s, int v, int node)
{
    uint64_t sum = 0;

    for (size_t i = s->arc_first[v]; i < s->arc_first[v + 1]; i++) {
        const struct arc *arc = &s->arcs[i];

        sum +=
            (uint64_t)arc->weight * distance(s->nodes, node, s->node[arc->to]);
    }
    s->work += s->arc_first[v + 1] - s->arc_first[v] + 1;
    return sum;
}

static uint64_t cost_of_layout(struct search *s)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < s->g->edge_count; i++) {
        const struct chempi_reorder_edge *e = &s->g->edges[i];

        sum += (uint64_t)e->weight *
               distance(s->nodes, s->node[e->from], s->node[e->to]);
    }
    return sum;
}

static void keep_if_best(struct search *s)
{
    uint64_t cost = cost_of_layout(s);

    if (cost >= s->best_cost)
        return;
    s->best_cost = cost;
    memcpy(s->best, s->node, (size_t)s->n * sizeof(int));
}

/* Lay a sequence of all vertices over the nodes, one node after the other. */
static void lay_out(struct search *s)
{
    int at = 0;

    for (int i = 0; i < s->nodes->node_count; i++) {
        int node = s->node_order[i];

        for (int k = capacity(s, node); k > 0; k--)
            s->node[s->sequence[at++]] = node;
    }
    keep_if_best(s);
}

static void try_rank_order(struct search *s)
{
    for (int v = 0; v < s->n; v++)
        s->sequence[v] = v;
    lay_out(s);
}

static void try_hint(struct search *s)
{
    if (!s->g->hint)
        return;
    for (int v = 0; v < s->n; v++)
        s->sequence[v] = v < s->g->count ? s->g->hint[v] : v;
    lay_out(s);
}

/* ---- growing: a node takes the vertex that is tied most to what it has ----
 */

/* The unplaced vertex at the frontier with the greatest gain, taken out of
 * frontier[0..*len); -1 when the frontier is empty. */
static int take_nearest(struct search *s, int *frontier, int *len)
{
    int best = 0;
    int v;

    if (*len == 0)
        return -1;
    for (int i = 1; i < *len; i++) {
        int a = frontier[i];
        int b = frontier[best];

        if (s->gain[a] > s->gain[b] || (s->gain[a] == s->gain[b] && a < b))
            best = i;
    }
    s->work += (uint64_t)*len;
    v = frontier[best];
    frontier[best] = frontier[--*len];
    return v;
}

/* v is placed: its neighbours are at the frontier. */
static void extend(struct search *s, int v, int *frontier, int *len)
{
    for (size_t i = s->arc_first[v]; i < s->arc_first[v + 1]; i++) {
        int to = s->arcs[i].to;

        if (s->node[to] >= 0)
            continue;
        if (s->gain[to] == 0)
            frontier[(*len)++] = to;
        s->gain[to] += (uint64_t)s->arcs[i].weight + 1;
    }
}

static void try_growing(struct search *s)
{
    int *frontier = s->slots; /* slots are not in use yet */
    int len = 0;
    int next = 0; /* all vertices below are placed */

    memset(s->gain, 0, (size_t)s->n * sizeof(s->gain[0]));
    for (int v = 0; v < s->n; v++)
        s->node[v] = -1;
    for (int i = 0; i < s->nodes->node_count; i++) {
        int node = s->node_order[i];

        for (int k = capacity(s, node); k > 0; k--) {
            int v = take_nearest(s, frontier, &len);

            if (v < 0) {
                while (s->node[next] >= 0)
                    next++;
                v = next;
            }
            s->node[v] = node;
            extend(s, v, frontier, &len);
            if (s->work > GROW_MAX)
                return;
        }
    }
    keep_if_best(s);
}

/* ---- swaps ---- */

static void fill_slots(struct search *s)
{
    int *next = s->sequence; /* not in use any more */

    memcpy(next, s->first, (size_t)s->nodes->node_count * sizeof(int));
    for (int v = 0; v < s->n; v++)
        s->slots[next[s->node[v]]++] = v;
}

static uint64_t weight_between(const struct search *s, int v, int w)
{
    uint64_t sum = 0;

    for (size_t i = s->arc_first[v]; i < s->arc_first[v + 1]; i++)
        if (s->arcs[i].to == w)
            sum += (uint64_t)s->arcs[i].weight;
    return sum;
}

/* What is saved when v and w change places. */
static int64_t gain_of(struct search *s, int v, int w, int64_t own)
{
    int a = s->node[v];
    int b = s->node[w];
    uint64_t other = cost_at(s, w, b) - cost_at(s, w, a);
    /* The edges between the two were counted as if they became local. */
    uint64_t between = weight_between(s, v, w) *
                       (2 * distance(s->nodes, a, b) -
                        distance(s->nodes, a, a) - distance(s->nodes, b, b));

    return own + (int64_t)other - (int64_t)between;
}

/* Swap v with the best vertex of a node; true if that saves something. */
static bool swap_into(struct search *s, int v, int node)
{
    int from = s->node[v];
    int64_t own = (int64_t)(cost_at(s, v, from) - cost_at(s, v, node));
    int64_t most = 0;
    int best = -1;

    for (int i = s->first[node]; i < s->first[node + 1]; i++) {
        int64_t gain = gain_of(s, v, s->slots[i], own);

        if (gain > most) {
            most = gain;
            best = i;
        }
    }
    if (best < 0)
        return false;
    for (int i = s->first[from]; i < s->first[from + 1]; i++)
        if (s->slots[i] == v)
            s->slots[i] = s->slots[best];
    s->node[s->slots[best]] = from;
    s->slots[best] = v;
    s->node[v] = node;
    return true;
}

/* One look at v: the nodes of its neighbours, until a swap saves something. */
static bool improve(struct search *s, int v)
{
    int tried = -1;

    for (size_t i = s->arc_first[v]; i < s->arc_first[v + 1]; i++) {
        int node = s->node[s->arcs[i].to];

        if (node == s->node[v] || node == tried)
            continue;
        tried = node;
        if (swap_into(s, v, node))
            return true;
        if (s->work > SWAP_MAX)
            return false;
    }
    return false;
}

static void swap_all(struct search *s)
{
    bool is_any = true;

    s->work = 0;
    memcpy(s->node, s->best, (size_t)s->n * sizeof(int));
    fill_slots(s);
    while (is_any && s->work <= SWAP_MAX) {
        is_any = false;
        for (int v = 0; v < s->g->count && s->work <= SWAP_MAX; v++)
            is_any |= improve(s, v);
    }
    keep_if_best(s);
}

/* ---- the answer ---- */

/* Places for the best layout; who can stay does. */
static void assign(struct search *s, int *order)
{
    const int *node_of = s->nodes->node_of;
    int *next = s->sequence; /* per node: a place to look at */
    int *places = s->slots;  /* by node */
    int *is_taken = s->node; /* per place */

    memset(is_taken, 0, (size_t)s->n * sizeof(int));
    memcpy(next, s->first, (size_t)s->nodes->node_count * sizeof(int));
    for (int p = 0; p < s->n; p++)
        places[next[node_of[p]]++] = p;
    for (int v = 0; v < s->n; v++) {
        order[v] = -1;
        if (s->best[v] == node_of[v]) {
            order[v] = v;
            is_taken[v] = 1;
        }
    }
    memcpy(next, s->first, (size_t)s->nodes->node_count * sizeof(int));
    for (int v = 0; v < s->n; v++) {
        int *at = &next[s->best[v]];

        if (order[v] >= 0)
            continue;
        while (is_taken[places[*at]])
            ++*at;
        order[v] = places[(*at)++];
    }
}

int chempi_reorder_search(const struct chempi_reorder_graph *g,
                          const struct chempi_reorder_nodes *nodes, int *order)
{
    struct search s;
    uint64_t present = chempi_reorder_cost(g, nodes, NULL);
    int rc = search_init(&s, g, nodes);

    if (rc)
        return rc;
    s.best_cost = present;
    memcpy(s.best, nodes->node_of, (size_t)s.n * sizeof(int));
    try_rank_order(&s);
    try_hint(&s);
    try_growing(&s);
    swap_all(&s);
    rc = s.best_cost < present;
    if (rc)
        assign(&s, order);
    search_fini(&s);
    return rc;
}
