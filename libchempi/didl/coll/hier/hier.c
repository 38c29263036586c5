/* SPDX-License-Identifier: BSD-3-Clause */
/* Hierarchies and their trees; see hier.h. */
#define _GNU_SOURCE /* qsort_r */
#include "libchempi/didl/coll/hier/hier.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/invariant.h"
#include "common/base/sys.h"

/* ---- nodes ---- */

/* Number nodes by their first rank, and list their members; by_node has
 * node_limit places. False: no memory. */
static bool number_nodes(struct chempi_hier *h,
                         const struct chempi_hier_plan *plan, int *by_node)
{
    struct chempi_lists_builder b;
    int nodes = 0;
    int last = -1;

    for (uint32_t i = 0; i < plan->node_limit; i++)
        by_node[i] = -1;
    h->is_in_blocks = true;
    for (int r = 0; r < h->size; r++) {
        int *number = &by_node[plan->node_of(plan->arg, r)];

        if (*number < 0)
            *number = nodes++;
        h->is_in_blocks = h->is_in_blocks && *number >= last;
        last = *number;
    }
    chempi_lists_begin(&b, h->is_in_blocks ? 1 : nodes);
    for (int r = 0; r < h->size; r++)
        chempi_lists_put(&b, by_node[plan->node_of(plan->arg, r)], r);
    h->node_count = nodes;
    h->node = by_node[plan->node_of(plan->arg, h->rank)];
    if (!chempi_lists_end(&b, &h->members))
        return false;
    h->index = chempi_lists_find(&h->members, h->node, h->rank);
    return true;
}

/* ---- teams ---- */

struct joining {
    struct chempi_hier *h;
    const struct chempi_hier_plan *plan;
    int *part;    /* [node_count] towards the node that stands for its part */
    int *speaker; /* [node_count] of a part: its node in the new team */
    int *turn_of; /* [node_count] of a part: when it had that speaker */
    int turn;
    int *first;    /* [network_count + 1] in attached */
    int *attached; /* nodes of each network, ascending */
    int *by_cost;  /* [network_count] the cheap ones first */
    int *joins;    /* [network_count] parts that it reaches, or reached when it
                      was looked at last: they only become fewer */
    int *heap;     /* of networks that may be next; the best is at its top */
    int heap_count;
    int offered;   /* of by_cost: have come into the heap */
    int cheapest;  /* of by_cost: those before it are used */
    bool *is_used; /* [network_count] */
    int parts;
    struct chempi_lists_builder teams; /* of nodes */
};

static int find_part(struct joining *j, int node)
{
    while (j->part[node] != node) {
        j->part[node] = j->part[j->part[node]];
        node = j->part[node];
    }
    return node;
}

/* The nodes of a network; -1: all nodes. */
static int reach_of_network(const struct joining *j, int network)
{
    return network < 0 ? j->h->node_count
                       : j->first[network + 1] - j->first[network];
}

static int node_at(const struct joining *j, int network, int i)
{
    return network < 0 ? i : j->attached[j->first[network] + i];
}

/* How many parts a network reaches; the first node of each speaks for it. */
static int find_speakers(struct joining *j, int network)
{
    const int nodes = reach_of_network(j, network);
    int count = 0;

    j->turn++;
    for (int i = 0; i < nodes; i++) {
        const int node = node_at(j, network, i);
        const int part = find_part(j, node);

        if (j->turn_of[part] == j->turn)
            continue;
        j->turn_of[part] = j->turn;
        j->speaker[part] = node;
        count++;
    }
    return count;
}

static void join(struct joining *j, int network)
{
    const int nodes = reach_of_network(j, network);
    const int count = find_speakers(j, network);
    const int team = j->h->team_count;
    int joined = -1; /* the part that the others come to */

    if (count < 2)
        return;
    j->h->team_count++;
    for (int i = 0; i < nodes; i++) {
        const int node = node_at(j, network, i);
        const int part = find_part(j, node);

        /* The parts that have come to the first one have spoken. */
        if (part == joined || j->speaker[part] != node)
            continue;
        chempi_lists_put(&j->teams, team, node);
        if (joined < 0)
            joined = part;
        j->part[part] = joined;
    }
    j->parts -= count - 1;
}

