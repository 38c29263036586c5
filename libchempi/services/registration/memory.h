/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the devices of a process must know of its memory when they register
 * it: which pages were lost, which belong to persistent requests, and how much
 * may be registered. One object per process, made by whoever makes the
 * services; devices join it.
 *
 *   -   a joined device hears of lost pages before it can find anything by
 *       their address: chempi_memory_hear() comes first in every look-up
 *   M2  the shares of all devices together are the process's share; a share
 *       that shrinks binds new registrations at once, and `used` falls as soon
 *       as memory is out of use
 *   M3  what is reported upward as held is never less than what is registered;
 *       what was reported as not held is not used any more, before it is
 *       granted again
 *
 * Under the lane lock; never blocks.
 */
#ifndef CHEMPI_LIBCHEMPI_SERVICES_MEMORY_H
#define CHEMPI_LIBCHEMPI_SERVICES_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/containers/list.h"

#define CHEMPI_MEMORY_UNLIMITED UINT64_MAX

struct chempi_memory;
struct chempi_memory_user;

/* What a device that registers memory is told. All mandatory. */
struct chempi_memory_events {
    /* Pages [start, end) are not what they were. */
    void (*gone)(struct chempi_memory_user *user, uintptr_t start,
                 uintptr_t end);
    /* A persistent request has its buffer in [start, end) from now on, or not
     * any more: chempi_memory_is_held() tells. */
    void (*held)(struct chempi_memory_user *user, uintptr_t start,
                 uintptr_t end);
    /* The share is now user->share bytes. */
    void (*share)(struct chempi_memory_user *user);
};

/* A device's part; embedded, zero but for what the device sets. */
struct chempi_memory_user {
    struct chempi_list link; /* the service's */
    const struct chempi_memory_events *events;
    uint64_t wanted;   /* bytes it would register at most; set before joining */
    uint64_t share;    /* bytes it may register; the service's */
    uint64_t used;     /* bytes it has registered; chempi_memory_used() */
    uint64_t needed;   /* bytes without which it cannot go on, and which it
                          never gives back; the device's, set before joining */
    uint64_t degraded; /* transfers that took a slower way for lack of it */
};

/* What all of them together have. */
struct chempi_memory_state {
    uint64_t share;  /* bytes, or CHEMPI_MEMORY_UNLIMITED */
    uint64_t held;   /* bytes that count as the process's: M3 */
    uint64_t used;   /* bytes */
    uint64_t wanted; /* bytes */
    uint64_t needed; /* bytes */
    uint64_t degraded;
};

/* share: what the process may register at first, bytes. 0 or -ENOMEM. */
int chempi_memory_create(uint64_t share, struct chempi_memory **out);
/* After all users have left. Accepts NULL. */
void chempi_memory_destroy(struct chempi_memory *memory);

void chempi_memory_join(struct chempi_memory *memory,
                        struct chempi_memory_user *user);
void chempi_memory_leave(struct chempi_memory *memory,
                         struct chempi_memory_user *user);

/* --- for devices --- */

/* Pass on what has been lost. Cheap when nothing has. */
void chempi_memory_hear(struct chempi_memory *memory);
/* Hear of the loss of these whole pages from now on. 0; -errno: that cannot
 * be, so nothing may be kept by their address. */
int chempi_memory_watch(struct chempi_memory *memory, uintptr_t start,
                        size_t len);
void chempi_memory_unwatch(struct chempi_memory *memory, uintptr_t start,
                           size_t len);
/* Has a persistent request something there? */
bool chempi_memory_is_held(const struct chempi_memory *memory, uintptr_t start,
                           uintptr_t end);
/* The device has this many bytes registered now. */
void chempi_memory_used(struct chempi_memory *memory,
                        struct chempi_memory_user *user, uint64_t bytes);

/* --- for didl --- */

/* A persistent request's buffer comes and goes; nests. Never fails: without
 * memory for it, the buffer is like any other. */
void chempi_memory_hold(struct chempi_memory *memory, const void *ptr,
                        size_t len);
void chempi_memory_release(struct chempi_memory *memory, const void *ptr,
                           size_t len);
/* The process may register this much from now on, bytes. */
void chempi_memory_set_share(struct chempi_memory *memory, uint64_t share);
void chempi_memory_state(const struct chempi_memory *memory,
                         struct chempi_memory_state *out);
/* What fn tells of it is told: what is not held is given back (M3). */
void chempi_memory_told(struct chempi_memory *memory,
                        const struct chempi_memory_state *state);
/* Call fn when the state has changed enough to be told (a sixteenth of the
 * share), or falls while more is held than the share. */
void chempi_memory_on_change(struct chempi_memory *memory, void (*fn)(void *),
                             void *arg);

#endif
