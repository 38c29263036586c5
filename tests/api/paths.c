/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls that wait for nothing, for counting their instructions; see the script
 * "paths". A process alone, so that every run takes the same steps.
 */
#include <mpi.h>
#include <stddef.h>

enum {
    CALLS = 1000, /* the script knows it, too */
    TAG = 1,
    OTHER_TAG = 2,
    BLOCKS = 16,
    STRIDE = 4
};

static int source[BLOCKS * STRIDE];

/* One message by each way of sending. */
static int messages(void)
{
    MPI_Request requests[2];
    int value = 1;
    int got[2] = {0, 0};
    int is_there = 1;

    MPI_Irecv(&got[0], 1, MPI_INT, 0, TAG, MPI_COMM_SELF, &requests[0]);
    MPI_Send(&value, 1, MPI_INT, 0, TAG, MPI_COMM_SELF);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Irecv(&got[1], 1, MPI_INT, 0, TAG, MPI_COMM_SELF, &requests[0]);
    MPI_Isend(&value, 1, MPI_INT, 0, TAG, MPI_COMM_SELF, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Iprobe(0, OTHER_TAG, MPI_COMM_SELF, &is_there, MPI_STATUS_IGNORE);
    return got[0] + got[1] - is_there;
}

int main(void)
{
    int packed[BLOCKS] = {0};
    int position = 0;
    int good = 0;
    MPI_Datatype column;

    MPI_Init(NULL, NULL);
    MPI_Type_vector(BLOCKS, 1, STRIDE, MPI_INT, &column);
    MPI_Type_commit(&column);
    for (int i = 0; i < CALLS; i++) {
        good += messages();
        position = 0;
        MPI_Pack(source, 1, column, packed, sizeof(packed), &position,
                 MPI_COMM_SELF);
    }
    MPI_Type_free(&column);
    MPI_Finalize();
    return good == 2 * CALLS && position == (int)sizeof(packed) ? 0 : 1;
}
