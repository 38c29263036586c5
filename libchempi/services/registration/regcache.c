/* SPDX-License-Identifier: BSD-3-Clause */
/* The registration cache; see regcache.h. */
#include "libchempi/services/registration/regcache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/compiler.h"
#include "common/base/invariant.h"
#include "common/base/sys.h"

#define PAGE ((uintptr_t)4096)
#define RARE UINT64_C(256) /* look-ups until a region used once is expected */

static struct chempi_registration *region_of(struct chempi_list *node)
{
    return CHEMPI_CONTAINER_OF(node, struct chempi_registration, link);
}

static uint64_t size_of(const struct chempi_registration *region)
{
    return region->end - region->start;
}

static struct chempi_registration **hint_of(struct chempi_regcache *cache,
                                            uintptr_t start)
{
    uintptr_t page = start / PAGE;

    return &cache->hints[(page ^ page >> 6) % CHEMPI_REGCACHE_HINTS];
}

void chempi_regcache_init(struct chempi_regcache *cache,
                          const struct chempi_regcache_ops *ops, void *arg,
                          struct chempi_memory *memory, uint32_t region_max)
{
    memset(cache, 0, sizeof(*cache));
    cache->ops = ops;
    cache->arg = arg;
    cache->memory = memory;
    cache->region_max = region_max;
    chempi_list_init(&cache->regions);
}

/* Stop watching what no region from `node` on has in common. */
static void unwatch(struct chempi_regcache *cache, struct chempi_list *node,
                    uintptr_t start, uintptr_t end)
{
    for (; node != &cache->regions; node = node->next) {
        const struct chempi_registration *other = region_of(node);

        if (!other->is_watched || other->start >= end || start >= other->end)
            continue;
        if (start < other->start)
            unwatch(cache, node->next, start, other->start);
        if (other->end < end)
            unwatch(cache, node->next, other->end, end);
        return;
    }
    chempi_memory_unwatch(cache->memory, start, end - start);
}

static void drop(struct chempi_regcache *cache,
                 struct chempi_registration *region)
{
    struct chempi_registration **hint = hint_of(cache, region->start);

    if (*hint == region)
        *hint = NULL;
    chempi_list_remove(&region->link);
    cache->region_count--;
    cache->bytes[region->class] -= size_of(region);
    if (region->users == 0)
        cache->idle -= size_of(region);
    if (region->is_watched)
        unwatch(cache, cache->regions.next, region->start, region->end);
    cache->ops->leave(cache->arg, region->handle);
    free(region);
}

void chempi_regcache_fini(struct chempi_regcache *cache)
{
    while (!chempi_list_is_empty(&cache->regions))
        drop(cache, region_of(chempi_list_first(&cache->regions)));
}

/* --- what goes first (R3) --- */

/* In how many look-ups the region may be expected again. */
static uint64_t distance(const struct chempi_regcache *cache,
                         const struct chempi_registration *region)
{
    uint64_t age = cache->now - region->last;
    uint64_t usual = region->usual ? region->usual : RARE;

    return age < usual ? usual - age : age; /* overdue: who knows? */
}

static struct chempi_regcache_ghost *ghost_of(struct chempi_regcache *cache,
                                              uintptr_t start)
{
    uintptr_t page = start / PAGE;

    return &cache->ghosts[(page ^ page >> 8) % CHEMPI_REGCACHE_GHOSTS];
}

static void remember(struct chempi_regcache *cache,
                     const struct chempi_registration *region)
{
    *ghost_of(cache, region->start) =
        (struct chempi_regcache_ghost){.start = region->start,
                                       .end = region->end,
                                       .last = region->last,
                                       .usual = region->usual};
}

static void recall(struct chempi_regcache *cache,
                   struct chempi_registration *region)
{
    struct chempi_regcache_ghost *ghost = ghost_of(cache, region->start);

    if (ghost->start != region->start || ghost->end != region->end)
        return;
    region->last = ghost->last;
    region->usual = ghost->usual;
    ghost->end = 0;
}

/* A use now: learn from the interval. */
static void learn(struct chempi_regcache *cache,
                  struct chempi_registration *region)
{
    uint64_t interval = cache->now - region->last;

    if (region->last != 0)
        region->usual =
            region->usual ? (3 * region->usual + interval + 3) / 4 : interval;
    region->last = cache->now;
}

static bool goes_before(const struct chempi_regcache *cache,
                        const struct chempi_registration *a,
                        const struct chempi_registration *b)
{
    uint64_t far_a;
    uint64_t far_b;

    if (!b)
        return true;
    if (a->class != b->class)
        return a->class < b->class;
    far_a = distance(cache, a);
    far_b = distance(cache, b);
    return far_a != far_b ? far_a > far_b : a->last < b->last;
}

bool chempi_regcache_evict(struct chempi_regcache *cache)
{
    struct chempi_registration *least = NULL;

    CHEMPI_LIST_FOR (node, &cache->regions) {
        struct chempi_registration *region = region_of(node);

        if (region->users == 0 && goes_before(cache, region, least))
            least = region;
    }
    if (!least)
        return false;
    remember(cache, least);
    drop(cache, least);
    cache->counters.evictions++;
    return true;
}

/* --- look-up --- */

static bool covers(const struct chempi_registration *region, uintptr_t start,
                   uintptr_t end, uint32_t access)
{
    return region->start <= start && end <= region->end &&
           (region->access & access) == access && !region->is_stale;
}

