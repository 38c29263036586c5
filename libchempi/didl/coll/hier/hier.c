/* SPDX-License-Identifier: BSD-3-Clause */
/* Hierarchies and their trees; see hier.h. */
#define _GNU_SOURCE /* qsort_r */
#include "libchempi/didl/coll/hier/hier.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/invariant.h"
#include "common/base/sys.h"

/* ---- nodes ---- */

/* Number nodes by their first rank; by_node has node_limit places. */
static void number_nodes(struct chempi_hier *h,
                         const struct chempi_hier_plan *plan, int *by_node)
{
    for (uint32_t i = 0; i < plan->node_limit; i++)
        by_node[i] = -1;
    for (int r = 0; r < h->size; r++) {
        int *number = &by_node[plan->node_of[r]];

        if (*number < 0)
            *number = h->node_count++;
        h->node_of[r] = *number;
        h->index[r] = h->first[*number + 1]++; /* counts, for the moment */
    }
    for (int n = 0; n < h->node_count; n++)
        h->first[n + 1] += h->first[n];
    h->is_in_blocks = true;
    for (int r = 0; r < h->size; r++) {
        int place = h->first[h->node_of[r]] + h->index[r];

        h->members[place] = r;
        h->is_in_blocks = h->is_in_blocks && place == r;
    }
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
    int used_nodes; /* of team_nodes */
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
    struct chempi_hier *h = j->h;
    const int nodes = reach_of_network(j, network);
    const int count = find_speakers(j, network);
    struct chempi_hier_team *team = &h->teams[h->team_count];
    const int *members = h->team_nodes + j->used_nodes;

    if (count < 2)
        return;
    h->team_count++;
    *team = (struct chempi_hier_team){.first = j->used_nodes};
    for (int i = 0; i < nodes; i++) {
        const int node = node_at(j, network, i);

        /* A node may be attached twice. */
        if (j->speaker[find_part(j, node)] == node &&
            (i == 0 || node_at(j, network, i - 1) != node))
            h->team_nodes[team->first + team->count++] = node;
    }
    for (int i = 1; i < team->count; i++)
        j->part[find_part(j, members[i])] = find_part(j, members[0]);
    j->used_nodes += team->count;
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
        const uint32_t node = plan->node_of[h->members[h->first[n]]];

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

static void list_teams(struct chempi_hier *h)
{
    const struct chempi_hier_team *last = &h->teams[h->team_count - 1];
    int total = last->first + last->count;

    memset(h->node_first, 0, ((size_t)h->node_count + 1) * sizeof(int));
    for (int i = 0; i < total; i++)
        h->node_first[h->team_nodes[i] + 1]++;
    for (int n = 0; n < h->node_count; n++)
        h->node_first[n + 1] += h->node_first[n];
    for (int t = h->team_count - 1; t >= 0; t--)
        for (int i = 0; i < h->teams[t].count; i++) {
            int node = h->team_nodes[h->teams[t].first + i];

            h->node_teams[--h->node_first[node + 1]] = t;
        }
    /* Filled from behind, every entry has moved to the one before. */
    memmove(h->node_first, h->node_first + 1,
            (size_t)h->node_count * sizeof(int));
    h->node_first[h->node_count] = total;
}

static void find_tops(struct chempi_hier *h)
{
    const struct chempi_hier_team *top = chempi_hier_top(h);

    for (int i = 0; i < top->count; i++)
        h->top_ranks[i] = h->members[h->first[h->team_nodes[top->first + i]]];
    for (int n = 0; n < h->node_count; n++)
        h->last_ranks[n] = h->members[h->first[n + 1] - 1];
}

/* In each ring that it is in, its node's and those of its teams, a rank has a
 * child for each power of two at most. */
static size_t children_max(const struct chempi_hier *h)
{
    const int node = h->node_of[h->rank];

    return 31u * (1u + (size_t)(h->node_first[node + 1] - h->node_first[node]));
}

static bool make_tree(const struct chempi_hier *h, struct chempi_hier_tree *t)
{
    const size_t n = (size_t)h->size;
    const size_t most = children_max(h);

    t->children = chempi_sys->malloc((2 * n + 2 * most + 1) * sizeof(int));
    if (!t->children)
        return false;
    t->begin = t->children + most;
    t->order = t->begin + most + 1;
    t->place = t->order + n;
    return true;
}

/* All that calls need, before all agree on whether everyone has it. */
static bool make_room(struct chempi_hier *h)
{
    const int top = chempi_hier_top(h)->count;
    const int own = chempi_hier_node_size(h, h->node_of[h->rank]);
    const size_t n = (size_t)h->size + 1;
    const size_t most = 2 * (size_t)(top > own ? top : own);

    h->sums = chempi_sys->malloc((n + most) * sizeof(*h->sums));
    if (!h->sums)
        return false;
    h->counts = h->sums + n;
    for (int i = 0; i < CHEMPI_HIER_KIND_COUNT; i++)
        if (!make_tree(h, &h->trees[i]))
            return false;
    return true;
}

static int count_nodes(const struct chempi_hier_plan *plan, int *by_node)
{
    int count = 0;

    for (int r = 0; r < plan->size; r++)
        count += by_node[plan->node_of[r]]++ == 0;
    return count;
}

/* A tree of m nodes with teams for edges has at most m - 1 teams, and in all
 * at most 2 (m - 1) places in them. */
static struct chempi_hier *allocate(const struct chempi_hier_plan *plan,
                                    size_t m)
{
    size_t n = (size_t)plan->size;
    struct chempi_hier *h = chempi_sys->calloc(1, sizeof(*h));
    int *p = chempi_sys->calloc(3 * n + 8 * m + 2, sizeof(int));

    if (h)
        h->teams = chempi_sys->calloc(m, sizeof(*h->teams));
    if (!h || !p || !h->teams) {
        free(p);
        if (h)
            free(h->teams);
        free(h);
        return NULL;
    }
    h->node_of = p;
    h->members = p + n;
    h->index = p + 2 * n;
    p += 3 * n;
    h->top_ranks = p;
    h->first = p + m;
    h->node_first = p + 2 * m + 1;
    h->team_nodes = p + 3 * m + 2;
    h->node_teams = p + 5 * m + 2; /* to 7 m + 2 */
    h->last_ranks = p + 7 * m + 2;
    h->size = plan->size;
    h->rank = plan->rank;
    return h;
}

/* first[i + 1] is the number of attachments to the networks up to i. Returns
 * how many there are in all. */
static size_t count_attached(const struct chempi_hier *h,
                             const struct chempi_hier_plan *plan, int *first)
{
    int network;

    for (int n = 0; n < h->node_count; n++) {
        const uint32_t node = plan->node_of[h->members[h->first[n]]];

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
    const bool has_room = first && room && is_used;

    if (has_room) {
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

        if (nets)
            list_attached(&j);
        join_all(&j);
    }
    free(first);
    free(room);
    free(is_used);
    return has_room;
}

struct chempi_hier *chempi_hier_create(const struct chempi_hier_plan *plan)
{
    int *by_node = chempi_sys->calloc((size_t)plan->node_limit + 1,
                                      sizeof(int)); /* then parts of nodes */
    struct chempi_hier *h =
        by_node ? allocate(plan, (size_t)count_nodes(plan, by_node)) : NULL;
    bool is_whole = false;

    if (h) {
        number_nodes(h, plan, by_node);
        is_whole = h->node_count > 1 && make_teams(h, plan, by_node);
    }
    if (is_whole) {
        list_teams(h);
        find_tops(h);
        CHEMPI_CHECK(chempi_hier_check(h));
        is_whole = make_room(h);
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
        if (h->teams[i].count < 2)
            return "hierarchy H1: a team of one node";
        joined += h->teams[i].count - 1;
    }
    if (joined != h->node_count)
        return "hierarchy H1: teams that leave nodes out, or form a circle";
    for (int i = 0; i < h->node_count; i++) {
        if (h->node_first[i] == h->node_first[i + 1])
            return "hierarchy H1: a node of no team";
        for (int j = h->node_first[i] + 1; j < h->node_first[i + 1]; j++)
            if (h->node_teams[j - 1] >= h->node_teams[j])
                return "hierarchy H2: a node's teams out of order";
    }
    return NULL;
}

void chempi_hier_destroy(struct chempi_hier *h)
{
    if (!h)
        return;
    for (int i = 0; i < CHEMPI_HIER_KIND_COUNT; i++)
        free(h->trees[i].children);
    free(h->sums);
    free(h->teams);
    free(h->node_of);
    free(h);
}

/* ---- trees ---- */

struct planting {
    const struct chempi_hier *h;
    struct chempi_hier_tree *t;
    int count;  /* of order */
    int closed; /* team whose edges are left out, or -1 */
};

static int leader_of(const struct planting *p, int node)
{
    int root = p->t->root;

    if (root >= 0 && p->h->node_of[root] == node)
        return root;
    return p->h->members[p->h->first[node]];
}

/* Put a rank at the end of the order; parent is -1 for a root. */
static void put(struct planting *p, int rank, int parent)
{
    struct chempi_hier_tree *t = p->t;

    if (parent == p->h->rank) {
        t->begin[t->child_count] = p->count;
        t->children[t->child_count++] = rank;
    }
    if (rank == p->h->rank) {
        t->parent = parent;
        t->at = p->count;
    }
    t->place[rank] = p->count;
    t->order[p->count++] = rank;
}

/* All below a rank have been put. */
static void finish(struct planting *p, int rank)
{
    if (rank != p->h->rank)
        return;
    p->t->begin[p->t->child_count] = p->count;
    p->t->end = p->count;
}

/* The distances at which member rel of a ring of `count` has children end
 * before this one. */
static int reach_of(int rel, int count, bool is_chain)
{
    if (is_chain)
        return 2;
    return rel == 0 ? count : rel & -rel;
}

/* Below member rel of a node's ring, which begins with its leader. */
static void plant_members(struct planting *p, int node, int rel)
{
    const int *members = chempi_hier_node_members(p->h, node);
    int count = chempi_hier_node_size(p->h, node);
    int start = p->h->index[leader_of(p, node)];
    int parent = members[(start + rel) % count];
    int reach = reach_of(rel, count, p->t->shape == CHEMPI_HIER_CHAIN);

    for (int d = 1; d < reach && rel + d < count; d *= 2) {
        put(p, members[(start + rel + d) % count], parent);
        plant_members(p, node, rel + d);
    }
    if (rel > 0)
        finish(p, parent);
}

static void plant_node(struct planting *p, int node, int up, int start,
                       int rel);

/* Below the node at rel of a team's ring, which begins at start. */
static void plant_team(struct planting *p, int node, int team, int start,
                       int rel)
{
    const struct chempi_hier_team *t = &p->h->teams[team];
    const int *nodes = p->h->team_nodes + t->first;
    int reach = reach_of(rel, t->count, p->t->shape == CHEMPI_HIER_CHAIN);

    for (int d = 1; d < reach && rel + d < t->count; d *= 2) {
        int child = nodes[(start + rel + d) % t->count];

        put(p, leader_of(p, child), leader_of(p, node));
        plant_node(p, child, team, start, rel + d);
    }
}

static int position(const struct chempi_hier *h, int team, int node)
{
    const int *nodes = h->team_nodes + h->teams[team].first;
    int i = 0;

    while (nodes[i] != node)
        i++;
    return i;
}

/* A node's leader has been put, by an edge of team `up` (-1: none). */
static void plant_node(struct planting *p, int node, int up, int start, int rel)
{
    const struct chempi_hier *h = p->h;
    int leader = leader_of(p, node);

    plant_members(p, node, 0);
    if (leader == h->rank)
        p->t->local_count = p->t->child_count;
    for (int i = h->node_first[node]; i < h->node_first[node + 1]; i++) {
        int team = h->node_teams[i];

        if (team == p->closed)
            continue;
        if (team == up)
            plant_team(p, node, team, start, rel);
        else
            plant_team(p, node, team, position(h, team, node), 0);
    }
    finish(p, leader);
}

static void plant(const struct chempi_hier *h, struct chempi_hier_tree *t,
                  enum chempi_hier_kind kind)
{
    struct planting p = {.h = h, .t = t, .closed = -1};
    const struct chempi_hier_team *top = chempi_hier_top(h);

    t->child_count = 0;
    t->local_count = 0;
    t->leader = leader_of(&p, h->node_of[h->rank]);
    if (kind != CHEMPI_HIER_TOPPED) {
        put(&p, t->root, -1);
        plant_node(&p, h->node_of[t->root], -1, 0, 0);
    } else {
        p.closed = h->team_count - 1;
        for (int i = 0; i < top->count; i++) {
            int node = h->team_nodes[top->first + i];

            put(&p, leader_of(&p, node), -1);
            plant_node(&p, node, -1, 0, 0);
        }
    }
    if (t->leader != h->rank)
        t->local_count = t->child_count;
}

const struct chempi_hier_tree *
chempi_hier_tree(struct chempi_hier *h, enum chempi_hier_kind kind, int root)
{
    struct chempi_hier_tree *t = &h->trees[kind];

    if (t->is_made && (kind == CHEMPI_HIER_TOPPED || t->root == root))
        return t;
    t->is_made = true;
    t->root = kind == CHEMPI_HIER_TOPPED ? -1 : root;
    t->shape =
        kind == CHEMPI_HIER_ROOTED_CHAIN ? CHEMPI_HIER_CHAIN : CHEMPI_HIER_TREE;
    plant(h, t, kind);
    return t;
}
