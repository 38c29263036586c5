/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the ranks of one job on one node share: the region with its header and
 * wake lines, an event descriptor for each rank if devices may sleep on
 * descriptors, sealed files with the connection table and with the places of
 * all processes of the job. Made by their supervisor and inherited by them;
 * under other launchers by the first rank of the node, which hands it to the
 * others.
 *
 *   S1  the pages of header and wake lines are reserved, so that touching
 *       them never faults for want of memory
 *   S2  the region can grow but not shrink (sealed), so that no rank can take
 *       pages from under the others
 *   S3  the table's contents are validated before and sealed after the copy
 */
#ifndef CHEMPI_COMMON_CONTROL_SHARE_H
#define CHEMPI_COMMON_CONTROL_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/wake/wake.h"

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
    int *wake_fds; /* [local_size]; -1: it sleeps on its wake line only */
    int table_fd;  /* -1: none */
    int places_fd; /* -1: none */
};

/* Who is where, as the file of places has it: u32 numbers of nodes, then of
 * local ranks, of all processes, which count in the order of the processes;
 * then the names of the nodes, each with a zero, to the end. Bytes before the
 * names. */
static inline uint64_t chempi_share_places_len(uint64_t procs)
{
    return 2 * procs * sizeof(uint32_t);
}

/* Make the region, and events if there shall be some, which are inherited
 * across exec; no table. On failure nothing is left. */
int chempi_share_init(struct chempi_share *share, uint32_t local_size,
                      bool has_events, struct chempi_err *err);
/* Add the table of node `self`: from the directory, else the default one of
 * so many nodes, which is none for one. 0 or -errno with words. */
int chempi_share_set_table(struct chempi_share *share,
                           const struct chempi_share_nodes *nodes,
                           struct chempi_err *err);
/* Add the places of so many processes on the nodes, sealed. The same. */
int chempi_share_set_places(struct chempi_share *share,
                            const uint32_t *node_of_proc, uint32_t procs,
                            const struct chempi_share_nodes *nodes,
                            struct chempi_err *err);
void chempi_share_fini(struct chempi_share *share);

/* Rouse a rank of this node after a message was sent to it. */
void chempi_share_wake(const struct chempi_share *share, uint32_t local);

#endif
