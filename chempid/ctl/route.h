/* SPDX-License-Identifier: BSD-3-Clause */
/* chempictl route: the way of a message, as the jobs of the cluster have it. */
#ifndef CHEMPI_CHEMPID_ROUTE_H
#define CHEMPI_CHEMPID_ROUTE_H

#include <stdbool.h>
#include <stdio.h>

#include "chempid/tree/nodes/status.h"
#include "common/base/err.h"

/*
 * Print which way a message of this size ("64KiB", "100", "4M") takes from one
 * node to another, by the connection tables that the daemons in the list have:
 * once as the tables say, and for each running job: what is left of them where
 * it has lost or drained gateways, or that nothing has changed, if it has ranks
 * on both nodes. is_json: as one object. Reads files. -EINVAL, -ENOENT,
 * -EHOSTUNREACH with words.
 */
int chempi_route_show(FILE *file, bool is_json,
                      const struct chempi_status *list, uint32_t count,
                      const char *from, const char *to, const char *size,
                      struct chempi_err *err);

#endif
