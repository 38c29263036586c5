/* SPDX-License-Identifier: BSD-3-Clause */
/* Which nodes a job needs as gateways. */
#ifndef CHEMPI_CHEMPID_GATEWAYS_H
#define CHEMPI_CHEMPID_GATEWAYS_H

#include "chempid/job/spec.h"

/*
 * Add to the description every node that the tables in `dir` name as a gateway
 * between nodes of the job, also as an alternate; nodes without ranks become
 * part of the job. Without a table file for a node (each node may have only
 * its own) all gateways on the networks of the job's nodes are taken if some
 * pair has no network in common. Reads files. 0, -ENOMEM, or -EINVAL with
 * words when a table is damaged.
 */
int chempi_gateways_plan(struct chempi_spec *spec, const char *dir,
                         struct chempi_err *err);

#endif
