/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank that runs out of memory when it cancels what it has sent: whoever
 * waits for a message that was cancelled does not wait for ever, whether it is
 * taken back or has been received.
 */
#include "tests/mpi/check.h"
#include "tests/mpi/inside/starve.h"

enum { LEN = 600000, MESSAGES = 3, WANTED = 1, LONG = 50 };

static char data[LEN];

/* The receiver takes one of all, after the sender has cancelled them or
 * before; its messages to the receiver wait for a receive. */
static void cancel_all(int count, bool is_late)
{
    MPI_Request sends[MESSAGES];
    MPI_Status statuses[MESSAGES];
    int is_cancelled;

    for (int i = 0; i < MESSAGES; i++)
        MPI_Issend(data, i == 0 ? 1 : LEN, MPI_CHAR, 1, i, MPI_COMM_WORLD,
                   &sends[i]);
    MPI_Send(NULL, 0, MPI_CHAR, 1, MESSAGES, MPI_COMM_WORLD);
    if (is_late)
        MPI_Recv(NULL, 0, MPI_CHAR, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    starve_some(0, count);
    for (int i = 0; i < MESSAGES; i++)
        MPI_Cancel(&sends[i]);
    MPI_Waitall(MESSAGES, sends, statuses);
    starve_end();
    for (int i = 0; i < MESSAGES; i++) {
        MPI_Test_cancelled(&statuses[i], &is_cancelled);
        CHECK(is_cancelled == !(is_late && i == WANTED), "message %d: %d", i,
              is_cancelled);
    }
    MPI_Send(NULL, 0, MPI_CHAR, 1, MESSAGES, MPI_COMM_WORLD);
}

static void receive_one(bool is_late)
{
    int is_there;

    MPI_Recv(NULL, 0, MPI_CHAR, 0, MESSAGES, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (is_late) {
        MPI_Recv(data, LEN, MPI_CHAR, 0, WANTED, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        MPI_Send(NULL, 0, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    }
    MPI_Recv(NULL, 0, MPI_CHAR, 0, MESSAGES, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Iprobe(0, MPI_ANY_TAG, MPI_COMM_WORLD, &is_there, MPI_STATUS_IGNORE);
    CHECK(!is_there, "a message that was cancelled");
}

int main(int argc, char **argv)
{
    starve_start((struct starve_sizes){1, 0});
    check_start(&argc, &argv);
    check_need(2);
    for (int count = 1; count <= LONG; count += LONG - 1)
        for (int is_late = 0; is_late < 2; is_late++) {
            if (check_rank() == 0)
                cancel_all(count, is_late);
            else
                receive_one(is_late);
            MPI_Barrier(MPI_COMM_WORLD);
        }
    CHECK(check_rank() != 0 || starve_refused() > 0, "there was always memory");
    return check_finish();
}
