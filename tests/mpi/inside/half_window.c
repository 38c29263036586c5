/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * In the last agreement about a window one member hears that another one is
 * lost, and the others do not: they have a window, which that one has not, and
 * free it without waiting for it.
 *
 * Linked with a chempi_comm_max() that fails when it is told to.
 */
#include "libchempi/didl/comm/make/comm_make.h"
#include "tests/mpi/check.h"

typedef int max_fn(const struct chempi_comm_channel *ch, int error,
                   int64_t *vals, int n);
max_fn __real_chempi_comm_max;
max_fn __wrap_chempi_comm_max;

static int calls;
static int fails_at; /* that call; 0: none */

int __wrap_chempi_comm_max(const struct chempi_comm_channel *ch, int error,
                           int64_t *vals, int n)
{
    const int rc = __real_chempi_comm_max(ch, error, vals, n);

    return ++calls == fails_at ? MPI_ERR_PROC_ABORTED : rc;
}

static MPI_Win make(int class)
{
    MPI_Win win = MPI_WIN_NULL;
    void *memory;
    int rc;

    calls = 0;
    rc = MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    CHECK(check_class(rc) == class, "class %d, not %d", check_class(rc), class);
    return win;
}

int main(int argc, char **argv)
{
    MPI_Win win;
    bool fails;

    check_start(&argc, &argv);
    check_need(2);
    fails = check_rank() == 1;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    win = make(MPI_SUCCESS);
    MPI_Win_free(&win);
    fails_at = fails ? calls : 0;
    win = make(fails ? MPI_ERR_PROC_ABORTED : MPI_SUCCESS);
    CHECK((win == MPI_WIN_NULL) == fails, "a window");
    if (win != MPI_WIN_NULL)
        MPI_Win_free(&win);
    return check_finish();
}
