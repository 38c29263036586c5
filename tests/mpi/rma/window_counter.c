/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A distributed counter, as applications share out work with it: numbers are
 * drawn from a part that every rank has; who finds a part used up goes on with
 * the next rank's. Every number is drawn once, by whomever, and a part that is
 * used up stays so. Beside it ranks count what they have drawn in one sum that
 * all read meanwhile: it never goes back, and ends at the number of all.
 */
#include "check.h"

enum { PART = 120 /* numbers of a rank */ };

enum { CELL_NEXT, CELL_SUM, CELLS };

static MPI_Win win;

static int64_t add(int64_t amount, int rank, MPI_Aint cell)
{
    int64_t before = -1;

    MPI_Fetch_and_op(&amount, &before, MPI_INT64_T, rank, cell,
                     amount ? MPI_SUM : MPI_NO_OP, win);
    MPI_Win_flush(rank, win);
    return before;
}

/* The sum, which others increase meanwhile. */
static void look(int64_t *last)
{
    int64_t now = add(0, 0, CELL_SUM);

    CHECK(now >= *last, "the sum went back from %lld to %lld", (long long)*last,
          (long long)now);
    *last = now;
}

/* Numbers of rank `owner` until there are none; how many. */
static int64_t draw(int owner, unsigned char *drawn, int64_t *last)
{
    int64_t count = 0;

    for (;;) {
        int64_t i = add(1, owner, CELL_NEXT);

        if (i >= PART)
            return count;
        CHECK_OR_DIE(i >= 0, "number %lld of rank %d", (long long)i, owner);
        drawn[owner * PART + i]++;
        count++;
        if (count % 16 == 0)
            look(last);
    }
}

int main(int argc, char *argv[])
{
    unsigned char *drawn;
    int64_t *mine;
    int64_t last = 0;
    int size;

    check_start(&argc, &argv);
    check_need(2);
    size = check_size();
    drawn = check_alloc((size_t)size * PART);
    memset(drawn, 0, (size_t)size * PART);
    MPI_Win_allocate(CELLS * (MPI_Aint)sizeof(*mine), sizeof(*mine),
                     MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win);
    mine[CELL_NEXT] = 0;
    mine[CELL_SUM] = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < size; i++) {
        int64_t count = draw((check_rank() + i) % size, drawn, &last);

        MPI_Accumulate(&count, 1, MPI_INT64_T, 0, CELL_SUM, 1, MPI_INT64_T,
                       MPI_SUM, win);
        MPI_Win_flush(0, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    look(&last);
    CHECK(last == (int64_t)size * PART, "%lld numbers were counted",
          (long long)last);
    MPI_Win_unlock_all(win);
    MPI_Allreduce(MPI_IN_PLACE, drawn, size * PART, MPI_UNSIGNED_CHAR, MPI_SUM,
                  MPI_COMM_WORLD);
    for (int i = 0; i < size * PART; i++)
        CHECK(drawn[i] == 1, "number %d of rank %d was drawn %d times",
              i % PART, i / PART, drawn[i]);
    MPI_Win_free(&win);
    free(drawn);
    return check_finish();
}
