/* SPDX-License-Identifier: BSD-3-Clause */
/* What chempirun --stats prints of traffic (traffic.h): in short for
 * people, and as JSON. The long form is chempi_traffic_print(). */
#ifndef CHEMPI_CHEMPID_TRAFFIC_PRINT_H
#define CHEMPI_CHEMPID_TRAFFIC_PRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/words/json.h"

/* At most 25 lines: the sum, what each network, device and protocol carried,
 * and messages from node to node; for more than CHEMPI_TRAFFIC_SQUARE nodes the
 * pairs that sent most. The same arguments as chempi_traffic_print(). */
#define CHEMPI_TRAFFIC_SQUARE 8u
void chempi_traffic_summary(FILE *file, const void *text, size_t len,
                            char *const *node_names, uint32_t node_count,
                            const bool *lacking);

/* Members "messages", "bytes" and "traffic", a list, of an open object. */
void chempi_traffic_json(struct chempi_json *j, const void *text, size_t len,
                         char *const *node_names, uint32_t node_count,
                         const bool *lacking);

/* A member "routes" of an open object, as --trace-routes prints them. */
void chempi_routes_json(struct chempi_json *j, const void *text, size_t len,
                        char *const *node_names, uint32_t node_count,
                        const bool *lacking);

#endif
