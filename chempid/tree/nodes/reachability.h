/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which pairs of a set of nodes have no way to each other, by the connection
 * tables and by the rules of libchempi/didl/transport/routed/way.c, when some
 * gateways cannot be used; told in groups of nodes, with what would help.
 */
#ifndef CHEMPI_CHEMPID_REACHABILITY_H
#define CHEMPI_CHEMPID_REACHABILITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chempid/tree/pool.h"
#include "common/base/err.h"
#include "common/table/table.h"

#define CHEMPI_REACHABILITY_NODES_MAX                                          \
    2048u                                 /* nodes beyond are not looked at    \
                                           */
#define CHEMPI_REACHABILITY_HINT_MAX 256u /* bytes */

struct chempi_reachability_question {
    const char *const *nodes; /* that shall reach each other */
    uint32_t node_count;
    const char *const *dirs; /* of tables; the first that has one counts */
    uint32_t dir_count;
    /* May the gateway on this node be used? NULL: all may. */
    chempi_table_usable_fn *is_usable;
    /* Pairs that have no way with these either do not count; NULL: all do. */
    chempi_table_usable_fn *was_usable;
    void *arg;
};

/* Each of `from` is cut off from each of `to`, in the order of the question. */
struct chempi_reachability_group {
    const char **from;
    const char **to;
    uint32_t from_count;
    uint32_t to_count;
    bool is_one_way; /* the way back exists */
};

struct chempi_reachability {
    struct chempi_pool pool; /* owns the groups; the names are the asker's */
    struct chempi_reachability_group *groups;
    uint32_t group_count;
    uint64_t pairs;   /* of nodes, each counted once */
    uint32_t unknown; /* nodes that were not looked at, or have no table here */
    char hint[CHEMPI_REACHABILITY_HINT_MAX]; /* what would join them, a clause,
                                                or "" */
};

/* 0 or -ENOMEM; blocks as the file system does. */
int chempi_reachability_find(const struct chempi_reachability_question *q,
                             struct chempi_reachability *out);
void chempi_reachability_fini(struct chempi_reachability *cuts);

/* "a[0-3] and m[0-7]" for one group. */
void chempi_reachability_put_group(
    const struct chempi_reachability_group *group, char *buf, size_t len);
/* All groups as far as they fit, and how many pairs there are; "" for none. */
void chempi_reachability_put(const struct chempi_reachability *cuts, char *buf,
                             size_t len);

#endif
