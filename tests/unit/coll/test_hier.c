/* SPDX-License-Identifier: BSD-3-Clause */
/* Trees through hierarchies: what their ranks believe of each other, and what
 * a hierarchy takes. */
#include <criterion/criterion.h>

#include "libchempi/didl/coll/hier/hier.h"

enum { RANKS_MAX = 4096, RACK = 8 };

/* A fast network in each rack of nodes, and a slow one of all. */
struct place {
    int ranks;
    int nodes;
    bool is_by_turns;
    bool has_racks;
};

static uint32_t node_of(const void *arg, int rank)
{
    const struct place *p = arg;

    return (uint32_t)(p->is_by_turns
                          ? rank % p->nodes
                          : rank / ((p->ranks + p->nodes - 1) / p->nodes));
}

static bool attachment(const void *arg, uint32_t node, uint32_t i, int *network)
{
    const struct place *p = arg;

    *network = i == 0 ? 0 : 1 + (int)node / RACK;
    return i < (p->has_racks ? 2u : 1u);
}

static struct chempi_hier *make(const struct place *p, int rank)
{
    static uint64_t costs[1 + RANKS_MAX / RACK];
    const struct chempi_hier_plan plan = {
        .size = p->ranks,
        .rank = rank,
        .node_of = node_of,
        .node_limit = (uint32_t)p->nodes,
        .network_count = p->has_racks ? 1 + (p->nodes + RACK - 1) / RACK : 1,
        .costs = costs,
        .attachment = attachment,
        .arg = p,
        .similar_percent = 10,
    };
    struct chempi_hier *h;

    for (int i = 0; i < plan.network_count; i++)
        costs[i] = i ? 100 : 900;
    h = chempi_hier_create(&plan);
    cr_assert(h);
    return h;
}

/* The order of a tree, and how many nodes stand in it. */
struct order {
    const struct chempi_hier *h;
    int ranks[RANKS_MAX];
    int count;
};

static void note(void *arg, const struct chempi_hier_stop *stop)
{
    struct order *o = arg;

    cr_assert_eq(stop->at, o->count);
    for (int i = 0; i < chempi_hier_node_size(o->h, stop->node); i++)
        o->ranks[o->count++] = chempi_hier_member_at(o->h, stop, i);
}

static void check_order(struct chempi_hier *const *all, int rank,
                        const struct chempi_hier_tree *t)
{
    static struct order order;
    bool has[RANKS_MAX] = {false};
    bool is_ordered = true;

    order.h = all[rank];
    order.count = 0;
    chempi_hier_walk(order.h, t, note, &order);
    cr_assert_eq(order.count, order.h->size);
    for (int i = 0; i < order.count; i++) {
        cr_assert_not(has[order.ranks[i]]);
        has[order.ranks[i]] = true;
        is_ordered = is_ordered && order.ranks[i] == i;
    }
    cr_assert_eq(t->is_ordered, is_ordered);
    cr_assert_eq(order.ranks[t->at], rank);
}

/* What a rank believes of those below it, they believe too. */
static int check_children(struct chempi_hier *const *all, int rank,
                          enum chempi_hier_kind kind, int root)
{
    const struct chempi_hier_tree *t = chempi_hier_tree(all[rank], kind, root);
    int at = t->at + 1;

    for (int i = 0; i < t->child_count; i++) {
        const struct chempi_hier_tree *child =
            chempi_hier_tree(all[t->children[i]], kind, root);

        cr_assert_eq(child->parent, rank);
        cr_assert_eq(child->at, at);
        cr_assert_eq(t->begin[i], at);
        at = child->end;
        cr_assert_eq(child->leader == t->leader, i < t->local_count);
    }
    cr_assert_eq(t->begin[t->child_count], t->end);
    cr_assert_eq(at, t->end);
    cr_assert_eq(chempi_hier_local_rank(all[rank], t->leader_index), t->leader);
    return t->child_count;
}

static void check_trees(const struct place *p)
{
    struct chempi_hier *all[RANKS_MAX];

    for (int r = 0; r < p->ranks; r++)
        all[r] = make(p, r);
    for (int kind = 0; kind < CHEMPI_HIER_KIND_COUNT; kind++)
        for (int root = 0; root < p->ranks; root += 5) {
            const int roots =
                kind == CHEMPI_HIER_TOPPED ? chempi_hier_top_count(all[0]) : 1;
            int edges = 0;

            for (int r = 0; r < p->ranks; r++) {
                check_order(all, r,
                            chempi_hier_tree(
                                all[r], (enum chempi_hier_kind)kind, root));
                edges +=
                    check_children(all, r, (enum chempi_hier_kind)kind, root);
            }
            cr_assert_eq(edges, p->ranks - roots);
        }
    for (int r = 0; r < p->ranks; r++)
        chempi_hier_destroy(all[r]);
}

Test(hier, ranks_of_a_tree_agree)
{
    static const struct place places[] = {
        {.ranks = 60, .nodes = 20},
        {.ranks = 60, .nodes = 20, .has_racks = true},
        {.ranks = 60, .nodes = 20, .has_racks = true, .is_by_turns = true},
        {.ranks = 23, .nodes = 23, .has_racks = true},
        {.ranks = 41, .nodes = 2},
        {.ranks = 50, .nodes = 17, .has_racks = true, .is_by_turns = true},
    };

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
        check_trees(&places[i]);
}

static int pieces(const struct place *p)
{
    struct chempi_hier *h = make(p, 0);
    const int count = h->members.piece_count + h->team_nodes.piece_count +
                      h->node_teams.piece_count;

    chempi_hier_destroy(h);
    return count;
}

Test(hier, of_equal_nodes_takes_the_same_for_any_number_of_ranks)
{
    for (int is_by_turns = 0; is_by_turns < 2; is_by_turns++)
        for (int ranks = 64; ranks <= RANKS_MAX; ranks *= 4) {
            const struct place p = {.ranks = ranks,
                                    .nodes = ranks / 16,
                                    .is_by_turns = is_by_turns};

            cr_assert_eq(pieces(&p), 3);
        }
}

Test(hier, of_racks_grows_with_their_number)
{
    for (int ranks = 256; ranks <= RANKS_MAX; ranks *= 2) {
        const struct place p = {
            .ranks = ranks, .nodes = ranks / 4, .has_racks = true};

        cr_assert_leq(pieces(&p), 3 + 2 * (p.nodes / RACK));
    }
}
