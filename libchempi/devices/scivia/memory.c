/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registered memory: what the cache of the user's memory (regcache.h) does with
 * this card, the share that it may use, and the library's own buffers, which
 * never go.
 */
#include <errno.h>
#include <stdlib.h>

#include "common/base/sys.h"
#include "libchempi/devices/scivia/internal.h"

#define PAGE ((uintptr_t)4096)
#define STAGE_BYTES ((size_t)SCIVIA_STAGES * SCIVIA_CHUNK)

static struct chempi_memory *memory_of(const struct scivia_dev *dev)
{
    return dev->base.params.services->memory;
}

static struct scivia_dev *dev_of(struct chempi_memory_user *user)
{
    return CHEMPI_CONTAINER_OF(user, struct scivia_dev, memory_user);
}

/* Locked and not in the table alone: that is what memory can run out of. */
static void count_used(struct scivia_dev *dev)
{
    if (memory_of(dev))
        chempi_memory_used(
            memory_of(dev), &dev->memory_user,
            chempi_lmm_locked_bytes(chempi_adapter_lmm(dev->adapter)));
}

/* --- the cache and the card --- */

static int enter(void *arg, uintptr_t start, size_t len, uint32_t access,
                 uint32_t *handle)
{
    struct scivia_dev *dev = arg;
    int rc = chempi_via_register(dev->adapter, (const void *)start, len,
                                 dev->ptag, access, handle);

    if (rc == 0)
        count_used(dev);
    return rc;
}

static void leave(void *arg, uint32_t handle)
{
    struct scivia_dev *dev = arg;

    (void)chempi_via_deregister(dev->adapter, handle);
    count_used(dev);
}

static void lost(void *arg, uint32_t handle)
{
    struct scivia_dev *dev = arg;

    (void)chempi_via_lost(dev->adapter, handle);
    count_used(dev);
}

static uint64_t room(void *arg)
{
    const struct scivia_dev *dev = arg;
    const struct chempi_lmm *lmm = chempi_adapter_lmm(dev->adapter);
    uint64_t budget = chempi_lmm_budget(lmm);
    uint64_t locked = chempi_lmm_locked_bytes(lmm);

    return locked < budget ? budget - locked : 0;
}

static const struct chempi_regcache_ops cache_ops = {
    .enter = enter, .leave = leave, .lost = lost, .room = room};

uint64_t chempi_scivia_memory_room(const struct scivia_dev *dev)
{
    uint64_t free_bytes = room((void *)(uintptr_t)dev);

    return free_bytes + dev->cache.idle;
}

struct chempi_region *chempi_scivia_memory_get(struct scivia_dev *dev,
                                               const void *ptr, size_t len,
                                               uint32_t enables)
{
    bool is_off = !chempi_dev_setting(&dev->base, SCIVIA_SETTING_CACHE);

    if (is_off && !dev->cache.is_off)
        while (chempi_regcache_evict(&dev->cache))
            ;
    dev->cache.is_off = is_off;
    return chempi_regcache_get(&dev->cache, ptr, len, enables);
}

void chempi_scivia_memory_put(struct scivia_dev *dev,
                              struct chempi_region *region)
{
    chempi_regcache_put(&dev->cache, region);
    if (dev->is_over_share)
        chempi_scivia_memory_shrink(dev);
}

/* --- what the process hears --- */

static void gone(struct chempi_memory_user *user, uintptr_t start,
                 uintptr_t end)
{
    chempi_regcache_gone(&dev_of(user)->cache, start, end);
}

static void held(struct chempi_memory_user *user, uintptr_t start,
                 uintptr_t end)
{
    chempi_regcache_held(&dev_of(user)->cache, start, end);
}

static bool is_over(const struct scivia_dev *dev)
{
    const struct chempi_lmm *lmm = chempi_adapter_lmm(dev->adapter);

    return chempi_lmm_locked_bytes(lmm) > chempi_lmm_budget(lmm);
}

/* Give the stages back, if nobody uses any. True: something was. */
static bool unstage(struct scivia_dev *dev)
{
    uint32_t count = 0;

    CHEMPI_LIST_FOR (node, &dev->stage_free)
        count++;
    if (!dev->stage_handle || count < SCIVIA_STAGES)
        return false;
    chempi_scivia_memory_deregister(dev, dev->stage_handle, STAGE_BYTES);
    dev->stage_handle = 0;
    return true;
}

void chempi_scivia_memory_shrink(struct scivia_dev *dev)
{
    while (is_over(dev) && chempi_regcache_evict(&dev->cache))
        ;
    if (is_over(dev))
        (void)unstage(dev);
    /* Only what is in use can still be given back. */
    dev->is_over_share =
        is_over(dev) &&
        (dev->cache.bytes[CHEMPI_MEMORY_USER] ||
         dev->cache.bytes[CHEMPI_MEMORY_PERSISTENT] || dev->stage_handle);
}

/* What is needed comes first: user memory has what it leaves of the share. */
static void set_budget(struct scivia_dev *dev)
{
    dev->memory_user.needed = dev->needed_bytes;
    chempi_lmm_set_budget(chempi_adapter_lmm(dev->adapter),
                          dev->granted > dev->needed_bytes ? dev->granted
                                                           : dev->needed_bytes);
    chempi_scivia_memory_shrink(dev);
}

