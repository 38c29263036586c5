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

bool chempi_scivia_memory_is_over(const struct scivia_dev *dev)
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

void chempi_scivia_memory_give(struct scivia_dev *dev)
{
    while (chempi_scivia_memory_is_over(dev) &&
           chempi_regcache_evict(&dev->cache))
        ;
    if (chempi_scivia_memory_is_over(dev))
        (void)unstage(dev);
}

/* Frames stay; all else that is still registered is in use. */
void chempi_scivia_memory_note_over(struct scivia_dev *dev)
{
    dev->is_over_share = chempi_scivia_memory_is_over(dev) &&
                         dev->library_bytes +
                                 dev->cache.bytes[CHEMPI_MEMORY_USER] +
                                 dev->cache.bytes[CHEMPI_MEMORY_PERSISTENT] >
                             dev->needed_bytes;
}

/* Give back what is above the share and out of use, stages last, but for what
 * chempi_scivia_pair_withdraw() gives, from progress. */
static void shrink(struct scivia_dev *dev)
{
    chempi_scivia_memory_give(dev);
    chempi_scivia_memory_note_over(dev);
    dev->has_work |= dev->is_over_share;
}

struct chempi_registration *chempi_scivia_memory_get(struct scivia_dev *dev,
                                                     const void *ptr,
                                                     size_t len,
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
                              struct chempi_registration *region)
{
    chempi_regcache_put(&dev->cache, region);
    if (dev->is_over_share)
        shrink(dev);
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

static uint32_t count_sets(const struct scivia_dev *dev)
{
    uint32_t count = dev->framed_procs > 0 && !dev->slot_handle;
    uint32_t had = dev->framed_sets - (dev->slot_handle != 0);

    return dev->framed_procs > had ? count + dev->framed_procs - had : count;
}

/* F4: what is set aside for frames, nobody else may have. */
static void set_budget(struct scivia_dev *dev)
{
    dev->reserve = count_sets(dev) * scivia_frame_bytes(SCIVIA_FRAMES_MIN);
    dev->memory_user.needed = dev->needed_bytes + dev->reserve;
    dev->is_admitted |= dev->granted >= dev->memory_user.needed;
    chempi_lmm_set_budget(
        chempi_adapter_lmm(dev->adapter),
        dev->granted > dev->reserve ? dev->granted - dev->reserve : 0);
}

static void share(struct chempi_memory_user *user)
{
    struct scivia_dev *dev = dev_of(user);

    dev->granted = user->share < user->wanted ? user->share : user->wanted;
    set_budget(dev);
    shrink(dev);
    (void)chempi_scivia_memory_stage(dev);
    /* Receives that may be posted, connections that may be accepted. */
    dev->has_new_share = true;
    dev->has_work = true;
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

static int register_needed(struct scivia_dev *dev, const void *start,
                           size_t len, uint32_t *handle)
{
    int rc = chempi_scivia_memory_register(dev, start, len, handle);

    if (rc == -ENOSPC && unstage(dev))
        rc = chempi_scivia_memory_register(dev, start, len, handle);
    return rc;
}

int chempi_scivia_memory_need(struct scivia_dev *dev, const void *start,
                              size_t len, uint32_t *handle)
{
    struct chempi_lmm *lmm = chempi_adapter_lmm(dev->adapter);
    uint64_t least = scivia_frame_bytes(SCIVIA_FRAMES_MIN);
    int rc;

    if (dev->reserve >= least) /* it is for this */
        chempi_lmm_set_budget(lmm, dev->granted > dev->reserve - least
                                       ? dev->granted - dev->reserve + least
                                       : 0);
    rc = register_needed(dev, start, len, handle);
    if (rc == 0) {
        dev->framed_sets++;
        dev->needed_bytes += len;
    } else if (rc == -EAGAIN) {
        rc = -ENOMEM; /* the kernel's */
    } else if (rc == -ENOSPC && dev->is_over_share) {
        rc = -EAGAIN;
    }
    set_budget(dev);
    count_used(dev);
    return rc;
}

void chempi_scivia_memory_unneed(struct scivia_dev *dev, uint32_t handle,
                                 size_t len)
{
    if (!handle)
        return;
    chempi_scivia_memory_deregister(dev, handle, len);
    dev->needed_bytes -= len;
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

/* What this process may register at most must do for frames. */
static int check_wanted(const struct scivia_dev *dev, struct chempi_err *err)
{
    uint64_t wanted = dev->memory_user.wanted;
    bool is_set =
        wanted == chempi_dev_setting(&dev->base, SCIVIA_SETTING_REGISTERED_MAX);

    if (dev->memory_user.needed <= wanted)
        return 0;
    return chempi_err_set(
        err, -ENOSPC,
        "messages to %u processes on cards with the VIA half only need %llu "
        "bytes of registered memory, and this process may register %llu: raise "
        "%s, or join the nodes by another network",
        (unsigned)dev->framed_procs,
        (unsigned long long)dev->memory_user.needed, (unsigned long long)wanted,
        is_set ? "CHEMPI_SCIVIA_REGISTERED_MAX"
               : "the limit of locked memory (\"ulimit -l\")");
}

int chempi_scivia_memory_init(struct scivia_dev *dev, struct chempi_err *err)
{
    struct chempi_lmm *lmm = chempi_adapter_lmm(dev->adapter);
    int rc;

    chempi_list_init(&dev->stage_free);
    chempi_regcache_init(&dev->cache, &cache_ops, dev, memory_of(dev),
                         SCIVIA_REGIONS_MAX);
    dev->granted = chempi_lmm_budget(lmm);
    if (!dev->attributes.has_via)
        return 0;
    dev->framed_procs = chempi_scivia_endpoint_count_framed(dev);
    dev->memory_user.events = &memory_events;
    dev->memory_user.wanted = dev->granted;
    set_budget(dev);
    rc = check_wanted(dev, err);
    if (rc < 0)
        return rc;
    if (memory_of(dev)) {
        dev->is_admitted = false; /* by its share */
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
