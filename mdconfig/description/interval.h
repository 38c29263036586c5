/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Intervals of message sizes in which every protocol either takes part or does
 * not: they end where a protocol's limits begin or end, and at the chunk size,
 * beyond which messages stream. For each of them, the protocols of every
 * network that can be of use.
 */
#ifndef CHEMPI_MDCONFIG_INTERVAL_H
#define CHEMPI_MDCONFIG_INTERVAL_H

#include "mdconfig/description/desc.h"
#include "mdconfig/description/pareto.h"

/* What crossing a network costs with one of its protocols. */
struct chempi_interval_crossing {
    struct chempi_pareto_point point;
    uint32_t protocol;
};

/* An interval of sizes and the crossings of every network in it; the same
 * for all sources. */
struct chempi_interval {
    uint64_t from; /* bytes, inclusive */
    uint64_t to;
    bool streams; /* above the chunk */
    struct chempi_interval_crossing *crossings;
    uint32_t *first; /* [network_count + 1] into crossings */
};

/* Intervals times protocols of a description, at most; some 500 MiB. */
#define CHEMPI_INTERVAL_CROSSINGS_MAX 20000000u

struct chempi_intervals {
    struct chempi_interval *list;
    size_t count;
    struct chempi_arena arena;
};

/* Is the description within the limit above? Others must not be initialised
 * from. */
bool chempi_intervals_fit(const struct chempi_desc *desc);
void chempi_intervals_init(struct chempi_intervals *intervals,
                           const struct chempi_desc *desc);
void chempi_intervals_fini(struct chempi_intervals *intervals);

#endif
