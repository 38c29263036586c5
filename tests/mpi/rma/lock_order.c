/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who wants a lock and who need not wait for whom, ROUNDS times:
 *
 *   crossed   ranks 0 and 1 are in lock_all epochs and put to each other, last
 *             to themselves; the others want the locks of both alone
 *   windows   the same, but what is held are shared locks of two windows
 *   met       ranks 0 and 1 have put to each other in lock_all epochs and meet
 *             before they end them; the others want one of the locks alone
 *   polled    the others read rank 0's part, by shared locks, until rank 1 has
 *             got in alone and changed it
 *
 * usage: lock_order WHAT ROUNDS
 */
#include "check.h"

static MPI_Win wins[2];
static MPI_Win win;
static int64_t *parts[2];
static int rank, size;

static void put(int target, MPI_Win at)
{
    const int64_t value = rank;

    MPI_Put(&value, 1, MPI_INT64_T, target, 1 + rank, 1, MPI_INT64_T, at);
    MPI_Win_flush(target, at);
}

static void crossed(int rounds)
{
    for (int i = 0; i < rounds; i++) {
        if (rank > 1) {
            check_add_alone(rank % 2, 0, win);
            continue;
        }
        MPI_Win_lock_all(0, win);
        put(i % 2, win);
        put(!(i % 2), win);
        MPI_Win_unlock_all(win);
    }
}

static void windows(int rounds)
{
    for (int i = 0; i < rounds; i++) {
        if (rank > 1) {
            check_add_alone(0, 0, wins[rank % 2]);
            continue;
        }
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, wins[rank]);
        put(0, wins[rank]);
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, wins[!rank]);
        put(0, wins[!rank]);
        MPI_Win_unlock(0, wins[rank]);
        MPI_Win_unlock(0, wins[!rank]);
    }
}

static void meet(void)
{
    MPI_Sendrecv(NULL, 0, MPI_BYTE, !rank, 0, NULL, 0, MPI_BYTE, !rank, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void met(int rounds)
{
    for (int i = 0; i < rounds; i++) {
        if (rank > 1) {
            check_add_alone(rank % 2, 0, win);
            continue;
        }
        MPI_Win_lock_all(0, win);
        put(!rank, win);
        meet();
        MPI_Win_unlock_all(win);
    }
}

static void polled(int rounds)
{
    for (int i = 1; i <= rounds; i++) {
        int64_t value = 0;

        if (rank == 1)
            check_add_alone(0, 0, win);
        while (rank != 1 && value < i) {
            MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
            MPI_Get(&value, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win);
            MPI_Win_unlock(0, win);
        }
        CHECK(rank == 1 || value == i, "round %d: read %lld", i,
              (long long)value);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

/* How often somebody was alone at the two targets. */
static void check_sum(int64_t expected)
{
    int64_t sum = parts[0][0] + parts[1][0];

    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == expected, "%lld times alone, expected %lld", (long long)sum,
          (long long)expected);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(int rounds);
    } all[] = {{"crossed", crossed},
               {"windows", windows},
               {"met", met},
               {"polled", polled}};
    const int rounds = argc == 3 ? atoi(argv[2]) : 0;

    if (argc != 3)
        return 2;
    check_start(&argc, &argv);
    rank = check_rank();
    size = check_size();
    for (int i = 0; i < 2; i++) {
        const MPI_Aint len = (1 + size) * (MPI_Aint)sizeof(int64_t);

        MPI_Win_allocate(len, sizeof(int64_t), MPI_INFO_NULL, MPI_COMM_WORLD,
                         &parts[i], &wins[i]);
        memset(parts[i], 0, (size_t)len);
    }
    win = wins[0];
    MPI_Barrier(MPI_COMM_WORLD);
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        if (strcmp(argv[1], all[i].name) == 0)
            all[i].run(rounds);
    MPI_Barrier(MPI_COMM_WORLD);
    check_sum(strcmp(argv[1], "polled") == 0 ? rounds
                                             : (int64_t)rounds * (size - 2));
    for (int i = 0; i < 2; i++)
        MPI_Win_free(&wins[i]);
    return check_finish();
}
