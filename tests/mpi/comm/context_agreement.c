/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Communicators with differing members, many of them alive: what the agreement
 * on a context costs must not grow with their number. It is counted in matched
 * messages, so the ranks are on nodes of their own.
 *
 * usage: context_agreement [dups MESSAGES]
 *
 * dups: all ranks together need so many messages for a duplicate.
 */
#include "check.h"
#include "matched.h"

enum { ALIVE = 400, COSTS_MAX = 64, DUPS = 50 };

static MPI_Comm alive[ALIVE];

/* All but one process, and not always the same one: nobody's set of free ids
 * is that of another, and each has gaps. */
static MPI_Comm make(int i)
{
    int out = i % check_size();
    MPI_Group world;
    MPI_Group some;
    MPI_Comm comm;

    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_excl(world, 1, &out, &some);
    MPI_Comm_create(MPI_COMM_WORLD, some, &comm);
    MPI_Group_free(&some);
    MPI_Group_free(&world);
    return comm;
}

static void use(int i)
{
    int sum = 1;

    if (alive[i] == MPI_COMM_NULL)
        return;
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, alive[i]);
    CHECK(sum == check_size() - 1, "communicator %d has %d members", i, sum);
}

static void drop(int i)
{
    if (alive[i] != MPI_COMM_NULL)
        MPI_Comm_free(&alive[i]);
}

static void count_alive(void)
{
    const unsigned long long before = matched_count();
    unsigned long long cost;

    for (int i = 0; i < check_size(); i++) {
        MPI_Comm comm = make(i);

        if (comm != MPI_COMM_NULL)
            MPI_Comm_free(&comm);
    }
    cost = (matched_count() - before) / (unsigned)check_size();
    CHECK(cost > 0, "nothing was counted");
    CHECK(cost <= COSTS_MAX, "a communicator cost %llu messages", cost);
}

static void keep_many(void)
{
    for (int i = 0; i < ALIVE; i++)
        alive[i] = make(i);
    count_alive();
    for (int i = 0; i < ALIVE; i++)
        use(i);
    for (int i = 0; i < ALIVE; i += 3)
        drop(i);
    for (int i = 0; i < ALIVE; i += 3)
        alive[i] = make(i + 1);
    for (int i = 0; i < ALIVE; i++)
        use(i);
    for (int i = 0; i < ALIVE; i++)
        drop(i);
}

static void count_dups(long expected)
{
    const unsigned long long before = matched_count();
    unsigned long long cost;

    for (int i = 0; i < DUPS; i++) {
        MPI_Comm comm;

        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_free(&comm);
    }
    cost = matched_count() - before;
    MPI_Allreduce(MPI_IN_PLACE, &cost, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM,
                  MPI_COMM_WORLD);
    CHECK(cost == DUPS * (unsigned long long)expected,
          "%d duplicates cost %llu messages", DUPS, cost);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    matched_start();
    if (argc > 2)
        count_dups(check_arg(argc, argv, 2, 0));
    else
        keep_many();
    matched_end();
    return check_finish();
}
