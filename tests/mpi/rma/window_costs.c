/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What operations cost that go by messages.
 *
 *   winbounds memory  accumulates of more than the library may copy at a
 *                     time take bounded memory
 *   winbounds targets of those at which nothing is under way, only a few keep
 *                     memory for a whole message
 *   winbounds waiting FOLDER: nor does what waits, in short messages, for a
 *                     target that is away
 *   winbounds batch   64 puts and the flush behind them are few messages; the
 *                     case looks at what chempirun has counted
 *   winbounds lone    a put of 16 KiB and the flush behind it are one
 *   winbounds unordered ORDER: long accumulates leave what is gathered alone
 *                     where the order of accumulates allows that
 *   winbounds mixed   puts and accumulates around the lengths at which they
 *                     begin to travel in another way, many before a flush
 *   winbounds reuse   the origin's memory is free to be used again when
 *                     MPI_Wait or MPI_Win_flush_local has returned, also where
 *                     long accumulates leave from there
 */
#include <fcntl.h>
#include <malloc.h>
#include <sched.h>
#include <unistd.h>

#include "check.h"

enum {
    CELLS = 2 << 20,
    TIMES = 4,
    REUSES = 2,
    PUTS = 64,
    ROUNDS = 100,
    LONE = 2048, /* cells */
    LONG = 2560, /* cells: more than is copied */
    SHORT = 140, /* cells: more than a batch begins with */
    WAITING = 3000,
    MESSAGE = 65536, /* bytes, at most */
    SPARES = 8,
    MIB = 1 << 20
};

static const char *folder;

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

