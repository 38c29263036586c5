/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the ranks of one job on one node share: the region with its header and
 * wake lines, an event descriptor for each rank, the sealed connection table.
 * Made by their supervisor and inherited by them; under other launchers by
 * the first rank of the node, which hands it to the others.
 *
 *   S1  the pages of header and wake lines are reserved, so that touching
 *       them never faults for want of memory
 *   S2  the region can grow but not shrink (sealed), so that no rank can take
 *       pages from under the others
 *   S3  the table's contents are validated before and sealed after the copy
 */
#ifndef CHEMPI_COMMON_CONTROL_SHARE_H
#define CHEMPI_COMMON_CONTROL_SHARE_H

#include <stdint.h>

#include "common/base/err.h"
#include "common/base/wake.h"

/* The nodes of a job, for their table; nothing is copied. */
struct chempi_share_nodes {
    const char *const *names; /* [count] */
    uint32_t count;
    uint32_t self;
    const char *tables; /* directory of compiled tables, or NULL */
};

struct chempi_share {
    uint32_t local_size;
    int region_fd;
    void *map; /* the reserved part */
    uint64_t map_len;
    int *wake_fds; /* [local_size] */
    int table_fd;  /* -1: none */
};

/* Make region and events, which are inherited across exec; no table. On
 * failure nothing is left. */
int chempi_share_init(struct chempi_share *share, uint32_t local_size,
                      struct chempi_err *err);
/* Add the table of node `self`: from the directory, else the default one of
 * so many nodes, which is none for one. 0 or -errno with words. */
int chempi_share_set_table(struct chempi_share *share,
                           const struct chempi_share_nodes *nodes,
                           struct chempi_err *err);
void chempi_share_fini(struct chempi_share *share);

/* Rouse a rank of this node after a message was sent to it. */
void chempi_share_wake(const struct chempi_share *share, uint32_t local);

#endif
