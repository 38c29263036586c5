/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that is released all at once: what a job's description consists of.
 * Not thread-safe.
 */
#ifndef CHEMPI_CHEMPID_POOL_H
#define CHEMPI_CHEMPID_POOL_H

#include <stddef.h>

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
char *chempi_pool_str(struct chempi_pool *pool, const char *s);
/* Release all. */
void chempi_pool_fini(struct chempi_pool *pool);

#endif
