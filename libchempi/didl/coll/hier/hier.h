/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The hierarchy of a communicator whose members are on several nodes, and the
 * trees that lead through it. Pure data: nothing here communicates.
 *
 * The members of a node form its lowest level. Above it stand teams: nodes
 * that reach each other by one network. A team joins parts of the cluster that
 * nothing faster joins, with one node of each part.
 *
 *   H1  the teams join all nodes without a circle: between two nodes there is
 *       exactly one way, and each of its steps stays within a team
 *   H2  teams stand in the order of their networks, the fast ones first; the
 *       last one is the top, all others hang on its nodes
 *   -   all members have the same hierarchy: it follows from what they agreed
 *       on, by integers only
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_COLL_HIER_HIER_H
#define CHEMPI_LIBCHEMPI_DIDL_COLL_HIER_HIER_H

#include <stdbool.h>
#include <stdint.h>

/* A node of a communicator is a number 0..node_count-1, by its first rank. */

struct chempi_hier_team {
    int first; /* in team_nodes */
    int count; /* nodes, at least 2 */
};

/* In which order a team hands things on. */
enum chempi_hier_shape {
    CHEMPI_HIER_TREE, /* binomial: few steps */
    CHEMPI_HIER_CHAIN /* one after the other: everyone sends once */
};

/* One rank's view of a way from a root to all others. */
struct chempi_hier_tree {
    int root; /* rank; -1: of TOPPED */
    bool is_made;
    enum chempi_hier_shape shape;
    int parent; /* rank, -1: none */
    int leader; /* the rank that speaks for this rank's node */
    int child_count;
    int local_count; /* so many of the children, the first, are on this node */
    int at;          /* of this rank in order */
    int end;         /* where the ranks below it end in order */
    int *children;   /* [child_count] ranks; then fast teams before slow ones */
    int *begin;      /* [child_count + 1] their subtrees in order */
    int *order;      /* [size] all ranks, every subtree without a gap; a node's
                        members follow its leader */
    int *place;      /* [size] of a rank in order */
};

enum chempi_hier_kind {
    CHEMPI_HIER_ROOTED, /* from one rank */
    CHEMPI_HIER_ROOTED_CHAIN,
    CHEMPI_HIER_TOPPED, /* from the nodes of the top team, side by side; order
                           has what belongs to the first of them first */
    CHEMPI_HIER_KIND_COUNT
};

struct chempi_hier {
    int size;
    int rank;
    int node_count;    /* at least 2 */
    int team_count;    /* at least 1 */
    bool is_in_blocks; /* the ranks of each node follow each other; then rank
                          r stands at members[r] */
    int *node_of;      /* [size] */
    int *first;        /* [node_count + 1] in members */
    int *members;      /* [size] ranks by node, ascending */
    int *index;        /* [size] of a rank among the members of its node */
    struct chempi_hier_team *teams;
    int *team_nodes;
    int *node_first; /* [node_count + 1] in node_teams */
    int *node_teams; /* the teams of each node, ascending */
    int *top_ranks;  /* [nodes of the top team] first members */
    int *last_ranks; /* [node_count] last members */
    /* For whoever builds a schedule, who needs no memory of its own then. */
    int64_t *sums;   /* [size + 1] */
    int64_t *counts; /* [of the top team, or of this rank's node; twice] */
    struct chempi_hier_tree trees[CHEMPI_HIER_KIND_COUNT];
};

/* What a hierarchy follows from. */
struct chempi_hier_plan {
    int size;
    int rank;
    const uint32_t *node_of; /* [size] numbers below node_limit */
    uint32_t node_limit;
    int network_count;
    const uint64_t *costs; /* [network_count] of a message; UINT64_MAX: not
                              known, but it may serve */
    /* The network of a node's i-th attachment, the node by its number in
     * node_of; -1: one that does not count. False: it has no more. */
    bool (*attachment)(const void *arg, uint32_t node, uint32_t i,
                       int *network);
    const void *arg;
    int similar_percent; /* networks that cost at most so much more than the
                            cheapest one left are taken for as fast */
};

/* NULL when there is no memory, or when all members are on one node. */
struct chempi_hier *chempi_hier_create(const struct chempi_hier_plan *plan);
void chempi_hier_destroy(struct chempi_hier *h);

/* NULL, or which of H1 and H2 does not hold (invariant.h). */
const char *chempi_hier_check(const struct chempi_hier *h);

/* The tree of a kind from root (TOPPED: ignored), valid until the next call
 * for that kind. It needs no memory: a member that had none for its tree would
 * not know who waits for it. */
const struct chempi_hier_tree *
chempi_hier_tree(struct chempi_hier *h, enum chempi_hier_kind kind, int root);

static inline int chempi_hier_node_size(const struct chempi_hier *h, int node)
{
    return h->first[node + 1] - h->first[node];
}

static inline const int *chempi_hier_node_members(const struct chempi_hier *h,
                                                  int node)
{
    return h->members + h->first[node];
}

static inline const struct chempi_hier_team *
chempi_hier_top(const struct chempi_hier *h)
{
    return &h->teams[h->team_count - 1];
}

/* Does it differ from a flat list of processes on one network? */
static inline bool chempi_hier_is_deep(const struct chempi_hier *h)
{
    return h->node_count < h->size || h->team_count > 1;
}

#endif
