/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One collective operation with BYTES of data, so that the traffic that the
 * launcher tells (--stats) shows which links it took.
 *
 * usage: crossing bcast|ibcast|allreduce BYTES [ROOT]
 */
#include "check.h"

static void do_bcast(double *data, int count, int root, int is_blocking)
{
    MPI_Request request;

    for (int i = 0; i < count; i++)
        data[i] = check_rank() == root ? i : -1;
    if (is_blocking) {
        MPI_Bcast(data, count, MPI_DOUBLE, root, MPI_COMM_WORLD);
    } else {
        MPI_Ibcast(data, count, MPI_DOUBLE, root, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < count; i++)
        CHECK(data[i] == i, "element %d is %g", i, data[i]);
}

static void do_allreduce(double *data, int count)
{
    int size = check_size();

    for (int i = 0; i < count; i++)
        data[i] = check_rank() + i;
    MPI_Allreduce(MPI_IN_PLACE, data, count, MPI_DOUBLE, MPI_SUM,
                  MPI_COMM_WORLD);
    for (int i = 0; i < count; i++)
        CHECK(data[i] == size * (size - 1) / 2 + (double)i * size,
              "element %d is %g", i, data[i]);
}

int main(int argc, char **argv)
{
    double *data;
    int count;

    check_start(&argc, &argv);
    count = atoi(argv[2]) / (int)sizeof(*data);
    data = check_alloc((size_t)count * sizeof(*data));
    MPI_Barrier(MPI_COMM_WORLD); /* the hierarchy is made here */
    if (strcmp(argv[1], "allreduce") == 0)
        do_allreduce(data, count);
    else
        do_bcast(data, count, atoi(argv[3]), argv[1][0] == 'b');
    free(data);
    return check_finish();
}
