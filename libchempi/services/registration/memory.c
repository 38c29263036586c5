/* SPDX-License-Identifier: BSD-3-Clause */
/* What devices must know of memory that they register; see memory.h. */
#define _GNU_SOURCE /* munlock */
#include "libchempi/services/registration/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "common/base/sys.h"
#include "common/host/maps.h"
#include "libchempi/services/registration/memory_hooks.h"

#define PAGE ((uintptr_t)4096)
#define MOVES_MAX 32u
#define BUCKETS 256u
#define STEP_MIN (UINT64_C(64) << 10) /* bytes; smaller changes are no news */

/* A buffer of a persistent request. */
struct hold {
    struct chempi_list link;
    uintptr_t start;
    uintptr_t end;
    uint32_t count;
};

struct range {
    uintptr_t start;
    uintptr_t end;
};

struct chempi_memory {
    struct chempi_list users;
    uint32_t user_count;
    struct chempi_list holds[BUCKETS]; /* by first page */
    struct chempi_memory_hooks *watch; /* NULL: not yet, or cannot be */
    bool is_watch_refused;
    uint64_t share;
    uint64_t told;        /* bytes used, when fn was called last */
    uint64_t told_needed; /* and needed */
    void (*fn)(void *);
    void *arg;
};

static struct chempi_memory_user *user_of(struct chempi_list *node)
{
    return CHEMPI_CONTAINER_OF(node, struct chempi_memory_user, link);
}

int chempi_memory_create(uint64_t share, struct chempi_memory **out)
{
    struct chempi_memory *memory = chempi_sys->calloc(1, sizeof(*memory));

    if (!memory)
        return -ENOMEM;
    chempi_list_init(&memory->users);
    for (uint32_t i = 0; i < BUCKETS; i++)
        chempi_list_init(&memory->holds[i]);
    memory->share = share;
    *out = memory;
    return 0;
}

void chempi_memory_destroy(struct chempi_memory *memory)
{
    if (!memory)
        return;
    for (uint32_t i = 0; i < BUCKETS; i++) {
        CHEMPI_LIST_FOR_SAFE (node, &memory->holds[i])
            free(CHEMPI_CONTAINER_OF(node, struct hold, link));
    }
    chempi_memory_hooks_close(memory->watch);
    free(memory);
}

/* --- shares --- */

static uint64_t used_by_all(const struct chempi_memory *memory)
{
    uint64_t used = 0;

    for (struct chempi_list *node = memory->users.next; node != &memory->users;
         node = node->next)
        used += user_of(node)->used;
    return used;
}

static uint64_t needed_by_all(const struct chempi_memory *memory)
{
    uint64_t needed = 0;

    for (struct chempi_list *node = memory->users.next; node != &memory->users;
         node = node->next)
        needed += user_of(node)->needed;
    return needed;
}

/* M2: what each needs, and equal parts of the rest; one device that registers
 * is the rule. */
static void divide(struct chempi_memory *memory)
{
    const uint64_t needed = needed_by_all(memory);
    const bool is_short = memory->share < needed; /* too little for all */
    const uint64_t rest = is_short ? memory->share : memory->share - needed;

    CHEMPI_LIST_FOR_SAFE (node, &memory->users) {
        struct chempi_memory_user *user = user_of(node);
        uint64_t part = rest;

        if (memory->user_count > 1)
            part = part / memory->user_count & ~(uint64_t)(PAGE - 1);
        user->share = memory->share == CHEMPI_MEMORY_UNLIMITED
                          ? memory->share
                          : part + (is_short ? 0 : user->needed);
        user->events->share(user);
    }
}

static void tell(struct chempi_memory *memory)
{
    memory->told = used_by_all(memory);
    memory->told_needed = needed_by_all(memory);
    if (memory->fn)
        memory->fn(memory->arg);
}

