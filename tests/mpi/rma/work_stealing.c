/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work stealing with a counter over all ranks, as an application would write
 * it: every rank has a list of tasks with a ticket counter; who has no tasks of
 * its own left draws tickets of others. At the end each task was done once, and
 * the counter has them all.
 */
#include "check.h"

enum { TASKS = 200, TICKET = 0, DONE = 1, FIRST = 2, CELLS = FIRST + TASKS };

static MPI_Win win;

static int64_t add(int rank, MPI_Aint cell, int64_t amount)
{
    int64_t before = 0;

    MPI_Fetch_and_op(&amount, &before, MPI_INT64_T, rank, cell, MPI_SUM, win);
    MPI_Win_flush(rank, win);
    return before;
}

/* Rank r has r + 1 parts of the tasks of the last one: there is something to
 * steal. */
static int64_t tasks_of(int rank)
{
    return (int64_t)TASKS * (rank + 1) / check_size();
}

int main(int argc, char *argv[])
{
    int64_t *mine;
    int64_t all = 0;

    check_start(&argc, &argv);
    check_need(2);
    mine = check_alloc(CELLS * sizeof(*mine));
    MPI_Win_create(mine, CELLS * 8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_lock_all(0, win);
    for (int k = 0; k < check_size(); k++) {
        int victim = (check_rank() + k) % check_size();
        int64_t task;

        while ((task = add(victim, TICKET, 1)) < tasks_of(victim)) {
            const int64_t one = 1;

            MPI_Accumulate(&one, 1, MPI_INT64_T, victim, FIRST + (MPI_Aint)task,
                           1, MPI_INT64_T, MPI_SUM, win);
            (void)add(0, DONE, 1);
        }
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int64_t i = 0; i < TASKS; i++)
        CHECK(mine[FIRST + i] == (i < tasks_of(check_rank())),
              "task %d was done %d times", (int)i, (int)mine[FIRST + i]);
    for (int r = 0; r < check_size(); r++)
        all += tasks_of(r);
    if (check_rank() == 0)
        CHECK(mine[DONE] == all, "%d tasks were counted, not %d",
              (int)mine[DONE], (int)all);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&win);
    free(mine);
    return check_finish();
}
