/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where processes are: networks that join nodes, as the connection table has
 * them, and the hardware of this node that the process is bound to.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_LOCALITY_LOCALITY_H
#define CHEMPI_LIBCHEMPI_DIDL_LOCALITY_LOCALITY_H

#include <stdbool.h>
#include <stdint.h>

#define CHEMPI_LOCALITY_NONE UINT32_MAX

/* Networks are numbered alike in all processes. Networks inside a node do not
 * count. */

/* The network of this name, or CHEMPI_LOCALITY_NONE. */
uint32_t chempi_locality_find_network(const char *name);
const char *chempi_locality_network_name(uint32_t network);

uint32_t
chempi_locality_network_total(void); /* networks, also those inside nodes */
/* Does it join nodes, rather than lie inside one? */
bool chempi_locality_joins_nodes(uint32_t network);

/* Modelled times of a message of len bytes that goes from this node by each of
 * `count` networks alone, to wherever that is cheapest, in nanoseconds. */
#define CHEMPI_LOCALITY_COST_UNKNOWN INT64_MAX
void chempi_locality_network_costs_ns(uint64_t len, uint32_t count,
                                      uint64_t *costs);

/* The same to another node of the job, by whatever way the table has. */
int64_t chempi_locality_cost_ns(uint32_t node, uint64_t len);

/* Is this node of the job attached to the network? */
bool chempi_locality_is_attached(uint32_t node, uint32_t network);

/* The network of the i-th attachment of a node of the job;
 * CHEMPI_LOCALITY_NONE: one inside the node. False: it has no more. */
bool chempi_locality_attachment(uint32_t node, uint32_t i, uint32_t *network);

/* The different networks of this process's node: how many, and the n-th. */
uint32_t chempi_locality_network_count(void);
uint32_t chempi_locality_network_at(uint32_t n);

/* The network that carries a long message from this node to another one at the
 * lowest cost, in one stage; CHEMPI_LOCALITY_NONE when there is none. */
uint32_t chempi_locality_fastest_network(void);

/* ---- hardware ---- */

enum { CHEMPI_LOCALITY_LEVELS = 8, CHEMPI_LOCALITY_ALL = -1 };

/* A kind of resource, from coarse to fine. */
struct chempi_locality_level {
    const char *name; /* "Package", as hwloc calls it; static */
    uint32_t count;   /* resources of the kind on this node */
    int32_t instance; /* the one that this process is bound to, or
                         CHEMPI_LOCALITY_ALL: to none, or to several */
};

/*
 * Fills in all levels; count is 0 where the node has no such resource, or
 * hwloc is not installed. The first call loads hwloc and has it look at the
 * machine, which takes some milliseconds. Threads: any.
 */
void chempi_locality_hardware(struct chempi_locality_level *levels);

/* Give back what the first question took (at the end of the process). */
void chempi_locality_forget_hardware(void);

#endif