static bool is_similar(const struct joining *j, uint64_t cost, uint64_t least)
{
    uint64_t percent = (uint64_t)j->plan->similar_percent;

    if (least > UINT64_MAX / 1000)
        return cost == least;
    return cost - least <= least / 100 * percent + least % 100 * percent / 100;
}

/* The one that joins more parts, else the cheaper one, else the first. */
static bool is_better(const struct joining *j, int a, int b)
{
    const uint64_t *costs = j->plan->costs;

    if (j->joins[a] != j->joins[b])
        return j->joins[a] > j->joins[b];
    return costs[a] != costs[b] ? costs[a] < costs[b] : a < b;
}

static void sink_top(struct joining *j)
{
    const int network = j->heap[0];
    int i = 0;

    for (int child; (child = 2 * i + 1) < j->heap_count; i = child) {
        if (child + 1 < j->heap_count &&
            is_better(j, j->heap[child + 1], j->heap[child]))
            child++;
        if (!is_better(j, j->heap[child], network))
            break;
        j->heap[i] = j->heap[child];
    }
    j->heap[i] = network;
}

static void offer(struct joining *j, int network)
{
    int i = j->heap_count++;

    for (; i > 0 && is_better(j, network, j->heap[(i - 1) / 2]);
         i = (i - 1) / 2)
        j->heap[i] = j->heap[(i - 1) / 2];
    j->heap[i] = network;
}

/* The cheapest network left, or a similar one that joins more parts; -1: none
 * is left. */
static int next_network(struct joining *j)
{
    const struct chempi_hier_plan *plan = j->plan;
    uint64_t least;
    int joins;
    int best;

    while (j->cheapest < plan->network_count &&
           j->is_used[j->by_cost[j->cheapest]])
        j->cheapest++;
    if (j->cheapest == plan->network_count)
        return -1;
    least = plan->costs[j->by_cost[j->cheapest]];
    for (; j->offered < plan->network_count &&
           is_similar(j, plan->costs[j->by_cost[j->offered]], least);
         j->offered++)
        offer(j, j->by_cost[j->offered]);
    for (;;) {
        best = j->heap[0];
        joins = find_speakers(j, best);
        if (joins == j->joins[best])
            break;
        j->joins[best] = joins;
        sink_top(j);
    }
    j->heap[0] = j->heap[--j->heap_count];
    if (j->heap_count > 0)
        sink_top(j);
    return best;
}

/* first[i + 1] is where the list of network i ends. */
static void list_attached(struct joining *j)
{
    const struct chempi_hier *h = j->h;
    const struct chempi_hier_plan *plan = j->plan;
    const int total = j->first[plan->network_count];
    int network;

    for (int n = h->node_count - 1; n >= 0; n--) {
        const uint32_t node =
            plan->node_of(plan->arg, chempi_hier_member(h, n, 0));

        for (uint32_t i = 0; plan->attachment(plan->arg, node, i, &network);
             i++)
            if (network >= 0)
                j->attached[--j->first[network + 1]] = n;
    }
    /* Filled from behind, every entry has moved to the one before. */
    memmove(j->first, j->first + 1,
            (size_t)plan->network_count * sizeof(*j->first));
    j->first[plan->network_count] = total;
}

static int compare_costs(const void *a, const void *b, void *arg)
{
    const uint64_t *costs = arg;
    const int x = *(const int *)a;
    const int y = *(const int *)b;

    if (costs[x] != costs[y])
        return costs[x] < costs[y] ? -1 : 1;
    return (x > y) - (x < y);
}

