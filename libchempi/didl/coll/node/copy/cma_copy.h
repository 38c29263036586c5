/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copying straight from and to the memory of another process of this node
 * (services/cma.h), for collectives. A process is trusted to be the one that
 * it says only after a random number has been read from its memory.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_COLL_NODE_CMA_COPY_H
#define CHEMPI_LIBCHEMPI_DIDL_COLL_NODE_CMA_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libchempi/didl/datatype/datatype.h"
#include "libchempi/services/layout/segment.h"

/* Bytes of the node's region that it needs for so many ranks. */
size_t chempi_coll_cma_copy_len(uint32_t local_size);

/* Announce this process. shared: zero-filled, reserved, at the same place of
 * the region for all. */
void chempi_coll_cma_copy_init(void *shared, uint32_t local_size,
                               uint32_t local_rank);
void chempi_coll_cma_copy_fini(void);

/* Is copying to be tried at all? The same answer everywhere. */
bool chempi_coll_cma_copy_is_on(void);

/* len bytes at address `remote` of a local rank into count elements at buf,
 * which have room for them. 0 or -errno: then nothing can be said of the
 * target. */
int chempi_coll_cma_copy_get(uint32_t local, uint64_t remote, uint64_t len,
                             void *buf, MPI_Count count,
                             const struct chempi_datatype *type);
/* The next bytes of a copy in pieces of at most PIECE_MAX, after which no
 * progress has been made; to buf, or if that is NULL, where iter is. And the
 * other way. */
enum { CHEMPI_COLL_CMA_PIECE_MAX = 1 << 20 };
int chempi_coll_cma_copy_next(uint32_t local, uint64_t remote, uint64_t len,
                              void *buf, struct chempi_segment *iter);
int chempi_coll_cma_copy_put_next(uint32_t local, uint64_t remote, uint64_t len,
                                  const void *buf, struct chempi_segment *iter);

/* The same for plain bytes. */
int chempi_coll_cma_copy_read(uint32_t local, uint64_t remote, void *buf,
                              uint64_t len);
int chempi_coll_cma_copy_write(uint32_t local, uint64_t remote, const void *buf,
                               uint64_t len);

#endif
