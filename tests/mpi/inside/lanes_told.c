/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events of the tool interface, with messages in several lanes: a process that
 * is first met in another lane than the first is told of, once; and a callback
 * that takes long, in a thread that waits for what such a lane does, does not
 * hold up threads that wait for the first one. Ranks 1 and 2 do this; they have
 * not met when there are four and a communicator was made.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "libchempi/didl/comm/comm.h"
#include "libchempi/didl/transport/conn.h"
#include "libchempi/didl/transport/event.h"
#include "libchempi/didl/transport/lane.h"
#include "tests/mpi/check.h"

enum { TURN = 1, ASK, ANSWER, ROUNDS = 6, TESTER = 1, OTHER };

static struct {
    MPI_Comm own;
    atomic_int met;      /* events of the other process */
    atomic_bool is_held; /* a callback waits for the answer */
    atomic_int answers;
    atomic_int wanted; /* answers, for the callback to return */
    atomic_bool is_over;
    pthread_t busy;
} my;

static void told(MPI_T_event_instance instance, MPI_T_event_registration reg,
                 MPI_T_cb_safety safety, void *data)
{
    int proc = -1;

    (void)reg;
    (void)safety;
    (void)data;
    MPI_T_event_read(instance, 0, &proc);
    my.met += proc == OTHER;
    if (proc == OTHER || !pthread_equal(pthread_self(), my.busy) ||
        my.answers == my.wanted)
        return;
    my.is_held = true;
    while (my.answers < my.wanted)
        (void)sched_yield();
    my.is_held = false;
}

static void listen(MPI_T_event_registration *reg)
{
    int provided;
    int i;

    MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided);
    CHECK_OR_DIE(!MPI_T_event_get_index("chempi_conn_process_resolved", &i) &&
                     !MPI_T_event_handle_alloc(i, NULL, MPI_INFO_NULL, reg) &&
                     !MPI_T_event_register_callback(*reg, MPI_T_CB_REQUIRE_NONE,
                                                    MPI_INFO_NULL, NULL, told),
                 "no event");
}

static int peer(void)
{
    return TESTER + OTHER - check_rank();
}

static void turn(MPI_Comm comm, int *go_on)
{
    MPI_Sendrecv_replace(go_on, 1, MPI_INT, peer(), TURN, peer(), TURN, comm,
                         MPI_STATUS_IGNORE);
}

static void check_met(void)
{
    int flag;

    MPI_Iprobe(0, TURN, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
    CHECK(check_rank() == OTHER || my.met == 1, "met %d times", my.met);
}

/* The first message goes in a lane of its own, the next one in the first. */
static void meet(void)
{
    int value = 0;

    CHECK_OR_DIE(!chempi_conn_peer(&chempi_lane_main, OTHER)->routes ||
                     check_rank() == OTHER,
                 "it was met before");
    turn(my.own, &value);
    check_met();
    turn(MPI_COMM_WORLD, &value);
    check_met();
}

/* Always polls its lane, in waits, until the tester's is over. */
static void *be_busy(void *arg)
{
    bool goes_on = true;

    while (goes_on) {
        int value = !my.is_over;

        goes_on = value;
        turn(my.own, &value);
        if (check_rank() == OTHER)
            goes_on = value;
    }
    return arg;
}

/* Waits for the first lane. */
static void *await(void *arg)
{
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Recv(NULL, 0, MPI_BYTE, OTHER, ANSWER, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        my.answers++;
    }
    return arg;
}

static void raise_until_held(void)
{
    static const int32_t nobody[CHEMPI_EVENT_ELEMENTS] = {-1};

    while (!my.is_held) {
        chempi_event_raise(CHEMPI_EVENT_RESOLVED, nobody);
        (void)sched_yield();
    }
}

/* Each callback lasts until the waiting thread has what it waits for. */
static void test(void)
{
    pthread_t waiter;

    CHECK_OR_DIE(!pthread_create(&waiter, NULL, await, NULL), "no thread");
    for (int i = 0; i < ROUNDS; i++) {
        my.wanted = i + 1;
        raise_until_held();
        MPI_Send(NULL, 0, MPI_BYTE, OTHER, ASK, MPI_COMM_WORLD);
        while (my.is_held)
            (void)sched_yield();
    }
    my.is_over = true;
    pthread_join(waiter, NULL);
}

static void answer(void)
{
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Recv(NULL, 0, MPI_BYTE, TESTER, ASK, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        MPI_Send(NULL, 0, MPI_BYTE, TESTER, ANSWER, MPI_COMM_WORLD);
    }
}

static void take_part(void)
{
    meet();
    CHECK_OR_DIE(!pthread_create(&my.busy, NULL, be_busy, NULL), "no thread");
    if (check_rank() == TESTER)
        test();
    else
        answer();
    pthread_join(my.busy, NULL);
}

int main(int argc, char **argv)
{
    MPI_T_event_registration reg;

    check_start_thread(&argc, &argv, MPI_THREAD_MULTIPLE);
    CHECK_OR_DIE(check_size() == 4, "four ranks");
    listen(&reg);
    MPI_Comm_dup(MPI_COMM_WORLD, &my.own);
    CHECK_OR_DIE(chempi_comm_lookup(my.own)->lane->number > 0,
                 "it is in the first lane");
    if (check_rank() == TESTER || check_rank() == OTHER)
        take_part();
    MPI_Comm_free(&my.own);
    MPI_T_event_handle_free(reg, NULL, NULL);
    MPI_T_finalize();
    return check_finish();
}
