/* SPDX-License-Identifier: BSD-3-Clause */
/* A process that sends and then is out of MPI, until what it has sent is
 * received: nothing that a device keeps for others to follow may stay there. */
#include <fcntl.h>
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../check.h"

enum { MOST = 20, TAG = 3 };

static char name[PATH_MAX];

/* Until the other side does the same. */
static void meet(int way)
{
    int fd = open(name, way);

    CHECK_OR_DIE(fd >= 0, "cannot open %s", name);
    (void)close(fd);
}

static void send_and_leave(int count, bool completes)
{
    MPI_Request requests[MOST];
    int values[MOST];

    for (int i = 0; i < count; i++) {
        values[i] = i;
        MPI_Isend(&values[i], 1, MPI_INT, 1, TAG, MPI_COMM_WORLD, &requests[i]);
    }
    if (completes)
        MPI_Wait(&requests[count - 1], MPI_STATUS_IGNORE);
    meet(O_RDONLY);
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
}

static void receive_all(int count)
{
    int value;

    for (int i = 0; i < count; i++) {
        MPI_Recv(&value, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(value == i, "message %d: %d", i, value);
    }
    meet(O_WRONLY);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    check_need(2);
    CHECK_OR_DIE(argc > 1, "name a folder");
    (void)snprintf(name, sizeof(name), "%s/kept", argv[1]);
    if (check_rank() == 0)
        CHECK_OR_DIE(mkfifo(name, 0600) == 0, "no %s", name);
    for (int i = 0; i < 2 * MOST; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (check_rank() == 0)
            send_and_leave(1 + i / 2, i % 2 == 1);
        else if (check_rank() == 1)
            receive_all(1 + i / 2);
    }
    if (check_rank() == 0)
        (void)unlink(name);
    return check_finish();
}
