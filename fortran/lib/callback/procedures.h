/* SPDX-License-Identifier: BSD-3-Clause */
/* The procedures that the standard predefines for Fortran; programs pass them
 * and may call them. */
#ifndef CHEMPI_FORTRAN_PROCEDURES_H
#define CHEMPI_FORTRAN_PROCEDURES_H

#include <stdbool.h>

#include "fortran/lib/callback/callback.h"

/* Is it one of MPI_X_NULL_COPY_FN, MPI_X_DUP_FN, MPI_X_NULL_DELETE_FN? */
bool chempi_procedures_is_predefined(chempi_procedure *procedure);

/* Is it one of MPI_DUP_FN, MPI_X_DUP_FN? */
bool chempi_procedures_is_dup(chempi_procedure *procedure);

/* Is it MPI_CONVERSION_FN_NULL or MPI_CONVERSION_FN_NULL_C? */
bool chempi_procedures_is_no_conversion(chempi_procedure *procedure);

#endif