static void join_all(struct joining *j)
{
    const int networks = j->plan->network_count;
    int network;

    j->parts = j->h->node_count;
    for (int n = 0; n < j->h->node_count; n++)
        j->part[n] = n;
    for (int i = 0; i < networks; i++) {
        j->by_cost[i] = i;
        j->joins[i] = reach_of_network(j, i);
    }
    qsort_r(j->by_cost, (size_t)networks, sizeof(*j->by_cost), compare_costs,
            (void *)(uintptr_t)j->plan->costs);
    while (j->parts > 1 && (network = next_network(j)) >= 0) {
        j->is_used[network] = true;
        join(j, network);
    }
    if (j->parts > 1)
        join(j, -1); /* through gateways, if at all */
}

/* ---- creation ---- */

/* False: no memory. */
static bool list_teams_of_nodes(struct chempi_hier *h)
{
    const size_t nodes = (size_t)h->node_count;
    struct chempi_lists_builder b;
    /* By H1 there are less than two places in teams for each node. */
    int *first = chempi_sys->calloc(3 * nodes, sizeof(*first));
    int *teams;
    int total;

    if (!first)
        return false;
    teams = first + nodes + 1;
    for (int t = 0; t < h->team_count; t++)
        for (int i = 0; i < chempi_lists_len(&h->team_nodes, t); i++)
            first[chempi_lists_get(&h->team_nodes, t, i) + 1]++;
    for (int n = 0; n < h->node_count; n++)
        first[n + 1] += first[n];
    total = first[h->node_count];
    for (int t = h->team_count - 1; t >= 0; t--)
        for (int i = 0; i < chempi_lists_len(&h->team_nodes, t); i++)
            teams[--first[chempi_lists_get(&h->team_nodes, t, i) + 1]] = t;
    /* Filled from behind, every entry has moved to the one before. */
    chempi_lists_begin(&b, 1);
    for (int n = 0; n < h->node_count; n++) {
        const int end = n + 1 < h->node_count ? first[n + 2] : total;

        for (int i = first[n + 1]; i < end; i++)
            chempi_lists_put(&b, n, teams[i]);
    }
    free(first);
    return chempi_lists_end(&b, &h->node_teams);
}

int chempi_hier_local_rank(const void *hier, int i)
{
    const struct chempi_hier *h = hier;

    return chempi_hier_member(h, h->node, i);
}

int chempi_hier_top_rank(const void *hier, int i)
{
    const struct chempi_hier *h = hier;

    return chempi_hier_member(
        h, chempi_lists_get(&h->team_nodes, h->team_count - 1, i), 0);
}

int chempi_hier_last_rank(const void *hier, int i)
{
    return chempi_hier_member(hier, i, chempi_hier_node_size(hier, i) - 1);
}

/* In each ring that it is in, its node's and those of its teams, a rank has a
 * child for each power of two at most. */
static size_t children_max(const struct chempi_hier *h)
{
    return 31u * (1u + (size_t)chempi_lists_len(&h->node_teams, h->node));
}

static bool make_tree(const struct chempi_hier *h, struct chempi_hier_tree *t)
{
    const size_t most = children_max(h);

    t->children = chempi_sys->malloc((2 * most + 1) * sizeof(int));
    if (!t->children)
        return false;
    t->begin = t->children + most;
    return true;
}

/* All that calls need, before all agree on whether everyone has it. */
static bool make_room(struct chempi_hier *h)
{
    const bool is_top = h->index == 0 && h->top >= 0; /* it speaks for others */
    const int top = is_top ? chempi_hier_top_count(h) : 0;
    const int own = chempi_hier_node_size(h, h->node);
    const size_t n = h->rank == 0 || is_top ? (size_t)h->size + 1 : 0;
    const size_t most = 2 * (size_t)(top > own ? top : own);
    const size_t records = h->index == 0 ? (size_t)own * CHEMPI_HIER_RECORD : 0;

    h->counts = chempi_sys->malloc((n + most) * sizeof(*h->counts) + records);
    if (!h->counts)
        return false;
    h->sums = n ? h->counts + most : NULL;
    h->records = records ? h->counts + most + n : NULL;
    for (int i = 0; i < CHEMPI_HIER_KIND_COUNT; i++)
        if (!make_tree(h, &h->trees[i]))
            return false;
    return true;
}

