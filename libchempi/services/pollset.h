/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Descriptors to wait on, shared by the devices of a process and its control
 * connection: epoll in two halves, so that the wait happens without the lane
 * lock and the callbacks under it.
 *
 * An item belongs to its user and must stay valid until removed; an item that
 * is removed between collect and dispatch is not called any more.
 */
#ifndef CHEMPI_LIBCHEMPI_SERVICES_POLLSET_H
#define CHEMPI_LIBCHEMPI_SERVICES_POLLSET_H

#include <stdbool.h>
#include <stdint.h>

struct chempi_pollset;
struct chempi_poll_item;

/* events: EPOLLIN, EPOLLOUT, EPOLLERR, EPOLLHUP. */
typedef void chempi_poll_fn(struct chempi_poll_item *item, uint32_t events);

struct chempi_poll_item {
    int fd;
    chempi_poll_fn *ready;
    uint32_t slot; /* the set's own */
};

int chempi_pollset_create(struct chempi_pollset **out);
void chempi_pollset_destroy(struct chempi_pollset *set);

/* Level-triggered. 0 or -errno. Under the lane lock. */
int chempi_pollset_add(struct chempi_pollset *set,
                       struct chempi_poll_item *item, uint32_t events);
int chempi_pollset_modify(struct chempi_pollset *set,
                          struct chempi_poll_item *item, uint32_t events);
void chempi_pollset_remove(struct chempi_pollset *set,
                           struct chempi_poll_item *item);
/* `to`, which is in no set, takes over the descriptor of `from`, its place and
 * the events that were asked for: that cannot fail. */
void chempi_pollset_hand_over(struct chempi_pollset *set,
                              struct chempi_poll_item *from,
                              struct chempi_poll_item *to);
/* By this tests see that all who were added have gone. */
bool chempi_pollset_is_empty(const struct chempi_pollset *set);

/* Wake the set every so often (0: see pace()), which calls `ready`;
 * chempi_pollset_ticked() is for those to whom being woken is all that matters,
 * and every other one calls it first. item->fd is -1 while it does not tick. 0,
 * also if it ticks already, or -errno: it does not. Under the lane lock. */
int chempi_pollset_tick(struct chempi_pollset *set,
                        struct chempi_poll_item *item, chempi_poll_fn *ready,
                        long every_ns);
/* Of one that ticks: from now on so often, 0: not at all, until the next. */
void chempi_pollset_pace(struct chempi_poll_item *item, long every_ns);
void chempi_pollset_ticked(struct chempi_poll_item *item, uint32_t events);
void chempi_pollset_untick(struct chempi_pollset *set,
                           struct chempi_poll_item *item);

/* Wait up to timeout_ms (0: look only; -1: no limit) and remember what is
 * ready. One thread at a time; needs no lock. Returns the number ready, 0 on
 * timeout or signal. */
int chempi_pollset_collect(struct chempi_pollset *set, int timeout_ms);

/* Wait until something is ready, or a signal comes; remembers nothing. Any
 * thread, without the lock, while another one may collect. */
void chempi_pollset_watch(struct chempi_pollset *set);

/* Call ready() for what the last collect found. Under the lane lock. Returns
 * the number of calls that were not in vain. */
int chempi_pollset_dispatch(struct chempi_pollset *set);

/* From ready(), once: the item stays ready, but nothing could be done with it
 * now. Whoever polls then finds nothing, and gives others the core. */
void chempi_pollset_in_vain(struct chempi_pollset *set);

#endif
