/* SPDX-License-Identifier: BSD-3-Clause */
/* Names that a peer may hold; see handle_table.h. */
#include "libchempi/services/handle_table.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/invariant.h"
#include "common/containers/array.h"

#define SLOTS_MAX (1u << 28)

static int grow(struct chempi_handle_table *slots)
{
    uint32_t old = slots->count;

    if (old >= SLOTS_MAX || !CHEMPI_ARRAY_FIT(slots->at, slots->count, old + 1))
        return -ENOMEM;
    for (uint32_t i = old; i < slots->count; i++)
        slots->at[i] = (struct chempi_slot){
            .generation = 1, .next_free = i + 1 < slots->count ? i + 2 : 0};
    slots->free_slot = old + 1;
    return 0;
}

bool chempi_handle_table_has_room(struct chempi_handle_table *slots)
{
    return slots->free_slot || grow(slots) == 0;
}

int chempi_handle_table_put(struct chempi_handle_table *slots, void *ptr,
                            uint64_t *token)
{
    struct chempi_slot *slot;
    uint32_t index;
    int rc;

    if (!slots->free_slot && (rc = grow(slots)) != 0)
        return rc;
    index = slots->free_slot - 1;
    slot = &slots->at[index];
    slots->free_slot = slot->next_free;
    slot->ptr = ptr;
    slots->used++;
    *token = (uint64_t)slot->generation << 32 | index;
    CHEMPI_CHECK_EVERY(64, chempi_handle_table_check(slots));
    return 0;
}

static struct chempi_slot *find(const struct chempi_handle_table *slots,
                                uint64_t token)
{
    uint32_t index = (uint32_t)(token & UINT32_MAX);

    if (index >= slots->count || !slots->at[index].ptr ||
        slots->at[index].generation != (uint32_t)(token >> 32))
        return NULL;
    return &slots->at[index];
}

void *chempi_handle_table_get(const struct chempi_handle_table *slots,
                              uint64_t token)
{
    const struct chempi_slot *slot = find(slots, token);

    return slot ? slot->ptr : NULL;
}

void *chempi_handle_table_take(struct chempi_handle_table *slots,
                               uint64_t token)
{
    struct chempi_slot *slot = find(slots, token);
    void *ptr;

    if (!slot)
        return NULL;
    ptr = slot->ptr;
    slot->ptr = NULL;
    slots->used--;
    if (++slot->generation == 0)
        slot->generation = 1; /* L1 */
    slot->next_free = slots->free_slot;
    slots->free_slot = (uint32_t)(slot - slots->at) + 1;
    CHEMPI_CHECK_EVERY(64, chempi_handle_table_check(slots));
    return ptr;
}

const char *chempi_handle_table_check(const struct chempi_handle_table *slots)
{
    uint32_t used = 0;
    uint32_t free_count = 0;
    uint32_t next = slots->free_slot;

    for (uint32_t i = 0; i < slots->count; i++) {
        if (slots->at[i].generation == 0)
            return "slots L1: a slot without a generation";
        used += slots->at[i].ptr != NULL;
    }
    if (used != slots->used)
        return "slots: the number of used ones is wrong";
    while (next && next <= slots->count && free_count <= slots->count) {
        if (slots->at[next - 1].ptr)
            return "slots L2: a used slot is on the list of free ones";
        next = slots->at[next - 1].next_free;
        free_count++;
    }
    return next || free_count != slots->count - used
               ? "slots L2: a free slot is not on the list"
               : NULL;
}

bool chempi_handle_table_is_past(const struct chempi_handle_table *slots,
                                 uint64_t token)
{
    uint32_t index = (uint32_t)(token & UINT32_MAX);

    return index < slots->count &&
           (int32_t)(slots->at[index].generation - (uint32_t)(token >> 32)) > 0;
}

void *chempi_handle_table_next(const struct chempi_handle_table *slots,
                               uint32_t *place)
{
    while (*place < slots->count) {
        void *ptr = slots->at[(*place)++].ptr;

        if (ptr)
            return ptr;
    }
    return NULL;
}

void *chempi_handle_table_pop(struct chempi_handle_table *slots)
{
    uint32_t place = 0;

    if (!slots->used || !chempi_handle_table_next(slots, &place))
        return NULL;
    place--;
    return chempi_handle_table_take(
        slots, (uint64_t)slots->at[place].generation << 32 | place);
}

void chempi_handle_table_fini(struct chempi_handle_table *slots)
{
    free(slots->at);
    *slots = (struct chempi_handle_table){0};
}
