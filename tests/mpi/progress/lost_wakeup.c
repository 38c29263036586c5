/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank that sends a short message and then waits outside MPI, for a signal
 * that the receiver sends when it has the message. What wakes a sleeping
 * receiver may get lost, and nobody rings again. The sender has slept in MPI
 * before, waiting for a third rank, so that the receiver has no lines of its
 * own that it would be told of. All on one host.
 *
 * usage: unheard [messages]
 */
#define _GNU_SOURCE /* kill, sigwait, sched_yield */
#include "check.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define LOOKS 20000 /* at the receiver, until it sleeps */

/* The most that can be done for a sleep; the test goes on without. */
static void await_sleep(int pid)
{
    for (int n = 0; n < LOOKS && !check_is_asleep(pid); n++)
        (void)sched_yield();
}

static void say(int pid, int count, const sigset_t *set)
{
    int got = 0;

    MPI_Recv(&got, 1, MPI_INT, 2, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < count; i++) {
        await_sleep(pid);
        MPI_Send(&i, 1, MPI_INT, 1, i, MPI_COMM_WORLD);
        CHECK(sigwait(set, &got) == 0 && got == SIGUSR1, "signal %d", got);
    }
}

static void hear(int pid, int count)
{
    int value = -1;

    for (int i = 0; i < count; i++) {
        MPI_Recv(&value, 1, MPI_INT, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(value == i, "message %d holds %d", i, value);
        CHECK(kill(pid, SIGUSR1) == 0, "rank 0 is not there");
    }
}

static void release(int pid)
{
    await_sleep(pid);
    MPI_Send(&pid, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    sigset_t set;
    int pids[3];
    int pid = (int)getpid();

    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    (void)sigprocmask(SIG_BLOCK, &set, NULL); /* and in the library's threads */
    check_start(&argc, &argv);
    check_need(3);
    int count = (int)check_arg(argc, argv, 1, 20);

    MPI_Allgather(&pid, 1, MPI_INT, pids, 1, MPI_INT, MPI_COMM_WORLD);
    if (check_rank() == 0)
        say(pids[1], count, &set);
    else if (check_rank() == 1)
        hear(pids[0], count);
    else if (check_rank() == 2)
        release(pids[0]);
    return check_finish();
}
