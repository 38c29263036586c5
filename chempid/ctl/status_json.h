/* SPDX-License-Identifier: BSD-3-Clause */
/* What chempictl --json prints of nodes and jobs. */
#ifndef CHEMPI_CHEMPID_STATUS_JSON_H
#define CHEMPI_CHEMPID_STATUS_JSON_H

#include <stdint.h>
#include <stdio.h>

#include "chempid/tree/nodes/status.h"
#include "common/words/json.h"

/* A list with an object for each node: "node", and "error" or what `put` adds.
 * Returns the exit status: 1 where some node has an error. */
int chempi_status_json(FILE *to, const struct chempi_status *list,
                       uint32_t count,
                       void (*put)(struct chempi_json *j,
                                   const struct chempi_status *s));
/* For it: slots, ranks, load and the daemon. */
void chempi_status_json_node(struct chempi_json *j,
                             const struct chempi_status *s);

/* An object with its node and its state. */
void chempi_status_json_gateway(struct chempi_json *j,
                                const struct chempi_status_gateway *gateway);

/* A list with an object for each job, with its nodes and gateways. */
void chempi_status_json_jobs(FILE *to, const struct chempi_status *list,
                             uint32_t count);

#endif
