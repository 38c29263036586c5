/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One Dijkstra search over the graph, from one class of nodes, under one
 * condition that turns the size-dependent costs into numbers:
 *
 *   at a size S <= C (the chunk): a stage costs lat + fwd + S/b
 *   above C, with a threshold T: only protocols of bandwidth b >= T take
 *   part, a stage costs lat + fwd + C/b, and the rest of the message flows
 *   at the speed of the slowest stage: (S - C)/b_min
 *
 * Every threshold that can be a b_min is searched once; the least of the
 * results is the least over all ways, since a way whose slowest stage is
 * faster than T is only overrated at T and rated exactly at its own b_min.
 * A protocol takes part if its limits admit the whole message.
 */
#ifndef CHEMPI_MDCONFIG_SEARCH_H
#define CHEMPI_MDCONFIG_SEARCH_H

#include "mdconfig/graph.h"

#define CHEMPI_SEARCH_NONE UINT32_MAX

struct chempi_search_condition {
    uint64_t len;     /* message size at which limits are asked, bytes */
    double weigh_len; /* bytes that a stage is charged: S, or C above C */
    double threshold; /* bytes per us; 0 up to C */
};

/* What is known of a vertex: networks first, then classes. */
struct chempi_search_label {
    double key;    /* what Dijkstra's algorithm compares, us */
    double base;   /* sum of latencies and forwarding, us */
    double slope;  /* sum of 1/b, us per byte (up to C) */
    double bw_min; /* of the slowest stage, bytes per us */
    uint32_t from; /* vertex before, or NONE */
    uint16_t stages;
    uint16_t protocol; /* of a network: the one that the way uses */
};

struct chempi_search {
    struct chempi_search_condition condition;
    struct chempi_search_label *labels; /* [networks + classes] */
};

/* Search; labels and scratch memory come from the arena. */
void chempi_search_run(const struct chempi_graph *graph, uint32_t source,
                       const struct chempi_search_condition *condition,
                       struct chempi_arena *arena, struct chempi_search *out);

/* The label of a class; its key is infinite when it cannot be reached. */
const struct chempi_search_label *
chempi_search_of(const struct chempi_graph *graph,
                 const struct chempi_search *search, uint32_t node_class);

#endif
