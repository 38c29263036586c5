/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What goes which way, counted by ranks and by gateways for chempirun
 * --trace-routes; nobody counts unless it was asked for.
 *
 * A way is known by the nodes that it joins, the class of the messages (of
 * the sender's table, frame.h), and the gateways on it. Each of its hops is
 * counted by the process where it begins. Frames of the same way that take
 * different networks towards the same neighbour are told apart.
 *
 *   -   a way's number, from 1, stays the same and valid until fini
 *   T2  there are at most CHEMPI_ROUTE_STATS_MAX ways: what has no room, or no
 *       memory, is not counted, and the report says so
 *
 * Under the lane lock (or in a process with one thread).
 */
#ifndef CHEMPI_LIBCHEMPI_NEIGHBORS_ROUTE_STATS_H
#define CHEMPI_LIBCHEMPI_NEIGHBORS_ROUTE_STATS_H

#include <stdbool.h>

#include "common/containers/index.h"
#include "common/control/wire.h"
#include "libchempi/neighbors/neighbors.h"

#define CHEMPI_ROUTE_STATS_MAX (1u << 16)

struct chempi_route_stats_key {
    uint32_t from;                                   /* node of the job */
    uint32_t to;                                     /* node of the job */
    uint8_t class;                                   /* of messages */
    uint8_t at;                                      /* hops before this one */
    uint16_t gateway_count;                          /* on the way */
    uint32_t gateways[CHEMPI_NEIGHBOR_GATEWAYS_MAX]; /* processes; 0 behind the
                                                        last */
};

/* What has passed by one network towards the next process. */
struct chempi_route_stats_hop {
    uint64_t frames;
    uint64_t bytes; /* with headers */
    uint64_t waits; /* frames that the device had no room for at first */
};

struct chempi_route_stats_way {
    struct chempi_route_stats_key key;
    uint32_t peer; /* some process at the end of this hop */
    struct chempi_route_stats_hop hops[CHEMPI_NEIGHBOR_WAYS_MAX];

    /* Of the sender only. */
    uint64_t max_len; /* of the class, bytes, inclusive */
    const char *network;
    const char *protocol; /* NULL: this is not the sender */
    uint64_t messages;    /* that were begun on this way */
    uint64_t bytes;       /* of messages, sent this way first */
    uint64_t waits;       /* messages and pieces that found no room */
    uint64_t moved;       /* messages begun here and finished elsewhere */
    uint64_t resent;      /* frames that come from a way that was lost */
};

struct chempi_route_stats {
    bool is_on;
    bool is_short; /* T2 */
    uint32_t count;
    uint32_t room;
    struct chempi_route_stats_way **at;
    struct chempi_index index; /* by key */
};

/* The number of a way, which is made if need be (its `peer` then is as said);
 * 0: not counted. */
uint32_t chempi_route_stats_find(struct chempi_route_stats *tally,
                                 const struct chempi_route_stats_key *key,
                                 uint32_t peer);
/* By number; NULL for 0. */
struct chempi_route_stats_way *
chempi_route_stats_way(const struct chempi_route_stats *tally, uint32_t number);
/* For chempi_neighbors_ops.left(). */
void chempi_route_stats_left(const struct chempi_route_stats *tally,
                             const struct chempi_neighbor_buf *buf);

/* Append what was counted since the last report (chempid/stats/trace.h), and
 * begin anew. */
void chempi_route_stats_report(struct chempi_route_stats *tally,
                               const struct chempi_neighbors *neighbors,
                               struct chempi_writer *out);
void chempi_route_stats_fini(struct chempi_route_stats *tally);

#endif