/* Bytes that are allocated. */
static size_t used_bytes(void)
{
    const struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

static void put_to_all(MPI_Win win, const int64_t *mine, int cells)
{
    for (int i = 1; i < check_size(); i++)
        MPI_Put(mine, cells, MPI_INT64_T, i, 0, cells, MPI_INT64_T, win);
    MPI_Win_flush_all(win);
}

static void check_targets(void)
{
    int64_t mine[SHORT] = {0};
    int64_t *base;
    MPI_Win win;

    check_need(SPARES + 4);
    MPI_Win_allocate(sizeof(mine), 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base,
                     &win);
    MPI_Win_lock_all(0, win);
    if (check_rank() == 0) {
        size_t before;

        put_to_all(win, mine, 1);
        before = used_bytes();
        put_to_all(win, mine, SHORT);
        CHECK(used_bytes() < before + (SPARES + 1) * (size_t)MESSAGE,
              "%zu bytes more for %d targets", used_bytes() - before,
              check_size() - 1);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

/* The origin makes progress after each put, so that what it has is sent if that
 * is possible. */
static void add_to_who_is_away(MPI_Win win, const char *name)
{
    int64_t mine[SHORT] = {0};
    size_t before = 0;
    int flag;

    for (int i = 0; i < WAITING; i++) {
        if (i == 1)
            before = used_bytes();
        mine[0] = i;
        MPI_Accumulate(mine, SHORT, MPI_INT64_T, 1, 0, SHORT, MPI_INT64_T,
                       MPI_REPLACE, win);
        MPI_Iprobe(0, 0, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
    CHECK(used_bytes() - before < (size_t)16 * MIB,
          "%zu bytes more for %d accumulates of %zu bytes",
          used_bytes() - before, WAITING, sizeof(mine));
    close(open(name, O_CREAT | O_WRONLY, 0600));
}

static void check_waiting(void)
{
    char name[512];
    int64_t *base = check_alloc(SHORT * sizeof(*base));
    MPI_Win win;

    (void)snprintf(name, sizeof(name), "%s/waiting", folder);
    if (check_rank() == 0)
        (void)unlink(name);
    MPI_Win_create(base, SHORT * 8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_lock_all(0, win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank() == 0)
        add_to_who_is_away(win, name);
    while (check_rank() == 1 && access(name, F_OK) != 0)
        sched_yield();
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(check_rank() != 1 || base[0] == WAITING - 1, "the last one is %lld",
          (long long)base[0]);
    MPI_Win_free(&win);
    free(base);
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

static void check_lone(void)
{
    int64_t *mine = check_alloc(LONE * sizeof(*mine));
    int64_t *base;
    MPI_Win win;

    MPI_Win_allocate((MPI_Aint)(LONE * sizeof(*base)), 8, MPI_INFO_NULL,
                     MPI_COMM_WORLD, &base, &win);
    MPI_Win_lock_all(0, win);
    for (int round = 0; round < ROUNDS && check_rank() == 0; round++) {
        for (int i = 0; i < LONE; i++)
            mine[i] = round + i;
        MPI_Put(mine, LONE, MPI_INT64_T, 1, 0, LONE, MPI_INT64_T, win);
        MPI_Win_flush(1, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_sync(win);
    for (int i = 0; i < LONE && check_rank() == 1; i++)
        CHECK(base[i] == ROUNDS - 1 + i, "cell %d is %lld", i,
              (long long)base[i]);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    free(mine);
}

/* One cell, then many behind it, and again, before a flush. */
static void check_unordered(void)
{
    int64_t *mine = check_alloc(LONG * sizeof(*mine));
    const int64_t one = 1;
    int64_t *base;
    MPI_Info info;
    MPI_Win win;

    MPI_Info_create(&info);
    MPI_Info_set(info, "accumulate_ordering", folder);
    MPI_Win_allocate((MPI_Aint)((LONG + 1) * sizeof(*base)), 8, info,
                     MPI_COMM_WORLD, &base, &win);
    MPI_Info_free(&info);
    memset(base, 0, (LONG + 1) * sizeof(*base));
    for (int i = 0; i < LONG; i++)
        mine[i] = i;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    MPI_Win_flush_all(win);
    for (int i = 0; i < 4 * ROUNDS && check_rank() == 0; i++) {
        MPI_Accumulate(&one, 1, MPI_INT64_T, 1, 0, 1, MPI_INT64_T, MPI_SUM,
                       win);
        MPI_Accumulate(mine, LONG, MPI_INT64_T, 1, 1, LONG, MPI_INT64_T,
                       MPI_SUM, win);
        if (i % 4 == 3)
            MPI_Win_flush(1, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_sync(win);
    CHECK(check_rank() != 1 || base[0] == 4 * ROUNDS, "the first cell is %lld",
          (long long)base[0]);
    for (int i = 0; i < LONG && check_rank() == 1; i++)
        CHECK(base[i + 1] == 4 * ROUNDS * i, "cell %d is %lld", i,
              (long long)base[i + 1]);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    free(mine);
}

static const int mixed_lens[] = {1,    1024, 1025, 2047, 2048, 2049,
                                 4095, 4096, 4097, 8151, 8152, 8153};
enum { MIXED = sizeof(mixed_lens) / sizeof(mixed_lens[0]), HALF = CELLS / 32 };

/* Of each length a put and, behind HALF cells, an accumulate. */
static void mix(MPI_Win win, const int64_t *mine, int round)
{
    MPI_Aint at = 0;

    for (int i = 0; i < MIXED; at += mixed_lens[i++]) {
        const int len = mixed_lens[i];

        MPI_Put(mine + round + i, len, MPI_INT64_T, 1, at, len, MPI_INT64_T,
                win);
        MPI_Accumulate(mine + round + i, len, MPI_INT64_T, 1, HALF + at, len,
                       MPI_INT64_T, MPI_SUM, win);
        if (i % 3 == round % 3)
            MPI_Win_flush(1, win); /* the next is alone */
    }
    MPI_Win_flush(1, win);
}

static void check_mixed(void)
{
    enum { MIXES = 4 };
    int64_t *mine = check_alloc(HALF * sizeof(*mine));
    int64_t *base;
    MPI_Win win;
    int at = 0;

    MPI_Win_allocate((MPI_Aint)(2 * HALF * sizeof(*base)), 8, MPI_INFO_NULL,
                     MPI_COMM_WORLD, &base, &win);
    for (int i = 0; i < HALF; i++) {
        mine[i] = i;
        base[i] = base[HALF + i] = 0;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    for (int round = 0; round < MIXES && check_rank() == 0; round++)
        mix(win, mine, round);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_sync(win);
    for (int i = 0; i < MIXED && check_rank() == 1; at += mixed_lens[i++])
        for (int k = 0; k < mixed_lens[i]; k++)
            CHECK_OR_DIE(base[at + k] == MIXES - 1 + i + k &&
                             base[HALF + at + k] ==
                                 MIXES * (i + k) + MIXES * (MIXES - 1) / 2,
                         "length %d, cell %d: %lld, %lld", mixed_lens[i], k,
                         (long long)base[at + k],
                         (long long)base[HALF + at + k]);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    free(mine);
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
    static const struct {
        const char *name;
        void (*check)(void);
    } modes[] = {{"memory", check_memory},   {"targets", check_targets},
                 {"waiting", check_waiting}, {"batch", check_batches},
                 {"lone", check_lone},       {"mixed", check_mixed},
                 {"reuse", check_reuse},     {"unordered", check_unordered}};

    check_start(&argc, &argv);
    check_need(2);
    folder = argc > 2 ? argv[2] : ".";
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
        if (argc > 1 && strcmp(argv[1], modes[i].name) == 0)
            modes[i].check();
    return check_finish();
}
