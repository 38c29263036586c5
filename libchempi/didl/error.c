/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Raising errors (MPI 5.0, sections 9.3 and 9.4): from a class and words to
 * the error handler, or to one sentence and the end of the job.
 */
#include "libchempi/didl/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "libchempi/didl/comm.h"
#include "libchempi/didl/ctx.h"
#include "libchempi/didl/env.h"
#include "libchempi/didl/lane.h"

/* Words of the latest error on this thread. */
static _Thread_local char words[CHEMPI_ERR_TEXT_MAX];
static _Thread_local struct chempi_comm *culprit; /* chempi_error_set_comm */

/* The error that this thread raised last: chempi_error_detail(). */
static _Thread_local struct {
    int code;
    const char *func;
} raised;

static struct chempi_errhandler *_Atomic initial = &chempi_errhandler_fatal;

int chempi_error_set(int errclass, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(words, sizeof(words), fmt, args); /* cut is fine */
    va_end(args);
    return errclass;
}

const char *chempi_error_words(void)
{
    return words;
}

const char *chempi_error_detail(int code, const char **func)
{
    if (code == MPI_SUCCESS || code != raised.code)
        return NULL;
    *func = raised.func;
    return words;
}

static int class_of_errno(int neg_errno)
{
    switch (-neg_errno) {
    case 0:
        return MPI_SUCCESS;
    case ENOMEM:
        return MPI_ERR_NO_MEM;
    case EINVAL:
        return MPI_ERR_ARG;
    case EMSGSIZE:
        return MPI_ERR_TRUNCATE;
    case EACCES:
    case EPERM:
        return MPI_ERR_ACCESS;
    case EPIPE:
    case ECONNRESET:
    case EHOSTUNREACH:
        return MPI_ERR_PROC_ABORTED;
    case ENOTSUP:
    case ENOSYS:
        return MPI_ERR_UNSUPPORTED_OPERATION;
    default:
        return MPI_ERR_OTHER;
    }
}

int chempi_error_from(int neg_errno, const struct chempi_err *err)
{
    if (neg_errno == 0)
        return MPI_SUCCESS;
    return chempi_error_set(
        class_of_errno(neg_errno), "%s",
        err && err->text[0] != '\0' ? err->text : chempi_err_name(neg_errno));
}

void chempi_error_set_initial(struct chempi_errhandler *eh)
{
    atomic_store_explicit(&initial, eh, memory_order_release);
}

struct chempi_errhandler *chempi_error_initial(void)
{
    return atomic_load_explicit(&initial, memory_order_acquire);
}

static CHEMPI_NORETURN void die(const char *object, int code, const char *func,
                                const char *why)
{
    char text[2 * CHEMPI_ERR_TEXT_MAX];
    const char *name = chempi_error_name(code);

    (void)snprintf(text, sizeof(text),
                   "%s: %s%s%s (on %s, whose error handler is %s)", func,
                   name ? name : "an error that was added",
                   words[0] != '\0' ? ": " : "", words, object, why);
    (void)fflush(stdout); /* what the program printed before comes first */
    chempi_lane_lock(&chempi_lane_main); /* guards the supervisor's socket */
    chempi_env_end(code, text);
}

/* User functions see copies: what they write changes nothing. */
static void call_user(struct chempi_errhandler *eh, void *handle, int code)
{
    int copy = code;

    switch ((enum chempi_errhandler_kind)eh->kind) {
    case CHEMPI_ERRHANDLER_COMM:
        ((MPI_Comm_errhandler_function *)eh->fn)(handle, &copy);
        break;
    case CHEMPI_ERRHANDLER_WIN:
        ((MPI_Win_errhandler_function *)eh->fn)(handle, &copy);
        break;
    case CHEMPI_ERRHANDLER_FILE:
        ((MPI_File_errhandler_function *)eh->fn)(handle, &copy);
        break;
    case CHEMPI_ERRHANDLER_SESSION:
        ((MPI_Session_errhandler_function *)eh->fn)(handle, &copy);
        break;
    case CHEMPI_ERRHANDLER_FATAL:
    case CHEMPI_ERRHANDLER_ABORT:
    case CHEMPI_ERRHANDLER_RETURN:
        break;
    }
}

int chempi_error_raise_on(struct chempi_errhandler *eh, void *handle,
                          const char *object, int code, const char *func)
{
    if (eh->kind == CHEMPI_ERRHANDLER_FATAL)
        die(object, code, func, "MPI_ERRORS_ARE_FATAL");
    if (eh->kind == CHEMPI_ERRHANDLER_ABORT)
        die(object, code, func, "MPI_ERRORS_ABORT");
    raised.code = code;
    raised.func = func;
    call_user(eh, handle, code);
    chempi_errhandler_release(eh);
    return code;
}

void chempi_error_set_comm(struct chempi_comm *comm)
{
    culprit = comm;
}

int chempi_error_raise(struct chempi_comm *comm, int code, const char *func)
{
    MPI_Comm handle = MPI_COMM_SELF;

    if (!comm)
        comm = culprit;
    culprit = NULL;

    if (code == MPI_SUCCESS)
        return code;
    if (!chempi_ctx_is_up())
        return chempi_error_raise_on(chempi_errhandler_get(NULL), &handle,
                                     "no object: MPI is not running", code,
                                     func);
    if (!comm)
        comm = &chempi_comm_self;
    handle = comm->handle;
    return chempi_error_raise_on(
        chempi_errhandler_get(&comm->errhandler), &handle,
        comm->name[0] != '\0' ? comm->name : "a communicator", code, func);
}
