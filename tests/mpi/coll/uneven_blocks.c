/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gatherv and scatterv of blocks whose lengths only the root and their owners
 * know: some are empty, some long, on either side of what a record holds and
 * of what goes by way of a node's leader. Then one member gives another amount
 * than is expected, and all go on.
 *
 *     uneven_blocks [ROUNDS [right]]
 *
 * right: without that.
 */
#include "check.h"

static const int lens[] = {0,    1,    39,   40,    41,    1000,
                           4095, 4096, 4097, 16384, 70000, 300000};
#define LENS ((int)(sizeof(lens) / sizeof(lens[0])))
enum { LONGEST = 300000, GAP = 3, HOLE = 0x5a };

static struct {
    MPI_Comm comm;
    int rank;
    int size;
    int *counts;
    int *displs;
    unsigned char *mine; /* LONGEST */
    unsigned char *all;  /* at the root */
} on;

/* The places of a round: blocks with gaps between them, in reverse order. */
static int lay(int round)
{
    int at = GAP;

    for (int i = on.size - 1; i >= 0; i--) {
        on.counts[i] =
            lens[check_mix((uint64_t)round, (uint64_t)i) % (uint64_t)LENS];
        on.displs[i] = at;
        at += on.counts[i] + GAP;
    }
    return at;
}

static uint64_t seed_of(int round, int rank)
{
    return (uint64_t)round * 1000 + (uint64_t)rank;
}

static void expect_gaps(int len, const char *call, int round)
{
    int wrong = 0;

    for (int i = 0; i < on.size; i++)
        for (int k = 1; k <= GAP; k++)
            wrong += on.all[on.displs[i] - k] != HOLE;
    for (int k = 1; k <= GAP; k++)
        wrong += on.all[len - k] != HOLE;
    CHECK(wrong == 0, "%s, round %d: %d bytes between blocks", call, round,
          wrong);
}

static void gather(int round, int root, int len)
{
    const int count = on.counts[on.rank];
    const bool is_in_place = on.rank == root && round % 3 == 0;
    unsigned char *own = is_in_place ? on.all + on.displs[on.rank] : on.mine;

    if (on.rank == root)
        memset(on.all, HOLE, (size_t)len);
    check_fill(own, (size_t)count, seed_of(round, on.rank));
    MPI_Gatherv(is_in_place ? MPI_IN_PLACE : own, count, MPI_BYTE, on.all,
                on.counts, on.displs, MPI_BYTE, root, on.comm);
    if (on.rank != root)
        return;
    for (int i = 0; i < on.size; i++)
        CHECK(check_differs(on.all + on.displs[i], (size_t)on.counts[i],
                            seed_of(round, i)) == SIZE_MAX,
              "gatherv, round %d: block %d of %d bytes", round, i,
              on.counts[i]);
    expect_gaps(len, "gatherv", round);
}

static void scatter(int round, int root, int len)
{
    const int count = on.counts[on.rank];
    const bool is_in_place = on.rank == root && round % 2 == 0;

    for (int i = 0; on.rank == root && i < on.size; i++)
        check_fill(on.all + on.displs[i], (size_t)on.counts[i],
                   seed_of(round, i));
    memset(on.mine, HOLE, (size_t)count + GAP);
    MPI_Scatterv(on.all, on.counts, on.displs, MPI_BYTE,
                 is_in_place ? MPI_IN_PLACE : on.mine, count, MPI_BYTE, root,
                 on.comm);
    if (!is_in_place)
        CHECK(check_differs(on.mine, (size_t)count, seed_of(round, on.rank)) ==
                      SIZE_MAX &&
                  on.mine[count] == HOLE,
              "scatterv, round %d: %d bytes", round, count);
    if (on.rank == root)
        expect_gaps(len, "scatterv", round);
}

/* Rank `other` gives or takes `wrong` bytes, all others `right`. */
static void expect_error(int right, int wrong, int other)
{
    const int root = (other + 1) % on.size;
    const int class = wrong > right ? MPI_ERR_TRUNCATE : MPI_ERR_COUNT;
    const int count = on.rank == other ? wrong : right;
    int error;

    for (int i = 0; i < on.size; i++) {
        on.counts[i] = right;
        on.displs[i] = i * right;
    }
    error = MPI_Gatherv(on.mine, count, MPI_BYTE, on.all, on.counts, on.displs,
                        MPI_BYTE, root, on.comm);
    CHECK(on.rank != root || check_class(error) == class,
          "gatherv of %d for %d from %d: error class %d", wrong, right, other,
          check_class(error));
    if (on.rank == root)
        on.counts[other] = wrong;
    error = MPI_Scatterv(on.all, on.counts, on.displs, MPI_BYTE, on.mine, right,
                         MPI_BYTE, root, on.comm);
    CHECK(on.rank != other || check_class(error) == class,
          "scatterv of %d for %d to %d: error class %d", wrong, right, other,
          check_class(error));
}

static void different_amounts(void)
{
    static const int pairs[][2] = {{40, 39},       {39, 40},     {41, 40},
                                   {40, 41},       {1000, 1001}, {1001, 1000},
                                   {4096, 30},     {30, 4096},   {20000, 20001},
                                   {20001, 20000}, {5000, 70000}};
    int round = 0;

    for (size_t k = 0; k < sizeof(pairs) / sizeof(pairs[0]); k++)
        for (int other = 0; other < on.size; other++) {
            int len;

            expect_error(pairs[k][0], pairs[k][1], other);
            len = lay(++round);

            gather(round, other, len);
            scatter(round, other, len);
        }
}

static void use(MPI_Comm comm)
{
    on.comm = comm;
    MPI_Comm_rank(comm, &on.rank);
    MPI_Comm_size(comm, &on.size);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
}

static void run(int rounds)
{
    for (int round = 0; round < rounds; round++) {
        const int root = round % on.size;
        const int len = lay(round);

        gather(round, root, len);
        scatter(round, root, len);
    }
}

int main(int argc, char **argv)
{
    MPI_Comm turned;
    int rounds;

    check_start(&argc, &argv);
    rounds = (int)check_arg(argc, argv, 1, 100);
    on.counts = check_alloc(2 * sizeof(int) * (size_t)check_size());
    on.displs = on.counts + check_size();
    on.mine = check_alloc(LONGEST + GAP);
    on.all = check_alloc((size_t)(LONGEST + GAP) * (size_t)check_size() + GAP);
    MPI_Comm_split(MPI_COMM_WORLD, 0, check_size() / 2 - check_rank(), &turned);
    use(MPI_COMM_WORLD);
    run(rounds);
    use(turned);
    run(rounds);
    if (argc < 3)
        different_amounts();
    MPI_Comm_free(&turned);
    free(on.counts);
    free(on.mine);
    free(on.all);
    return check_finish();
}
