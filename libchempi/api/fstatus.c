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

/* Their addresses are what matters: Fortran's MPI_STATUS_IGNORE. */
static MPI_F08_status ignore_one;
static MPI_F08_status ignore_many;

CHEMPI_EXPORT MPI_Fint *const MPI_F_STATUS_IGNORE = &ignore_one.MPI_SOURCE;
CHEMPI_EXPORT MPI_Fint *const MPI_F_STATUSES_IGNORE = &ignore_many.MPI_SOURCE;
CHEMPI_EXPORT MPI_F08_status *const MPI_F08_STATUS_IGNORE = &ignore_one;
CHEMPI_EXPORT MPI_F08_status *const MPI_F08_STATUSES_IGNORE = &ignore_many;

/* The standard makes it an error to convert one that is ignored. */
static int convert(const void *from, void *to, const char *func)
{
    bool is_ignored = !from || from == (const void *)&ignore_one ||
                      from == (const void *)&ignore_many;

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
