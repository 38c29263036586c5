/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory released all at once; see pool.h. */
#include "chempid/tree/pool.h"

#include <errno.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "common/control/channel.h"

#define BLOCK_LEN 8192u /* bytes; larger wishes get a block of their own */
#define ROUND(n)                                                               \
    (((n) + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1))

struct chempi_pool_block {
    struct chempi_pool_block *next;
    size_t used;
    size_t len;
    alignas(max_align_t) unsigned char data[];
};

static struct chempi_pool_block *add_block(struct chempi_pool *pool, size_t len)
{
    struct chempi_purse *purse = pool->purse;
    const size_t all = sizeof(struct chempi_pool_block) + len;
    struct chempi_pool_block *b;

    if (purse && all > purse->max - purse->used) {
        pool->error = -EDQUOT;
        return NULL;
    }
    b = chempi_sys->calloc(1, all);
    if (!b) {
        pool->error = -ENOMEM;
        return NULL;
    }
    if (purse) {
        purse->used += all;
        pool->paid += all;
    }
    b->len = len;
    b->next = pool->blocks;
    pool->blocks = b;
    return b;
}

void *chempi_pool_alloc(struct chempi_pool *pool, size_t len)
{
    struct chempi_pool_block *b = pool->blocks;
    void *at;

    if (len > SIZE_MAX / 2)
        return NULL;
    len = ROUND(len ? len : 1);
    if (!b || b->len - b->used < len)
        b = add_block(pool, len > BLOCK_LEN ? len : BLOCK_LEN);
    if (!b)
        return NULL;
    at = b->data + b->used;
    b->used += len;
    return at;
}

void *chempi_pool_array(struct chempi_pool *pool, size_t count, size_t size)
{
    if (size && count > SIZE_MAX / size)
        return NULL;
    return chempi_pool_alloc(pool, count * size);
}

bool chempi_pool_grow(struct chempi_pool *pool, void *list, size_t size,
                      uint32_t *cap, size_t need)
{
    uint64_t room = *cap ? *cap : 8;
    void *grown;
    void *old;

    while (room < need)
        room *= 2;
    grown = room <= UINT32_MAX ? chempi_pool_array(pool, room, size) : NULL;
    if (!grown)
        return false;
    memcpy(&old, list, sizeof(old)); /* whatever type it points to */
    if (*cap)
        memcpy(grown, old, *cap * size);
    memcpy(list, &grown, sizeof(grown));
    *cap = (uint32_t)room;
    return true;
}

char *chempi_pool_str(struct chempi_pool *pool, const char *s)
{
    const size_t len = strlen(s) + 1;
    char *copy = chempi_pool_alloc(pool, len);

    return copy ? memcpy(copy, s, len) : NULL;
}

void chempi_pool_fini(struct chempi_pool *pool)
{
    if (pool->purse)
        pool->purse->used -= pool->paid;
    pool->paid = 0;
    while (pool->blocks) {
        struct chempi_pool_block *b = pool->blocks;

        pool->blocks = b->next;
        free(b);
    }
}
