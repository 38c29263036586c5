/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large blocks of collectives through shared memory, chunk by chunk, without
 * the kernel: copying a chunk of a typed block out of and into users' memory.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_COLL_NODE_NT_COPY_H
#define CHEMPI_LIBCHEMPI_DIDL_COLL_NODE_NT_COPY_H

#include <stdbool.h>
#include <stdint.h>

#include "libchempi/didl/datatype/datatype.h"

/* Past the caches, for a far core (distance.h), which is counted, or as
 * memcpy() does. */
void chempi_coll_nt_copy_bytes(void *to, const void *from, uint64_t len,
                               bool is_past);

/* Do so many bytes, written by all members of this node in one operation, go
 * past the caches? */
bool chempi_coll_nt_copy_is_long(uint64_t len);

/* Packed bytes [at, at + len) of count elements to or from a chunk; the
 * elements have that many. is_past, for a far core, and is_long: past the
 * caches, if there are no gaps in them. */
void chempi_coll_nt_copy_pack(const void *buf, MPI_Count count,
                              const struct chempi_datatype *type, uint64_t at,
                              void *chunk, uint64_t len, bool is_past);
void chempi_coll_nt_copy_unpack(void *buf, MPI_Count count,
                                const struct chempi_datatype *type, uint64_t at,
                                const void *chunk, uint64_t len, bool is_long);

#endif