void chempi_memory_join(struct chempi_memory *memory,
                        struct chempi_memory_user *user)
{
    user->used = 0;
    chempi_list_append(&memory->users, &user->link);
    memory->user_count++;
    divide(memory);
    tell(memory);
}

void chempi_memory_leave(struct chempi_memory *memory,
                         struct chempi_memory_user *user)
{
    chempi_list_remove(&user->link);
    memory->user_count--;
    divide(memory);
    tell(memory);
}

void chempi_memory_used(struct chempi_memory *memory,
                        struct chempi_memory_user *user, uint64_t bytes)
{
    uint64_t before = user->used;
    uint64_t step = memory->share / 16;
    uint64_t used;
    uint64_t far;

    if (bytes == before && needed_by_all(memory) == memory->told_needed)
        return;
    user->used = bytes;
    used = used_by_all(memory);
    far = used > memory->told ? used - memory->told : memory->told - used;
    if (memory->share == CHEMPI_MEMORY_UNLIMITED || step < STEP_MIN)
        step = STEP_MIN;
    if (far >= step || needed_by_all(memory) != memory->told_needed ||
        (bytes < before && memory->told > memory->share))
        tell(memory);
}

void chempi_memory_set_share(struct chempi_memory *memory, uint64_t share)
{
    memory->share = share;
    divide(memory);
    tell(memory);
}

void chempi_memory_state(const struct chempi_memory *memory,
                         struct chempi_memory_state *out)
{
    *out = (struct chempi_memory_state){.share = memory->share};
    for (struct chempi_list *node = memory->users.next; node != &memory->users;
         node = node->next) {
        const struct chempi_memory_user *user = user_of(node);

        out->used += user->used;
        out->wanted += user->wanted;
        out->needed += user->needed;
        out->degraded += user->degraded;
    }
    /* M3; who wants less than the share leaves the rest. */
    out->held = out->share < out->wanted ? out->share : out->wanted;
    if (out->held < out->used)
        out->held = out->used;
}

void chempi_memory_told(struct chempi_memory *memory,
                        const struct chempi_memory_state *state)
{
    if (memory->share != CHEMPI_MEMORY_UNLIMITED && memory->share > state->held)
        memory->share = state->held;
}

void chempi_memory_on_change(struct chempi_memory *memory, void (*fn)(void *),
                             void *arg)
{
    memory->fn = fn;
    memory->arg = arg;
}

/* --- lost pages --- */

static void tell_gone(struct chempi_memory *memory, uintptr_t start,
                      uintptr_t end)
{
    CHEMPI_LIST_FOR_SAFE (node, &memory->users) {
        struct chempi_memory_user *user = user_of(node);

        user->events->gone(user, start, end);
    }
}

struct extent {
    const struct range *moved;
    uintptr_t end; /* of the last mapping that has a part of it */
};

static void extend(void *arg, uintptr_t start, size_t len)
{
    struct extent *extent = arg;

    if (start < extent->moved->end)
        extent->end = start + len;
}

/*
 * Pages that were moved are still locked and watched where they are now, and
 * so is what mremap() has added to them. Nobody knows them there.
 */
static void let_go(struct chempi_memory *memory, const struct range *moved)
{
    struct extent extent = {.moved = moved};
    uintptr_t start = moved->start;
    size_t len;

    (void)chempi_maps_each(start, UINTPTR_MAX, extend, &extent);
    if (extent.end <= start)
        return;
    len = extent.end - start;
    tell_gone(memory, start, start + len); /* neighbours, if any */
    chempi_memory_hooks_remove(memory->watch, start, len);
    (void)munlock((const void *)start, len); /* what was not locked: harmless */
}

