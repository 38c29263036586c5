/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What operations cost that go by messages.
 *
 *   winbounds memory  accumulates of more than the library may copy at a
 *                     time take bounded memory
 *   winbounds batch   64 puts and the flush behind them are few messages; the
 *                     case looks at what chempirun has counted
 *   winbounds reuse   the origin's memory is free to be used again when
 *                     MPI_Wait or MPI_Win_flush_local has returned, also where
 *                     long accumulates leave from there
 */
#include "check.h"

enum {
    CELLS = 2 << 20,
    TIMES = 4,
    REUSES = 2,
    PUTS = 64,
    ROUNDS = 100,
    MIB = 1 << 20
};

/* Bytes of memory that the process had at most. */
static size_t peak_bytes(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    unsigned long kib = 0;
    char line[256];

    while (file && fgets(line, sizeof(line), file))
        if (sscanf(line, "VmHWM: %lu", &kib) == 1)
            break;
    if (file)
        fclose(file);
    return (size_t)kib * 1024;
}

/* Nothing is flushed before all is under way. */
static void accumulate_much(MPI_Win win, int64_t *mine)
{
    const size_t before = peak_bytes();

    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
    for (int i = 0; i < TIMES; i++)
        MPI_Accumulate(mine, CELLS, MPI_INT64_T, 1, 0, CELLS, MPI_INT64_T,
                       MPI_SUM, win);
    MPI_Win_unlock(1, win);
    CHECK(before > 0 && peak_bytes() - before < (size_t)32 * MIB,
          "%zu bytes more for %d accumulates of %zu bytes",
          peak_bytes() - before, TIMES, CELLS * sizeof(*mine));
}

static void check_memory(void)
{
    int64_t *mine = check_alloc(CELLS * sizeof(*mine));
    int64_t *base;
    MPI_Win win;

    MPI_Win_allocate((MPI_Aint)(CELLS * sizeof(*base)), 8, MPI_INFO_NULL,
                     MPI_COMM_WORLD, &base, &win);
    for (int i = 0; i < CELLS; i++) {
        mine[i] = i;
        base[i] = 0;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank() == 0)
        accumulate_much(win, mine);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, check_rank(), 0, win);
    for (int i = 0; i < CELLS && check_rank() == 1; i++)
        CHECK_OR_DIE(base[i] == (int64_t)TIMES * i, "cell %d is %lld", i,
                     (long long)base[i]);
    MPI_Win_unlock(check_rank(), win);
    MPI_Win_free(&win);
    free(mine);
}

static void put_batches(MPI_Win win)
{
    for (int64_t round = 0; round < ROUNDS; round++) {
        for (int64_t i = 0; i < PUTS; i++)
            MPI_Put(&round, 1, MPI_INT64_T, 1, i, 1, MPI_INT64_T, win);
        MPI_Win_flush(1, win);
    }
}

static void check_batches(void)
{
    int64_t *base;
    MPI_Win win;

    MPI_Win_allocate((MPI_Aint)(PUTS * sizeof(*base)), 8, MPI_INFO_NULL,
                     MPI_COMM_WORLD, &base, &win);
    MPI_Win_lock_all(0, win);
    if (check_rank() == 0)
        put_batches(win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_sync(win);
    for (int i = 0; i < PUTS && check_rank() == 1; i++)
        CHECK(base[i] == ROUNDS - 1, "cell %d is %lld", i, (long long)base[i]);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

/* Four times `value` to each cell at rank 1; other values stand in the origin's
 * place at once. */
static void add_twice(MPI_Win win, int64_t *mine, int64_t value)
{
    MPI_Request request;

    for (int i = 0; i < CELLS; i++)
        mine[i] = value;
    MPI_Raccumulate(mine, CELLS, MPI_INT64_T, 1, 0, CELLS, MPI_INT64_T, MPI_SUM,
                    win, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < CELLS; i++)
        mine[i] = 3 * value;
    MPI_Accumulate(mine, CELLS, MPI_INT64_T, 1, 0, CELLS, MPI_INT64_T, MPI_SUM,
                   win);
    MPI_Win_flush_local(1, win);
    for (int i = 0; i < CELLS; i++)
        mine[i] = -1;
}

static void check_reuse(void)
{
    const int64_t zero = 0;
    int64_t *mine = check_alloc(CELLS * sizeof(*mine));
    int64_t *base;
    MPI_Win win;

    MPI_Win_allocate((MPI_Aint)(CELLS * sizeof(*base)), 8, MPI_INFO_NULL,
                     MPI_COMM_WORLD, &base, &win);
    for (int i = 0; i < CELLS; i++)
        base[i] = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank() == 0) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
        MPI_Put(&zero, 1, MPI_INT64_T, 1, 0, 1, MPI_INT64_T, win);
        MPI_Win_flush(1, win); /* nothing is asked for with what follows */
        for (int i = 1; i <= REUSES; i++)
            add_twice(win, mine, i);
        MPI_Win_unlock(1, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < CELLS && check_rank() == 1; i++)
        CHECK_OR_DIE(base[i] == (int64_t)2 * REUSES * (REUSES + 1),
                     "cell %d is %lld", i, (long long)base[i]);
    MPI_Win_free(&win);
    free(mine);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    check_need(2);
    if (argc > 1 && strcmp(argv[1], "batch") == 0)
        check_batches();
    else if (argc > 1 && strcmp(argv[1], "reuse") == 0)
        check_reuse();
    else
        check_memory();
    return check_finish();
}