static struct chempi_registration *find(struct chempi_regcache *cache,
                                        uintptr_t start, uintptr_t end,
                                        uint32_t access)
{
    struct chempi_registration *hint = *hint_of(cache, start);

    if (hint && covers(hint, start, end, access))
        return hint;
    CHEMPI_LIST_FOR (node, &cache->regions) {
        struct chempi_registration *region = region_of(node);

        if (covers(region, start, end, access)) {
            *hint_of(cache, region->start) = region;
            return region;
        }
    }
    return NULL;
}

static int enter(struct chempi_regcache *cache,
                 struct chempi_registration *region)
{
    int rc;

    do
        rc = cache->ops->enter(cache->arg, region->start,
                               region->end - region->start, region->access,
                               &region->handle);
    while ((rc == -ENOSPC || rc == -EAGAIN || rc == -ENOMEM) &&
           chempi_regcache_evict(cache));
    return rc;
}

static void classify(struct chempi_regcache *cache,
                     struct chempi_registration *region)
{
    cache->bytes[region->class] -= size_of(region);
    region->class =
        cache->memory &&
                chempi_memory_is_held(cache->memory, region->start, region->end)
            ? CHEMPI_MEMORY_PERSISTENT
            : CHEMPI_MEMORY_USER;
    cache->bytes[region->class] += size_of(region);
}

static struct chempi_registration *create(struct chempi_regcache *cache,
                                          uintptr_t start, uintptr_t end,
                                          uint32_t access)
{
    struct chempi_registration *region;

    /* What cannot succeed shall not drive out the others first. */
    if (end - start > cache->ops->room(cache->arg) + cache->idle)
        return NULL;
    region = chempi_sys->calloc(1, sizeof(*region));
    if (!region)
        return NULL;
    *region = (struct chempi_registration){.start = start,
                                           .end = end,
                                           .access = access,
                                           .class = CHEMPI_MEMORY_USER};
    if (cache->region_count >= cache->region_max &&
        !chempi_regcache_evict(cache)) {
        free(region);
        return NULL;
    }
    /* Watched first: what is lost from now on is heard of (R2). */
    region->is_watched =
        cache->memory && !cache->is_off &&
        chempi_memory_watch(cache->memory, start, end - start) == 0;
    if (enter(cache, region) < 0) {
        if (region->is_watched)
            unwatch(cache, cache->regions.next, start, end);
        free(region);
        return NULL;
    }
    recall(cache, region);
    cache->region_count++;
    cache->bytes[CHEMPI_MEMORY_USER] += size_of(region);
    cache->idle += size_of(region); /* get() makes it used */
    classify(cache, region);
    chempi_list_prepend(&cache->regions, &region->link);
    *hint_of(cache, start) = region;
    return region;
}

struct chempi_registration *chempi_regcache_get(struct chempi_regcache *cache,
                                                const void *ptr, size_t len,
                                                uint32_t access)
{
    uintptr_t start = (uintptr_t)ptr & ~(PAGE - 1);
    uintptr_t end = ((uintptr_t)ptr + len + PAGE - 1) & ~(PAGE - 1);
    struct chempi_registration *region;

    if (cache->memory)
        chempi_memory_hear(cache->memory);
    cache->now++;
    region = find(cache, start, end, access);
    if (region) {
        cache->counters.hits++;
        chempi_list_remove(&region->link);
        chempi_list_prepend(&cache->regions, &region->link);
    } else {
        region = create(cache, start, end, access);
        if (!region) {
            cache->counters.denied++;
            return NULL;
        }
        cache->counters.misses++;
        cache->counters.uncached += !region->is_watched;
    }
    learn(cache, region);
    if (region->users++ == 0)
        cache->idle -= size_of(region);
    CHEMPI_CHECK_EVERY(16, chempi_regcache_check(cache));
    return region;
}

void chempi_regcache_put(struct chempi_regcache *cache,
                         struct chempi_registration *region)
{
    if (!region || --region->users > 0)
        return;
    cache->idle += size_of(region);
    if (region->is_stale || !region->is_watched || cache->is_off)
        drop(cache, region); /* R2 */
    CHEMPI_CHECK_EVERY(16, chempi_regcache_check(cache));
}

const char *chempi_regcache_check(const struct chempi_regcache *cache)
{
    uint64_t bytes[CHEMPI_MEMORY_LIBRARY] = {0};
    uint64_t idle = 0;
    uint32_t count = 0;

    CHEMPI_LIST_FOR (node, &cache->regions) {
        const struct chempi_registration *region = region_of(node);

        if (region->users == 0 && (region->is_stale || !region->is_watched))
            return "regcache R2: kept without being watched, or lost";
        bytes[region->class] += size_of(region);
        idle += region->users == 0 ? size_of(region) : 0;
        count++;
    }
    if (count != cache->region_count || idle != cache->idle ||
        memcmp(bytes, cache->bytes, sizeof(bytes)) != 0)
        return "regcache: the sums are wrong";
    return NULL;
}

/* --- what happens to memory --- */

static void lose(struct chempi_regcache *cache,
                 struct chempi_registration *region)
{
    if (region->is_stale)
        return;
    cache->counters.invalidations++;
    region->is_stale = true;
    if (region->users == 0)
        drop(cache, region);
    else
        cache->ops->lost(cache->arg, region->handle);
}

void chempi_regcache_gone(struct chempi_regcache *cache, uintptr_t start,
                          uintptr_t end)
{
    CHEMPI_LIST_FOR_SAFE (node, &cache->regions) {
        struct chempi_registration *region = region_of(node);

        if (region->start < end && start < region->end)
            lose(cache, region);
    }
}

void chempi_regcache_held(struct chempi_regcache *cache, uintptr_t start,
                          uintptr_t end)
{
    CHEMPI_LIST_FOR (node, &cache->regions) {
        struct chempi_registration *region = region_of(node);

        if (region->start < end && start < region->end)
            classify(cache, region);
    }
}
