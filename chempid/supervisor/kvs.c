/* SPDX-License-Identifier: BSD-3-Clause */
/* The key-value store of a job at a node; see kvs.h. */
#include "chempid/supervisor/kvs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "common/containers/array.h"
#include "common/control/msg.h"

static uint32_t hash(uint32_t rank, const char *key)
{
    return chempi_index_hash_text(rank, key);
}

static bool has_key(const void *elements, uint32_t number, const void *key)
{
    struct chempi_kvs_entry *const *entries = elements;
    const struct chempi_kvs_entry *e = entries[number];
    const struct chempi_kvs_entry *wanted = key;

    return e->rank == wanted->rank && strcmp(e->key, wanted->key) == 0;
}

struct chempi_kvs_entry *chempi_kvs_entry(struct chempi_kvs *kvs, uint32_t rank,
                                          const char *key, bool is_local)
{
    struct chempi_kvs_entry wanted = {.rank = rank, .is_local = is_local};
    const uint32_t h = hash(rank, key);
    struct chempi_kvs_entry *e;
    uint32_t at;

    memcpy(wanted.key, key, strlen(key) + 1); /* bounded where it was parsed */
    at = chempi_index_find(&kvs->index, h, has_key, kvs->entries, &wanted);
    if (at != CHEMPI_INDEX_NONE)
        return kvs->entries[at];
    e = CHEMPI_ARRAY_FIT(kvs->entries, kvs->room, kvs->count + 1)
            ? chempi_sys->calloc(1, sizeof(*e))
            : NULL;
    if (!e || !chempi_index_add(&kvs->index, h, kvs->count)) {
        free(e);
        return NULL;
    }
    *e = wanted;
    kvs->entries[kvs->count++] = e;
    return e;
}

int chempi_kvs_set(struct chempi_kvs *kvs, struct chempi_kvs_entry *e,
                   const void *value, size_t len, chempi_kvs_serve_fn *serve,
                   void *arg)
{
    uint8_t *copy = chempi_sys->malloc(len ? len : 1);

    if (!copy)
        return -ENOMEM;
    if (len)
        memcpy(copy, value, len);
    free(e->value);
    e->value = copy;
    e->len = len;
    e->has_value = true;
    for (size_t i = 0; i < e->waiter_count; i++)
        serve(arg, &e->waiters[i], e);
    kvs->waiting -= e->waiter_count;
    free(e->waiters); /* K2 */
    e->waiters = NULL;
    e->waiter_count = e->waiter_room = 0;
    return 0;
}

int chempi_kvs_wait(struct chempi_kvs *kvs, struct chempi_kvs_entry *e,
                    struct chempi_kvs_waiter waiter)
{
    if (kvs->waiting >= CHEMPI_RANK_GETS_MAX)
        return -ENOBUFS;
    if (!CHEMPI_ARRAY_FIT(e->waiters, e->waiter_room, e->waiter_count + 1))
        return -ENOMEM;
    e->waiters[e->waiter_count++] = waiter;
    kvs->waiting++;
    return 0;
}

static void destroy(struct chempi_kvs_entry *e)
{
    free(e->value);
    free(e->waiters);
    free(e);
}

void chempi_kvs_forget(struct chempi_kvs *kvs)
{
    uint32_t kept = 0;

    chempi_index_clear(&kvs->index);
    for (uint32_t i = 0; i < kvs->count; i++) {
        struct chempi_kvs_entry *e = kvs->entries[i];

        if (!e->is_local && e->has_value) {
            destroy(e);
            continue;
        }
        /* As many as before fit. */
        (void)chempi_index_add(&kvs->index, hash(e->rank, e->key), kept);
        kvs->entries[kept++] = e;
    }
    kvs->count = kept;
}

void chempi_kvs_fini(struct chempi_kvs *kvs)
{
    for (uint32_t i = 0; i < kvs->count; i++)
        destroy(kvs->entries[i]);
    free(kvs->entries);
    chempi_index_fini(&kvs->index);
    *kvs = (struct chempi_kvs){0};
}
