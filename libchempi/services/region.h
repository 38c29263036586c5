/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The shared-memory region of one job on one node: one memory file made by
 * the supervisor (or privately by a world of one), mapped by all local ranks.
 * It is sparse: areas are laid out generously and reserved page by page when
 * first needed, so memory that nobody uses costs nothing, and running out is
 * an error message, never SIGBUS. The kernel frees it with its last process.
 *
 *   G1  all local ranks extend and lay out in the same order by the same
 *       sizes, so an area has the same offset everywhere
 *   -   nobody touches a page before some process has reserved it
 */
#ifndef CHEMPI_LIBCHEMPI_SERVICES_REGION_H
#define CHEMPI_LIBCHEMPI_SERVICES_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/wake/wake.h"

struct chempi_region;

/* Map the region behind fd (taken over), checking its header against
 * local_size. fd -1: make a private one for a single process. */
int chempi_region_open(int fd, uint32_t local_size, struct chempi_region **out,
                       struct chempi_err *err);
void chempi_region_close(struct chempi_region *region);

/* The wake lines, [local_size]. */
struct chempi_wake *chempi_region_wakes(struct chempi_region *region);

/* Set word i < CHEMPI_REGION_WORDS to *value + 1: true. False: another rank of
 * this node was first, and *value is what it has. */
bool chempi_region_compare(struct chempi_region *region, uint32_t i,
                           uint64_t *value);

/* Do the ranks of this node agree that every producer of work for another
 * rank fences before it looks whether that rank sleeps (wake.h, W5)? Then
 * is_wake_registered must be false for chempi_wake_peer(). */
bool chempi_region_is_fenced(const struct chempi_region *region);

/* How many lanes processes of this node may have (ddi.h): what the first one
 * that asks has given in *lanes, at least 1. -EPROTO: that is more than max. */
int chempi_region_agree_lanes(struct chempi_region *region, uint32_t max,
                              uint32_t *lanes, struct chempi_err *err);

/* While this process lives, and has the region open, the others see that: the
 * kernel drops the mark when the process has no memory any more. In doubt there
 * is one. */
int chempi_region_mark(struct chempi_region *region, uint32_t local_rank,
                       struct chempi_err *err);
bool chempi_region_is_marked(const struct chempi_region *region,
                             uint32_t local_rank);

/* Lay out len more bytes (rounded up to pages), zero-filled, not reserved. */
int chempi_region_extend(struct chempi_region *region, size_t len, void **out,
                         struct chempi_err *err);

/* The same without mapping anything, for what a process needs little of: its
 * addresses would be quadratic in the ranks of a node. *offset: in the file. */
int chempi_region_lay_out(struct chempi_region *region, uint64_t len,
                          uint64_t *offset, struct chempi_err *err);

/* Map part of what is laid out; offset and len are whole pages. As an area that
 * reserve() and release() know by its addresses: until it is hidden, or the
 * region is closed. Thread-safe, as reserve() and release() are. */
int chempi_region_show(struct chempi_region *region, uint64_t offset,
                       uint64_t len, void **out, struct chempi_err *err);
void chempi_region_hide(struct chempi_region *region, void *start);

/* The same for many small parts: the caller unmaps them with munmap(), and
 * reserves their pages by their place in the file. */
int chempi_region_map(struct chempi_region *region, uint64_t offset,
                      uint64_t len, void **out, struct chempi_err *err);
int chempi_region_reserve_at(struct chempi_region *region, uint64_t offset,
                             uint64_t len, struct chempi_err *err);

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
