/* SPDX-License-Identifier: BSD-3-Clause */
/* Where ranks go: nodes with slots and load, and the job's wishes. */
#ifndef CHEMPI_CHEMPID_PLACE_H
#define CHEMPI_CHEMPID_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "chempid/options/options.h"
#include "common/base/err.h"

struct chempi_place_node {
    uint32_t slots; /* ranks that it takes well; 0: not known */
    double load;    /* running tasks, for --map load */
    uint32_t busy;  /* of the slots, held by other jobs */
    bool is_shared; /* they are those of all jobs: what is free now may not be
                       when this one comes */
};

/*
 * Fill node_of_rank[0..size-1]. With ppn, that many on each node at most, and
 * no more than are free where others have room. Else the free slots are filled,
 * and all nodes beyond them in equal measure when there are more ranks than
 * that. Unknown slots: equal shares. -ENOSPC when ppn leaves ranks over.
 */
int chempi_place_ranks(const struct chempi_place_node *nodes, uint32_t count,
                       uint32_t size, uint32_t ppn, enum chempi_map map,
                       uint32_t *node_of_rank, struct chempi_err *err);

/* -EDQUOT with words that say what is free, when the free slots are fewer than
 * the ranks. Unknown slots are enough. */
int chempi_place_check(const struct chempi_place_node *nodes,
                       const char *const *names, uint32_t count, uint32_t size,
                       uint32_t ppn, struct chempi_err *err);

#endif
