/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tables with an entry for each process of a job, of which few are used: zeroed
 * memory of which only the pages are had that somebody has written. The heap
 * clears what it gives, and so has all of it.
 */
#ifndef CHEMPI_COMMON_CONTAINERS_SPARSE_H
#define CHEMPI_COMMON_CONTAINERS_SPARSE_H

#include <stdbool.h>
#include <stddef.h>

/* `count` entries of `size` bytes, from the beginning of a cache line on; NULL:
 * no memory. */
void *chempi_sparse_alloc(size_t count, size_t size);

/* The same, of which but the first `open` entries may be used, and are counted
 * as memory, until chempi_sparse_open() (false: no memory). */
void *chempi_sparse_reserve(size_t count, size_t size, size_t open);
bool chempi_sparse_open(void *table, size_t count, size_t size);

/* What was had with the same numbers; NULL is fine. */
void chempi_sparse_free(void *table, size_t count, size_t size);

#endif
