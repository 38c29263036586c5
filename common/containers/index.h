/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hash tables, by open addressing: a table holds the numbers of elements that
 * its owner keeps, and the hash of each element's key. Which of several
 * elements of one hash is meant is the owner's to compare. Not thread-safe.
 *
 *   I1  room is 0 or a power of two, and at least twice the count; an eighth of
 *       it stays free when memory for more was refused
 *   I2  no free slot lies between a number and where its hash begins
 */
#ifndef CHEMPI_COMMON_CONTAINERS_INDEX_H
#define CHEMPI_COMMON_CONTAINERS_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#define CHEMPI_INDEX_NONE UINT32_MAX

struct chempi_index_slot;

struct chempi_index { /* zero-initialised: empty */
    struct chempi_index_slot *slots;
    uint32_t room;
    uint32_t count;
};

/* Whether the element of that number has the key. */
typedef bool chempi_index_has_fn(const void *elements, uint32_t number,
                                 const void *key);

/* The number under `hash` whose element has the key, or CHEMPI_INDEX_NONE. */
uint32_t chempi_index_find(const struct chempi_index *index, uint32_t hash,
                           chempi_index_has_fn *has, const void *elements,
                           const void *key);
/* Add a number below 2^31. False: out of memory, and all is as it was. */
bool chempi_index_add(struct chempi_index *index, uint32_t hash,
                      uint32_t number);
/* Adding `more` numbers cannot fail afterwards. False: out of memory, and all
 * is as it was. */
bool chempi_index_reserve(struct chempi_index *index, uint32_t more);
/* NULL, or which of I1 and I2 does not hold (invariant.h). */
const char *chempi_index_check(const struct chempi_index *index);
/* Forget all numbers; adding as many again cannot fail. */
void chempi_index_clear(struct chempi_index *index);
void chempi_index_fini(struct chempi_index *index);

/* Hashes whose low bits are good: of a text (FNV-1a, from `start`, any number)
 * and of a number. */
uint32_t chempi_index_hash_text(uint32_t start, const char *text);
uint32_t chempi_index_hash_number(uint64_t number);

#endif
