/* SPDX-License-Identifier: BSD-3-Clause */
/* What MPI and the Fortran compiler must agree on. */
#ifndef CHEMPI_FORTRAN_STARTUP_H
#define CHEMPI_FORTRAN_STARTUP_H

/*
 * After MPI_Init: raise MPI_ERR_ABI if what was told to MPI about Fortran's
 * types, by whoever came first, is not what this library was built with.
 * Returns MPI_SUCCESS or the error code.
 */
int chempi_startup_report(const char *call);

#endif
