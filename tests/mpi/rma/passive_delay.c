/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How soon a target that computes serves others. Rank 0 takes turns: it wakes
 * a thread of the target's process by a named pipe and waits for the answer,
 * then locks, puts, accumulates, gets and unlocks there. Both need a sleeping
 * thread beside one that computes, but an epoch needs it several times in a
 * row, and a thread that has just run must wait its turn where others share its
 * core: one epoch of thirty may take no longer than 1 ms and some wakeups.
 * Service that came from time to time, or with the target's calls, would take
 * longer: nobody is lucky several times in a row so often.
 *
 *   passive_delay FOLDER
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

enum { ROUNDS = 300, FAST = ROUNDS / 30, WAKEUPS = 30, LIMIT_US = 1000 };

static int pipes[2]; /* to the target and back, of both ranks */
static _Atomic bool is_over;
static char names[2][512];

static void open_pipes(bool is_target)
{
    for (int i = 0; i < 2; i++) {
        const bool is_reader = (i == 0) == is_target;

        pipes[i] = open(names[i], is_reader ? O_RDONLY : O_WRONLY);
        CHECK_OR_DIE(pipes[i] >= 0, "cannot open %s", names[i]);
    }
}

static void pass(char byte)
{
    CHECK_OR_DIE(write(pipes[check_rank() != 0], &byte, 1) == 1, "a pipe");
}

static char await(void)
{
    char byte;

    CHECK_OR_DIE(read(pipes[check_rank() == 0], &byte, 1) == 1, "a pipe");
    return byte;
}

static void *answer(void *unused)
{
    char byte;

    do {
        byte = await();
        pass(byte);
    } while (byte);
    is_over = true;
    return unused;
}

static uint64_t compute(void)
{
    uint64_t sum = 1;

    while (!is_over)
        for (int i = 0; i < 10000; i++)
            sum = check_mix(sum, (uint64_t)i);
    return sum;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Microseconds of number `which` in order. */
static double time_at(double *times, int which)
{
    qsort(times, ROUNDS, sizeof(*times), by_size);
    return times[which] * 1e6;
}

static void one_epoch(MPI_Win win, int64_t round)
{
    const int64_t one = 1;
    int64_t back[2] = {-1, -1};

    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
    MPI_Put(&round, 1, MPI_INT64_T, 1, 0, 1, MPI_INT64_T, win);
    MPI_Accumulate(&one, 1, MPI_INT64_T, 1, 1, 1, MPI_INT64_T, MPI_SUM, win);
    MPI_Win_flush(1, win);
    MPI_Get(back, 2, MPI_INT64_T, 1, 0, 2, MPI_INT64_T, win);
    MPI_Win_unlock(1, win);
    CHECK(back[0] == round && back[1] == round + 1, "round %lld: %lld, %lld",
          (long long)round, (long long)back[0], (long long)back[1]);
}

static void measure(MPI_Win win)
{
    static double wakeups[ROUNDS];
    static double epochs[ROUNDS];
    double wakeup;
    double epoch;

    for (int i = 0; i < ROUNDS; i++) {
        double start = MPI_Wtime();

        pass(1);
        (void)await();
        wakeups[i] = MPI_Wtime() - start;
        start = MPI_Wtime();
        one_epoch(win, i);
        epochs[i] = MPI_Wtime() - start;
    }
    pass(0);
    (void)await();
    wakeup = time_at(wakeups, ROUNDS / 2);
    epoch = time_at(epochs, FAST);
    printf("an epoch takes %.0f us, a wakeup %.0f us (medians)\n",
           time_at(epochs, ROUNDS / 2), wakeup);
    CHECK(epoch <= LIMIT_US + WAKEUPS * wakeup,
          "fast epochs take %.0f us, but a wakeup %.0f us", epoch, wakeup);
}

int main(int argc, char **argv)
{
    pthread_t thread;
    int64_t *memory;
    MPI_Win win;

    check_start(&argc, &argv);
    check_need(2);
    CHECK_OR_DIE(argc > 1, "name a folder");
    for (int i = 0; i < 2; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "%s/delay-%d", argv[1], i);
        if (check_rank() == 0) {
            (void)unlink(names[i]);
            CHECK_OR_DIE(mkfifo(names[i], 0600) == 0, "no %s", names[i]);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    memory = check_alloc(2 * sizeof(*memory));
    memory[0] = memory[1] = 0;
    MPI_Win_create(memory, 2 * sizeof(*memory), sizeof(*memory), MPI_INFO_NULL,
                   MPI_COMM_WORLD, &win);
    if (check_rank() < 2)
        open_pipes(check_rank() == 1);
    if (check_rank() == 1) {
        CHECK_OR_DIE(pthread_create(&thread, NULL, answer, NULL) == 0,
                     "no thread");
        CHECK(compute() != 0, "a sum");
        pthread_join(thread, NULL);
    } else if (check_rank() == 0) {
        measure(win);
    }
    MPI_Win_free(&win);
    free(memory);
    return check_finish();
}
