/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The search for ways through the graph, for an interval of message sizes in
 * which every protocol either takes part or does not, and for messages that
 * travel whole or in chunks of one size (interval.h).
 *
 * The time of a message that travels whole is a straight line over size, the
 * sum of its stages' lines; so two numbers tell everything: the times at both
 * ends of the interval, and they add up along the way. A way is of use only if
 * it is on the lower envelope, which is the lower left hull of these pairs.
 *
 * Cut into chunks of C, it is the sum of what every stage takes for the first
 * chunk, plus (size / C - 1) times what the slowest stage is busy with one.
 * Again two numbers tell everything: the sum, and the longest of these times.
 * A way is of use only if no other one has both smaller: so all thresholds of
 * slowness are searched at once.
 *
 * In both cases a useless beginning of a way stays useless however the way
 * goes on. So every vertex keeps a front of labels instead of Dijkstra's one,
 * and the search goes on stage by stage until no front changes.
 */
#ifndef CHEMPI_MDCONFIG_SEARCH_H
#define CHEMPI_MDCONFIG_SEARCH_H

#include "mdconfig/routes/graph.h"

#define CHEMPI_SEARCH_NONE UINT32_MAX

/* A way from the source to the classes behind a network. */
struct chempi_search_label {
    struct chempi_pareto_point point; /* first, so that a point is a label */
    const struct chempi_search_label *before; /* NULL: the first stage */
    uint32_t from_class;
    uint32_t network;
    uint32_t protocol;
    uint32_t stages;
};

struct chempi_search {
    const struct chempi_graph *graph;
    struct chempi_pareto *classes;  /* [class_count] */
    struct chempi_pareto *networks; /* [network_count] */
    unsigned char *class_changed;
    unsigned char *network_changed;
};

void chempi_search_init(struct chempi_search *search,
                        const struct chempi_graph *graph);
void chempi_search_fini(struct chempi_search *search);

/* Search from a class; the labels come from the arena. Afterwards
 * search->classes holds the labels of every class until the next run. */
void chempi_search_run(struct chempi_search *search, uint32_t source,
                       const struct chempi_interval *interval,
                       struct chempi_arena *arena);

/* Label i of a class. */
const struct chempi_search_label *
chempi_search_label_of(const struct chempi_search *search, uint32_t node_class,
                       size_t i);

#endif
