/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Statuses as Fortran sees them: eight integers in the order of MPI_Status,
 * as an array or as the derived type of mpi_f08.
 */
#include <assert.h>
#include <mpi.h>
#include <string.h>

#include "libchempi/api/alias.h"
#include "libchempi/api/check.h"

static_assert(sizeof(MPI_Status) == MPI_F_STATUS_SIZE * sizeof(MPI_Fint),
              "a status is eight integers");
static_assert(sizeof(MPI_F08_status) == sizeof(MPI_Status), "the same form");

/*
 * Their addresses are what matters. They are shown under the names that
 * Fortran programs and libmpifort_abi give theirs, so that the dynamic linker
 * lets all of them meet: C code that gets a status from Fortran recognizes an
 * ignored one.
 */
CHEMPI_EXPORT MPI_F08_status mpi_fort_status_ignore_;
CHEMPI_EXPORT MPI_F08_status mpi_fort_statuses_ignore_;

CHEMPI_EXPORT MPI_Fint *const MPI_F_STATUS_IGNORE =
    &mpi_fort_status_ignore_.MPI_SOURCE;
CHEMPI_EXPORT MPI_Fint *const MPI_F_STATUSES_IGNORE =
    &mpi_fort_statuses_ignore_.MPI_SOURCE;
CHEMPI_EXPORT MPI_F08_status *const MPI_F08_STATUS_IGNORE =
    &mpi_fort_status_ignore_;
CHEMPI_EXPORT MPI_F08_status *const MPI_F08_STATUSES_IGNORE =
    &mpi_fort_statuses_ignore_;

/* The standard makes it an error to convert one that is ignored. */
static int convert(const void *from, void *to, const char *func)
{
    bool is_ignored = !from || from == (const void *)&mpi_fort_status_ignore_ ||
                      from == (const void *)&mpi_fort_statuses_ignore_;

    if (is_ignored || !to) {
        (void)chempi_error_set(MPI_ERR_ARG,
                               "the status to %s is NULL or one of the "
                               "constants for an ignored status",
                               is_ignored ? "convert" : "fill in");
        return chempi_error_raise(NULL, MPI_ERR_ARG, func);
    }
    memcpy(to, from, sizeof(MPI_Status));
    return MPI_SUCCESS;
}

#define CONVERT(way, from_type, to_type)                                       \
    CHEMPI_EXPORT int PMPI_Status_##way(const from_type *from, to_type *to)    \
    {                                                                          \
        return convert(from, to, "MPI_Status_" #way);                          \
    }                                                                          \
    CHEMPI_API_ALIAS(int, MPI_Status_##way, (const from_type *, to_type *))

CONVERT(c2f, MPI_Status, MPI_Fint);
CONVERT(f2c, MPI_Fint, MPI_Status);
CONVERT(c2f08, MPI_Status, MPI_F08_status);
CONVERT(f082c, MPI_F08_status, MPI_Status);
CONVERT(f2f08, MPI_Fint, MPI_F08_status);
CONVERT(f082f, MPI_F08_status, MPI_Fint);
