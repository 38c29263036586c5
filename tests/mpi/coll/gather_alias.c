/* SPDX-License-Identifier: BSD-3-Clause */
/* Old programs send their part of a gathered array from where it is received.
 * That is an error, unless arguments are not checked (CHEMPI_CHECK_ARGUMENTS);
 * then the array comes out as they expect. Of other operations the result
 * would be wrong; they stay an error. */
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

static void expect_refusal(int error, int part, const char *what)
{
    int class = check_class(error);

    CHECK(class == MPI_ERR_BUFFER, "%s of %d: error class %d", what, part,
          class);
}

static void others(int *all, int part)
{
    MPI_Comm comm = MPI_COMM_WORLD;

    expect_refusal(MPI_Allreduce(all, all, part, MPI_INT, MPI_SUM, comm), part,
                   "allreduce");
    expect_refusal(MPI_Scan(all, all, part, MPI_INT, MPI_SUM, comm), part,
                   "scan");
    expect_refusal(
        MPI_Reduce_scatter_block(all, all, part, MPI_INT, MPI_SUM, comm), part,
        "reduce_scatter_block");
    expect_refusal(MPI_Alltoall(all, part, MPI_INT, all, part, MPI_INT, comm),
                   part, "alltoall");
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
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 0; all && i < SIZES; i++)
        others(all, sizes[i]);
    free(all);
    return check_finish();
}
