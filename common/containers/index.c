/* SPDX-License-Identifier: BSD-3-Clause */
/* Hash tables by open addressing; see index.h. */
#include "common/containers/index.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/invariant.h"
#include "common/base/sys.h"

#define FIRST_ROOM 16u
#define LAST_ROOM (1u << 31)

struct chempi_index_slot {
    uint32_t hash;
    uint32_t number; /* + 1; 0: free */
};

uint32_t chempi_index_find(const struct chempi_index *index, uint32_t hash,
                           chempi_index_has_fn *has, const void *elements,
                           const void *key)
{
    const uint32_t mask = index->room - 1;

    if (index->count == 0)
        return CHEMPI_INDEX_NONE;
    for (uint32_t i = hash & mask; index->slots[i].number; i = (i + 1) & mask)
        if (index->slots[i].hash == hash &&
            has(elements, index->slots[i].number - 1, key))
            return index->slots[i].number - 1;
    return CHEMPI_INDEX_NONE;
}

/* When memory for more is refused. */
static uint32_t most(const struct chempi_index *index)
{
    return index->room - index->room / 8;
}

/* There is a free slot (I1). */
static void put(struct chempi_index *index, struct chempi_index_slot slot)
{
    const uint32_t mask = index->room - 1;
    uint32_t i = slot.hash & mask;

    while (index->slots[i].number)
        i = (i + 1) & mask;
    index->slots[i] = slot;
    index->count++;
}

const char *chempi_index_check(const struct chempi_index *index)
{
    const uint32_t mask = index->room - 1;

    if ((index->room & mask) != 0 || index->count > most(index))
        return "index I1: a room of no power of two, or too small";
    for (uint32_t i = 0; i < index->room; i++) {
        if (!index->slots[i].number)
            continue;
        for (uint32_t j = index->slots[i].hash & mask; j != i;
             j = (j + 1) & mask)
            if (!index->slots[j].number)
                return "index I2: a free slot before a number of its hash";
    }
    return NULL;
}

static bool grow(struct chempi_index *index)
{
    struct chempi_index larger = {.room = index->room ? 2 * index->room
                                                      : FIRST_ROOM};

    if (index->room >= LAST_ROOM)
        return false;
    larger.slots = chempi_sys->calloc(larger.room, sizeof(*larger.slots));
    if (!larger.slots)
        return false;
    for (uint32_t i = 0; i < index->room; i++)
        if (index->slots[i].number)
            put(&larger, index->slots[i]);
    free(index->slots);
    *index = larger;
    CHEMPI_CHECK(chempi_index_check(index));
    return true;
}

bool chempi_index_add(struct chempi_index *index, uint32_t hash,
                      uint32_t number)
{
    if (index->count >= index->room / 2 && !grow(index) &&
        index->count >= most(index))
        return false;
    put(index, (struct chempi_index_slot){.hash = hash, .number = number + 1});
    return true;
}

bool chempi_index_reserve(struct chempi_index *index, uint32_t more)
{
    while ((uint64_t)index->count + more > index->room / 2)
        if (!grow(index))
            return false;
    return true;
}

void chempi_index_clear(struct chempi_index *index)
{
    if (index->room)
        memset(index->slots, 0, index->room * sizeof(*index->slots));
    index->count = 0;
}

void chempi_index_fini(struct chempi_index *index)
{
    CHEMPI_CHECK(chempi_index_check(index));
    free(index->slots);
    *index = (struct chempi_index){.slots = NULL};
}

uint32_t chempi_index_hash_text(uint32_t start, const char *text)
{
    uint64_t hash = UINT64_C(14695981039346656037) ^ start;

    hash *= UINT64_C(1099511628211);
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
    return (uint32_t)(hash ^ hash >> 32);
}

uint32_t chempi_index_hash_number(uint64_t number)
{
    return (uint32_t)(number * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}
