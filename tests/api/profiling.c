/* SPDX-License-Identifier: BSD-3-Clause */
/* A program's own MPI_ function takes the library's place and reaches it
 * under its PMPI_ name; the library's own work does not pass through it. */
#include <mpi.h>

#include "expect.h"

static int calls;

int MPI_Comm_size(MPI_Comm comm, int *size)
{
    calls++;
    return PMPI_Comm_size(comm, size);
}

int main(int argc, char **argv)
{
    int size = 0;

    PMPI_Init(&argc, &argv);
    EXPECT(calls == 0);
    EXPECT(MPI_Comm_size(MPI_COMM_WORLD, &size) == MPI_SUCCESS);
    EXPECT(calls == 1 && size == 1);
    EXPECT(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
    EXPECT(calls == 1);
    MPI_Finalize();
    return expect_failures != 0;
}
