/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All ways of few stages between two classes of nodes, found one by one and
 * apart from the compiler: what explain and plot set beside its choice.
 */
#ifndef CHEMPI_MDCONFIG_WAYS_H
#define CHEMPI_MDCONFIG_WAYS_H

#include "common/words/json.h"
#include "mdconfig/routes/route.h"

#define CHEMPI_WAYS_STAGES_MAX 4u
#define CHEMPI_WAYS_MAX 4096u /* more are not looked for */

struct chempi_way {
    struct chempi_route_stage stages[CHEMPI_WAYS_STAGES_MAX];
    uint32_t count;
    bool is_shut_out; /* by the description's rule for gateways */
};

struct chempi_ways {
    struct chempi_way *list;
    size_t count;
    size_t room;
};

/* Every choice of networks, gateways and protocols; a network is used once, and
 * the first of equally good classes of gateways stands for all of them.
 * With `inside`, ways of a node's messages to itself. */
void chempi_ways_find(const struct chempi_graph *graph, uint32_t source,
                      uint32_t target, bool inside, struct chempi_ways *out);
void chempi_ways_fini(struct chempi_ways *ways);

/* Time of a way for a size; infinite when a protocol does not take it. */
double chempi_ways_time(const struct chempi_graph *graph,
                        const struct chempi_way *way, uint64_t len);

const struct chempi_desc_protocol *
chempi_ways_protocol(const struct chempi_graph *graph,
                     const struct chempi_route_stage *stage);

/* "tcp eager on sci to gate[0,1], then tcp eager on lan"; cut to fit. Returns
 * buf. */
const char *chempi_ways_name(const struct chempi_graph *graph,
                             const struct chempi_route_stage *stages,
                             uint32_t count, char *buf, size_t len);

/* The same as a list of stages. */
void chempi_ways_json(struct chempi_json *j, const char *name,
                      const struct chempi_graph *graph,
                      const struct chempi_route_stage *stages, uint32_t count);

#endif
