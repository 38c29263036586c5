/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads make communicators of overlapping groups at the same time, kept
 * apart by their tags alone: small tags, tags that are equal in their low 28
 * bits, and string tags. Messages of each must come from its own members.
 */
#include "check.h"

#define THREADS 4
#define RANKS_MAX 64

static MPI_Group world;
static int rounds;

enum way { SMALL_TAGS, LARGE_TAGS, STRING_TAGS, WAYS };

struct maker {
    int number;
    enum way way;
};

/* All ranks but one, each thread without another one, in its own order. */
static MPI_Group group_of(const struct maker *maker, int *count)
{
    int ranks[RANKS_MAX];
    int first = maker->number % check_size();
    MPI_Group group;

    *count = check_size() - 1;
    for (int i = 0; i < *count; i++)
        ranks[i] = (first + 1 + i) % check_size();
    MPI_Group_incl(world, *count, ranks, &group);
    return group;
}

static MPI_Comm make(const struct maker *maker, MPI_Group group)
{
    MPI_Comm comm = MPI_COMM_NULL;
    char text[32];

    snprintf(text, sizeof(text), "maker %d", maker->number);
    if (maker->way == STRING_TAGS)
        MPI_Comm_create_from_group(group, text, MPI_INFO_NULL,
                                   MPI_ERRORS_ARE_FATAL, &comm);
    else
        MPI_Comm_create_group(
            MPI_COMM_WORLD, group,
            maker->way == SMALL_TAGS ? maker->number : maker->number << 28 | 5,
            &comm);
    return comm;
}

static void *run(void *arg)
{
    const struct maker *maker = arg;
    int count;
    MPI_Group group = group_of(maker, &count);
    int rank;

    MPI_Group_rank(group, &rank);
    for (int i = 0; i < rounds && rank != MPI_UNDEFINED; i++) {
        MPI_Comm comm = make(maker, group);
        int mine = maker->number * 1000 + i;
        int all[RANKS_MAX];
        int got = -1;

        MPI_Comm_rank(comm, &got);
        CHECK(got == rank, "rank %d, not %d", got, rank);
        MPI_Allgather(&mine, 1, MPI_INT, all, 1, MPI_INT, comm);
        for (int k = 0; k < count; k++)
            CHECK(all[k] == mine, "%d from member %d, not %d", all[k], k, mine);
        MPI_Comm_free(&comm);
    }
    MPI_Group_free(&group);
    return NULL;
}

int main(int argc, char **argv)
{
    struct maker makers[THREADS];

    check_start_thread(&argc, &argv, MPI_THREAD_MULTIPLE);
    check_need(2);
    rounds = (int)check_arg(argc, argv, 1, 10);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    for (int way = 0; way < WAYS; way++) {
        for (int i = 0; i < THREADS; i++) {
            makers[i].number = i;
            makers[i].way = (enum way)way;
        }
        check_run_threads(THREADS, run, makers, sizeof(makers[0]));
    }
    MPI_Group_free(&world);
    return check_finish();
}
