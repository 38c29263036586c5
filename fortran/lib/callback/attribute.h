/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attributes between Fortran, where a value is an integer, and C, where it is
 * a pointer. As section 19.3.7 of MPI 5.0 wants it, what Fortran sets is seen
 * by C as the address of that integer, and what C sets is seen by Fortran as
 * the address. The integers set by Fortran stand in cells.
 */
#ifndef CHEMPI_FORTRAN_ATTRIBUTE_H
#define CHEMPI_FORTRAN_ATTRIBUTE_H

#include <mpi.h>
#include <stdbool.h>

#include "fortran/lib/callback/callback.h"

/* What Fortran gave with a key value; interned, never freed. */
struct chempi_keyval;

/*
 * The state of a key value, the same for equal arguments. is_old: the
 * procedures take INTEGER values (MPI_Keyval_create). NULL: out of memory.
 */
struct chempi_keyval *chempi_attribute_keyval(chempi_procedure *copy,
                                              chempi_procedure *drop,
                                              MPI_Aint extra_state,
                                              bool is_old);

/* C's functions of all such key values; their state is that above. */
int chempi_attribute_copy_comm(MPI_Comm comm, int keyval, void *state, void *in,
                               void *out, int *flag);
int chempi_attribute_drop_comm(MPI_Comm comm, int keyval, void *value,
                               void *state);
int chempi_attribute_copy_type(MPI_Datatype type, int keyval, void *state,
                               void *in, void *out, int *flag);
int chempi_attribute_drop_type(MPI_Datatype type, int keyval, void *value,
                               void *state);
int chempi_attribute_copy_win(MPI_Win win, int keyval, void *state, void *in,
                              void *out, int *flag);
int chempi_attribute_drop_win(MPI_Win win, int keyval, void *value,
                              void *state);

/*
 * A cell that holds the value, for MPI_X_set_attr; NULL when out of memory.
 * It is given back when the attribute goes, for key values made in Fortran;
 * for those made in C one cell for each distinct value stays.
 */
void *chempi_attribute_hold(MPI_Aint value);
void chempi_attribute_release(void *cell);

/* The integer that Fortran sees where C sees `value`. */
MPI_Aint chempi_attribute_value(void *value);
MPI_Aint chempi_attribute_value_comm(int keyval, void *value);
MPI_Aint chempi_attribute_value_win(int keyval, void *value);

#endif
