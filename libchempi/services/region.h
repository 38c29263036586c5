/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The shared-memory region of one job on one node: one memory file made by
 * the supervisor (or privately by a world of one), mapped by all local ranks.
 * It is sparse: areas are laid out generously and reserved page by page when
 * first needed, so memory that nobody uses costs nothing, and running out is
 * an error message, never SIGBUS. The kernel frees it with its last process.
 *
 *   G1  all local ranks extend in the same order by the same sizes, so an
 *       area has the same offset everywhere
 *   G2  nobody touches a page before some process has reserved it
 */
#ifndef CHEMPI_LIBCHEMPI_SERVICES_REGION_H
#define CHEMPI_LIBCHEMPI_SERVICES_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/base/wake.h"

struct chempi_region;

/* Map the region behind fd (taken over), checking its header against
 * local_size. fd -1: make a private one for a single process. */
int chempi_region_open(int fd, uint32_t local_size, struct chempi_region **out,
                       struct chempi_err *err);
void chempi_region_close(struct chempi_region *region);

/* The wake lines, [local_size]. */
struct chempi_wake *chempi_region_wakes(struct chempi_region *region);

/* Do the ranks of this node agree that every producer of work for another
 * rank fences before it looks whether that rank sleeps (wake.h, W5)? Then
 * is_wake_registered must be false for chempi_wake_peer(). */
bool chempi_region_is_fenced(const struct chempi_region *region);

/* Lay out len more bytes (rounded up to pages), zero-filled, not reserved. */
int chempi_region_extend(struct chempi_region *region, size_t len, void **out,
                         struct chempi_err *err);

/* Reserve the pages of [ptr, ptr + len), which lies in an area. Idempotent;
 * any process may do it. -ENOSPC/-ENOMEM: out of shared memory, with words
 * that name the limit and the remedy. */
int chempi_region_reserve(struct chempi_region *region, void *ptr, size_t len,
                          struct chempi_err *err);

/* Give the whole pages of [ptr, ptr + len), which lies in an area, back to the
 * kernel: nobody has them reserved any more, and no process may use them.
 * -EINVAL: no shared area; else what fallocate() says, and they stay. */
int chempi_region_release(struct chempi_region *region, void *ptr, size_t len);

#endif
