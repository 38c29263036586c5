/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls of an integer sort, as many and as large as the profiling library
 * is expected to tell; the case looks at what it prints. */
#include "check.h"

enum { STEPS = 11, KEYS = 2048, BLOCK = 1024 };

static void sort_step(int *keys, int *more)
{
    int size = check_size();
    int *counts = check_alloc((size_t)size * sizeof(*counts));
    int *displs = check_alloc((size_t)size * sizeof(*displs));

    for (int r = 0; r < size; r++) {
        counts[r] = BLOCK;
        displs[r] = r * BLOCK;
    }
    MPI_Allreduce(MPI_IN_PLACE, keys, KEYS, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Alltoall(keys, 1, MPI_INT, more, 1, MPI_INT, MPI_COMM_WORLD);
    MPI_Alltoallv(keys, counts, displs, MPI_INT, more, counts, displs, MPI_INT,
                  MPI_COMM_WORLD);
    free(displs);
    free(counts);
}

int main(int argc, char **argv)
{
    int *keys;
    int *more;
    MPI_Request request;
    int is_there;

    check_start(&argc, &argv);
    check_need(2);
    keys = check_alloc((size_t)check_size() * KEYS * sizeof(*keys));
    more = check_alloc((size_t)check_size() * KEYS * sizeof(*more));
    for (int i = 0; i < STEPS; i++)
        sort_step(keys, more);
    /* A receive has room for more than comes. */
    MPI_Isend(keys, 3, MPI_INT, check_rank() ^ 1, 0, MPI_COMM_WORLD, &request);
    MPI_Recv(more, KEYS, MPI_INT, check_rank() ^ 1, 0, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (check_rank() == 0)
        MPI_Iprobe(0, 0, MPI_COMM_SELF, &is_there, MPI_STATUS_IGNORE);
    MPI_Pcontrol(0);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Pcontrol(1);
    free(more);
    free(keys);
    return check_finish();
}
