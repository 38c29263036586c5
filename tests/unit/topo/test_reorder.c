/* SPDX-License-Identifier: BSD-3-Clause */
/* The search for a placing: a permutation that costs less, or none. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

#include "libchempi/didl/topo/reorder_search.h"
#include "tests/unit/base/rig.h"

enum { PLACES = 24, NODES = 6, EDGES = 60, CLASSES = 3 };

struct machine {
    int node_of[PLACES];
    int class_of[NODES];
    uint64_t costs[CLASSES * (CLASSES + 1)];
    struct chempi_reorder_nodes nodes;
    struct chempi_reorder_edge edges[EDGES];
    struct chempi_reorder_graph graph;
};

static uint64_t state;

static int number(int below)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (int)((state >> 33) % (uint64_t)below);
}

static void tie(struct machine *m, int places, int nodes, int classes)
{
    m->nodes = (struct chempi_reorder_nodes){.place_count = places,
                                             .node_count = nodes,
                                             .node_of = m->node_of,
                                             .class_count = classes,
                                             .class_of = m->class_of,
                                             .costs = m->costs};
    m->graph = (struct chempi_reorder_graph){
        .count = places, .edge_room = EDGES, .edges = m->edges};
}

static void add(struct machine *m, int from, int to, int weight)
{
    cr_assert_lt(m->graph.edge_count, EDGES);
    m->edges[m->graph.edge_count++] =
        (struct chempi_reorder_edge){from, to, weight};
}

/* Every node has a place, the rest is chance. */
static void make_random(struct machine *m)
{
    tie(m, NODES + number(PLACES - NODES + 1), NODES, CLASSES);
    for (int p = 0; p < m->nodes.place_count; p++)
        m->node_of[p] = p < NODES ? p : number(NODES);
    for (int n = 0; n < NODES; n++)
        m->class_of[n] = n < CLASSES ? n : number(CLASSES);
    for (int a = 0; a < CLASSES; a++)
        for (int b = 0; b <= CLASSES; b++)
            m->costs[a * (CLASSES + 1) + b] =
                (uint64_t)(b < CLASSES ? 50 + number(200) : 1 + number(20));
    m->graph.count -= number(3);
    for (int i = number(EDGES); i > 0; i--) {
        int from = number(m->graph.count);
        int to = number(m->graph.count);

        if (from != to)
            add(m, from, to, number(9));
    }
}

static void expect_permutation(const struct machine *m, const int *order)
{
    int seen[PLACES] = {0};

    for (int v = 0; v < m->nodes.place_count; v++) {
        cr_assert(order[v] >= 0 && order[v] < m->nodes.place_count);
        cr_assert_eq(seen[order[v]]++, 0, "place %d twice", order[v]);
    }
}

Test(reorder, a_found_order_is_a_permutation_that_costs_less)
{
    int found = 0;

    for (state = 1; state < 4000;) {
        uint64_t seed = state;
        struct machine m;
        int order[PLACES];
        int rc;

        make_random(&m);
        rc = chempi_reorder_search(&m.graph, &m.nodes, order);
        cr_assert(rc == 0 || rc == 1);
        if (rc == 1) {
            found++;
            expect_permutation(&m, order);
            cr_assert_lt(chempi_reorder_cost(&m.graph, &m.nodes, order),
                         chempi_reorder_cost(&m.graph, &m.nodes, NULL));
        }
        state = seed + 1;
    }
    cr_assert_gt(found, 2000); /* chance is seldom as good */
}

/* A ring of four nodes with two places each, of which 0 and 2, and 1 and 3,
 * share a fast network: two edges must be slow, two may be fast. */
Test(reorder, heavy_neighbours_get_nodes_of_one_fast_network)
{
    struct machine m = {.class_of = {0, 1, 0, 1},
                        .costs = {10, 100, 1, 100, 10, 1}};
    int order[PLACES];

    tie(&m, 8, 4, 2);
    for (int p = 0; p < 8; p++) {
        m.node_of[p] = p / 2;
        add(&m, p, (p + 1) % 8, 1);
    }
    cr_assert_eq(chempi_reorder_cost(&m.graph, &m.nodes, NULL),
                 2 * (4 * 100 + 4 * 1));
    cr_assert_eq(chempi_reorder_search(&m.graph, &m.nodes, order), 1);
    expect_permutation(&m, order);
    cr_assert_eq(chempi_reorder_cost(&m.graph, &m.nodes, order),
                 2 * (2 * 100 + 2 * 10 + 4 * 1));
}

Test(reorder, who_can_stay_stays)
{
    struct machine m = {.costs = {100, 1}};
    int order[PLACES];

    tie(&m, 6, 3, 1);
    for (int p = 0; p < 6; p++)
        m.node_of[p] = p / 2;
    /* 0-1 belong together and are; 2-5 and 3-4 are apart. */
    add(&m, 0, 1, 5);
    add(&m, 2, 5, 5);
    add(&m, 3, 4, 5);
    cr_assert_eq(chempi_reorder_search(&m.graph, &m.nodes, order), 1);
    cr_assert(order[0] == 0 && order[1] == 1);
    cr_assert_eq(m.node_of[order[2]], m.node_of[order[5]]);
    cr_assert_eq(m.node_of[order[3]], m.node_of[order[4]]);
    cr_assert_eq((order[2] == 2) + (order[3] == 3) + (order[4] == 4) +
                     (order[5] == 5),
                 2);
}

Test(reorder, a_good_order_is_left_alone)
{
    struct machine m = {.costs = {100, 1}};
    int order[PLACES];

    tie(&m, 8, 2, 1);
    for (int p = 0; p < 8; p++)
        m.node_of[p] = p / 4;
    for (int p = 0; p < 7; p++)
        add(&m, p, p + 1, 1);
    cr_assert_eq(chempi_reorder_search(&m.graph, &m.nodes, order), 0);
}

Test(reorder, without_memory_says_so)
{
    for (unsigned nth = 1;; nth++) {
        struct machine m;
        int order[PLACES];
        int rc;

        state = 7;
        make_random(&m);
        rig_reset();
        rig_fail(RIG_MALLOC, nth, ENOMEM, 0);
        rc = chempi_reorder_search(&m.graph, &m.nodes, order);
        if (rig_calls() < nth) {
            cr_assert_gt(nth, 5);
            break;
        }
        cr_assert_eq(rc, -ENOMEM);
    }
    rig_reset();
}
