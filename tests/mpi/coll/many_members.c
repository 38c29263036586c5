/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives of more members on a node than have boards of a page each
 * (node.c): every member's part is right, whatever way it takes. One member
 * gives far more than the others, so that little memory is needed.
 *
 * usage: many [LENGTH ...]: bytes of the large part
 */
#include "check.h"

static unsigned char byte_of(int rank, int at)
{
    return (unsigned char)(rank * 31 + at);
}

/* Rank `large` gives len bytes, all others one. */
static void gather_all(int large, int len)
{
    const int size = check_size();
    const int mine = check_rank() == large ? len : 1;
    unsigned char *own = check_alloc((size_t)mine);
    unsigned char *all = check_alloc((size_t)(len + size));
    int *counts = check_alloc((size_t)size * sizeof(*counts));
    int *starts = check_alloc((size_t)size * sizeof(*starts));
    int wrong = 0;

    for (int i = 0; i < mine; i++)
        own[i] = byte_of(check_rank(), i);
    for (int r = 0, at = 0; r < size; at += counts[r++]) {
        counts[r] = r == large ? len : 1;
        starts[r] = at;
    }
    MPI_Allgatherv(own, mine, MPI_BYTE, all, counts, starts, MPI_BYTE,
                   MPI_COMM_WORLD);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < counts[r]; i++)
            wrong += all[starts[r] + i] != byte_of(r, i);
    CHECK(wrong == 0, "%d bytes of %d are wrong, rank %d gave most", wrong,
          len + size - 1, large);
    free(own);
    free(all);
    free(counts);
    free(starts);
}

static void combine_and_spread(int len)
{
    const int size = check_size();
    unsigned char *data = check_alloc((size_t)len);
    int64_t sum = check_rank();
    int64_t before = 0;
    int wrong = 0;

    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == (int64_t)size * (size - 1) / 2, "a sum of %lld",
          (long long)sum);
    sum = 1;
    MPI_Exscan(&sum, &before, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    CHECK(check_rank() == 0 || before == check_rank(), "%lld ranks before",
          (long long)before);
    for (int i = 0; check_rank() == size - 1 && i < len; i++)
        data[i] = byte_of(7, i);
    MPI_Bcast(data, len, MPI_BYTE, size - 1, MPI_COMM_WORLD);
    for (int i = 0; i < len; i++)
        wrong += data[i] != byte_of(7, i);
    CHECK(wrong == 0, "%d bytes of a broadcast are wrong", wrong);
    MPI_Barrier(MPI_COMM_WORLD);
    free(data);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    for (int i = 1; i < argc; i++) {
        const int len = atoi(argv[i]);

        gather_all(0, len);
        gather_all(check_size() - 1, len);
        combine_and_spread(len);
    }
    return check_finish();
}
