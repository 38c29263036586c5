/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rounds of one-sided operations between all ranks, each of which is checked,
 * until a file appears: small and large puts, gets, accumulates, atomics and
 * exclusive locks. What must go on while something else happens to the job
 * (tests/fault/gateways.py).
 *
 * usage: winrelay FILE [most rounds]
 */
#include <unistd.h>

#include "check.h"

enum { TELL_EVERY = 20, SIZES = 4, LONG = 50000, SUMS = 9000 };

static const int sizes[SIZES] = {1, 100, 5000, LONG};

/* A rank's part of the window. */
struct part {
    int64_t tickets; /* fetched and increased by all */
    int64_t guarded; /* increased by all, under its lock */
    int64_t sums[SUMS];
    int64_t data[]; /* [ranks][LONG]: a rank writes its own row */
};

static int rank, size;
static MPI_Win win;
static struct part *mine;
static int64_t out[LONG], in[LONG], ones[SUMS];

static MPI_Aint row_of(int origin)
{
    return (MPI_Aint)(sizeof(struct part) / sizeof(int64_t)) +
           (MPI_Aint)origin * LONG;
}

static void put_and_get(int target, long round)
{
    const int count = sizes[(rank + target + round) % SIZES];

    for (int i = 0; i < count; i++) {
        out[i] =
            (int64_t)check_mix((uint64_t)round, (uint64_t)(rank * LONG + i));
        in[i] = 0;
    }
    MPI_Put(out, count, MPI_INT64_T, target, row_of(rank), count, MPI_INT64_T,
            win);
    MPI_Accumulate(ones, SUMS, MPI_INT64_T, target, 2, SUMS, MPI_INT64_T,
                   MPI_SUM, win);
    MPI_Win_flush(target, win);
    MPI_Get(in, count, MPI_INT64_T, target, row_of(rank), count, MPI_INT64_T,
            win);
    MPI_Win_flush(target, win);
    CHECK(memcmp(in, out, (size_t)count * sizeof(*in)) == 0,
          "round %ld, at %d: not what was put", round, target);
}

static void draw_ticket(int target, long round)
{
    const int64_t one = 1;
    int64_t before = -1;

    MPI_Fetch_and_op(&one, &before, MPI_INT64_T, target, 0, MPI_SUM, win);
    MPI_Win_flush(target, win);
    CHECK(before >= round * size && before < (round + 1) * size,
          "round %ld, at %d: ticket %lld", round, target, (long long)before);
}

static void look(long round)
{
    const int64_t times = (round + 1) * size;

    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    CHECK(mine->tickets == times && mine->guarded == times,
          "round %ld: %lld tickets, %lld guarded, expected %lld", round,
          (long long)mine->tickets, (long long)mine->guarded, (long long)times);
    for (int i = 0; i < SUMS; i++)
        CHECK_OR_DIE(mine->sums[i] == times, "round %ld: sum %d is %lld", round,
                     i, (long long)mine->sums[i]);
    MPI_Win_unlock(rank, win);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void exchange(long round)
{
    MPI_Win_lock_all(0, win);
    for (int target = 0; target < size; target++) {
        put_and_get(target, round);
        draw_ticket(target, round);
    }
    MPI_Win_unlock_all(win);
    for (int target = 0; target < size; target++)
        check_add_alone(target, 1, win);
    look(round);
}

int main(int argc, char **argv)
{
    const long most = argc > 2 ? atol(argv[2]) : 1000000;
    int is_over = 0;
    size_t len;

    check_start(&argc, &argv);
    rank = check_rank();
    size = check_size();
    len = sizeof(*mine) + (size_t)size * LONG * sizeof(int64_t);
    MPI_Win_allocate((MPI_Aint)len, sizeof(int64_t), MPI_INFO_NULL,
                     MPI_COMM_WORLD, &mine, &win);
    memset(mine, 0, len);
    for (int i = 0; i < SUMS; i++)
        ones[i] = 1;
    MPI_Barrier(MPI_COMM_WORLD);
    for (long round = 0; !is_over && round < most; round++) {
        exchange(round);
        if (rank == 0 && round % TELL_EVERY == 0) {
            printf("round %ld\n", round);
            (void)fflush(stdout);
        }
        if (argc > 1)
            is_over = access(argv[1], F_OK) == 0;
        MPI_Allreduce(MPI_IN_PLACE, &is_over, 1, MPI_INT, MPI_LOR,
                      MPI_COMM_WORLD);
    }
    MPI_Win_free(&win);
    return check_finish();
}
