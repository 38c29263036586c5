/* SPDX-License-Identifier: BSD-3-Clause */
/* Events of the tool interface that come faster than they are told, callbacks
 * that free their registrations, and the end of the interface. */
#include <criterion/criterion.h>
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "libchempi/didl/transport/event.h"
#include "libchempi/didl/transport/lane.h"

enum {
    RAISED = 100,
    QUEUED = 64, /* event.c: QUEUE_MAX */
    YIELDS = 10000
};

static struct {
    int calls;
    int last; /* element 0 of the latest */
    MPI_Count dropped;
    int dropped_calls;
    int calls_before_dropped;
    int frees;
    bool must_free;
    bool must_end; /* in the handler of what was dropped */
} told;

static void on_free(MPI_T_event_registration reg, MPI_T_cb_safety safety,
                    void *user_data)
{
    (void)reg;
    (void)safety;
    cr_expect_eq(user_data, &told);
    told.frees++;
}

static void on_event(MPI_T_event_instance instance,
                     MPI_T_event_registration reg, MPI_T_cb_safety safety,
                     void *user_data)
{
    (void)safety;
    cr_expect_eq(user_data, &told);
    cr_expect_eq(MPI_T_event_read(instance, 0, &told.last), MPI_SUCCESS);
    told.calls++;
    if (told.must_free) {
        cr_expect_eq(MPI_T_event_handle_free(reg, &told, on_free), MPI_SUCCESS);
        cr_expect_eq(told.frees, 0, "while its callback runs");
        cr_expect_eq(MPI_T_event_read(instance, 1, &told.last), MPI_SUCCESS);
    }
}

static void on_other(MPI_T_event_instance instance,
                     MPI_T_event_registration reg, MPI_T_cb_safety safety,
                     void *user_data)
{
    (void)instance;
    (void)reg;
    (void)safety;
    (void)user_data;
    cr_expect_fail("a callback of a higher level");
}

static void on_dropped(MPI_Count count, MPI_T_event_registration reg,
                       int source, MPI_T_cb_safety safety, void *user_data)
{
    (void)reg;
    (void)safety;
    cr_expect_eq(source, 0);
    cr_expect_eq(user_data, &told);
    told.calls_before_dropped = told.calls;
    told.dropped += count;
    told.dropped_calls++;
    if (told.must_end)
        cr_expect_eq(MPI_T_finalize(), MPI_SUCCESS);
}

static MPI_T_event_registration begin(void)
{
    MPI_T_event_registration reg;
    int provided;

    memset(&told, 0, sizeof(told));
    cr_assert_eq(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided),
                 MPI_SUCCESS);
    cr_assert_eq(MPI_T_event_handle_alloc(CHEMPI_EVENT_RESOLVED, NULL,
                                          MPI_INFO_NULL, &reg),
                 MPI_SUCCESS);
    cr_assert_eq(MPI_T_event_register_callback(reg, MPI_T_CB_REQUIRE_NONE,
                                               MPI_INFO_NULL, &told, on_event),
                 MPI_SUCCESS);
    return reg;
}

static void raise_some(int count)
{
    for (int32_t i = 0; i < count; i++) {
        const int32_t elements[CHEMPI_EVENT_ELEMENTS] = {i, 2 * i, 0};

        chempi_lane_lock(&chempi_lane_main);
        chempi_event_raise(CHEMPI_EVENT_RESOLVED, elements);
        chempi_lane_unlock(&chempi_lane_main);
    }
}

