/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that return late: when they have freed a request, other threads go on
 * before the caller does. */
#include <mpi.h>
#include <sched.h>

enum { TURNS = 16 };

static int late(int rc)
{
    for (int i = 0; i < TURNS; i++)
        (void)sched_yield();
    return rc;
}

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    return late(PMPI_Wait(request, status));
}

int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
    return late(PMPI_Waitall(count, requests, statuses));
}

int MPI_Waitany(int count, MPI_Request requests[], int *index,
                MPI_Status *status)
{
    return late(PMPI_Waitany(count, requests, index, status));
}

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    return late(PMPI_Test(request, flag, status));
}
