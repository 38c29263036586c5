/* SPDX-License-Identifier: BSD-3-Clause */
/* The translation and protection table; see tpt.h. */
#include "libchempi/devices/scivia/adapter/memory/tpt.h"

#include <assert.h>
#include <errno.h>

#define PAGE UINT64_C(4096)
#define SLOT_BITS 12
#define SLOT_MASK ((1u << SLOT_BITS) - 1)
static_assert(CHEMPI_TPT_REGION_MAX <= 1u << SLOT_BITS, "slots fit a handle");

static uint32_t handle_of(uint32_t slot, uint32_t state)
{
    return state << SLOT_BITS | slot;
}

static uint8_t bit_of(int slot)
{
    return (uint8_t)(1u << (slot % 8));
}

int chempi_tpt_enter(struct chempi_tpt *tpt, const void *start, size_t len,
                     uint32_t ptag, uint32_t enables, uint32_t *handle)
{
    uint64_t first = (uint64_t)(uintptr_t)start / PAGE;
    uint64_t last = ((uint64_t)(uintptr_t)start + len + PAGE - 1) / PAGE;
    struct chempi_tpt_entry *entry;
    uint32_t slot = tpt->hint;
    uint32_t state;

    if (tpt->regions == tpt->region_max ||
        last - first > tpt->page_max - tpt->pages)
        return -ENOSPC;
    while (
        atomic_load_explicit(&tpt->entries[slot].state, memory_order_relaxed) &
        1)
        slot = (slot + 1) % tpt->region_max;
    tpt->hint = (slot + 1) % tpt->region_max;
    entry = &tpt->entries[slot];
    entry->ptag = ptag;
    entry->enables = enables;
    entry->pages = (uint32_t)(last - first);
    entry->start = (uint64_t)(uintptr_t)start;
    entry->len = len;
    state = atomic_load_explicit(&entry->state, memory_order_relaxed) + 1;
    atomic_store_explicit(&entry->state, state,
                          memory_order_release); /* partner: check */
    tpt->regions++;
    tpt->pages += entry->pages;
    *handle = handle_of(slot, state);
    return 0;
}

static int find(const struct chempi_tpt_entry *entries, uint32_t count,
                uint32_t handle)
{
    uint32_t slot = handle & SLOT_MASK;
    uint32_t state;

    if (slot >= count)
        return -EINVAL;
    state = atomic_load_explicit(&entries[slot].state, memory_order_acquire);
    return (state & 1) && handle_of(slot, state) == handle ? (int)slot
                                                           : -EINVAL;
}

int chempi_tpt_unlock(struct chempi_tpt *tpt, uint32_t handle, void **start,
                      size_t *len)
{
    int slot = find(tpt->entries, tpt->region_max, handle);
    struct chempi_tpt_entry *entry;

    if (slot < 0)
        return -EINVAL;
    entry = &tpt->entries[slot];
    if (tpt->unlocked[slot / 8] & bit_of(slot))
        return -EALREADY;
    tpt->unlocked[slot / 8] |= bit_of(slot);
    *start = (void *)(uintptr_t)entry->start;
    *len = (size_t)entry->len;
    return 0;
}

int chempi_tpt_remove(struct chempi_tpt *tpt, uint32_t handle, void **start,
                      size_t *len, bool *is_locked)
{
    int slot = find(tpt->entries, tpt->region_max, handle);
    struct chempi_tpt_entry *entry;

    if (slot < 0)
        return -EINVAL;
    entry = &tpt->entries[slot];
    *start = (void *)(uintptr_t)entry->start;
    *len = (size_t)entry->len;
    *is_locked = !(tpt->unlocked[slot / 8] & bit_of(slot));
    tpt->unlocked[slot / 8] &= (uint8_t)~bit_of(slot);
    tpt->regions--;
    tpt->pages -= entry->pages;
    (void)atomic_fetch_add_explicit(&entry->state, 1,
                                    memory_order_seq_cst); /* T1 */
    return 0;
}

int chempi_tpt_check(const struct chempi_tpt_entry *entries, uint32_t count,
                     uint32_t handle, uint32_t ptag, uint64_t addr,
                     uint64_t len, uint32_t enables)
{
    int slot = find(entries, count, handle);
    uint64_t start;
    uint64_t room;
    uint32_t tag;
    uint32_t granted;

    if (slot < 0)
        return -EACCES;
    start = entries[slot].start;
    room = entries[slot].len;
    tag = entries[slot].ptag;
    granted = entries[slot].enables;
    atomic_thread_fence(memory_order_acquire); /* T2 */
    if (find(entries, count, handle) != slot)
        return -EACCES;
    if (tag != ptag || (granted & enables) != enables || addr < start ||
        addr - start > room || len > room - (addr - start))
        return -EACCES;
    return 0;
}
