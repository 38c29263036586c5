/* SPDX-License-Identifier: BSD-3-Clause */
/* The predefined procedures, and how they are recognized: by their address,
 * which the dynamic linker makes the same everywhere. */
#include "fortran/lib/callback/procedures.h"

#include "fortran/lib/binding.h"

#define NULL_COPY(name, type)                                                  \
    CHEMPI_BODY(void, name,                                                    \
                (int *handle, int *keyval, type *state, type *in, type *out,   \
                 int *flag, int *ierror))                                      \
    {                                                                          \
        (void)handle;                                                          \
        (void)keyval;                                                          \
        (void)state;                                                           \
        (void)in;                                                              \
        (void)out;                                                             \
        *flag = chempi_fortran_false;                                          \
        *ierror = MPI_SUCCESS;                                                 \
    }

#define DUP(name, type)                                                        \
    CHEMPI_BODY(void, name,                                                    \
                (int *handle, int *keyval, type *state, type *in, type *out,   \
                 int *flag, int *ierror))                                      \
    {                                                                          \
        (void)handle;                                                          \
        (void)keyval;                                                          \
        (void)state;                                                           \
        *out = *in;                                                            \
        *flag = chempi_fortran_true;                                           \
        *ierror = MPI_SUCCESS;                                                 \
    }

#define NULL_DELETE(name, type)                                                \
    CHEMPI_BODY(                                                               \
        void, name,                                                            \
        (int *handle, int *keyval, type *value, type *state, int *ierror))     \
    {                                                                          \
        (void)handle;                                                          \
        (void)keyval;                                                          \
        (void)value;                                                           \
        (void)state;                                                           \
        *ierror = MPI_SUCCESS;                                                 \
    }

#define NO_CONVERSION(name, type)                                              \
    CHEMPI_BODY(void, name,                                                    \
                (void *userbuf, int *datatype, type *count, void *filebuf,     \
                 MPI_Offset *position, MPI_Aint *state, int *ierror))          \
    {                                                                          \
        (void)userbuf;                                                         \
        (void)datatype;                                                        \
        (void)count;                                                           \
        (void)filebuf;                                                         \
        (void)position;                                                        \
        (void)state;                                                           \
        *ierror = MPI_ERR_CONVERSION; /* the standard wants it not called */   \
    }

NULL_COPY(mpi_null_copy_fn_, int)
DUP(mpi_dup_fn_, int)
NULL_DELETE(mpi_null_delete_fn_, int)
NULL_COPY(mpi_comm_null_copy_fn_, MPI_Aint)
DUP(mpi_comm_dup_fn_, MPI_Aint)
NULL_DELETE(mpi_comm_null_delete_fn_, MPI_Aint)
NULL_COPY(mpi_type_null_copy_fn_, MPI_Aint)
DUP(mpi_type_dup_fn_, MPI_Aint)
NULL_DELETE(mpi_type_null_delete_fn_, MPI_Aint)
NULL_COPY(mpi_win_null_copy_fn_, MPI_Aint)
DUP(mpi_win_dup_fn_, MPI_Aint)
NULL_DELETE(mpi_win_null_delete_fn_, MPI_Aint)
NO_CONVERSION(mpi_conversion_fn_null_, int)
NO_CONVERSION(mpi_conversion_fn_null_c_, MPI_Count)

#define IS(name) (procedure == (chempi_procedure *)(name))

bool chempi_procedures_is_dup(chempi_procedure *procedure)
{
    return IS(mpi_dup_fn_) || IS(mpi_comm_dup_fn_) || IS(mpi_type_dup_fn_) ||
           IS(mpi_win_dup_fn_);
}

bool chempi_procedures_is_predefined(chempi_procedure *procedure)
{
    return chempi_procedures_is_dup(procedure) || IS(mpi_null_copy_fn_) ||
           IS(mpi_null_delete_fn_) || IS(mpi_comm_null_copy_fn_) ||
           IS(mpi_comm_null_delete_fn_) || IS(mpi_type_null_copy_fn_) ||
           IS(mpi_type_null_delete_fn_) || IS(mpi_win_null_copy_fn_) ||
           IS(mpi_win_null_delete_fn_);
}

bool chempi_procedures_is_no_conversion(chempi_procedure *procedure)
{
    return IS(mpi_conversion_fn_null_) || IS(mpi_conversion_fn_null_c_);
}
