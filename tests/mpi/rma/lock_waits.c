/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who waits for locks and who has them, for chempirun's words, and ranks that
 * die with one.
 *
 *   winwait held      rank 1 has rank 0's lock and waits; the others want it
 *   winwait holder    rank 1 dies with the lock that the others wait for
 *   winwait waiter    rank 1 dies while it waits for the lock of rank 0
 *   winwait epoch     rank 1 dies between two fences
 *   winwait fence     rank 1 does not come to the fence of the others
 *   winwait stats     every rank takes another's lock twice, and all ends well
 */
#include <signal.h>
#include <unistd.h>

#include "check.h"

enum { TAG = 3 };

static MPI_Win win;

static void tell(int rank)
{
    MPI_Send(NULL, 0, MPI_BYTE, rank, TAG, MPI_COMM_WORLD);
}

static void hear(int rank)
{
    MPI_Recv(NULL, 0, MPI_BYTE, rank, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Really: a lock may be asked for together with the first operation. */
static void lock(void)
{
    const int64_t value = 1;

    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Put(&value, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win);
    MPI_Win_flush(0, win);
}

static void die(void)
{
    (void)kill(getpid(), SIGKILL);
}

/* Rank 1 first, then all the others. */
static void hold(bool is_dying)
{
    if (check_rank() == 1) {
        lock();
        for (int i = 0; i < check_size(); i++)
            if (i != 1)
                tell(i);
        if (is_dying)
            die();
        hear(0);
    }
    hear(1);
    lock();
}

/* A child dies for a rank that waits. */
static void die_waiting(void)
{
    if (check_rank() == 0) {
        lock();
        tell(1);
        hear(1);
    } else if (check_rank() == 1) {
        const pid_t parent = getpid();

        hear(0);
        if (fork() == 0) {
            (void)kill(parent, SIGKILL);
            _exit(0);
        }
        lock();
    }
    hear(0);
}

static void take_turns(void)
{
    const int64_t value = 1;
    const int target = 1;

    for (int i = 0; i < 2; i++) {
        const int to = check_rank() == target ? 0 : target;

        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, win);
        MPI_Put(&value, 1, MPI_INT64_T, to, 0, 1, MPI_INT64_T, win);
        MPI_Win_unlock(to, win);
    }
    MPI_Win_free(&win);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    int64_t value = 1;
    int64_t *memory;

    check_start(&argc, &argv);
    check_need(3);
    MPI_Win_allocate(8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    MPI_Win_set_name(win, "table");
    if (strcmp(what, "held") == 0 || strcmp(what, "holder") == 0) {
        hold(strcmp(what, "holder") == 0);
    } else if (strcmp(what, "waiter") == 0) {
        die_waiting();
    } else if (strcmp(what, "fence") == 0) {
        if (check_rank() == 1)
            hear(0);
        MPI_Win_fence(0, win);
    } else if (strcmp(what, "stats") == 0) {
        take_turns();
    } else {
        MPI_Win_fence(0, win);
        MPI_Put(&value, 1, MPI_INT64_T, 1, 0, 1, MPI_INT64_T, win);
        if (check_rank() == 1)
            die();
        MPI_Win_fence(0, win);
    }
    return check_finish();
}
