/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Members that have handed in as much as they may before the root takes it:
 * they sleep until there is room for half of that again, and are not woken
 * for less.
 */
#define _GNU_SOURCE /* sched_yield */
#include "check.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

enum {
    LEN = 16 << 10, /* bytes, the most that is handed in */
    FULL = 16,      /* operations, then who hands in waits */
    HALF = FULL / 2
};

static void gather(const char *own, char *all)
{
    MPI_Gather(own, LEN, MPI_BYTE, all, LEN, MPI_BYTE, 0, MPI_COMM_WORLD);
}

/* done: by each member. */
static void take(const int *pids, _Atomic int *done, const char *own)
{
    char *all = check_alloc((size_t)LEN * (size_t)check_size());

    for (int m = 1; m < check_size(); m++)
        while (atomic_load(&done[m]) < FULL)
            (void)sched_yield();
    for (int i = 0; i < FULL + HALF; i++) {
        for (int m = 1; i < HALF && m < check_size(); m++)
            check_await_sleep(pids[m]);
        gather(own, all);
    }
    free(all);
}

static void hand_in(_Atomic int *done, const char *own)
{
    const unsigned long long before = check_watched();
    unsigned long long slept;

    for (int i = 0; i < FULL + HALF; i++) {
        gather(own, NULL);
        atomic_store(done, i + 1);
    }
    slept = check_watched() - before;
    CHECK(slept < HALF / 2, "rank %d slept %llu times", check_rank(), slept);
    check_was_used();
}

int main(int argc, char **argv)
{
    const int pid = (int)getpid();
    _Atomic int *done;
    MPI_Aint len;
    MPI_Win win;
    char *own;
    int *pids;
    int unit;

    check_start(&argc, &argv);
    check_need(3);
    if (sysconf(_SC_NPROCESSORS_ONLN) >= check_size())
        check_skip("each rank may have a core, and then waits for nobody");
    own = check_alloc(LEN);
    pids = check_alloc((size_t)check_size() * sizeof(*pids));
    MPI_Allgather(&pid, 1, MPI_INT, pids, 1, MPI_INT, MPI_COMM_WORLD);
    MPI_Win_allocate_shared(
        check_rank() == 0 ? (MPI_Aint)sizeof(*done) * check_size() : 0,
        sizeof(*done), MPI_INFO_NULL, MPI_COMM_WORLD, &done, &win);
    MPI_Win_shared_query(win, 0, &len, &unit, &done);
    if (check_rank() == 0)
        memset((void *)(uintptr_t)done, 0, (size_t)len);
    else
        check_watch("chempi_progress_sleeps");
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank() == 0)
        take(pids, done, own);
    else
        hand_in(&done[check_rank()], own);
    MPI_Win_free(&win);
    free(own);
    free(pids);
    return check_finish();
}
