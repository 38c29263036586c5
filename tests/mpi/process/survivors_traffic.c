/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks die in the midst of messages to and fro (chempirun --survive): the
 * news may come at any moment, also while the other rank lies down to sleep.
 * Each even rank exchanges with the next odd one, which dies.
 */
#include "check.h"

#include <signal.h>
#include <sys/time.h>

#define LENGTH 20000 /* bytes: more than a ring takes at once */
#define WAIT_US 10000

static char out[LENGTH];
static char in[LENGTH];

static int exchange(int partner)
{
    MPI_Request requests[2];
    int rc = MPI_Irecv(in, LENGTH, MPI_BYTE, partner, 0, MPI_COMM_WORLD,
                       &requests[0]);

    if (rc)
        return rc;
    rc = MPI_Isend(out, LENGTH, MPI_BYTE, partner, 0, MPI_COMM_WORLD,
                   &requests[1]);
    return rc ? rc : MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv)
{
    int rank;
    int rc = MPI_SUCCESS;
    int class;

    check_start(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank % 2) {
        const struct itimerval when = {.it_value = {.tv_usec = WAIT_US * rank}};

        (void)signal(SIGALRM, SIG_DFL);
        (void)setitimer(ITIMER_REAL, &when, NULL);
    }
    while (rc == MPI_SUCCESS)
        rc = exchange(rank ^ 1);
    if (rc != MPI_ERR_IN_STATUS)
        MPI_Error_class(rc, &class);
    CHECK_OR_DIE(rc == MPI_ERR_IN_STATUS || class == MPI_ERR_PROC_ABORTED,
                 "the exchange ended with %d", rc);
    printf("rank %d went on\n", rank);
    MPI_Finalize();
    return 0;
}
