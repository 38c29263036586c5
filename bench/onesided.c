/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided operations of rank 0 on memory of rank 1 that MPI_Win_allocate
 * gave, while the others wait in MPI_Barrier; every operation is flushed.
 *
 *   put, get      one of X bytes                           us
 *   accumulate    the sum of doubles, X bytes              us
 *   fetch, swap   fetch-and-add, compare-and-swap, 8 bytes us
 *   rate          64 puts of X bytes, then one flush       million puts/s
 *   stream        the same                                 GB/s
 *   lock          lock and unlock of a free lock           us
 *   locked        lock, put of X bytes, unlock             us
 *   fence         all ranks                                us
 *   contend       all ranks lock rank 0 exclusively, put   us, of each lock
 *   away          put of X bytes to a rank that computes for AWAY_MS  us
 *
 * usage: onesided MODE SIZE ...
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 64
#define FIRST 3
#define AWAY_MS 30
#define AWAY_TIMES 5

struct window {
    MPI_Win win;
    char *mine; /* bytes of the origin's */
    char *base; /* of this rank's part of the window */
    int len;
    int target;
};

static void put(const struct window *w)
{
    MPI_Put(w->mine, w->len, MPI_BYTE, w->target, 0, w->len, MPI_BYTE, w->win);
}

static void put_one(const struct window *w)
{
    put(w);
    MPI_Win_flush(w->target, w->win);
}

static void get_one(const struct window *w)
{
    MPI_Get(w->mine, w->len, MPI_BYTE, w->target, 0, w->len, MPI_BYTE, w->win);
    MPI_Win_flush(w->target, w->win);
}

static void accumulate_one(const struct window *w)
{
    int count = w->len / (int)sizeof(double);

    MPI_Accumulate(w->mine, count, MPI_DOUBLE, w->target, 0, count, MPI_DOUBLE,
                   MPI_SUM, w->win);
    MPI_Win_flush(w->target, w->win);
}

static void fetch_one(const struct window *w)
{
    long long one = 1;
    long long before;

    MPI_Fetch_and_op(&one, &before, MPI_LONG_LONG, w->target, 0, MPI_SUM,
                     w->win);
    MPI_Win_flush(w->target, w->win);
}

static void swap_one(const struct window *w)
{
    long long one = 1;
    long long zero = 0;
    long long before;

    MPI_Compare_and_swap(&one, &zero, &before, MPI_LONG_LONG, w->target, 0,
                         w->win);
    MPI_Win_flush(w->target, w->win);
}

static void put_batch(const struct window *w)
{
    for (int i = 0; i < BATCH; i++)
        put(w);
    MPI_Win_flush(w->target, w->win);
}

static void lock_one(const struct window *w)
{
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, w->target, 0, w->win);
    MPI_Win_unlock(w->target, w->win);
}

static void locked_one(const struct window *w)
{
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, w->target, 0, w->win);
    put(w);
    MPI_Win_unlock(w->target, w->win);
}

static void fence_one(const struct window *w)
{
    MPI_Win_fence(0, w->win);
}

struct mode {
    const char *name;
    void (*step)(const struct window *w);
    const char *unit;
    int is_locked;     /* inside MPI_Win_lock_all */
    int is_collective; /* all ranks take the steps */
    int target;
};

static const struct mode modes[] = {
    {"put", put_one, "us", 1, 0, 1},
    {"get", get_one, "us", 1, 0, 1},
    {"accumulate", accumulate_one, "us", 1, 0, 1},
    {"fetch", fetch_one, "us", 1, 0, 1},
    {"swap", swap_one, "us", 1, 0, 1},
    {"rate", put_batch, "M/s", 1, 0, 1},
    {"stream", put_batch, "GB/s", 1, 0, 1},
    {"lock", lock_one, "us", 0, 0, 1},
    {"locked", locked_one, "us", 0, 0, 1},
    {"fence", fence_one, "us", 0, 1, 1},
    {"contend", locked_one, "us", 0, 1, 0},
    {"away", put_one, "us", 1, 0, 1},
};

static double steps(const struct bench *bench, const struct mode *mode,
                    const struct window *w, int repeats)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int i = 0; i < repeats; i++)
        if (mode->is_collective || bench->rank == 0)
            mode->step(w);
    if (mode->target == 0)
        MPI_Barrier(MPI_COMM_WORLD); /* the last of all */
    double seconds = MPI_Wtime() - start;
    MPI_Barrier(MPI_COMM_WORLD);
    return seconds;
}

static double value_of(const struct bench *bench, const struct mode *mode,
                       const struct window *w, double once_s)
{
    if (strcmp(mode->name, "rate") == 0)
        return BATCH / once_s / 1e6;
    if (strcmp(mode->name, "stream") == 0)
        return (double)BATCH * w->len / once_s / 1e9;
    return once_s * 1e6 /
           (strcmp(mode->name, "contend") == 0 ? bench->size : 1);
}

/* The target leaves MPI before rank 0 begins, and looks at the clock only. */
static double away(const struct bench *bench, const struct window *w)
{
    double times[AWAY_TIMES];

    for (int i = 0; i < AWAY_TIMES; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double start = MPI_Wtime();
        while (MPI_Wtime() - start < (bench->rank == 0 ? 2e-3 : AWAY_MS * 1e-3))
            ;
        start = MPI_Wtime();
        if (bench->rank == 0)
            put_one(w);
        times[i] = MPI_Wtime() - start;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return bench_median(times, AWAY_TIMES);
}

static double measure(const struct bench *bench, const struct mode *mode,
                      const struct window *w)
{
    if (strcmp(mode->name, "away") == 0)
        return away(bench, w);
    double once = steps(bench, mode, w, FIRST) / FIRST;
    int warm = bench_repeats(bench, once * 4, FIRST);
    once = steps(bench, mode, w, warm) / warm;
    int repeats = bench_repeats(bench, once, FIRST);
    return steps(bench, mode, w, repeats) / repeats;
}

static void one_point(const struct bench *bench, const struct mode *mode,
                      size_t len)
{
    struct window w = {
        .mine = bench_alloc(len), .len = (int)len, .target = mode->target};

    MPI_Win_allocate((MPI_Aint)len + 8, 1, MPI_INFO_NULL, MPI_COMM_WORLD,
                     &w.base, &w.win);
    memset(w.base, 0, len + 8);
    MPI_Barrier(MPI_COMM_WORLD);
    if (mode->is_locked)
        MPI_Win_lock_all(0, w.win);
    double once = measure(bench, mode, &w);
    bench_point(bench, mode->name, len, value_of(bench, mode, &w, once),
                mode->unit);
    if (mode->is_locked)
        MPI_Win_unlock_all(w.win);
    MPI_Win_free(&w.win);
    free(w.mine);
}

int main(int argc, char **argv)
{
    struct bench bench;
    const struct mode *mode = NULL;

    bench_start(&bench, &argc, &argv);
    for (size_t i = 0; argc > 1 && i < sizeof(modes) / sizeof(modes[0]); i++)
        if (strcmp(modes[i].name, argv[1]) == 0)
            mode = &modes[i];
    if (mode == NULL || bench.size < 2) {
        fprintf(stderr, "onesided: two ranks at least, and a mode\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (int i = 2; i < argc; i++)
        one_point(&bench, mode, bench_size(argv[i]));
    MPI_Finalize();
    return 0;
}
