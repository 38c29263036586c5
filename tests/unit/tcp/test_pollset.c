/* SPDX-License-Identifier: BSD-3-Clause */
/* The descriptor set: what it calls, and what it must not call any more. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "libchempi/services/pollset.h"
#include "tests/unit/tcp/ends.h"

struct watched {
    struct chempi_poll_item item;
    int calls;
    uint32_t events;
    struct chempi_pollset *set;
    struct watched *victim; /* is removed by the call */
};

static struct chempi_pollset *set;

static void ready(struct chempi_poll_item *item, uint32_t events)
{
    struct watched *w = CHEMPI_CONTAINER_OF(item, struct watched, item);

    w->calls++;
    w->events = events;
    if (w->victim)
        chempi_pollset_remove(set, &w->victim->item);
}

static void watch(struct watched *w, unsigned count, uint32_t events)
{
    *w = (struct watched){
        .item = {.fd = eventfd(count, EFD_NONBLOCK), .ready = ready}};
    cr_assert_geq(w->item.fd, 0);
    cr_assert_eq(chempi_pollset_add(set, &w->item, events), 0);
}

static void unwatch(struct watched *w)
{
    chempi_pollset_remove(set, &w->item);
    (void)close(w->item.fd);
}

static void setup(void)
{
    cr_assert_eq(chempi_pollset_create(&set), 0);
}

static void teardown(void)
{
    chempi_pollset_destroy(set);
}

TestSuite(pollset, .init = setup, .fini = teardown, .timeout = 60);

Test(pollset, an_empty_set_finds_nothing)
{
    cr_assert(chempi_pollset_is_empty(set));
    cr_assert_eq(chempi_pollset_collect(set, 0), 0);
    cr_assert_eq(chempi_pollset_dispatch(set), 0);
}

Test(pollset, what_is_ready_is_called_with_its_events)
{
    struct watched w;

    watch(&w, 1, EPOLLIN);
    cr_assert_not(chempi_pollset_is_empty(set));
    cr_assert_eq(chempi_pollset_collect(set, -1), 1);
    cr_assert_eq(w.calls, 0);
    cr_assert_eq(chempi_pollset_dispatch(set), 1);
    cr_assert_eq(w.calls, 1);
    cr_assert_eq(w.events, (uint32_t)EPOLLIN);
    unwatch(&w);
    cr_assert(chempi_pollset_is_empty(set));
}

Test(pollset, readiness_is_told_until_it_is_gone)
{
    struct watched w;
    uint64_t value;

    watch(&w, 1, EPOLLIN);
    for (int i = 1; i < 4; i++) {
        (void)chempi_pollset_collect(set, -1);
        (void)chempi_pollset_dispatch(set);
        cr_assert_eq(w.calls, i);
    }
    cr_assert_eq(read(w.item.fd, &value, sizeof(value)), 8);
    cr_assert_eq(chempi_pollset_collect(set, 0), 0);
    unwatch(&w);
}

Test(pollset, events_can_be_changed)
{
    struct watched w;

    watch(&w, 0, EPOLLIN);
    cr_assert_eq(chempi_pollset_collect(set, 0), 0);
    cr_assert_eq(chempi_pollset_modify(set, &w.item, EPOLLIN | EPOLLOUT), 0);
    cr_assert_eq(chempi_pollset_collect(set, -1), 1);
    (void)chempi_pollset_dispatch(set);
    cr_assert_eq(w.events, (uint32_t)EPOLLOUT);
    unwatch(&w);
}

Test(pollset, an_item_removed_after_the_collect_is_not_called)
{
    struct watched w;

    watch(&w, 1, EPOLLIN);
    (void)chempi_pollset_collect(set, -1);
    unwatch(&w);
    cr_assert_eq(chempi_pollset_dispatch(set), 0);
    cr_assert_eq(w.calls, 0);
}

Test(pollset, a_new_item_in_an_old_place_is_not_taken_for_the_old_one)
{
    struct watched old;
    struct watched new;

    watch(&old, 1, EPOLLIN);
    (void)chempi_pollset_collect(set, -1);
    unwatch(&old);
    watch(&new, 0, EPOLLIN);
    cr_assert_eq(new.item.slot, 1u);
    cr_assert_eq(chempi_pollset_dispatch(set), 0);
    cr_assert_eq(new.calls, 0);
    unwatch(&new);
}

