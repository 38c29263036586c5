/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads of a process whose first operations under MPI_Win_lock_all meet at
 * one target, window after window: it is locked once, and free afterwards. And
 * one that attaches and detaches while another puts to its own process.
 *
 *   winthreads [windows]
 */
#include <pthread.h>

#include "check.h"

enum { THREADS = 3, PUTS = 20 };

static struct {
    MPI_Win win;
    MPI_Aint base;
    pthread_barrier_t barrier;
    int target;
} my;

static void *put(void *arg)
{
    const int64_t value = *(const int *)arg;

    (void)pthread_barrier_wait(&my.barrier);
    MPI_Put(&value, 1, MPI_INT64_T, my.target, (MPI_Aint)value, 1, MPI_INT64_T,
            my.win);
    return NULL;
}

static void together(void *(*work)(void *))
{
    int numbers[THREADS];

    for (int i = 0; i < THREADS; i++)
        numbers[i] = i;
    check_run_threads(THREADS, work, numbers, sizeof(numbers[0]));
}

/* An exclusive lock that is granted says that no other one is left. */
static void one_window(bool is_created)
{
    int64_t memory[THREADS] = {-1, -1, -1};
    int64_t *cells = memory;

    if (is_created)
        MPI_Win_create(memory, sizeof(memory), 8, MPI_INFO_NULL, MPI_COMM_WORLD,
                       &my.win);
    else
        MPI_Win_allocate(sizeof(memory), 8, MPI_INFO_NULL, MPI_COMM_WORLD,
                         &cells, &my.win);
    my.target = (check_rank() + 1) % check_size();
    MPI_Win_lock_all(0, my.win);
    together(put);
    MPI_Win_unlock_all(my.win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, my.target, 0, my.win);
    MPI_Win_unlock(my.target, my.win);
    for (int i = 0; i < THREADS; i++)
        CHECK(cells[i] == i, "cell %d is %d", i, (int)cells[i]);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&my.win);
}

static void *attach_or_put(void *arg)
{
    const int number = *(const int *)arg;
    const int64_t value = number;
    static char memory[THREADS][16];

    (void)pthread_barrier_wait(&my.barrier);
    for (int i = 0; i < PUTS; i++) {
        if (number == 0) {
            MPI_Put(&value, 1, MPI_INT64_T, check_rank(), my.base, 1,
                    MPI_INT64_T, my.win);
        } else {
            MPI_Win_attach(my.win, memory[number], 16);
            MPI_Win_detach(my.win, memory[number]);
        }
    }
    return NULL;
}

static void attach_meanwhile(void)
{
    int64_t cell = -1;

    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &my.win);
    MPI_Win_attach(my.win, &cell, sizeof(cell));
    MPI_Get_address(&cell, &my.base);
    MPI_Win_lock_all(0, my.win);
    together(attach_or_put);
    MPI_Win_unlock_all(my.win);
    CHECK(cell == 0, "the cell is %d", (int)cell);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_detach(my.win, &cell);
    MPI_Win_free(&my.win);
}

int main(int argc, char **argv)
{
    int windows;

    check_start_thread(&argc, &argv, MPI_THREAD_MULTIPLE);
    windows = argc > 1 ? atoi(argv[1]) : 20;
    (void)pthread_barrier_init(&my.barrier, NULL, THREADS);
    for (int i = 0; i < windows; i++)
        one_window(i % 2);
    attach_meanwhile();
    (void)pthread_barrier_destroy(&my.barrier);
    return check_finish();
}
