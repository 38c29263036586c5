/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which nodes can forward at the end of a stage of a way. The search names one
 * class of gateways; every node that receives on the stage's network, sends on
 * the next one's and forwards can stand in for it: at the same cost, and then
 * they share the load, or at a higher one, and then it is an alternate.
 */
#ifndef CHEMPI_MDCONFIG_HOPS_H
#define CHEMPI_MDCONFIG_HOPS_H

#include "mdconfig/routes/route.h"

#define CHEMPI_HOPS_MAX 16u /* gateways named per stage */

struct chempi_hops {
    uint32_t nodes[CHEMPI_HOPS_MAX];
    uint32_t count;
    uint32_t share_count; /* the first so many are equally good */
};

/*
 * The gateways at the end of stage `i` (not the last one of `count`) of a way
 * of nodes of class `source`, cheapest first. When more than CHEMPI_HOPS_MAX
 * are equally good, classes of sources get different ones.
 */
void chempi_hops_find(const struct chempi_graph *graph, uint32_t source,
                      const struct chempi_route_stage *stages, uint32_t count,
                      uint32_t i, struct chempi_hops *out);

/* Is the class as good as the one that the way names at the end of stage
 * `i`? */
bool chempi_hops_is_equal(const struct chempi_graph *graph, uint32_t node_class,
                          const struct chempi_route_stage *stages, uint32_t i);

/* Can class `node_class` stand in at the end of stage `i`? */
bool chempi_hops_fits(const struct chempi_graph *graph, uint32_t node_class,
                      const struct chempi_route_stage *stages, uint32_t i);

/* The first class that is as good as the end of stage `i`: it stands for all of
 * them. */
uint32_t chempi_hops_first(const struct chempi_graph *graph,
                           const struct chempi_route_stage *stages, uint32_t i);

/* Names of all that are equally good, for free(); the names are the
 * description's. */
const char **chempi_hops_list(const struct chempi_graph *graph,
                              const struct chempi_route_stage *stages,
                              uint32_t i, size_t *count);

/* The same in words, "gw[0-1]"; cut to fit. Returns buf. */
const char *chempi_hops_names(const struct chempi_graph *graph,
                              const struct chempi_route_stage *stages,
                              uint32_t i, char *buf, size_t len);

#endif
