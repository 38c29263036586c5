/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Short non-blocking collectives begin in their calls, also when many are under
 * way: the others end them while one who has started them calls nothing of MPI
 * until all have.
 *
 *   begins FOLDER
 */
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include "check.h"

enum { ROUNDS = 6, MANY = 20, COUNT = 256, KINDS = 3 };

static struct {
    const char *folder;
    int *in;
    int *out; /* [MANY][size * COUNT] */
} my;

static void name_of(char *name, size_t size, int rank, int round)
{
    (void)snprintf(name, size, "%s/ended-%d-%d", my.folder, rank, round);
}

static void tell_outside(int round)
{
    char name[512];
    int fd;

    name_of(name, sizeof(name), check_rank(), round);
    fd = open(name, O_CREAT | O_WRONLY, 0600);
    CHECK_OR_DIE(fd >= 0, "cannot create %s", name);
    close(fd);
}

static void await_outside(int rank, int round)
{
    char name[512];

    name_of(name, sizeof(name), rank, round);
    while (access(name, F_OK) != 0)
        sched_yield();
    unlink(name);
}

static int value(int round, int rank, int i)
{
    return round * 1000 + rank * 100 + i;
}

static void begin(int kind, int *out, MPI_Request *request)
{
    switch (kind) {
    case 0:
        MPI_Iallgather(my.in, COUNT, MPI_INT, out, COUNT, MPI_INT,
                       MPI_COMM_WORLD, request);
        break;
    case 1:
        MPI_Iallreduce(my.in, out, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
                       request);
        break;
    default:
        MPI_Ialltoall(my.in, COUNT, MPI_INT, out, COUNT, MPI_INT,
                      MPI_COMM_WORLD, request);
    }
}

/* Element i of what member m's block becomes. */
static int result(int kind, int round, int m, int i)
{
    int sum = 0;

    if (kind == 0)
        return value(round, m, i);
    if (kind == 2)
        return value(round, m, check_rank() * COUNT + i);
    for (int k = 0; k < check_size(); k++)
        sum += value(round, k, i);
    return sum;
}

static void verify(int kind, int round, const int *out)
{
    const int blocks = kind == 1 ? 1 : check_size();
    int wrong = 0;

    for (int m = 0; m < blocks; m++)
        for (int i = 0; i < COUNT; i++)
            wrong += out[m * COUNT + i] != result(kind, round, m, i);
    CHECK(wrong == 0, "kind %d, round %d: %d are wrong", kind, round, wrong);
}

static void run(int kind, int round, int away)
{
    const int whole = check_size() * COUNT;
    MPI_Request requests[MANY];

    for (int i = 0; i < whole; i++)
        my.in[i] = value(round, check_rank(), i);
    MPI_Barrier(MPI_COMM_WORLD); /* all have ended those before */
    for (int k = 0; k < MANY; k++)
        begin(kind, my.out + k * whole, &requests[k]);
    for (int r = 0; check_rank() == away && r < check_size(); r++)
        if (r != away)
            await_outside(r, round);
    MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE);
    if (check_rank() != away)
        tell_outside(round);
    for (int k = 0; k < MANY; k++)
        verify(kind, round, my.out + k * whole);
}

int main(int argc, char **argv)
{
    size_t whole;

    check_start(&argc, &argv);
    check_need(3);
    CHECK_OR_DIE(argc > 1, "name a folder");
    my.folder = argv[1];
    whole = sizeof(int) * COUNT * (size_t)check_size();
    my.in = check_alloc(whole);
    my.out = check_alloc(whole * MANY);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int round = 0; round < ROUNDS * KINDS; round++)
        run(round % KINDS, round, round / KINDS % check_size());
    free(my.out);
    free(my.in);
    return check_finish();
}
