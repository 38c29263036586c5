/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What every body of a Fortran procedure uses: names, handles, logicals.
 *
 * The library is built on the C functions of the MPI 5.0 standard ABI alone.
 * Each body is compiled twice: F(send_) is mpi_send_ and calls MPI_Send, so
 * that tools which replace C functions see Fortran's calls; with CHEMPI_PMPI
 * it is pmpi_send_ and calls PMPI_Send.
 */
#ifndef CHEMPI_FORTRAN_BINDING_H
#define CHEMPI_FORTRAN_BINDING_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "common/base/compiler.h"

#ifdef CHEMPI_PMPI
#define F(name) pmpi_##name
#define C(name) PMPI_##name
#define CHEMPI_NAME(name) "PMPI_" #name
#else
#define F(name) mpi_##name
#define C(name) MPI_##name
#define CHEMPI_NAME(name) "MPI_" #name
#endif

/* Declare and open a procedure that Fortran calls. */
#define CHEMPI_BODY(type, name, params)                                        \
    CHEMPI_EXPORT type name params;                                            \
    CHEMPI_EXPORT type name params

/* Another name of the same procedure. */
#define CHEMPI_ALSO_NAMED(type, name, target, params)                          \
    CHEMPI_EXPORT CHEMPI_WEAK_ALIAS(target)                                    \
    type name params
#define CHEMPI_TEXT_OF(name) CHEMPI_TEXT_OF_(name)
#define CHEMPI_TEXT_OF_(name) #name

/*
 * Handles. A predefined handle is the same number in C and in Fortran, and
 * below this bound; others go through the ABI's table.
 */
#define CHEMPI_PREDEFINED_END 0x1000

#define CHEMPI_HANDLE(kind, type, name)                                        \
    static inline type chempi_in_##kind(int value)                             \
    {                                                                          \
        if ((unsigned)value < CHEMPI_PREDEFINED_END)                           \
            return (type)(uintptr_t)(unsigned)value;                           \
        return PMPI_##name##_fromint(value);                                   \
    }                                                                          \
    static inline int chempi_out_##kind(type handle)                           \
    {                                                                          \
        if ((uintptr_t)handle < CHEMPI_PREDEFINED_END)                         \
            return (int)(uintptr_t)handle;                                     \
        return PMPI_##name##_toint(handle);                                    \
    }

CHEMPI_HANDLE(comm, MPI_Comm, Comm)
CHEMPI_HANDLE(type, MPI_Datatype, Type)
CHEMPI_HANDLE(op, MPI_Op, Op)
CHEMPI_HANDLE(group, MPI_Group, Group)
CHEMPI_HANDLE(errhandler, MPI_Errhandler, Errhandler)
CHEMPI_HANDLE(info, MPI_Info, Info)
CHEMPI_HANDLE(session, MPI_Session, Session)
CHEMPI_HANDLE(message, MPI_Message, Message)
CHEMPI_HANDLE(request, MPI_Request, Request)
CHEMPI_HANDLE(win, MPI_Win, Win)
CHEMPI_HANDLE(file, MPI_File, File)

/* May a handle be one at all? 0 never is, and where objects are addresses, as
 * in this project's library, a number that names none is below 0. */
static inline bool chempi_is_object(const void *handle)
{
    return (intptr_t)handle > 0;
}

/* .true. and .false. as the compiler of the modules has them. */
extern const int chempi_fortran_true;
extern const int chempi_fortran_false;

static inline int chempi_in_logical(int value)
{
    return value != chempi_fortran_false;
}

static inline int chempi_out_logical(int value)
{
    return value ? chempi_fortran_true : chempi_fortran_false;
}

/*
 * Fortran's constants that are known by their address. A program that
 * includes mpif.h has them in COMMON blocks of its own; the dynamic linker
 * makes all references meet there.
 */
extern CHEMPI_EXPORT int mpi_fort_bottom_;
extern CHEMPI_EXPORT int mpi_fort_in_place_;
extern CHEMPI_EXPORT int mpi_fort_buffer_automatic_;
extern CHEMPI_EXPORT MPI_Status mpi_fort_status_ignore_;
extern CHEMPI_EXPORT MPI_Status mpi_fort_statuses_ignore_;
extern CHEMPI_EXPORT int mpi_fort_errcodes_ignore_;
extern CHEMPI_EXPORT int mpi_fort_unweighted_;
extern CHEMPI_EXPORT int mpi_fort_weights_empty_;
extern CHEMPI_EXPORT char mpi_fort_argv_null_;
extern CHEMPI_EXPORT char mpi_fort_argvs_null_;

/* A choice buffer's address as C wants it. */
static inline void *chempi_in_address(void *address)
{
    if (address == (void *)&mpi_fort_bottom_)
        return MPI_BOTTOM;
    if (address == (void *)&mpi_fort_in_place_)
        return MPI_IN_PLACE;
    return address;
}

/* The same where a buffer may be the library's own. */
static inline void *chempi_in_place_or_automatic(void *address)
{
    if (address == (void *)&mpi_fort_buffer_automatic_)
        return MPI_BUFFER_AUTOMATIC;
    return chempi_in_address(address);
}

/* A buffer that C gives back, as mpi_f08 has it: of MPI_BUFFER_AUTOMATIC what
 * c_loc() says (MPI 5.0, section 3.6). */
static inline void *chempi_out_buffer(void *buffer)
{
    if (buffer == MPI_BUFFER_AUTOMATIC)
        return &mpi_fort_buffer_automatic_;
    return buffer;
}

static inline MPI_Status *chempi_in_status(MPI_Status *status)
{
    return status == &mpi_fort_status_ignore_ ? MPI_STATUS_IGNORE : status;
}

/* mpif.h lets the other constant through, where there is room for one only. */
static inline MPI_Status *chempi_in_statuses(MPI_Status *statuses)
{
    if (statuses == &mpi_fort_statuses_ignore_ ||
        statuses == &mpi_fort_status_ignore_)
        return MPI_STATUSES_IGNORE;
    return statuses;
}

static inline int *chempi_in_weights(int *weights)
{
    if (weights == &mpi_fort_unweighted_)
        return MPI_UNWEIGHTED;
    return weights == &mpi_fort_weights_empty_ ? MPI_WEIGHTS_EMPTY : weights;
}

static inline int *chempi_in_errcodes(int *codes)
{
    return codes == &mpi_fort_errcodes_ignore_ ? MPI_ERRCODES_IGNORE : codes;
}

/*
 * Room for `size` bytes: `small`, if they fit into its small_size bytes, else
 * from malloc. NULL when out of memory. Given back by chempi_room_free().
 */
static inline void *chempi_room(void *small, size_t small_size, size_t size)
{
    return size <= small_size ? small : malloc(size);
}

static inline void chempi_room_free(void *small, void *room)
{
    if (room != small)
        free(room);
}

#define CHEMPI_SMALL 32 /* elements of converted arrays kept on the stack */

/* Elements in an array whose count may be negative by mistake. */
static inline size_t chempi_extent(MPI_Count count)
{
    return count > 0 ? (size_t)count : 0;
}

#endif
