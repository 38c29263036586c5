/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Raising errors (MPI 5.0, sections 9.3 and 9.4): from a class and words to
 * the error handler, or to one sentence and the end of the job.
 */
#include "libchempi/didl/base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/comm/comm.h"
#include "libchempi/didl/comm/session.h"
#include "libchempi/didl/entry/env.h"
#include "libchempi/didl/transport/lane.h"

/* Words for the error that this thread raises next. */
static _Thread_local char words[CHEMPI_ERR_TEXT_MAX];
static _Thread_local int words_class; /* what they are for; 0: none are noted */
static _Thread_local struct chempi_object *culprit; /* whom to blame */

/* The error that this thread raised last: chempi_error_detail(). */
static _Thread_local struct {
    int code;
    const char *func;
    char words[CHEMPI_ERR_TEXT_MAX];
} raised;

/* The peers that were lost; by whoever has the lane. */
static struct {
    _Atomic uint32_t count; /* stored last */
    uint32_t procs[CHEMPI_ERROR_LOST_MAX];
    char words[CHEMPI_ERR_TEXT_MAX]; /* of the first one */
} loss;

int chempi_error_set(int errclass, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(words, sizeof(words), fmt, args); /* cut is fine */
    va_end(args);
    words_class = errclass;
    return errclass;
}

void chempi_error_forget(void)
{
    words_class = MPI_SUCCESS;
}

void chempi_error_note_loss(uint32_t proc, const char *why)
{
    const uint32_t count =
        atomic_load_explicit(&loss.count, memory_order_relaxed);

    if (count < CHEMPI_ERROR_LOST_MAX)
        loss.procs[count] = proc;
    if (count == 0)
        (void)snprintf(loss.words, sizeof(loss.words), "rank %u is lost: %s",
                       (unsigned)proc, why); /* cut is fine */
    /* Orders the words before; partner: chempi_error_explain(). */
    atomic_store_explicit(&loss.count, count + 1, memory_order_release);
}

void chempi_error_put_ranks(const uint32_t *ranks, uint32_t count, char *buf,
                            size_t len)
{
    const uint32_t named =
        count < CHEMPI_ERROR_LOST_MAX ? count : CHEMPI_ERROR_LOST_MAX;
    size_t at = 0;

    buf[0] = '\0';
    for (uint32_t i = 1; i < named && at < len; i++) {
        (void)snprintf(buf + at, len - at, "%s%u",
                       i > 1        ? ", "
                       : count == 2 ? "; so is rank "
                                    : "; so are ranks ",
                       (unsigned)ranks[i]);
        at += strlen(buf + at);
    }
    if (count > named && at < len)
        (void)snprintf(buf + at, len - at, " and %u more",
                       (unsigned)(count - named));
}

void chempi_error_explain(int code)
{
    const uint32_t count =
        atomic_load_explicit(&loss.count, memory_order_acquire);
    char others[CHEMPI_ERROR_RANKS_TEXT];

    if (code != MPI_ERR_PROC_ABORTED || words_class == code || count == 0)
        return;
    chempi_error_put_ranks(loss.procs, count, others, sizeof(others));
    (void)chempi_error_set(code, "%s%s", loss.words, others);
}

const char *chempi_error_words(void)
{
    return words;
}

const char *chempi_error_noted(int code)
{
    return code != MPI_SUCCESS && words_class == code ? words : NULL;
}

const char *chempi_error_detail(int code, const char **func)
{
    if (code == MPI_SUCCESS || code != raised.code)
        return NULL;
    *func = raised.func;
    return raised.words;
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

static CHEMPI_NORETURN void die(const char *object, int code, const char *func,
                                const char *why)
{
    char text[2 * CHEMPI_ERR_TEXT_MAX];
    const char *name = chempi_error_name(code);

    (void)snprintf(
        text, sizeof(text), "%s: %s%s%s (%s%s%s error handler is %s)", func,
        name ? name : "an error that was added",
        raised.words[0] != '\0' ? ": " : "", raised.words, object ? "on " : "",
        object ? object : "the initial", object ? ", whose" : "", why);
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

/* Words are for one error: the next one, and one of another code, has none. */
static void note_raised(int code, const char *func)
{
    raised.code = code;
    raised.func = func;
    (void)snprintf(raised.words, sizeof(raised.words), "%s",
                   code != MPI_SUCCESS && words_class == code ? words : "");
    words_class = MPI_SUCCESS;
}

int chempi_error_raise_on(struct chempi_errhandler *eh, void *handle,
                          const char *object, int code, const char *func)
{
    note_raised(code, func);
    if (eh->kind == CHEMPI_ERRHANDLER_FATAL)
        die(object, code, func, "MPI_ERRORS_ARE_FATAL");
    if (eh->kind == CHEMPI_ERRHANDLER_ABORT)
        die(object, code, func, "MPI_ERRORS_ABORT");
    call_user(eh, handle, code);
    chempi_errhandler_release(eh);
    return code;
}

void chempi_error_set_comm(struct chempi_comm *comm)
{
    culprit = comm ? &comm->obj : NULL;
}

void chempi_error_blame(struct chempi_object *object)
{
    culprit = object;
}

static int raise_initial(int code, const char *func)
{
    MPI_Comm self = MPI_COMM_SELF;

    return chempi_error_raise_on(chempi_errhandler_get(NULL), &self, NULL, code,
                                 func);
}

static int raise_on_comm(struct chempi_comm *comm, int code, const char *func)
{
    MPI_Comm handle = comm->handle;

    return chempi_error_raise_on(
        chempi_errhandler_get(&comm->errhandler), &handle,
        comm->name[0] != '\0' ? comm->name : "a communicator", code, func);
}

static int raise_on_session(struct chempi_session *session, int code,
                            const char *func)
{
    MPI_Session handle = (MPI_Session)(void *)session;

    return chempi_error_raise_on(chempi_errhandler_get(&session->errhandler),
                                 &handle, "a session", code, func);
}

/* The call brought its error handler along; there is no object yet. */
static int raise_on_handler(struct chempi_errhandler *eh, int code,
                            const char *func)
{
    MPI_Comm no_comm = MPI_COMM_NULL;
    MPI_Session no_session = MPI_SESSION_NULL;
    void *handle = &no_comm;

    if (eh->kind == CHEMPI_ERRHANDLER_SESSION)
        handle = &no_session;
    return chempi_error_raise_on(chempi_errhandler_get(&eh), handle,
                                 "the object to be made", code, func);
}

int chempi_error_raise(struct chempi_comm *comm, int code, const char *func)
{
    struct chempi_object *object = comm ? &comm->obj : culprit;

    culprit = NULL;
    if (code == MPI_SUCCESS)
        return code;
    chempi_error_explain(code);
    if (object && object->magic == CHEMPI_MAGIC_ERRHANDLER)
        return raise_on_handler(
            CHEMPI_CONTAINER_OF(object, struct chempi_errhandler, obj), code,
            func);
    if (!chempi_ctx_is_up() || (!object && !chempi_ctx_has_world()))
        return raise_initial(code, func);
    if (!object)
        return raise_on_comm(&chempi_comm_self, code, func);
    if (object->magic == CHEMPI_MAGIC_SESSION)
        return raise_on_session(
            CHEMPI_CONTAINER_OF(object, struct chempi_session, obj), code,
            func);
    return raise_on_comm(CHEMPI_CONTAINER_OF(object, struct chempi_comm, obj),
                         code, func);
}
