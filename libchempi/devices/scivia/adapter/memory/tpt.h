/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The translation and protection table: which memory of a process the card
 * may touch, under which protection tag, and for what. It lies in memory that
 * the adapters of other processes can read, since in this emulation it is the
 * active side that moves the data and so has to look both tables up.
 *
 *   T1  an entry is valid exactly while its state is odd; the state of a slot
 *       only grows, and is the upper half of the handle
 *   T2  the owner alone writes; a reader copies an entry and looks at its
 *       state again before it believes the copy
 *   -   pages of all valid entries together do not exceed page_max
 */
#ifndef CHEMPI_LIBCHEMPI_DEVICES_SCIVIA_ADAPTER_MEMORY_TPT_H
#define CHEMPI_LIBCHEMPI_DEVICES_SCIVIA_ADAPTER_MEMORY_TPT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHEMPI_TPT_REGION_MAX 4096u
#define CHEMPI_TPT_PAGE_MAX (1u << 24)

struct chempi_tpt_entry {
    _Atomic uint32_t state;
    uint32_t ptag;
    uint32_t enables; /* enum chempi_via_enable */
    uint32_t pages;
    uint64_t start;
    uint64_t len;
};

/* The owner's side. */
struct chempi_tpt {
    struct chempi_tpt_entry *entries; /* [region_max], shared */
    uint32_t region_max;
    uint32_t page_max;
    uint32_t regions;
    uint32_t pages;
    uint32_t hint; /* where to look for a free entry */
    uint8_t unlocked[CHEMPI_TPT_REGION_MAX / 8]; /* bits: pages were lost */
};

/* 0; -ENOSPC: no entry, or too many pages. */
int chempi_tpt_enter(struct chempi_tpt *tpt, const void *start, size_t len,
                     uint32_t ptag, uint32_t enables, uint32_t *handle);
/* 0 with what was entered; -EINVAL: no such handle. *is_locked: not lost. */
int chempi_tpt_remove(struct chempi_tpt *tpt, uint32_t handle, void **start,
                      size_t *len, bool *is_locked);
/* Note that the pages are not locked any more, once. 0 with what was entered;
 * -EINVAL: no such handle; -EALREADY. */
int chempi_tpt_unlock(struct chempi_tpt *tpt, uint32_t handle, void **start,
                      size_t *len);

/*
 * May [addr, addr + len) be used under this tag, and is `enables` granted?
 * entries of any process. 0 or -EACCES.
 */
int chempi_tpt_check(const struct chempi_tpt_entry *entries, uint32_t count,
                     uint32_t handle, uint32_t ptag, uint64_t addr,
                     uint64_t len, uint32_t enables);

#endif
