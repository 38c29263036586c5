/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Intervals of message sizes in which every protocol either takes part or does
 * not: they end where a protocol's limits begin or end, and at the
 * description's chunk, up to which messages can travel whole. Through gateways
 * they can also be cut into chunks; then the same interval stands once more in
 * the list for each size of chunks. For each of them, the protocols of every
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

/* Chunks are powers of two from this size on, and the description's, which is
 * the largest. */
#define CHEMPI_INTERVAL_CHUNK_MIN 1024u
/* Shorter messages are cut only where they must be: bytes. */
#define CHEMPI_INTERVAL_CUT_MIN 2048u

/* An interval of sizes and the crossings of every network in it; the same
 * for all sources. */
struct chempi_interval {
    uint64_t from; /* bytes, inclusive */
    uint64_t to;
    uint32_t chunk; /* messages travel in chunks of so many bytes; of one that
                       travels whole, the description's */
    bool streams;   /* they are cut: from > chunk */
    struct chempi_interval_crossing *crossings;
    uint32_t *first; /* [network_count + 1] into crossings */
};

/* Where intervals above CUT_MIN times classes of nodes are more than this, cut
 * messages are searched for with the description's chunk only; the ways that
 * are found get the chunks that are best for them. */
#define CHEMPI_INTERVAL_CUTS_MAX 512u

/* Intervals times protocols of a description, at most; some 500 MiB. */
#define CHEMPI_INTERVAL_CROSSINGS_MAX 20000000u

struct chempi_intervals {
    struct chempi_interval *list;
    size_t count;
    bool is_coarse; /* CUTS_MAX */
    struct chempi_arena arena;
};

/* Is the description within the limit above? Others must not be initialised
 * from. */
bool chempi_intervals_fit(const struct chempi_desc *desc);
/* The next larger size of chunks, or 0; 0 asks for the smallest. */
uint32_t chempi_interval_next_chunk(const struct chempi_desc *desc,
                                    uint32_t chunk);
/* The shortest message that may be cut into these chunks, bytes. */
uint64_t chempi_interval_least_cut(const struct chempi_desc *desc,
                                   uint32_t chunk);
void chempi_intervals_init(struct chempi_intervals *intervals,
                           const struct chempi_desc *desc);
void chempi_intervals_fini(struct chempi_intervals *intervals);

#endif