/* first[i + 1] is the number of attachments to the networks up to i. Returns
 * how many there are in all. */
static size_t count_attached(const struct chempi_hier *h,
                             const struct chempi_hier_plan *plan, int *first)
{
    int network;

    for (int n = 0; n < h->node_count; n++) {
        const uint32_t node =
            plan->node_of(plan->arg, chempi_hier_member(h, n, 0));

        for (uint32_t i = 0; plan->attachment(plan->arg, node, i, &network);
             i++)
            if (network >= 0)
                first[network + 1]++;
    }
    for (int i = 0; i < plan->network_count; i++)
        first[i + 1] += first[i];
    return (size_t)first[plan->network_count];
}

/* False: no memory. */
static bool make_teams(struct chempi_hier *h,
                       const struct chempi_hier_plan *plan, int *part)
{
    const size_t nets = (size_t)plan->network_count;
    const size_t nodes = (size_t)h->node_count;
    int *first = chempi_sys->calloc(nets + 1, sizeof(int));
    size_t total = first && nets ? count_attached(h, plan, first) : 0;
    int *room =
        chempi_sys->calloc(2 * nodes + 3 * nets + total + 1, sizeof(int));
    bool *is_used = chempi_sys->calloc(nets + 1, sizeof(bool));
    bool is_whole = first && room && is_used;

    if (is_whole) {
        struct joining j = {.h = h,
                            .plan = plan,
                            .part = part,
                            .speaker = room,
                            .turn_of = room + nodes,
                            .first = first,
                            .by_cost = room + 2 * nodes,
                            .joins = room + 2 * nodes + nets,
                            .heap = room + 2 * nodes + 2 * nets,
                            .attached = room + 2 * nodes + 3 * nets,
                            .is_used = is_used};

        chempi_lists_begin(&j.teams, 1);
        if (nets)
            list_attached(&j);
        join_all(&j);
        is_whole = chempi_lists_end(&j.teams, &h->team_nodes);
    }
    free(first);
    free(room);
    free(is_used);
    return is_whole;
}

static bool fill(struct chempi_hier *h, const struct chempi_hier_plan *plan,
                 int *by_node)
{
    if (!number_nodes(h, plan, by_node) || h->node_count < 2 ||
        !make_teams(h, plan, by_node) || !list_teams_of_nodes(h))
        return false;
    CHEMPI_CHECK(chempi_hier_check(h));
    h->top = chempi_lists_find(&h->team_nodes, h->team_count - 1, h->node);
    return make_room(h);
}

struct chempi_hier *chempi_hier_create(const struct chempi_hier_plan *plan)
{
    /* Numbers of nodes, then their parts. */
    int *by_node = chempi_sys->calloc((size_t)plan->node_limit, sizeof(int));
    struct chempi_hier *h = chempi_sys->calloc(1, sizeof(*h));
    bool is_whole = false;

    if (h && by_node) {
        h->size = plan->size;
        h->rank = plan->rank;
        is_whole = fill(h, plan, by_node);
    }
    if (!is_whole) {
        chempi_hier_destroy(h);
        h = NULL;
    }
    free(by_node);
    return h;
}

