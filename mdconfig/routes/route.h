/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fastest ways from one class of nodes to every other, as lower
 * envelopes over message size.
 */
#ifndef CHEMPI_MDCONFIG_ROUTE_H
#define CHEMPI_MDCONFIG_ROUTE_H

#include "common/table/table.h"
#include "mdconfig/routes/graph.h"
#include "mdconfig/routes/search.h"

struct chempi_route_stage {
    uint32_t network;
    uint32_t protocol;  /* of the network */
    uint32_t end_class; /* gateways, or the destination's class */
};

struct chempi_route {
    uint64_t max_len; /* inclusive; the last one is UINT64_MAX */
    uint32_t chunk;   /* longer messages are cut; 0: direct, they are not */
    uint32_t stage_count;
    struct chempi_route_stage *stages;
};

struct chempi_route_list {
    struct chempi_route *routes; /* ascending */
    size_t count;                /* 0: cannot be reached */
};

struct chempi_routes {
    uint32_t source;
    struct chempi_route_list *lists; /* [class_count + 1]; the last one is the
                                        node itself */
    struct chempi_arena arena;
};

/* All ways of nodes of class `source`, by the description's rules. */
void chempi_route_source(const struct chempi_graph *graph, uint32_t source,
                         struct chempi_routes *out);
void chempi_routes_fini(struct chempi_routes *routes);

/* The route for a size, or NULL when the list is empty. */
const struct chempi_route *
chempi_route_for(const struct chempi_route_list *list, uint64_t len);

/* Over the same networks with the same protocols, in whatever chunks? */
bool chempi_route_is_same_way(const struct chempi_route *a,
                              const struct chempi_route *b);

/* What a stage of a way costs. */
struct chempi_table_times
chempi_route_times(const struct chempi_graph *graph,
                   const struct chempi_route_stage *stages, uint32_t i);
/* Modelled time of given stages at a size, in chunks or (0) whole. */
double chempi_route_time(const struct chempi_graph *graph,
                         const struct chempi_route_stage *stages,
                         uint32_t count, uint32_t chunk, uint64_t len);

#endif
