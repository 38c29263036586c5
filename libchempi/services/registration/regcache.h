/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A cache of registrations of user memory, by ranges of pages. The mechanism
 * is here; what registering is, is the device's.
 *
 *   -   a region with users is never deregistered
 *   R2  a region without users is kept only while its pages are watched
 *       (memory.h), so no look-up finds a region whose pages were lost: a
 *       stale one is found no more and ends with its last user
 *   R3  to make room, regions without users go, the least probable reuse
 *       first: ordinary memory before that of persistent requests, and within
 *       a class the one whose next use is the farthest to expect. A region is
 *       expected after its usual interval between uses, and the less, the
 *       longer it is overdue; the intervals of those that went are remembered
 *       for a while. One that was used but once is expected late
 *
 * Library memory, the third class, is registered for good and not in here.
 * Under the lane lock; as blocking as registering is.
 */
#ifndef CHEMPI_LIBCHEMPI_SERVICES_REGCACHE_H
#define CHEMPI_LIBCHEMPI_SERVICES_REGCACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/containers/list.h"
#include "libchempi/services/registration/memory.h"

#define CHEMPI_REGCACHE_HINTS 64u
#define CHEMPI_REGCACHE_GHOSTS 256u

enum chempi_memory_class {
    CHEMPI_MEMORY_USER,       /* ordinary */
    CHEMPI_MEMORY_PERSISTENT, /* of a persistent request */
    CHEMPI_MEMORY_LIBRARY
};

struct chempi_registration {
    struct chempi_list link; /* the cache's; latest used first */
    uintptr_t start;         /* whole pages */
    uintptr_t end;
    uint32_t handle;
    uint32_t access;
    uint32_t users;
    uint64_t last;  /* use, in look-ups */
    uint64_t usual; /* interval between uses, in look-ups; 0: not known */
    uint8_t class;  /* enum chempi_memory_class */
    bool is_stale;  /* pages were lost */
    bool is_watched;
};

struct chempi_regcache_ops {
    /* Register whole pages. -ENOSPC, -EAGAIN, -ENOMEM: room must be made;
     * other errors: it cannot be registered at all. */
    int (*enter)(void *arg, uintptr_t start, size_t len, uint32_t access,
                 uint32_t *handle);
    /* Deregister. */
    void (*leave)(void *arg, uint32_t handle);
    /* Bytes that could be registered with nothing let go; a guess that is too
     * high costs evictions for nothing. */
    uint64_t (*room)(void *arg);
    /* Pages of it were lost while it is in use; leave() comes later. */
    void (*lost)(void *arg, uint32_t handle);
};

struct chempi_regcache_counters {
    uint64_t hits;
    uint64_t misses;        /* regions that were registered */
    uint64_t denied;        /* refused, though all was evicted that could be */
    uint64_t evictions;     /* to make room */
    uint64_t invalidations; /* pages were lost */
    uint64_t uncached;      /* could not be watched, so was not kept */
};

/* What is remembered of a region that has gone. */
struct chempi_regcache_ghost {
    uintptr_t start;
    uintptr_t end; /* 0: nobody */
    uint64_t last;
    uint64_t usual;
};

struct chempi_regcache {
    const struct chempi_regcache_ops *ops;
    void *arg;
    struct chempi_memory *memory; /* NULL: nothing is kept */
    uint32_t region_max;
    bool is_off; /* keep nothing */
    struct chempi_list regions;
    uint32_t region_count;
    uint64_t now; /* look-ups */
    struct chempi_registration *hints[CHEMPI_REGCACHE_HINTS];
    struct chempi_regcache_ghost ghosts[CHEMPI_REGCACHE_GHOSTS];
    uint64_t bytes[CHEMPI_MEMORY_LIBRARY]; /* registered, per class */
    uint64_t idle;                         /* of these, without users */
    struct chempi_regcache_counters counters;
};

/* memory may be NULL. */
void chempi_regcache_init(struct chempi_regcache *cache,
                          const struct chempi_regcache_ops *ops, void *arg,
                          struct chempi_memory *memory, uint32_t region_max);
/* Deregister everything, users or not. */
void chempi_regcache_fini(struct chempi_regcache *cache);

/* A region that covers [ptr, ptr + len) and grants `access`; it is in use
 * until put. NULL: it cannot be registered (now). */
struct chempi_registration *chempi_regcache_get(struct chempi_regcache *cache,
                                                const void *ptr, size_t len,
                                                uint32_t access);
/* Accepts NULL. */
void chempi_regcache_put(struct chempi_regcache *cache,
                         struct chempi_registration *region);

/* NULL, or what of R2 or of the sums does not hold (invariant.h). */
const char *chempi_regcache_check(const struct chempi_regcache *cache);

/* Let the region go whose reuse is least probable; false: all are in use. */
bool chempi_regcache_evict(struct chempi_regcache *cache);

/* Passed on from chempi_memory_events. */
void chempi_regcache_gone(struct chempi_regcache *cache, uintptr_t start,
                          uintptr_t end);
void chempi_regcache_held(struct chempi_regcache *cache, uintptr_t start,
                          uintptr_t end);

#endif
