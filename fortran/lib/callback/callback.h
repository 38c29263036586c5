/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fortran procedures that MPI calls. Those with a state (attributes,
 * generalized requests, data representations) carry it in C's extra_state;
 * operations and error handlers get a trampoline each, from pools.
 *
 * A trampoline belongs to one procedure for the life of the process: an
 * operation may be freed while it is in use, so nothing can say when a
 * trampoline is free again. The same procedure always gets the same one.
 * Procedures of mpi_f08, mpi and mpif.h are called alike: handles by address
 * of an integer, buffers by address, procedures without interface.
 */
#ifndef CHEMPI_FORTRAN_CALLBACK_H
#define CHEMPI_FORTRAN_CALLBACK_H

#include <mpi.h>

#include "fortran/lib/error.h"

#define CHEMPI_CALLBACK_POOL 128 /* distinct procedures of each kind */

typedef void chempi_procedure(void); /* a Fortran procedure, uncalled */

extern MPI_User_function *const chempi_trampoline_op[CHEMPI_CALLBACK_POOL];
extern MPI_User_function_c *const chempi_trampoline_op_c[CHEMPI_CALLBACK_POOL];
extern MPI_Comm_errhandler_function
    *const chempi_trampoline_comm[CHEMPI_CALLBACK_POOL];
extern MPI_Win_errhandler_function
    *const chempi_trampoline_win[CHEMPI_CALLBACK_POOL];
extern MPI_File_errhandler_function
    *const chempi_trampoline_file[CHEMPI_CALLBACK_POOL];
extern MPI_Session_errhandler_function
    *const chempi_trampoline_session[CHEMPI_CALLBACK_POOL];

enum chempi_callback_kind {
    CHEMPI_CALLBACK_OP,
    CHEMPI_CALLBACK_OP_C,
    CHEMPI_CALLBACK_COMM,
    CHEMPI_CALLBACK_WIN,
    CHEMPI_CALLBACK_FILE,
    CHEMPI_CALLBACK_SESSION,
    CHEMPI_CALLBACK_KINDS
};

/*
 * The index of the trampoline of a procedure, the same for each call with it.
 * When the pool is used up: -1, after raising an error that *rc gets.
 * Thread-safe.
 */
int chempi_callback_find(enum chempi_callback_kind kind,
                         chempi_procedure *procedure,
                         const struct chempi_caller *caller, int *rc);

/* What trampolines call. */
void chempi_callback_run_op(int index, void *in, void *inout, int *len,
                            MPI_Datatype *type);
void chempi_callback_run_op_c(int index, void *in, void *inout, MPI_Count *len,
                              MPI_Datatype *type);
void chempi_callback_run_comm(int index, MPI_Comm *comm, int *code);
void chempi_callback_run_win(int index, MPI_Win *win, int *code);
void chempi_callback_run_file(int index, MPI_File *file, int *code);
void chempi_callback_run_session(int index, MPI_Session *session, int *code);

/*
 * State of a generalized request: owned by MPI, freed by its free function.
 * extra_state is the caller's variable and not a copy: as with other
 * implementations, what its procedures store there is seen by the caller.
 * NULL when out of memory.
 */
struct chempi_grequest *chempi_callback_grequest(chempi_procedure *query,
                                                 chempi_procedure *release,
                                                 chempi_procedure *cancel,
                                                 MPI_Aint *extra_state);
int chempi_callback_query(void *state, MPI_Status *status);
int chempi_callback_release(void *state);
int chempi_callback_cancel(void *state, int complete);

/* State of a data representation, which lives as long as the process. */
struct chempi_datarep *chempi_callback_datarep(chempi_procedure *reader,
                                               chempi_procedure *writer,
                                               chempi_procedure *extent,
                                               MPI_Aint extra_state);
int chempi_callback_read(void *userbuf, MPI_Datatype type, int count,
                         void *filebuf, MPI_Offset position, void *state);
int chempi_callback_write(void *userbuf, MPI_Datatype type, int count,
                          void *filebuf, MPI_Offset position, void *state);
int chempi_callback_read_c(void *userbuf, MPI_Datatype type, MPI_Count count,
                           void *filebuf, MPI_Offset position, void *state);
int chempi_callback_write_c(void *userbuf, MPI_Datatype type, MPI_Count count,
                            void *filebuf, MPI_Offset position, void *state);
int chempi_callback_extent(MPI_Datatype type, MPI_Aint *extent, void *state);

#endif
