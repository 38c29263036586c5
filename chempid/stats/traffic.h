/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Traffic counters that ranks hand in at the end, as lines of text:
 *   traffic FROM TO NETWORK DEVICE PROTOCOL MESSAGES BYTES
 * FROM and TO are node indices, NETWORK is "-" without a description. Lines
 * that are not of this form are dropped: statistics are worth no failure.
 */
#ifndef CHEMPI_CHEMPID_TRAFFIC_H
#define CHEMPI_CHEMPID_TRAFFIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "chempid/stats/lines.h"
#include "common/control/client.h"

struct chempi_traffic_line {
    uint64_t from;
    uint64_t to;
    char names[3][CHEMPI_NODE_NAME_MAX]; /* network, device, protocol */
    uint64_t messages;                   /* and bytes, the line's amounts */
    uint64_t bytes;
};

extern const struct chempi_lines_kind chempi_traffic_kind;

/* Print merged lines as a table with the nodes' names; lines of nodes that are
 * `lacking` figures (NULL: none is) get a star. */
void chempi_traffic_print(FILE *file, const void *text, size_t len,
                          char *const *node_names, uint32_t node_count,
                          const bool *lacking);

#endif
