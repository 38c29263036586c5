/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The storage of Fortran's constants that are known by their address. The
 * modules and, as COMMON blocks, mpif.h name the same symbols, which gfortran
 * aligns to 16 or 32 bytes.
 */
#include "fortran/lib/binding.h"

CHEMPI_EXPORT _Alignas(16) int mpi_fort_bottom_;
CHEMPI_EXPORT _Alignas(16) int mpi_fort_in_place_;
CHEMPI_EXPORT _Alignas(16) int mpi_fort_buffer_automatic_;
CHEMPI_EXPORT _Alignas(32) MPI_Status mpi_fort_status_ignore_;
CHEMPI_EXPORT _Alignas(32) MPI_Status mpi_fort_statuses_ignore_;
CHEMPI_EXPORT _Alignas(16) int mpi_fort_errcodes_ignore_;
CHEMPI_EXPORT _Alignas(16) int mpi_fort_unweighted_;
CHEMPI_EXPORT _Alignas(16) int mpi_fort_weights_empty_;
CHEMPI_EXPORT _Alignas(16) char mpi_fort_argv_null_;
CHEMPI_EXPORT _Alignas(16) char mpi_fort_argvs_null_;