Test(events, that_find_no_room_are_counted_and_told_first)
{
    MPI_T_event_registration reg = begin();

    cr_assert_eq(MPI_T_event_set_dropped_handler(reg, on_dropped), MPI_SUCCESS);
    cr_assert_eq(
        MPI_T_event_register_callback(reg, MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE,
                                      MPI_INFO_NULL, NULL, on_other),
        MPI_SUCCESS);
    raise_some(RAISED);
    chempi_event_deliver();
    cr_expect_eq(told.calls, QUEUED, "%d", told.calls);
    cr_expect_eq(told.last, QUEUED - 1, "%d", told.last);
    cr_expect_eq(told.dropped, RAISED - QUEUED);
    cr_expect_eq(told.dropped_calls, 1);
    cr_expect_eq(told.calls_before_dropped, 0);
    raise_some(1);
    chempi_event_deliver();
    cr_expect_eq(told.calls, QUEUED + 1);
    cr_expect_eq(told.dropped_calls, 1, "told again");
    cr_expect_eq(MPI_T_finalize(), MPI_SUCCESS);
}

Test(events, end_with_a_registration_that_its_callback_frees)
{
    (void)begin();
    told.must_free = true;
    raise_some(3);
    chempi_event_deliver();
    cr_expect_eq(told.calls, 1, "%d", told.calls);
    cr_expect_eq(told.frees, 1, "%d", told.frees);
    cr_expect_eq(MPI_T_finalize(), MPI_SUCCESS);
}

Test(events, end_with_the_tool_interface)
{
    MPI_T_event_registration reg = begin();
    int provided;

    raise_some(2);
    cr_expect_eq(MPI_T_finalize(), MPI_SUCCESS);
    cr_expect_not(chempi_event_is_wanted(CHEMPI_EVENT_RESOLVED));
    raise_some(2);
    chempi_event_deliver();
    cr_expect_eq(told.calls, 0, "%d", told.calls);
    cr_assert_eq(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided), MPI_SUCCESS);
    cr_expect_eq(MPI_T_event_handle_free(reg, NULL, NULL),
                 MPI_T_ERR_INVALID_HANDLE);
    cr_expect_eq(MPI_T_finalize(), MPI_SUCCESS);
}

Test(events, do_not_come_after_an_end_in_the_handler_of_dropped_ones)
{
    MPI_T_event_registration reg = begin();

    cr_assert_eq(MPI_T_event_set_dropped_handler(reg, on_dropped), MPI_SUCCESS);
    told.must_end = true;
    raise_some(RAISED);
    chempi_event_deliver();
    cr_expect_eq(told.dropped_calls, 1, "%d", told.dropped_calls);
    cr_expect_eq(told.calls, 0, "%d", told.calls);
}

/* A callback that runs until the interface has ended, or would have. */
static struct {
    atomic_bool runs;
    atomic_bool has_run;
    atomic_bool is_over; /* MPI_T_finalize has returned */
} slow;

static void on_event_slowly(MPI_T_event_instance instance,
                            MPI_T_event_registration reg,
                            MPI_T_cb_safety safety, void *user_data)
{
    (void)instance;
    (void)reg;
    (void)safety;
    (void)user_data;
    slow.runs = true;
    while (chempi_event_is_wanted(CHEMPI_EVENT_RESOLVED))
        sched_yield();
    for (int i = 0; i < YIELDS && !slow.is_over; i++)
        sched_yield();
    cr_expect_not(slow.is_over, "a callback runs on after the end");
    slow.has_run = true;
}

static void *deliver(void *arg)
{
    chempi_event_deliver();
    return arg;
}

Test(events, are_waited_for_at_the_end_where_another_thread_tells_them)
{
    MPI_T_event_registration reg = begin();
    pthread_t thread;

    cr_assert_eq(MPI_T_event_register_callback(reg, MPI_T_CB_REQUIRE_NONE,
                                               MPI_INFO_NULL, NULL,
                                               on_event_slowly),
                 MPI_SUCCESS);
    raise_some(1);
    cr_assert_eq(pthread_create(&thread, NULL, deliver, NULL), 0);
    while (!slow.runs)
        sched_yield();
    cr_expect_eq(MPI_T_finalize(), MPI_SUCCESS);
    slow.is_over = true;
    cr_expect(slow.has_run);
    cr_assert_eq(pthread_join(thread, NULL), 0);
}