static void hear_all(struct chempi_memory *memory)
{
    struct range moves[MOVES_MAX];
    struct chempi_memory_hooks_event event;
    uint32_t count = 0;

    while (chempi_memory_hooks_next(memory->watch, &event)) {
        tell_gone(memory, event.start, event.end);
        /* What was moved and lost again meanwhile needs no more care. */
        for (uint32_t i = 0; i < count;) {
            if (moves[i].start < event.end && event.start < moves[i].end)
                moves[i] = moves[--count];
            else
                i++;
        }
        if (event.moved_to && count < MOVES_MAX)
            moves[count++] = (struct range){
                event.moved_to, event.moved_to + (event.end - event.start)};
    }
    for (uint32_t i = 0; i < count; i++)
        let_go(memory, &moves[i]);
}

void chempi_memory_hear(struct chempi_memory *memory)
{
    if (memory->watch && chempi_memory_hooks_has_news(memory->watch))
        hear_all(memory);
}

int chempi_memory_watch(struct chempi_memory *memory, uintptr_t start,
                        size_t len)
{
    if (!memory->watch && !memory->is_watch_refused)
        memory->is_watch_refused = chempi_memory_hooks_open(&memory->watch) < 0;
    if (!memory->watch)
        return -ENOTSUP;
    return chempi_memory_hooks_add(memory->watch, start, len);
}

void chempi_memory_unwatch(struct chempi_memory *memory, uintptr_t start,
                           size_t len)
{
    /* Another device may have kept some of it: reports too many harm less. */
    if (memory->watch && memory->user_count <= 1)
        chempi_memory_hooks_remove(memory->watch, start, len);
}

/* --- persistent requests --- */

static struct chempi_list *bucket_of(struct chempi_memory *memory,
                                     uintptr_t start)
{
    return &memory->holds[start / PAGE % BUCKETS];
}

static struct hold *find_hold(struct chempi_memory *memory, uintptr_t start,
                              uintptr_t end)
{
    CHEMPI_LIST_FOR (node, bucket_of(memory, start)) {
        struct hold *hold = CHEMPI_CONTAINER_OF(node, struct hold, link);

        if (hold->start == start && hold->end == end)
            return hold;
    }
    return NULL;
}

static void tell_held(struct chempi_memory *memory, uintptr_t start,
                      uintptr_t end)
{
    CHEMPI_LIST_FOR_SAFE (node, &memory->users) {
        struct chempi_memory_user *user = user_of(node);

        user->events->held(user, start, end);
    }
}

void chempi_memory_hold(struct chempi_memory *memory, const void *ptr,
                        size_t len)
{
    uintptr_t start = (uintptr_t)ptr;
    struct hold *hold;

    if (len == 0 || memory->user_count == 0)
        return;
    hold = find_hold(memory, start, start + len);
    if (!hold) {
        hold = chempi_sys->calloc(1, sizeof(*hold));
        if (!hold)
            return;
        hold->start = start;
        hold->end = start + len;
        chempi_list_prepend(bucket_of(memory, start), &hold->link);
        tell_held(memory, start, start + len); /* registered before, perhaps */
    }
    hold->count++;
}

void chempi_memory_release(struct chempi_memory *memory, const void *ptr,
                           size_t len)
{
    uintptr_t start = (uintptr_t)ptr;
    struct hold *hold = find_hold(memory, start, start + len);

    if (!hold || --hold->count > 0)
        return;
    chempi_list_remove(&hold->link);
    free(hold);
    tell_held(memory, start, start + len);
}

static bool meets(const struct chempi_list *bucket, uintptr_t start,
                  uintptr_t end)
{
    for (struct chempi_list *node = bucket->next; node != bucket;
         node = node->next) {
        const struct hold *hold = CHEMPI_CONTAINER_OF(node, struct hold, link);

        if (hold->start < end && start < hold->end)
            return true;
    }
    return false;
}

bool chempi_memory_is_held(const struct chempi_memory *memory, uintptr_t start,
                           uintptr_t end)
{
    for (uint32_t i = 0; i < BUCKETS; i++) {
        if (meets(&memory->holds[i], start, end))
            return true;
    }
    return false;
}
