/* SPDX-License-Identifier: BSD-3-Clause */
/* Where ranks go: nodes with slots and load, and the job's wishes. */
#ifndef CHEMPI_CHEMPID_PLACE_H
#define CHEMPI_CHEMPID_PLACE_H

#include <stdint.h>

#include "chempid/launcher/options.h"
#include "common/base/err.h"

struct chempi_place_node {
    uint32_t slots; /* ranks that it takes well; 0: not known */
    double load;    /* running tasks, for --map load */
};

/*
 * Fill node_of_rank[0..size-1]. With ppn, that many on each node at most;
 * else nodes are filled up to their slots, all of them beyond their slots in
 * equal measure when there are more ranks than slots. Unknown slots: equal
 * shares. -ENOSPC when ppn leaves ranks over.
 */
int chempi_place_ranks(const struct chempi_place_node *nodes, uint32_t count,
                       uint32_t size, uint32_t ppn, enum chempi_map map,
                       uint32_t *node_of_rank, struct chempi_err *err);

#endif
