/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files that give each rank its node and its cores, in Open MPI's form:
 *
 *   rank 0=a slot=1:0-2
 *   rank 1=+n1 slot=0,1     # the second node of the job
 *
 * What stands behind "slot=" is in chempid/job/corelist.h.
 */
#ifndef CHEMPI_CHEMPID_RANKFILE_H
#define CHEMPI_CHEMPID_RANKFILE_H

#include <stdint.h>

#include "chempid/hosts/hosts.h"
#include "chempid/job/spec.h"
#include "chempid/tree/pool.h"
#include "common/base/err.h"

struct chempi_rankfile_rank {
    const char *host; /* NULL: the file does not name the rank */
    const char *slots;
    uint32_t line;
};

struct chempi_rankfile { /* in the pool */
    const char *path;
    struct chempi_rankfile_rank *ranks;
    uint32_t count;
    uint32_t cap;
};

/* All ranks from 0 to the last one are there, once, and their cores are well
 * written. -EINVAL with file, line, and what was expected; -ENOMEM. */
int chempi_rankfile_read(struct chempi_rankfile *f, struct chempi_pool *pool,
                         const char *path, struct chempi_err *err);

/* The hosts that it names, in the order of ranks, each with the number of its
 * ranks; none if some are numbers ("+n1"). 0 or -errno with words. */
int chempi_rankfile_hosts(const struct chempi_rankfile *f,
                          struct chempi_hosts *hosts, struct chempi_pool *pool,
                          struct chempi_err *err);

/* The node of each rank; "localhost" is the only node where there is one.
 * -EINVAL with words: a node that the job does not have, or another number of
 * ranks. */
int chempi_rankfile_place(const struct chempi_rankfile *f,
                          const char *const *names, uint32_t count,
                          uint32_t size, uint32_t *node_of_rank,
                          struct chempi_err *err);

/* What nodes need of it. 0 or -ENOMEM. */
int chempi_rankfile_copy(const struct chempi_rankfile *f,
                         struct chempi_spec *spec);

#endif