const char *chempi_hier_check(const struct chempi_hier *h)
{
    int joined = 1; /* by teams without a circle: each adds all but one node */

    for (int i = 0; i < h->team_count; i++) {
        const int count = chempi_lists_len(&h->team_nodes, i);

        if (count < 2)
            return "hierarchy H1: a team of one node";
        joined += count - 1;
    }
    if (joined != h->node_count)
        return "hierarchy H1: teams that leave nodes out, or form a circle";
    if (h->node_teams.count != h->node_count)
        return "hierarchy H1: a node of no team";
    for (int i = 0; i < h->node_count; i++)
        for (int j = 1; j < chempi_lists_len(&h->node_teams, i); j++)
            if (chempi_lists_get(&h->node_teams, i, j - 1) >=
                chempi_lists_get(&h->node_teams, i, j))
                return "hierarchy H2: a node's teams out of order";
    return NULL;
}

void chempi_hier_destroy(struct chempi_hier *h)
{
    if (!h)
        return;
    for (int i = 0; i < CHEMPI_HIER_KIND_COUNT; i++)
        free(h->trees[i].children);
    free(h->counts); /* and sums */
    chempi_lists_fini(&h->members);
    chempi_lists_fini(&h->team_nodes);
    chempi_lists_fini(&h->node_teams);
    free(h);
}

/* ---- walks ---- */

struct walk {
    const struct chempi_hier *h;
    const struct chempi_hier_tree *t;
    chempi_hier_visit_fn *visit;
    void *arg;
    int closed; /* team whose edges are left out, or -1 */
    int at;     /* so many ranks have been passed */
};

/* An edge to a node. */
struct edge {
    int from;  /* node, or -1 */
    int team;  /* -1: none, the node is a root */
    int start; /* where the team's ring begins */
    int rel;   /* of the node in the ring */
    int depth;
};

/* The distances at which member rel of a ring of `count` has children end
 * before this one. */
static int reach_of(int rel, int count, enum chempi_hier_shape shape)
{
    if (shape == CHEMPI_HIER_CHAIN)
        return 2;
    return rel == 0 ? count : rel & -rel;
}

static int leader_of(const struct chempi_hier_tree *t, int node)
{
    return node == t->root_node ? t->root_index : 0;
}

static void walk_node(struct walk *w, int node, struct edge edge);

/* Below the node at rel of a team's ring, which begins at start. */
static void walk_team(struct walk *w, int node, int team, int start, int rel,
                      int depth)
{
    const struct chempi_lists *nodes = &w->h->team_nodes;
    const int count = chempi_lists_len(nodes, team);
    const int reach = reach_of(rel, count, w->t->shape);

    for (int d = 1; d < reach && rel + d < count; d *= 2)
        walk_node(w, chempi_lists_get(nodes, team, (start + rel + d) % count),
                  (struct edge){node, team, start, rel + d, depth + 1});
}

/* A node and what is below it. */
static void walk_node(struct walk *w, int node, struct edge edge)
{
    const struct chempi_hier *h = w->h;
    const int teams = chempi_lists_len(&h->node_teams, node);
    const struct chempi_hier_stop stop = {.node = node,
                                          .parent = edge.from,
                                          .depth = edge.depth,
                                          .leader = leader_of(w->t, node),
                                          .at = w->at};

    w->visit(w->arg, &stop);
    w->at += chempi_hier_node_size(h, node);
    for (int i = 0; i < teams; i++) {
        const int team = chempi_lists_get(&h->node_teams, node, i);

        if (team == w->closed)
            continue;
        if (team == edge.team)
            walk_team(w, node, team, edge.start, edge.rel, edge.depth);
        else
            walk_team(w, node, team,
                      chempi_lists_find(&h->team_nodes, team, node), 0,
                      edge.depth);
    }
}

void chempi_hier_walk(const struct chempi_hier *h,
                      const struct chempi_hier_tree *t,
                      chempi_hier_visit_fn *visit, void *arg)
{
    struct walk w = {.h = h, .t = t, .visit = visit, .arg = arg, .closed = -1};
    const struct edge root = {.from = -1, .team = -1};
    const int top = h->team_count - 1;

    if (t->root >= 0) {
        walk_node(&w, t->root_node, root);
        return;
    }
    w.closed = top;
    for (int i = 0; i < chempi_hier_top_count(h); i++)
        walk_node(&w, chempi_lists_get(&h->team_nodes, top, i), root);
}

