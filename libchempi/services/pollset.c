/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Descriptors to wait on; see pollset.h.
 *
 *   P1  item->slot is 0 while the item is in no set, else its index + 1
 *   P2  the kernel knows an item as (index, generation); an answer whose
 *       generation is old belongs to an item that has left, and is dropped
 *   P3  events[] belongs to the thread that moved `stage` off IDLE: collect
 *       fills it (COLLECTING), dispatch empties it (DISPATCHING); everything
 *       else is under the lane lock
 *   P4  what a collect found is kept until a dispatch; epoll is level
 *       triggered, so an answer that is dropped comes again
 */
#define _GNU_SOURCE /* CLOCK_MONOTONIC */
#include "libchempi/services/pollset.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/compiler.h"
#include "common/base/sys.h"
#include "common/containers/array.h"
#include "common/fd/file.h"

#define EVENTS_MAX 64 /* answers of one collect */
#define NO_SLOT UINT32_MAX

enum stage { STAGE_IDLE, STAGE_COLLECTING, STAGE_FULL, STAGE_DISPATCHING };

struct slot {
    struct chempi_poll_item *item; /* NULL: free */
    uint32_t generation;
    uint32_t next_free;
};

struct chempi_pollset {
    int epoll_fd;
    struct slot *slots;
    uint32_t slot_count;
    uint32_t free_slot; /* NO_SLOT: none */
    uint32_t item_count;
    _Atomic int stage; /* enum stage */
    int ready_count;
    int in_vain; /* calls of this dispatch */
    struct epoll_event events[EVENTS_MAX];
};

int chempi_pollset_create(struct chempi_pollset **out)
{
    struct chempi_pollset *set = chempi_sys->calloc(1, sizeof(*set));

    if (!set)
        return -ENOMEM;
    set->free_slot = NO_SLOT;
    atomic_init(&set->stage, STAGE_IDLE);
    set->epoll_fd = chempi_sys->epoll_create1(EPOLL_CLOEXEC);
    if (set->epoll_fd < 0) {
        int code = -errno;

        free(set);
        return code;
    }
    *out = set;
    return 0;
}

void chempi_pollset_destroy(struct chempi_pollset *set)
{
    if (!set)
        return;
    (void)close(set->epoll_fd); /* nothing of ours is lost with it */
    free(set->slots);
    free(set);
}

static int grow(struct chempi_pollset *set)
{
    uint32_t old = set->slot_count;

    if (!CHEMPI_ARRAY_FIT(set->slots, set->slot_count, old + 1))
        return -ENOMEM;
    for (uint32_t i = old; i < set->slot_count; i++)
        set->slots[i] = (struct slot){
            .next_free = i + 1 < set->slot_count ? i + 1 : set->free_slot};
    set->free_slot = old;
    return 0;
}

static int control(struct chempi_pollset *set, int op,
                   const struct chempi_poll_item *item, uint32_t index,
                   uint32_t events)
{
    struct epoll_event ev = {.events = events};

    ev.data.u64 =
        (uint64_t)set->slots[index].generation << 32 | (uint64_t)index;
    if (chempi_sys->epoll_ctl(set->epoll_fd, op, item->fd, &ev) < 0)
        return -errno;
    return 0;
}

int chempi_pollset_add(struct chempi_pollset *set,
                       struct chempi_poll_item *item, uint32_t events)
{
    uint32_t index;
    int rc;

    assert(item->slot == 0); /* P1 */
    if (set->free_slot == NO_SLOT && (rc = grow(set)) != 0)
        return rc;
    index = set->free_slot;
    rc = control(set, EPOLL_CTL_ADD, item, index, events);
    if (rc)
        return rc;
    set->free_slot = set->slots[index].next_free;
    set->slots[index].item = item;
    set->item_count++;
    item->slot = index + 1;
    return 0;
}

int chempi_pollset_modify(struct chempi_pollset *set,
                          struct chempi_poll_item *item, uint32_t events)
{
    assert(item->slot && item->slot <= set->slot_count);
    return control(set, EPOLL_CTL_MOD, item, item->slot - 1, events);
}

void chempi_pollset_remove(struct chempi_pollset *set,
                           struct chempi_poll_item *item)
{
    uint32_t index;

