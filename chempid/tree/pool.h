/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that is released all at once: what a job's description consists of.
 * Not thread-safe.
 */
#ifndef CHEMPI_CHEMPID_POOL_H
#define CHEMPI_CHEMPID_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct chempi_pool_block;
struct chempi_purse; /* common/control/channel.h */

struct chempi_pool { /* all zero: empty */
    struct chempi_pool_block *blocks;
    struct chempi_purse *purse; /* what is held counts there; NULL: nowhere */
    size_t paid;                /* bytes of it */
    int error;                  /* why there was no memory last: -ENOMEM,
                                   -EDQUOT: the purse is empty; or 0 */
};

/* Zeroed bytes, aligned for any object; NULL: no memory. */
void *chempi_pool_alloc(struct chempi_pool *pool, size_t len);
/* count * size, checked. */
void *chempi_pool_array(struct chempi_pool *pool, size_t count, size_t size);
/* Growing lists as of common/containers/array.h, zeroed behind what they held;
 * `cap` is a uint32_t. False: no memory, and all is as it was. */
#define CHEMPI_POOL_FIT(pool, list, cap, need)                                 \
    ((size_t)(need) <= (cap) ||                                                \
     chempi_pool_grow(pool, (void *)&(list), sizeof(*(list)), &(cap),          \
                      (size_t)(need)))
bool chempi_pool_grow(struct chempi_pool *pool, void *list, size_t size,
                      uint32_t *cap, size_t need);
char *chempi_pool_str(struct chempi_pool *pool, const char *s);
/* Release all. */
void chempi_pool_fini(struct chempi_pool *pool);

#endif
