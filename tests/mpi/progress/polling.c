/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank that never waits, only polls, for the answer of one that sleeps and
 * has not said anything yet. What wakes the sleeper may get lost on the way,
 * and whoever polls must notice, too.
 *
 * usage: polling [messages before the answer [bytes of each]]
 */
#include "check.h"

#define POLLS 2000 /* between two messages */

static void ask(unsigned char *buf, int len, int count)
{
    MPI_Request req;
    int flag = 0;

    for (int i = 0; i < count; i++) {
        memset(buf, i, (size_t)len);
        MPI_Isend(buf, len, MPI_BYTE, 1, i, MPI_COMM_WORLD, &req);
        for (flag = 0; !flag;)
            MPI_Test(&req, &flag, MPI_STATUS_IGNORE);
        for (int n = 0; n < POLLS; n++)
            MPI_Iprobe(1, 0, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
    while (!flag)
        MPI_Iprobe(1, 0, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    MPI_Recv(buf, 1, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void answer(unsigned char *buf, int len, int count)
{
    for (int i = 0; i < count; i++) {
        MPI_Recv(buf, len, MPI_BYTE, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int at = 0; at < len; at++)
            CHECK(buf[at] == (unsigned char)i, "message %d: byte %d is %u", i,
                  at, buf[at]);
    }
    MPI_Send(buf, 1, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    int count = (int)check_arg(argc, argv, 1, 50);
    int len = (int)check_arg(argc, argv, 2, 16);
    unsigned char *buf = check_alloc((size_t)len);

    if (check_rank() == 0)
        ask(buf, len, count);
    else
        answer(buf, len, count);
    free(buf);
    return check_finish();
}