    if (!item->slot)
        return;
    index = item->slot - 1;
    assert(index < set->slot_count && set->slots[index].item == item);
    /* Fails only for a descriptor that is closed, and so has left already. */
    (void)control(set, EPOLL_CTL_DEL, item, index, 0);
    set->slots[index].item = NULL;
    set->slots[index].generation++; /* P2 */
    set->slots[index].next_free = set->free_slot;
    set->free_slot = index;
    set->item_count--;
    item->slot = 0;
}

void chempi_pollset_hand_over(struct chempi_pollset *set,
                              struct chempi_poll_item *from,
                              struct chempi_poll_item *to)
{
    assert(from->slot && from->slot <= set->slot_count && to->slot == 0);
    set->slots[from->slot - 1].item = to;
    to->slot = from->slot; /* P1 */
    to->fd = from->fd;
    from->slot = 0;
    from->fd = -1;
}

int chempi_pollset_tick(struct chempi_pollset *set,
                        struct chempi_poll_item *item, chempi_poll_fn *ready,
                        long every_ns)
{
    int rc;

    if (item->fd >= 0)
        return 0;
    item->ready = ready;
    item->fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (item->fd < 0)
        return -errno;
    chempi_pollset_pace(item, every_ns);
    rc = chempi_pollset_add(set, item, EPOLLIN);
    if (rc)
        chempi_pollset_untick(set, item);
    return rc;
}

void chempi_pollset_pace(struct chempi_poll_item *item, long every_ns)
{
    const long second_ns = (long)CHEMPI_NS_PER_S;
    const struct timespec t = {.tv_sec = every_ns / second_ns,
                               .tv_nsec = every_ns % second_ns};
    const struct itimerspec every = {.it_interval = t, .it_value = t};

    /* It fails for what is no timer. */
    (void)timerfd_settime(item->fd, 0, &every, NULL);
}

void chempi_pollset_ticked(struct chempi_poll_item *item, uint32_t events)
{
    uint64_t ticks;

    (void)events; /* there is only one */
    (void)chempi_sys->read(item->fd, &ticks, sizeof(ticks));
}

void chempi_pollset_untick(struct chempi_pollset *set,
                           struct chempi_poll_item *item)
{
    chempi_pollset_remove(set, item);
    chempi_file_close(item->fd);
    item->fd = -1;
}

bool chempi_pollset_is_empty(const struct chempi_pollset *set)
{
    return set->item_count == 0;
}

int chempi_pollset_collect(struct chempi_pollset *set, int timeout_ms)
{
    int stage = STAGE_IDLE;
    int n;

    if (!atomic_compare_exchange_strong_explicit(
            &set->stage, &stage, STAGE_COLLECTING, memory_order_acquire,
            memory_order_acquire))
        return stage == STAGE_FULL ? set->ready_count : 0; /* P4 */
    n = chempi_sys->epoll_wait(set->epoll_fd, set->events, EVENTS_MAX,
                               timeout_ms);
    set->ready_count = n > 0 ? n : 0;
    /* Orders events[] before the dispatch that finds FULL. */
    atomic_store_explicit(&set->stage, n > 0 ? STAGE_FULL : STAGE_IDLE,
                          memory_order_release);
    return n > 0 ? n : 0;
}

void chempi_pollset_watch(struct chempi_pollset *set)
{
    struct epoll_event event;

    (void)chempi_sys->epoll_wait(set->epoll_fd, &event, 1, -1);
}

int chempi_pollset_dispatch(struct chempi_pollset *set)
{
    int stage = STAGE_FULL;
    int calls = 0;
    int count;

    if (!atomic_compare_exchange_strong_explicit(
            &set->stage, &stage, STAGE_DISPATCHING, memory_order_acquire,
            memory_order_relaxed))
        return 0;
    count = set->ready_count;
    set->in_vain = 0;
    for (int i = 0; i < count; i++) {
        uint32_t index = (uint32_t)(set->events[i].data.u64 & UINT32_MAX);
        uint32_t generation = (uint32_t)(set->events[i].data.u64 >> 32);
        struct slot *slot;

        if (index >= set->slot_count)
            continue;
        slot = &set->slots[index]; /* ready() may move the array */
        if (!slot->item || slot->generation != generation)
            continue; /* P2 */
        slot->item->ready(slot->item, set->events[i].events);
        calls++;
    }
    calls -= set->in_vain;
    atomic_store_explicit(&set->stage, STAGE_IDLE, memory_order_release);
    return calls;
}

void chempi_pollset_in_vain(struct chempi_pollset *set)
{
    set->in_vain++;
}
