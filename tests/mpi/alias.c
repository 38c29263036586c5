/* SPDX-License-Identifier: BSD-3-Clause */
/* Old programs send their part of a gathered array from where it is received.
 * That is an error, unless arguments are not checked (CHEMPI_CHECK_ARGUMENTS);
 * then the array comes out as they expect. */
#include "check.h"

enum { SIZES = 3 };

static const int sizes[SIZES] = {1, 700, 100000};

static void fill(int *all, int part)
{
    for (int i = 0; i < check_size() * part; i++)
        all[i] = i / part == check_rank() ? i : -1;
}

static void expect_whole(const int *all, int part, const char *what)
{
    int wrong = 0;

    for (int i = 0; i < check_size() * part; i++)
        wrong += all[i] != i;
    CHECK(wrong == 0, "%s of %d each: %d are wrong", what, part, wrong);
}

static void gather(int *all, int part)
{
    int *own = all + (ptrdiff_t)check_rank() * part;

    fill(all, part);
    MPI_Allgather(own, part, MPI_INT, all, part, MPI_INT, MPI_COMM_WORLD);
    expect_whole(all, part, "allgather");
    fill(all, part);
    MPI_Gather(own, part, MPI_INT, all, part, MPI_INT, 0, MPI_COMM_WORLD);
    if (check_rank() == 0)
        expect_whole(all, part, "gather");
}

int main(int argc, char **argv)
{
    int *all;

    check_start(&argc, &argv);
    all =
        malloc((size_t)check_size() * (size_t)sizes[SIZES - 1] * sizeof(*all));
    CHECK(all != NULL, "out of memory");
    for (int i = 0; all && i < SIZES; i++)
        gather(all, sizes[i]);
    free(all);
    return check_finish();
}
