/* SPDX-License-Identifier: BSD-3-Clause */
/* The key-value store of a job at a node; see kvs.h. */
#include "chempid/supervisor/kvs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/array.h"
#include "common/base/sys.h"
#include "common/control/msg.h"

#define FIRST_SLOTS 64u

static size_t hash(uint32_t rank, const char *key)
{
    uint64_t h = UINT64_C(14695981039346656037) ^ rank;

    h *= UINT64_C(1099511628211); /* FNV-1a */
    for (; *key; key++)
        h = (h ^ (unsigned char)*key) * UINT64_C(1099511628211);
    return (size_t)(h ^ (h >> 32));
}

static int grow(struct chempi_kvs *kvs)
{
    const size_t n = kvs->slot_count ? 2 * kvs->slot_count : FIRST_SLOTS;
    struct chempi_kvs_entry **slots = chempi_sys->calloc(n, sizeof(*slots));

    if (!slots)
        return -ENOMEM;
    for (size_t i = 0; i < kvs->slot_count; i++) {
        struct chempi_kvs_entry *e = kvs->slots[i];

        while (e) {
            struct chempi_kvs_entry *next = e->chain;
            struct chempi_kvs_entry **slot =
                &slots[hash(e->rank, e->key) & (n - 1)];

            e->chain = *slot;
            *slot = e;
            e = next;
        }
    }
    free(kvs->slots);
    kvs->slots = slots;
    kvs->slot_count = n;
    return 0;
}

static struct chempi_kvs_entry *find(const struct chempi_kvs *kvs,
                                     uint32_t rank, const char *key)
{
    struct chempi_kvs_entry *e;

    if (!kvs->slot_count)
        return NULL;
    e = kvs->slots[hash(rank, key) & (kvs->slot_count - 1)];
    while (e && (e->rank != rank || strcmp(e->key, key) != 0))
        e = e->chain;
    return e;
}

struct chempi_kvs_entry *chempi_kvs_entry(struct chempi_kvs *kvs, uint32_t rank,
                                          const char *key, bool is_local)
{
    struct chempi_kvs_entry *e = find(kvs, rank, key);
    struct chempi_kvs_entry **slot;

    if (e)
        return e;
    if (kvs->count >= kvs->slot_count && grow(kvs))
        return NULL;
    e = chempi_sys->calloc(1, sizeof(*e));
    if (!e)
        return NULL;
    e->rank = rank;
    e->is_local = is_local;
    memcpy(e->key, key, strlen(key) + 1); /* bounded where it was parsed */
    slot = &kvs->slots[hash(rank, key) & (kvs->slot_count - 1)];
    e->chain = *slot;
    *slot = e;
    kvs->count++;
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
    for (size_t i = 0; i < kvs->slot_count; i++) {
        struct chempi_kvs_entry **at = &kvs->slots[i];

        while (*at) {
            struct chempi_kvs_entry *e = *at;

            if (e->is_local || !e->has_value) {
                at = &e->chain;
                continue;
            }
            *at = e->chain;
            kvs->count--;
            destroy(e);
        }
    }
}

void chempi_kvs_fini(struct chempi_kvs *kvs)
{
    for (size_t i = 0; i < kvs->slot_count; i++) {
        struct chempi_kvs_entry *e = kvs->slots[i];

        while (e) {
            struct chempi_kvs_entry *next = e->chain;

            destroy(e);
            e = next;
        }
    }
    free(kvs->slots);
    *kvs = (struct chempi_kvs){0};
}