/* ---- trees ---- */

struct planting {
    const struct chempi_hier *h;
    struct chempi_hier_tree *t;
    int own_depth; /* -1: this rank's node has not been met */
    bool is_left;  /* what is below it is behind */
    int last;      /* node that was met before this one */
};

/* A child of this rank, whose subtree begins there. */
static void add_child(struct chempi_hier_tree *t, int rank, int at)
{
    t->begin[t->child_count] = at;
    t->children[t->child_count++] = rank;
}

/* This rank's place in the ring of its node, which begins with the leader. */
static void plant_own(struct planting *p, const struct chempi_hier_stop *stop)
{
    const struct chempi_hier *h = p->h;
    struct chempi_hier_tree *t = p->t;
    const int count = chempi_hier_node_size(h, h->node);
    const int rel = (h->index - stop->leader + count) % count;
    const int reach = reach_of(rel, count, t->shape);

    t->at = stop->at + rel;
    t->leader = chempi_hier_member_at(h, stop, 0);
    t->leader_index = stop->leader;
    for (int d = 1; d < reach && rel + d < count; d *= 2)
        add_child(t, chempi_hier_member_at(h, stop, rel + d), t->at + d);
    t->local_count = t->child_count;
    if (rel > 0) {
        const bool is_chain = t->shape == CHEMPI_HIER_CHAIN;
        const int rest = is_chain || rel + reach > count ? count - rel : reach;

        t->parent = chempi_hier_member_at(h, stop,
                                          is_chain ? rel - 1 : rel & (rel - 1));
        t->end = t->at + rest;
    } else if (stop->parent < 0) {
        t->parent = -1;
    } else {
        t->parent =
            chempi_hier_member(h, stop->parent, leader_of(t, stop->parent));
    }
}

static void plant(void *arg, const struct chempi_hier_stop *stop)
{
    struct planting *p = arg;
    const struct chempi_hier *h = p->h;
    struct chempi_hier_tree *t = p->t;

    t->is_ordered =
        t->is_ordered && stop->node == p->last + 1 && stop->leader == 0;
    p->last = stop->node;
    if (stop->node == h->node) {
        p->own_depth = stop->depth;
        plant_own(p, stop);
        return;
    }
    if (p->own_depth < 0 || p->is_left || t->leader != h->rank)
        return;
    if (stop->depth <= p->own_depth) {
        p->is_left = true;
        t->end = stop->at;
    } else if (stop->parent == h->node) {
        add_child(t, chempi_hier_member_at(h, stop, 0), stop->at);
    }
}

const struct chempi_hier_tree *
chempi_hier_tree(struct chempi_hier *h, enum chempi_hier_kind kind, int root)
{
    struct chempi_hier_tree *t = &h->trees[kind];
    struct planting p = {.h = h, .t = t, .own_depth = -1, .last = -1};

    if (t->is_made && (kind == CHEMPI_HIER_TOPPED || t->root == root))
        return t;
    t->is_made = true;
    t->is_ordered = h->is_in_blocks;
    t->root = kind == CHEMPI_HIER_TOPPED ? -1 : root;
    t->root_node = t->root_index = -1;
    if (t->root >= 0)
        (void)chempi_lists_search(&h->members, root, &t->root_node,
                                  &t->root_index); /* it is a member */
    t->shape =
        kind == CHEMPI_HIER_ROOTED_CHAIN ? CHEMPI_HIER_CHAIN : CHEMPI_HIER_TREE;
    t->child_count = 0;
    t->end = h->size; /* unless somebody comes behind it */
    chempi_hier_walk(h, t, plant, &p);
    t->begin[t->child_count] = t->end;
    return t;
}
