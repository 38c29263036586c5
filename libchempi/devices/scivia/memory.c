/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registered memory: a cache of registrations of user memory, and the
 * library's own buffers.
 *
 *   C1  a region with users is never deregistered
 *   C2  when the card or the budget refuses, regions without users go, the
 *       one that was used longest ago first; library memory is no region here
 *       and never goes
 */
#include <errno.h>
#include <stdlib.h>

#include "common/base/sys.h"
#include "libchempi/devices/scivia/internal.h"

#define PAGE ((uintptr_t)4096)

static void drop(struct scivia_dev *dev, struct scivia_region *region)
{
    chempi_list_remove(&region->link);
    dev->region_count--;
    (void)chempi_via_deregister(dev->adapter, region->handle);
    free(region);
}

/* Let the oldest region without users go; false: there is none. */
static bool evict(struct scivia_dev *dev)
{
    for (struct chempi_list *node = dev->regions.prev; node != &dev->regions;
         node = node->prev) {
        struct scivia_region *region =
            CHEMPI_CONTAINER_OF(node, struct scivia_region, link);

        if (region->users == 0) {
            drop(dev, region);
            return true;
        }
    }
    return false;
}

static int enter(struct scivia_dev *dev, const void *start, size_t len,
                 uint32_t enables, uint32_t *handle)
{
    int rc;

    do
        rc = chempi_via_register(dev->adapter, start, len, dev->ptag, enables,
                                 handle);
    while (rc < 0 && rc != -EINVAL && rc != -ENOTSUP && evict(dev));
    return rc;
}

static struct scivia_region *find(struct scivia_dev *dev, uintptr_t start,
                                  uintptr_t end, uint32_t enables)
{
    CHEMPI_LIST_FOR (node, &dev->regions) {
        struct scivia_region *region =
            CHEMPI_CONTAINER_OF(node, struct scivia_region, link);

        if (region->start <= start && end <= region->end &&
            (region->enables & enables) == enables)
            return region;
    }
    return NULL;
}

struct scivia_region *chempi_scivia_memory_get(struct scivia_dev *dev,
                                               const void *ptr, size_t len,
                                               uint32_t enables)
{
    uintptr_t start = (uintptr_t)ptr & ~(PAGE - 1);
    uintptr_t end = ((uintptr_t)ptr + len + PAGE - 1) & ~(PAGE - 1);
    struct scivia_region *region = find(dev, start, end, enables);

    if (region) {
        dev->cache_hits++;
        chempi_list_remove(&region->link);
    } else {
        region = chempi_sys->calloc(1, sizeof(*region));
        if (region && dev->region_count >= SCIVIA_REGIONS_MAX)
            (void)evict(dev);
        if (!region || enter(dev, (const void *)start, end - start, enables,
                             &region->handle) < 0) {
            dev->cache_denied++;
            free(region);
            return NULL;
        }
        dev->cache_misses++;
        region->start = start;
        region->end = end;
        region->enables = enables;
        dev->region_count++;
    }
    chempi_list_prepend(&dev->regions, &region->link);
    region->users++;
    return region;
}

void chempi_scivia_memory_put(struct scivia_region *region)
{
    if (region)
        region->users--;
}

int chempi_scivia_memory_register(struct scivia_dev *dev, const void *start,
                                  size_t len, uint32_t *handle)
{
    return enter(dev, start, len, 0, handle);
}

int chempi_scivia_memory_init(struct scivia_dev *dev)
{
    void *memory = NULL;

    chempi_list_init(&dev->regions);
    chempi_list_init(&dev->stage_free);
    if (!dev->attributes.has_via)
        return 0;
    if (chempi_sys->posix_memalign(&memory, PAGE,
                                   SCIVIA_STAGES * SCIVIA_CHUNK) != 0)
        return -ENOMEM;
    dev->stage_memory = memory;
    if (chempi_scivia_memory_register(dev, memory, SCIVIA_STAGES * SCIVIA_CHUNK,
                                      &dev->stage_handle) < 0) {
        dev->attributes.has_via = false; /* no budget: the ring serves all */
        dev->cache_denied++;
        return 0;
    }
    for (uint32_t i = 0; i < SCIVIA_STAGES; i++) {
        dev->stages[i].bytes = dev->stage_memory + i * SCIVIA_CHUNK;
        chempi_list_append(&dev->stage_free, &dev->stages[i].link);
    }
    return 0;
}

void chempi_scivia_memory_fini(struct scivia_dev *dev)
{
    while (!chempi_list_is_empty(&dev->regions))
        drop(dev, CHEMPI_CONTAINER_OF(chempi_list_first(&dev->regions),
                                      struct scivia_region, link));
    if (dev->stage_handle)
        (void)chempi_via_deregister(dev->adapter, dev->stage_handle);
    free(dev->stage_memory);
}
