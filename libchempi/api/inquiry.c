/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI functions that need no state of the library: time, versions and address
 * arithmetic. Callable at any time, from any thread; they cannot fail but for
 * NULL arguments.
 */
#include <mpi.h>
#include <string.h>

#include "common/base/clock.h"
#include "libchempi/api/alias.h"
#include "libchempi/api/check.h"

CHEMPI_EXPORT double PMPI_Wtime(void)
{
    return (double)chempi_clock_ns() * 1e-9;
}
CHEMPI_API_ALIAS(double, MPI_Wtime, (void));

CHEMPI_EXPORT double PMPI_Wtick(void)
{
    return 1e-9; /* the clock counts nanoseconds */
}
CHEMPI_API_ALIAS(double, MPI_Wtick, (void));

CHEMPI_EXPORT MPI_Aint PMPI_Aint_add(MPI_Aint base, MPI_Aint disp)
{
    return (MPI_Aint)((uintptr_t)base + (uintptr_t)disp);
}
CHEMPI_API_ALIAS(MPI_Aint, MPI_Aint_add, (MPI_Aint base, MPI_Aint disp));

CHEMPI_EXPORT MPI_Aint PMPI_Aint_diff(MPI_Aint addr1, MPI_Aint addr2)
{
    return (MPI_Aint)((uintptr_t)addr1 - (uintptr_t)addr2);
}
CHEMPI_API_ALIAS(MPI_Aint, MPI_Aint_diff, (MPI_Aint addr1, MPI_Aint addr2));

CHEMPI_EXPORT int PMPI_Get_version(int *version, int *subversion)
{
    if (!version || !subversion)
        return chempi_api_fail(
            chempi_api_null_pointer(NULL, version ? "subversion" : "version",
                                    MPI_ERR_ARG),
            "MPI_Get_version", "pversion psubversion", CHEMPI_API_ARG(version),
            CHEMPI_API_ARG(subversion));
    *version = MPI_VERSION;
    *subversion = MPI_SUBVERSION;
    return MPI_SUCCESS;
}
CHEMPI_API_ALIAS(int, MPI_Get_version, (int *version, int *subversion));

CHEMPI_EXPORT int PMPI_Abi_get_version(int *abi_major, int *abi_minor)
{
    if (!abi_major || !abi_minor)
        return chempi_api_fail(
            chempi_api_null_pointer(NULL, abi_major ? "abi_minor" : "abi_major",
                                    MPI_ERR_ARG),
            "MPI_Abi_get_version", "pabi_major pabi_minor",
            CHEMPI_API_ARG(abi_major), CHEMPI_API_ARG(abi_minor));
    *abi_major = MPI_ABI_VERSION;
    *abi_minor = MPI_ABI_SUBVERSION;
    return MPI_SUCCESS;
}
CHEMPI_API_ALIAS(int, MPI_Abi_get_version, (int *abi_major, int *abi_minor));

CHEMPI_EXPORT int PMPI_Get_library_version(char *version, int *resultlen)
{
    static const char text[] =
        "CHEMPI " CHEMPI_VERSION ", MPI 5.0, standard ABI 1.0";

    if (!version || !resultlen)
        return chempi_api_fail(
            chempi_api_null_pointer(NULL, version ? "resultlen" : "version",
                                    MPI_ERR_ARG),
            "MPI_Get_library_version", "pversion presultlen",
            CHEMPI_API_ARG(version), CHEMPI_API_ARG(resultlen));
    memcpy(version, text, sizeof(text));
    *resultlen = (int)sizeof(text) - 1;
    return MPI_SUCCESS;
}
CHEMPI_API_ALIAS(int, MPI_Get_library_version, (char *version, int *resultlen));

/* Profiling libraries give it a meaning; the library itself has none. */
CHEMPI_EXPORT int PMPI_Pcontrol(const int level, ...)
{
    (void)level;
    return MPI_SUCCESS;
}
CHEMPI_API_ALIAS(int, MPI_Pcontrol, (const int level, ...));
