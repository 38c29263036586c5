/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Error handler objects (MPI 5.0, section 9.3).
 *
 *   H1  a slot (of a communicator, a session) holds a reference or is NULL,
 *       which means the initial error handler
 *   H2  slots are read and changed under `lock` only
 *   H3  MPI_Errhandler_free drops the user's reference; the handler lives as
 *       long as a slot names it
 */
#include <pthread.h>
#include <stdlib.h>

#include "common/base/sys.h"
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/comm.h"
#include "libchempi/didl/error.h"

#define PREDEFINED(k, h)                                                       \
    {                                                                          \
        .obj = {.magic = CHEMPI_MAGIC_ERRHANDLER, .refs = 1}, .kind = (k),     \
        .is_predefined = true, .handle = (h)                                   \
    }

struct chempi_errhandler chempi_errhandler_fatal =
    PREDEFINED(CHEMPI_ERRHANDLER_FATAL, MPI_ERRORS_ARE_FATAL);
struct chempi_errhandler chempi_errhandler_abort =
    PREDEFINED(CHEMPI_ERRHANDLER_ABORT, MPI_ERRORS_ABORT);
struct chempi_errhandler chempi_errhandler_return =
    PREDEFINED(CHEMPI_ERRHANDLER_RETURN, MPI_ERRORS_RETURN);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void chempi_errhandler_release(struct chempi_errhandler *eh)
{
    if (!eh || eh->is_predefined || !chempi_object_drop(&eh->obj))
        return;
    eh->obj.magic = 0;
    free(eh);
}

static void hold(struct chempi_errhandler *eh)
{
    if (!eh->is_predefined)
        chempi_object_hold(&eh->obj);
}

struct chempi_errhandler *
chempi_errhandler_get(struct chempi_errhandler *const *slot)
{
    struct chempi_errhandler *eh;

    (void)pthread_mutex_lock(&lock);
    eh = slot && *slot ? *slot : chempi_error_initial();
    hold(eh);
    (void)pthread_mutex_unlock(&lock);
    return eh;
}

void chempi_errhandler_put(struct chempi_errhandler **slot,
                           struct chempi_errhandler *eh)
{
    struct chempi_errhandler *old;

    if (eh)
        hold(eh);
    (void)pthread_mutex_lock(&lock);
    old = *slot;
    *slot = eh;
    (void)pthread_mutex_unlock(&lock);
    chempi_errhandler_release(old);
}

static int create(enum chempi_errhandler_kind kind, void (*fn)(void),
                  MPI_Errhandler *errhandler)
{
    struct chempi_errhandler *eh;

    if (!fn)
        return chempi_error_set(MPI_ERR_ARG, "the function is NULL");
    eh = chempi_sys->calloc(1, sizeof(*eh));
    if (!eh)
        return chempi_error_set(MPI_ERR_NO_MEM, "no room for an error "
                                                "handler");
    chempi_object_init(&eh->obj, CHEMPI_MAGIC_ERRHANDLER);
    eh->kind = (uint8_t)kind;
    eh->fn = fn;
    eh->handle = (MPI_Errhandler)(void *)eh;
    *errhandler = eh->handle;
    return MPI_SUCCESS;
}

int chempi_errhandler_create_comm(MPI_Comm_errhandler_function *fn,
                                  MPI_Errhandler *errhandler)
{
    return create(CHEMPI_ERRHANDLER_COMM, (void (*)(void))fn, errhandler);
}

int chempi_errhandler_create_win(MPI_Win_errhandler_function *fn,
                                 MPI_Errhandler *errhandler)
{
    return create(CHEMPI_ERRHANDLER_WIN, (void (*)(void))fn, errhandler);
}

int chempi_errhandler_create_file(MPI_File_errhandler_function *fn,
                                  MPI_Errhandler *errhandler)
{
    return create(CHEMPI_ERRHANDLER_FILE, (void (*)(void))fn, errhandler);
}

int chempi_errhandler_create_session(MPI_Session_errhandler_function *fn,
                                     MPI_Errhandler *errhandler)
{
    return create(CHEMPI_ERRHANDLER_SESSION, (void (*)(void))fn, errhandler);
}

int chempi_errhandler_free(MPI_Errhandler *errhandler)
{
    struct chempi_errhandler *eh = chempi_errhandler_lookup(*errhandler);

    if (!eh)
        return chempi_error_set(MPI_ERR_ERRHANDLER,
                                "the handle names no error handler");
    chempi_errhandler_release(eh);
    *errhandler = MPI_ERRHANDLER_NULL;
    return MPI_SUCCESS;
}

bool chempi_errhandler_is_for(const struct chempi_errhandler *eh,
                              enum chempi_errhandler_kind kind)
{
    return eh->kind <= CHEMPI_ERRHANDLER_RETURN || eh->kind == kind;
}

int chempi_errhandler_set_comm(struct chempi_comm *comm,
                               struct chempi_errhandler *eh)
{
    if (!chempi_errhandler_is_for(eh, CHEMPI_ERRHANDLER_COMM))
        return chempi_error_set(MPI_ERR_ERRHANDLER,
                                "the error handler was made for another kind "
                                "of object than communicators");
    chempi_errhandler_put(&comm->errhandler, eh);
    return MPI_SUCCESS;
}

int chempi_errhandler_get_comm(struct chempi_comm *comm,
                               MPI_Errhandler *errhandler)
{
    /* The reference is the user's, to be freed by MPI_Errhandler_free. */
    *errhandler = chempi_errhandler_get(&comm->errhandler)->handle;
    return MPI_SUCCESS;
}

int chempi_errhandler_call_comm(struct chempi_comm *comm, int errorcode)
{
    int errclass;
    int rc = chempi_error_class(errorcode, &errclass);

    if (rc)
        return rc;
    (void)chempi_error_set(errorcode, "the program raised it");
    (void)chempi_error_raise(comm, errorcode, "MPI_Comm_call_errhandler");
    return MPI_SUCCESS;
}
