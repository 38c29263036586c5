/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A hash table over all ranks, as an application would write it: an entry is
 * taken by compare-and-swap of its key, and its value is a sum of what all
 * ranks have added. Every rank inserts the same keys in an order of its own;
 * then each finds all keys with the right sums, and every key once.
 */
#include "check.h"

enum { KEYS = 300, ENTRIES = 257 /* per rank */ };

struct entry {
    int64_t key; /* 0: free */
    int64_t sum;
};

static MPI_Win win;

/* The entry of a key, which is taken if it is not there: rank and cell. */
static void find(int64_t key, int *owner, MPI_Aint *cell)
{
    uint64_t at = check_mix((uint64_t)key, 17);
    const int64_t nobody = 0;
    int64_t found = -1;

    for (;; at++) {
        uint64_t i = at % ((uint64_t)check_size() * ENTRIES);

        *owner = (int)(i / ENTRIES);
        *cell = (MPI_Aint)(i % ENTRIES) * 2;
        MPI_Compare_and_swap(&key, &nobody, &found, MPI_INT64_T, *owner, *cell,
                             win);
        MPI_Win_flush(*owner, win);
        if (found == 0 || found == key)
            return;
    }
}

static void insert(int64_t key, int64_t amount)
{
    MPI_Aint cell;
    int owner;

    find(key, &owner, &cell);
    MPI_Accumulate(&amount, 1, MPI_INT64_T, owner, cell + 1, 1, MPI_INT64_T,
                   MPI_SUM, win);
}

static int64_t look_up(int64_t key)
{
    MPI_Aint cell;
    int owner;
    int64_t sum = 0;

    find(key, &owner, &cell);
    MPI_Fetch_and_op(NULL, &sum, MPI_INT64_T, owner, cell + 1, MPI_NO_OP, win);
    MPI_Win_flush(owner, win);
    return sum;
}

int main(int argc, char *argv[])
{
    struct entry *mine;
    int64_t taken = 0;
    int64_t all = 0;

    check_start(&argc, &argv);
    check_need(2);
    MPI_Win_allocate(ENTRIES * (MPI_Aint)sizeof(*mine), 8, MPI_INFO_NULL,
                     MPI_COMM_WORLD, &mine, &win);
    memset(mine, 0, ENTRIES * sizeof(*mine));
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    for (int64_t i = 0; i < KEYS; i++) {
        int64_t key = (i * 7 + check_rank() * 31) % KEYS + 1;

        insert(key, key + check_rank());
    }
    MPI_Win_flush_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int64_t key = 1; key <= KEYS; key++) {
        int64_t n = check_size();
        int64_t expected = n * key + n * (n - 1) / 2;
        int64_t sum = look_up(key);

        CHECK(sum == expected, "key %d has %lld, not %lld", (int)key,
              (long long)sum, (long long)expected);
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < ENTRIES; i++)
        taken += mine[i].key != 0;
    MPI_Allreduce(&taken, &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    CHECK(all == KEYS, "%d entries are taken for %d keys", (int)all, KEYS);
    MPI_Win_free(&win);
    return check_finish();
}