static void share(struct chempi_memory_user *user)
{
    struct scivia_dev *dev = dev_of(user);

    dev->granted = user->share < user->wanted ? user->share : user->wanted;
    set_budget(dev);
    dev->has_new_share = chempi_scivia_memory_stage(dev);
    dev->has_work |= dev->has_new_share; /* receives that may be posted */
}

static const struct chempi_memory_events memory_events = {
    .gone = gone, .held = held, .share = share};

/* --- the library's memory --- */

int chempi_scivia_memory_register(struct scivia_dev *dev, const void *start,
                                  size_t len, uint32_t *handle)
{
    int rc;

    /* What was lost at these addresses must not pass for them. */
    if (memory_of(dev))
        chempi_memory_hear(memory_of(dev));
    do
        rc =
            chempi_via_register(dev->adapter, start, len, dev->ptag, 0, handle);
    while (rc < 0 && rc != -EINVAL && rc != -ENOTSUP &&
           chempi_regcache_evict(&dev->cache));
    if (rc == 0) {
        dev->library_bytes += len;
        count_used(dev);
    } else {
        dev->library_denied++;
    }
    return rc;
}

static uint64_t whole_pages(size_t len)
{
    return (len + PAGE - 1) & ~(uint64_t)(PAGE - 1);
}

int chempi_scivia_memory_need(struct scivia_dev *dev, const void *start,
                              size_t len, uint32_t *handle)
{
    struct chempi_lmm *lmm = chempi_adapter_lmm(dev->adapter);
    uint64_t bytes = whole_pages(len);
    int rc;

    dev->memory_user.needed += bytes; /* before it is told as used */
    rc = chempi_scivia_memory_register(dev, start, len, handle);
    if (rc == -ENOSPC && unstage(dev))
        rc = chempi_scivia_memory_register(dev, start, len, handle);
    if (rc == -ENOSPC &&
        chempi_lmm_locked_bytes(lmm) + bytes > chempi_lmm_budget(lmm)) {
        chempi_lmm_set_budget(lmm, chempi_lmm_locked_bytes(lmm) + bytes);
        rc = chempi_scivia_memory_register(dev, start, len, handle);
    }
    dev->needed_bytes += rc == 0 ? bytes : 0;
    set_budget(dev);
    return rc;
}

void chempi_scivia_memory_unneed(struct scivia_dev *dev, uint32_t handle,
                                 size_t len)
{
    if (!handle)
        return;
    chempi_scivia_memory_deregister(dev, handle, len);
    dev->needed_bytes -= whole_pages(len);
    set_budget(dev);
}

void chempi_scivia_memory_deregister(struct scivia_dev *dev, uint32_t handle,
                                     size_t len)
{
    if (!handle)
        return;
    (void)chempi_via_deregister(dev->adapter, handle);
    dev->library_bytes -= len;
    count_used(dev);
}

bool chempi_scivia_memory_stage(struct scivia_dev *dev)
{
    const size_t len = STAGE_BYTES;
    void *memory = NULL;

    if (dev->stage_handle || !dev->attributes.has_via ||
        chempi_scivia_memory_room(dev) < len)
        return dev->stage_handle != 0;
    if (!dev->stage_memory) {
        if (chempi_sys->posix_memalign(&memory, PAGE, len) != 0)
            return false;
        dev->stage_memory = memory;
        for (uint32_t i = 0; i < SCIVIA_STAGES; i++) {
            dev->stages[i].bytes = dev->stage_memory + i * SCIVIA_CHUNK;
            chempi_list_append(&dev->stage_free, &dev->stages[i].link);
        }
    }
    return chempi_scivia_memory_register(dev, dev->stage_memory, len,
                                         &dev->stage_handle) == 0;
}

int chempi_scivia_memory_init(struct scivia_dev *dev)
{
    struct chempi_lmm *lmm = chempi_adapter_lmm(dev->adapter);

    chempi_list_init(&dev->stage_free);
    chempi_regcache_init(&dev->cache, &cache_ops, dev, memory_of(dev),
                         SCIVIA_REGIONS_MAX);
    dev->granted = chempi_lmm_budget(lmm);
    if (!dev->attributes.has_via)
        return 0;
    dev->memory_user.events = &memory_events;
    dev->memory_user.wanted = chempi_lmm_budget(lmm);
    if (memory_of(dev)) {
        chempi_memory_join(memory_of(dev), &dev->memory_user);
        dev->has_joined = true;
    }
    /* Denied, the ring serves all until the share grows. */
    (void)chempi_scivia_memory_stage(dev);
    return 0;
}

void chempi_scivia_memory_fini(struct scivia_dev *dev)
{
    if (!dev->stage_free.next)
        return; /* the adapter could not be opened */
    chempi_regcache_fini(&dev->cache);
    chempi_scivia_memory_deregister(dev, dev->stage_handle, STAGE_BYTES);
    if (dev->has_joined)
        chempi_memory_leave(memory_of(dev), &dev->memory_user);
    free(dev->stage_memory);
}
