/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The locked-memory manager: nested locking of address ranges in memory.
 * mlock(2) does not nest: one munlock() undoes any number of locks. The
 * manager counts. It keeps disjoint areas of whole pages, each with the number
 * of locks on it, in a balanced tree ordered by address.
 *
 *   L1  areas do not overlap, are not empty, and have a count of at least 1
 *   L2  two areas that touch have different counts
 *   L3  exactly the pages in areas are locked by the kernel, as far as this
 *       manager is concerned; locked bytes never exceed the budget
 *   L4  left and right depth of a node differ by at most one
 *
 * After "Reliably locking VIA memory" (LMM), section 4.3, with the balanced
 * tree and the merging of neighbours that it names as improvements. Not
 * thread-safe. Never blocks beyond what the kernel needs to lock a page.
 */
#ifndef CHEMPI_LIBCHEMPI_DEVICES_SCIVIA_ADAPTER_MEMORY_LMM_H
#define CHEMPI_LIBCHEMPI_DEVICES_SCIVIA_ADAPTER_MEMORY_LMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct chempi_lmm;

/* How pages are locked: 0 or -1 with errno, as mlock(2) and munlock(2). */
struct chempi_lmm_pager {
    int (*lock)(const void *start, size_t len);
    int (*unlock)(const void *start, size_t len);
};

/* One area as seen by chempi_lmm_walk(). */
struct chempi_lmm_area {
    uintptr_t start;
    uintptr_t end; /* exclusive */
    uint32_t count;
};
typedef void chempi_lmm_walk_fn(void *arg, const struct chempi_lmm_area *area);

/* pager NULL: mlock and munlock. budget_bytes is lowered to RLIMIT_MEMLOCK
 * where the kernel enforces that. 0 or -ENOMEM. */
int chempi_lmm_create(const struct chempi_lmm_pager *pager,
                      uint64_t budget_bytes, struct chempi_lmm **out);

/* Unlocks whatever is still locked. Accepts NULL. */
void chempi_lmm_destroy(struct chempi_lmm *lmm);

/*
 * Lock the pages of [start, start + len), once more if they are locked
 * already. 0; -EINVAL (empty, or beyond the address space); -ENOSPC (would
 * exceed the budget); -EAGAIN or -ENOMEM (the kernel refuses, memory is not
 * mapped, or none is left for the areas); -EOVERFLOW (4 billion locks).
 * Nothing has changed after an error.
 */
int chempi_lmm_lock_area(struct chempi_lmm *lmm, const void *start, size_t len);

/*
 * Take back one lock of a range that was locked. 0; -EINVAL; -ENOENT (some
 * page of it is not locked; nothing has changed then); -ENOMEM. Memory that
 * has been unmapped meanwhile is no error.
 */
int chempi_lmm_unlock_area(struct chempi_lmm *lmm, const void *start,
                           size_t len);

/* Change the budget. What is locked stays locked, even above it. */
void chempi_lmm_set_budget(struct chempi_lmm *lmm, uint64_t bytes);
uint64_t chempi_lmm_budget(const struct chempi_lmm *lmm);
uint64_t chempi_lmm_locked_bytes(const struct chempi_lmm *lmm);

/* All areas in ascending order. */
void chempi_lmm_walk(const struct chempi_lmm *lmm, chempi_lmm_walk_fn *fn,
                     void *arg);

/* Do L1, L2 and L4 hold, and do the bytes add up? For tests. */
const char *chempi_lmm_check(const struct chempi_lmm *lmm);

#endif
