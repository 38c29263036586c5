/* SPDX-License-Identifier: BSD-3-Clause */
/* Small sends to itself, for counting instructions; see the script "cost". */
#include <mpi.h>
#include <stddef.h>

enum { SENDS = 1000 }; /* the script knows it, too */

int main(void)
{
    MPI_Request request;
    int value = 1;
    int got = 0;

    MPI_Init(NULL, NULL);
    for (int i = 0; i < SENDS; i++) {
        MPI_Irecv(&got, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &request);
        MPI_Send(&value, 1, MPI_INT, 0, 0, MPI_COMM_SELF);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    return got == value ? 0 : 1;
}
