/* SPDX-License-Identifier: BSD-3-Clause */
/* From the command line and the nodes at hand to the job's description. */
#ifndef CHEMPI_CHEMPID_PLAN_H
#define CHEMPI_CHEMPID_PLAN_H

#include "chempid/job/spec.h"
#include "chempid/options/options.h"
#include "chempid/plan/place.h"

/* A node that may take ranks. */
struct chempi_plan_node {
    const char *name;
    struct chempi_place_node place;
    uint64_t host; /* equal for nodes of one host */
    uint32_t busy; /* ranks of other jobs there, for binding */
};

/* The slots that --nodes, a file of hosts or an allocation name, one on a host
 * of which they name none; 0: they name none at all. */
uint32_t chempi_plan_named_slots(const struct chempi_options *opt);

/*
 * Describe the job: programs, environment, places. Nodes without ranks are
 * left out of it, except those that the job needs as gateways, by the
 * connection tables of --network or else in daemon_tables (may be NULL). The
 * description owns copies. -EINVAL, -ENOSPC, -ENOMEM with
 * words; on failure nothing is left.
 */
int chempi_plan_make(const struct chempi_options *opt,
                     const struct chempi_plan_node *nodes, uint32_t count,
                     const char *daemon_tables, struct chempi_spec *spec,
                     struct chempi_err *err);

#endif
