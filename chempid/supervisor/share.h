/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the ranks of one job on one node share, made by their supervisor and
 * inherited by them: the region with its header and wake lines, an event
 * descriptor for each rank, the sealed connection table.
 *
 *   S1  the pages of header and wake lines are reserved, so that touching
 *       them never faults for want of memory
 *   S2  the region can grow but not shrink (sealed), so that no rank can take
 *       pages from under the others
 *   S3  the table's contents are validated before and sealed after the copy
 */
#ifndef CHEMPI_CHEMPID_SHARE_H
#define CHEMPI_CHEMPID_SHARE_H

#include <stdint.h>

#include "chempid/tree/spec.h"
#include "common/base/wake.h"

struct chempi_share {
    uint32_t local_size;
    int region_fd;
    void *map; /* the reserved part */
    uint64_t map_len;
    int *wake_fds; /* [local_size] */
    int table_fd;  /* -1: none */
};

/* Make all for node `node` of the job. On failure nothing is left. The
 * descriptors are inherited across exec. */
int chempi_share_init(struct chempi_share *share,
                      const struct chempi_spec *spec, uint32_t node,
                      uint32_t local_size, struct chempi_err *err);
void chempi_share_fini(struct chempi_share *share);

/* Rouse a rank of this node after a message was sent to it. */
void chempi_share_wake(const struct chempi_share *share, uint32_t local);

#endif
