/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which way messages went, as lines of ranks and gateways (chempirun
 * --trace-routes):
 *   route FROM TO CLASS SIZE NETWORK DEVICE PROTOCOL VIA MESSAGES BYTES WAITS
 *         MOVED RESENT
 *   hop FROM TO CLASS VIA AT NETWORK DEVICE FRAMES BYTES WAITS
 * FROM and TO are node indices; SIZE is the largest message of the class in
 * bytes; VIA is "-", or the nodes of gateways with commas between them. CLASS
 * is a number of the sender's node, by which the hops of a route are found:
 * CHEMPI_STATS_CLASS_DIRECT where it has no gateways and no other hop than
 * itself, 0 for frames that are no message's. AT counts the hops before this
 * one.
 *
 * MESSAGES were begun on this way, BYTES of messages were sent by it first,
 * WAITS says how often a message or a piece had to wait for room, MOVED how
 * many of the messages were finished on another way, RESENT how many frames
 * were sent again here because another way was lost. Lines that are not of
 * this form are dropped.
 */
#ifndef CHEMPI_CHEMPID_TRACE_H
#define CHEMPI_CHEMPID_TRACE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "chempid/stats/lines.h"
#include "common/control/client.h"

#define CHEMPI_TRACE_VIA_MAX 192 /* bytes with the zero */

struct chempi_trace_route {
    uint64_t from;
    uint64_t to;
    uint64_t class;
    uint64_t size;
    char names[3][CHEMPI_NODE_NAME_MAX]; /* network, device, protocol */
    char via[CHEMPI_TRACE_VIA_MAX];
    uint64_t counts[5]; /* messages, bytes, waits, moved, resent */
};

struct chempi_trace_hop {
    uint64_t from;
    uint64_t to;
    uint64_t class;
    char via[CHEMPI_TRACE_VIA_MAX];
    uint64_t at;
    char names[2][CHEMPI_NODE_NAME_MAX]; /* network, device */
    uint64_t counts[3];                  /* frames, bytes, waits */
};

extern const struct chempi_lines_kind chempi_trace_routes;
extern const struct chempi_lines_kind chempi_trace_hops;

/* Print merged lines as a table with the nodes' names: each route, and
 * indented below it its hops. Those that begin at a gateway without a line
 *   gateway NODE
 * have no figures; what nodes have sent that are `lacking` some (NULL: none is)
 * gets a star. */
void chempi_trace_print(FILE *file, const void *text, size_t len,
                        char *const *node_names, uint32_t node_count,
                        const bool *lacking);

#endif
