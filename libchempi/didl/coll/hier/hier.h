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

#include "libchempi/didl/coll/hier/hier_lists.h"

/* A node of a communicator is a number 0..node_count-1, by its first rank. */

/* In which order a team hands things on. */
enum chempi_hier_shape {
    CHEMPI_HIER_TREE, /* binomial: few steps */
    CHEMPI_HIER_CHAIN /* one after the other: everyone sends once */
};

/*
 * One rank's view of a way from a root to all others. It stands for an order
 * of all ranks in which every subtree has no gap; the members of a node follow
 * its leader, by turns from there on.
 */
struct chempi_hier_tree {
    int root;       /* rank; -1: of TOPPED */
    int root_node;  /* -1: of TOPPED */
    int root_index; /* among the members of its node */
    bool is_made;
    bool is_ordered; /* the order of the tree is that of ranks */
    enum chempi_hier_shape shape;
    int parent;       /* rank, -1: none */
    int leader;       /* the rank that speaks for this rank's node */
    int leader_index; /* among the members of the node */
    int child_count;
    int local_count; /* so many of the children, the first, are on this node */
    int at;          /* of this rank in order */
    int end;         /* where the ranks below it end in order */
    int *children;   /* [child_count] ranks; then fast teams before slow ones */
    int *begin;      /* [child_count + 1] their subtrees in order */
};

enum chempi_hier_kind {
    CHEMPI_HIER_ROOTED, /* from one rank */
    CHEMPI_HIER_ROOTED_CHAIN,
    CHEMPI_HIER_TOPPED, /* from the nodes of the top team, side by side; order
                           has what belongs to the first of them first */
    CHEMPI_HIER_KIND_COUNT
};

enum { CHEMPI_HIER_RECORD = 48 }; /* bytes; hier_vblocks.c */

struct chempi_hier {
    int size;
    int rank;
    int node_count;    /* at least 2 */
    int team_count;    /* at least 1 */
    bool is_in_blocks; /* the ranks of each node follow each other */
    int node;          /* of this rank */
    int index;         /* of this rank among the members of its node */
    int top;           /* of this rank's node in the top team, or -1 */
    struct chempi_lists members;    /* of each node: ranks, ascending */
    struct chempi_lists team_nodes; /* of each team: nodes, ascending */
    struct chempi_lists node_teams; /* of each node: teams, ascending */
    /* For whoever builds a schedule, who needs no memory of its own then. */
    int64_t *sums;   /* [size + 1] at rank 0 and the first members of the nodes
                        of the top team, else NULL */
    int64_t *counts; /* of the top team if this rank's node is in it, or of
                        this rank's node; twice */
    void *records;   /* CHEMPI_HIER_RECORD bytes for each member of this rank's
                        node, at the first one, else NULL */
    struct chempi_hier_tree trees[CHEMPI_HIER_KIND_COUNT];
};

/* What a hierarchy follows from. */
struct chempi_hier_plan {
    int size;
    int rank;
    /* A number below node_limit. */
    uint32_t (*node_of)(const void *arg, int rank);
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

/* Where a walk along a tree stops. */
struct chempi_hier_stop {
    int node;
    int parent; /* the node above, or -1 */
    int depth;  /* nodes above */
    int leader; /* index among the node's members */
    int at;     /* of the leader in order */
};

typedef void chempi_hier_visit_fn(void *arg,
                                  const struct chempi_hier_stop *stop);

/* Visit all nodes in the order of a tree. */
void chempi_hier_walk(const struct chempi_hier *h,
                      const struct chempi_hier_tree *t,
                      chempi_hier_visit_fn *visit, void *arg);

static inline int chempi_hier_node_size(const struct chempi_hier *h, int node)
{
    return chempi_lists_len(&h->members, node);
}

/* The rank of a node's i-th member. */
static inline int chempi_hier_member(const struct chempi_hier *h, int node,
                                     int i)
{
    return chempi_lists_get(&h->members, node, i);
}

/* A node's member at stop->at + i in order. */
static inline int chempi_hier_member_at(const struct chempi_hier *h,
                                        const struct chempi_hier_stop *stop,
                                        int i)
{
    return chempi_hier_member(h, stop->node,
                              (stop->leader + i) %
                                  chempi_hier_node_size(h, stop->node));
}

static inline int chempi_hier_top_count(const struct chempi_hier *h)
{
    return chempi_lists_len(&h->team_nodes, h->team_count - 1);
}

/* Teams of ranks, by their numbers in them: this rank's node, the first
 * members of the nodes of the top team, the last members of all nodes. */
typedef int chempi_hier_team_fn(const void *hier, int i);

chempi_hier_team_fn chempi_hier_local_rank;
chempi_hier_team_fn chempi_hier_top_rank;
chempi_hier_team_fn chempi_hier_last_rank;

/* Does it differ from a flat list of processes on one network? */
static inline bool chempi_hier_is_deep(const struct chempi_hier *h)
{
    return h->node_count < h->size || h->team_count > 1;
}

#endif
