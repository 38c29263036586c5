/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Members that run ahead of a root with what they hand in: what it gets of
 * each operation, whoever is the root of the one before; and that the memory
 * which they share for that does not grow with the number of operations.
 */
#include "check.h"

enum {
    LEN = 16 << 10, /* bytes, the most that a slot takes */
    MANY = 60,      /* operations in which nobody waits for all */
    ROUNDS = 400,
    IN_A_ROW = 25 /* with one root */
};

/* Of the memory that this process shares with others, what it has touched. */
static long shared_kib(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    char line[128];
    long kib = -1;

    while (file && fgets(line, sizeof(line), file))
        if (sscanf(line, "RssShmem: %ld", &kib) == 1)
            break;
    if (file)
        fclose(file);
    return kib;
}

static void grows_little(void)
{
    const int n = check_size();
    char *own = check_alloc(LEN);
    char *all = check_alloc((size_t)LEN * (size_t)n);
    const long most = (long)MANY / 2 * (n - 1) * (LEN / 1024);
    long before;

    memset(own, 1, LEN);
    MPI_Barrier(MPI_COMM_WORLD);
    before = shared_kib();
    for (int i = 0; i < MANY; i++)
        MPI_Gather(own, LEN, MPI_BYTE, all, LEN, MPI_BYTE, 0, MPI_COMM_WORLD);
    CHECK(before >= 0 && shared_kib() - before < most,
          "%d gathers take %ld KiB, from %ld on", MANY, shared_kib() - before,
          before);
    free(own);
    free(all);
}

static int value(int round, int rank, int at)
{
    return round * 7 + rank * 3 + at;
}

static void reduced(int round, int root, int count, const int *own, int *got)
{
    const int n = check_size();

    MPI_Reduce(own, got, count, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
    for (int i = 0; i < count && check_rank() == root; i++)
        CHECK(got[i] == value(round, 0, i) * n + 3 * n * (n - 1) / 2,
              "sum %d of round %d is %d", i, round, got[i]);
}

static void gathered(int round, int root, int count, const int *own, int *got)
{
    MPI_Gather(own, count, MPI_INT, got, count, MPI_INT, root, MPI_COMM_WORLD);
    for (int i = 0; i < count * check_size() && check_rank() == root; i++)
        CHECK(got[i] == value(round, i / count, i % count),
              "number %d of round %d is %d", i, round, got[i]);
}

static void keeps_apart(void)
{
    static const int counts[] = {LEN / 4, 1, 1000, 2048, 20, LEN / 4};
    int *own = check_alloc(LEN);
    int *got = check_alloc((size_t)LEN * (size_t)check_size());

    for (int round = 0; round < ROUNDS; round++) {
        const int root = round / IN_A_ROW % 2 ? 0 : round % check_size();
        const int count = counts[round % 6];

        for (int i = 0; i < count; i++)
            own[i] = value(round, check_rank(), i);
        if (round / 3 % 2)
            reduced(round, root, count, own, got);
        else
            gathered(round, root, count, own, got);
    }
    free(own);
    free(got);
}

/* Whoever takes less than the others hand in still lets them go on. */
static void takes_less(bool is_reduced)
{
    const bool is_root = check_rank() == 0;
    int *own = check_alloc(LEN);
    int *got = check_alloc((size_t)LEN * (size_t)check_size());
    const int count = is_root ? 1 : LEN / 4;
    int code;

    memset(own, 0, LEN);
    for (int i = 0; i < MANY; i++) {
        if (is_reduced)
            code = MPI_Reduce(own, got, count, MPI_INT, MPI_SUM, 0,
                              MPI_COMM_WORLD);
        else
            code = MPI_Gather(own, count, MPI_INT, got, 1, MPI_INT, 0,
                              MPI_COMM_WORLD);
        CHECK(!is_root || code != MPI_SUCCESS, "the root has no error");
    }
    free(own);
    free(got);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    check_need(3);
    if (argc > 1) /* it is for ranks that share cores; else each operation has
                     memory of its own */
        grows_little();
    keeps_apart();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    takes_less(true);
    takes_less(false);
    keeps_apart();
    return check_finish();
}
