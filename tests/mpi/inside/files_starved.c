/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank that has no memory for the request of a collective access cannot take
 * part: it ends, and nobody waits for it for ever.
 */
#include <errno.h>
#include <unistd.h>

#include "common/base/sys.h"
#include "tests/mpi/check.h"

static void *no_calloc(size_t n, size_t size)
{
    (void)n;
    (void)size;
    errno = ENOMEM;
    return NULL;
}

int main(int argc, char **argv)
{
    struct chempi_sys rigged = chempi_sys_libc;
    int number = 7;
    MPI_File file;
    MPI_Request request;

    check_start(&argc, &argv);
    CHECK_OR_DIE(argc == 2 && chdir(argv[1]) == 0, "usage: starved FOLDER");
    CHECK_OR_DIE(MPI_File_open(MPI_COMM_WORLD, "starved.tmp",
                               MPI_MODE_CREATE | MPI_MODE_WRONLY |
                                   MPI_MODE_DELETE_ON_CLOSE,
                               MPI_INFO_NULL, &file) == MPI_SUCCESS,
                 "open");
    remove("starved.tmp");
    rigged.calloc = no_calloc;
    if (check_rank() == 1)
        chempi_sys = &rigged;
    MPI_File_iwrite_at_all(file, check_rank() * 4, &number, 1, MPI_INT32_T,
                           &request);
    if (check_rank() == 1) {
        printf("rank 1 went on\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return check_finish();
}
