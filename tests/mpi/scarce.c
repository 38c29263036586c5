/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collective operations while one rank finds no more shared memory: whoever
 * needs its data gets an error, never a wrong result, and the communicator
 * goes on.
 */
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { COUNT = 100 }; /* doubles: more than a line holds */

static bool is_scarce;

/* In place of libc's, for the library, too. */
int fallocate(int fd, int mode, off_t offset, off_t len)
{
    if (is_scarce) {
        errno = ENOSPC;
        return -1;
    }
    return (int)syscall(SYS_fallocate, fd, mode, offset, len);
}

int fallocate64(int fd, int mode, off64_t offset, off64_t len)
{
    return fallocate(fd, mode, offset, len);
}

static int call(int which, const double *in, double *out)
{
    int counts[16];

    for (int i = 0; i < 16; i++)
        counts[i] = i == 0 ? COUNT : 0;
    switch (which) {
    case 0:
        return MPI_Allreduce(in, out, COUNT, MPI_DOUBLE, MPI_SUM,
                             MPI_COMM_WORLD);
    case 1:
        return MPI_Reduce(in, out, COUNT, MPI_DOUBLE, MPI_SUM, 0,
                          MPI_COMM_WORLD);
    case 2:
        return MPI_Scan(in, out, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    default:
        return MPI_Reduce_scatter(in, out, counts, MPI_DOUBLE, MPI_SUM,
                                  MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv)
{
    double in[COUNT];
    double out[COUNT];

    check_start(&argc, &argv);
    CHECK_OR_DIE(check_size() <= 16, "at most 16 ranks");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 0; i < COUNT; i++)
        in[i] = check_rank() + 1;
    MPI_Barrier(MPI_COMM_WORLD); /* what this communicator needs is there */
    for (int which = 0; which < 4; which++) {
        bool needs = which != 1 || check_rank() < 2;
        int rc;

        is_scarce = check_rank() == 1;
        rc = call(which, in, out);
        is_scarce = false;
        CHECK(!needs || rc != MPI_SUCCESS, "operation %d has succeeded", which);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    CHECK(call(0, in, out) == MPI_SUCCESS &&
              out[0] == check_size() * (check_size() + 1) / 2,
          "the communicator is of no use any more: %g", out[0]);
    return check_finish();
}
