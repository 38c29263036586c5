/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpi.h>

void rounds_c(int comm, int n);

void rounds_c(int comm, int n)
{
    MPI_Comm c = MPI_Comm_fromint(comm);
    double x = 1;

    for (int i = 0; i < n; i++)
        MPI_Send(&x, 1, MPI_DOUBLE, MPI_PROC_NULL, 0, c);
}
