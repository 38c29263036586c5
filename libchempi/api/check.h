/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the generated API functions check, and what they do when a check
 * fails. The tests are inline and a few instructions each; every
 * chempi_api_bad_* is a cold path that notes the words (call, argument,
 * value, remedy), runs the error handler and returns what the MPI function
 * must return. comm is the communicator whose handler runs, or NULL.
 */
#ifndef CHEMPI_LIBCHEMPI_API_CHECK_H
#define CHEMPI_LIBCHEMPI_API_CHECK_H

#include <limits.h>
#include <mpi.h>

#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/base/setting.h"
#include "libchempi/didl/comm/comm.h"
#include "libchempi/didl/datatype/datatype.h"
#include "libchempi/didl/error/error.h"

/* Are arguments to be checked? Handles are looked up in any case. */
static inline bool chempi_api_is_checking(void)
{
    return chempi_setting(CHEMPI_SET_CHECK_ARGUMENTS) != 0;
}

static inline bool chempi_api_is_dest_ok(const struct chempi_comm *comm,
                                         int rank)
{
    return CHEMPI_LIKELY((uint32_t)rank < comm->remote_size) ||
           rank == MPI_PROC_NULL;
}

static inline bool chempi_api_is_source_ok(const struct chempi_comm *comm,
                                           int rank)
{
    return CHEMPI_LIKELY((uint32_t)rank < comm->remote_size) ||
           rank == MPI_ANY_SOURCE || rank == MPI_PROC_NULL;
}

/* A rank of the local group. */
static inline bool chempi_api_is_member_ok(const struct chempi_comm *comm,
                                           int rank)
{
    return (uint32_t)rank < comm->size;
}

static inline bool chempi_api_is_root_ok(const struct chempi_comm *comm,
                                         int root)
{
    return CHEMPI_LIKELY((uint32_t)root < comm->remote_size) ||
           (comm->is_inter && (root == MPI_ROOT || root == MPI_PROC_NULL));
}

/* Is this process the root that `root` names? */
static inline bool chempi_api_is_root(const struct chempi_comm *comm, int root)
{
    return comm->is_inter ? root == MPI_ROOT : root == comm->rank;
}

static inline bool chempi_api_is_type_ok(const struct chempi_datatype *type)
{
    return type && type->is_committed;
}

/* A NULL buffer is MPI_BOTTOM, which only a type with absolute addresses can
 * use; type is NULL where it is not significant. */
static inline bool chempi_api_needs_buffer(const struct chempi_datatype *type,
                                           MPI_Count count)
{
    return type && count > 0 && type->is_predefined && type->size > 0;
}

static inline int chempi_api_int_or_undefined(MPI_Count value)
{
    return value >= INT_MIN && value <= INT_MAX ? (int)value : MPI_UNDEFINED;
}

/* For errors that belong to an object that is no communicator: notes it, and
 * returns the NULL that goes for the communicator. */
static inline struct chempi_comm *chempi_api_blame(struct chempi_object *object)
{
    chempi_error_blame(object);
    return NULL;
}

/*
 * The end of a call that fails with `code`: raise it, with the call in words.
 * params has a letter and a name for each argument that follows (as a
 * CHEMPI_API_ARG): p pointer, s string, h handle, i number, r rank, t tag.
 * Returns what the MPI function returns.
 */
CHEMPI_COLD int chempi_api_fail(int code, const char *func, const char *params,
                                ...);
#define CHEMPI_API_ARG(x) ((long long)(intptr_t)(x))

/*
 * For these words a call keeps its arguments in memory: a store each, where a
 * register that outlives the operation would be saved, filled and restored.
 * Volatile, so that nothing but a failing call reads them.
 */
#define CHEMPI_API_KEEP(x) const volatile intptr_t kept_##x = (intptr_t)(x)
#define CHEMPI_API_KEEP_INT(x) const volatile int kept_##x = (x)

/* An operation has failed on this communicator, an argument that was kept. */
CHEMPI_COLD void chempi_api_blame_comm(intptr_t handle);

/* The functions below set the words, and what is to blame, for a call that is
 * going to fail with the class that they return; NULL for comm leaves what was
 * blamed before. */
CHEMPI_COLD int chempi_api_bad_phase(void);
/* Sets the words only; returns errclass. */
CHEMPI_COLD int chempi_api_note_handle(const char *arg, int errclass,
                                       const void *handle);
CHEMPI_COLD int chempi_api_bad_handle(struct chempi_comm *comm, const char *arg,
                                      int errclass, const void *handle);
CHEMPI_COLD int chempi_api_bad_type(struct chempi_comm *comm, const char *arg,
                                    MPI_Datatype handle);
CHEMPI_COLD int chempi_api_bad_count(struct chempi_comm *comm, const char *arg,
                                     MPI_Count value);
CHEMPI_COLD int chempi_api_bad_rank(struct chempi_comm *comm, const char *arg,
                                    int value);
CHEMPI_COLD int chempi_api_bad_root(struct chempi_comm *comm, const char *arg,
                                    int value);
CHEMPI_COLD int chempi_api_bad_tag(struct chempi_comm *comm, const char *arg,
                                   int value);
CHEMPI_COLD int chempi_api_bad_buffer(struct chempi_comm *comm,
                                      const char *arg);
CHEMPI_COLD int chempi_api_null_pointer(struct chempi_comm *comm,
                                        const char *arg, int errclass);

/* A result does not fit into the int that the caller gave for it. */
CHEMPI_COLD int chempi_api_too_large(struct chempi_comm *comm, const char *func,
                                     const char *arg, MPI_Count value);

#endif