Test(pollset, a_descriptor_that_is_handed_over_is_the_other_items)
{
    struct watched old;
    struct watched new = {.item = {.fd = -1}};

    watch(&old, 1, EPOLLIN);
    new.item.ready = old.item.ready;
    (void)chempi_pollset_collect(set, -1);
    chempi_pollset_hand_over(set, &old.item, &new.item);
    cr_assert_eq(chempi_pollset_dispatch(set), 1);
    cr_assert_eq(old.calls, 0);
    cr_assert_eq(new.calls, 1);
    cr_assert_eq(old.item.fd, -1);
    chempi_pollset_remove(set, &old.item); /* it is in no set */
    unwatch(&new);
    cr_assert(chempi_pollset_is_empty(set));
}

Test(pollset, an_item_may_remove_another_one_that_is_ready_too)
{
    struct watched a;
    struct watched b;

    watch(&a, 1, EPOLLIN);
    watch(&b, 1, EPOLLIN);
    a.victim = &b;
    b.victim = &a;
    cr_assert_eq(chempi_pollset_collect(set, -1), 2);
    cr_assert_eq(chempi_pollset_dispatch(set), 1);
    cr_assert_eq(a.calls + b.calls, 1);
    unwatch(&a);
    unwatch(&b);
}

Test(pollset, many_items_have_a_place_each)
{
    struct watched *w = calloc(300, sizeof(*w));
    int calls = 0;

    for (int i = 0; i < 300; i++)
        watch(&w[i], i % 3 == 0, EPOLLIN);
    /* One collect finds a part; what was called stays ready. */
    for (int i = 0; i < 20; i++) {
        (void)chempi_pollset_collect(set, -1);
        (void)chempi_pollset_dispatch(set);
    }
    for (int i = 0; i < 300; i++) {
        cr_assert_eq(w[i].calls > 0, i % 3 == 0);
        calls += w[i].calls;
        unwatch(&w[i]);
    }
    cr_assert_geq(calls, 100);
    free(w);
}

Test(pollset, an_undispatched_collect_is_not_forgotten)
{
    struct watched w;

    watch(&w, 1, EPOLLIN);
    cr_assert_eq(chempi_pollset_collect(set, -1), 1);
    cr_assert_eq(chempi_pollset_collect(set, 0), 1);
    cr_assert_eq(chempi_pollset_dispatch(set), 1);
    unwatch(&w);
}

Test(pollset, refused_system_calls_are_reported_and_leave_the_set_usable)
{
    struct watched w = {.item = {.fd = eventfd(1, 0), .ready = ready}};
    struct chempi_pollset *other = NULL;

    rig_fail(RIG_EPOLL, 1, ENOSPC, 0);
    cr_assert_eq(chempi_pollset_add(set, &w.item, EPOLLIN), -ENOSPC);
    cr_assert_eq(w.item.slot, 0u);
    rig_fail(RIG_EPOLL, 1, EMFILE, 0);
    cr_assert_eq(chempi_pollset_create(&other), -EMFILE);
    rig_fail(RIG_MALLOC, 1, ENOMEM, 0);
    cr_assert_eq(chempi_pollset_create(&other), -ENOMEM);
    rig_reset();
    cr_assert_null(other);
    cr_assert(chempi_pollset_is_empty(set));
    cr_assert_eq(chempi_pollset_add(set, &w.item, EPOLLIN), 0);
    unwatch(&w);
    chempi_pollset_destroy(NULL);
}

/* ---- two threads: one waits without a lock, the other works under it ---- */

static pthread_mutex_t lane = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool is_over;

static void *collector(void *arg)
{
    (void)arg;
    while (!atomic_load(&is_over)) {
        (void)chempi_pollset_collect(set, -1);
        (void)pthread_mutex_lock(&lane);
        (void)chempi_pollset_dispatch(set);
        (void)pthread_mutex_unlock(&lane);
    }
    return NULL;
}

Test(pollset, items_come_and_go_while_another_thread_waits)
{
    struct watched steady;
    pthread_t thread;
    int seen;

    watch(&steady, 1, EPOLLIN);
    cr_assert_eq(pthread_create(&thread, NULL, collector, NULL), 0);
    for (int i = 0; i < 2000; i++) {
        struct watched w;

        (void)pthread_mutex_lock(&lane);
        watch(&w, 1, EPOLLIN);
        (void)pthread_mutex_unlock(&lane);
        if (i % 64 == 0)
            (void)chempi_pollset_collect(set, 0);
        (void)pthread_mutex_lock(&lane);
        (void)chempi_pollset_dispatch(set);
        unwatch(&w);
        (void)pthread_mutex_unlock(&lane);
    }
    atomic_store(&is_over, true);
    (void)pthread_join(thread, NULL);
    seen = steady.calls;
    cr_assert_gt(seen, 0);
    unwatch(&steady);
}
