/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Exclusive and shared locks that all ranks want again and again: a writer is
 * alone, readers see nothing half done, and who waits has its turn while others
 * come back at once.
 *
 *   winlocks TURNS
 */
#include <sched.h>

#include "check.h"

enum { FIRST, SECOND, WRITES, CALLS, CELLS };

static MPI_Win win;
static volatile int64_t *cells; /* of rank 0, where they are mapped */

static int64_t get(int cell)
{
    int64_t value;

    if (cells)
        return cells[cell];
    MPI_Get(&value, 1, MPI_INT64_T, 0, cell, 1, MPI_INT64_T, win);
    MPI_Win_flush(0, win);
    return value;
}

static void put(int cell, int64_t value)
{
    if (cells)
        cells[cell] = value;
    else
        MPI_Put(&value, 1, MPI_INT64_T, 0, cell, 1, MPI_INT64_T, win);
}

static void write_both(bool is_slow)
{
    int64_t value;

    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    value = get(FIRST);
    CHECK(value == get(SECOND), "a writer meets %lld and %lld",
          (long long)value, (long long)get(SECOND));
    put(FIRST, value + 1);
    if (is_slow)
        sched_yield();
    put(SECOND, value + 1);
    put(WRITES, get(WRITES) + 1);
    MPI_Win_unlock(0, win);
}

static void read_both(bool is_slow)
{
    int64_t value;

    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    value = get(FIRST);
    if (is_slow)
        sched_yield();
    CHECK(value == get(SECOND), "a reader meets %lld and %lld",
          (long long)value, (long long)get(SECOND));
    MPI_Win_unlock(0, win);
}

/* Returns how often this rank has written. */
static int64_t take_turns(int turns)
{
    uint64_t state = check_mix(5, (uint64_t)check_rank());
    int64_t writes = 0;

    for (int i = 0; i < turns; i++) {
        const uint64_t what = check_random(&state);

        if (what % 3) {
            write_both(what % 8 == 0);
            writes++;
        } else {
            read_both(what % 8 == 0);
        }
    }
    return writes;
}

/* Rank 0 takes the lock until each of the others has had it. */
static void wait_for_others(void)
{
    int64_t calls = 0;

    if (check_rank() > 0) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        put(CALLS, get(CALLS) + 1);
        MPI_Win_unlock(0, win);
    }
    while (check_rank() == 0 && calls < check_size() - 1) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        calls = get(CALLS);
        MPI_Win_unlock(0, win);
    }
}

static void run(int turns)
{
    int64_t writes;
    int64_t all;

    MPI_Barrier(MPI_COMM_WORLD);
    writes = take_turns(turns);
    wait_for_others();
    MPI_Reduce(&writes, &all, 1, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    CHECK(check_rank() != 0 || get(WRITES) == all, "%lld writes, not %lld",
          (long long)get(WRITES), (long long)all);
    MPI_Win_unlock(0, win);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    int64_t *memory;
    void *base;
    MPI_Aint len;
    int unit;
    int turns;

    check_start(&argc, &argv);
    turns = argc > 1 ? atoi(argv[1]) : 1000;
    MPI_Win_allocate(CELLS * (MPI_Aint)sizeof(*memory), 8, MPI_INFO_NULL,
                     MPI_COMM_WORLD, &memory, &win);
    memset(memory, 0, CELLS * sizeof(*memory));
    run(turns);
    MPI_Win_shared_query(win, 0, &len, &unit, &base);
    cells = base;
    memset(memory, 0, CELLS * sizeof(*memory));
    run(turns);
    MPI_Win_free(&win);
    return check_finish();
}
