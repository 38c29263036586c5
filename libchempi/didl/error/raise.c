/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Raising errors (MPI 5.0, sections 9.3 and 9.4): from a class and words to
 * the error handler, or to one sentence and the end of the job.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "libchempi/api/api_impl.h"
#include "libchempi/didl/base/call_site.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/error/fatal.h"

static _Thread_local struct chempi_object *culprit; /* whom to blame */

/* By magic; set before the library is up, when nothing is looked up yet. */
static chempi_error_subject_fn
    *subjects[CHEMPI_MAGIC_LAST - CHEMPI_MAGIC_COMM + 1];

/* MPI_COMM_SELF or MPI_COMM_WORLD while the world model is up, else NULL. */
static struct chempi_object *_Atomic default_object;

void chempi_error_set_subject(enum chempi_magic magic,
                              chempi_error_subject_fn *describe)
{
    subjects[magic - CHEMPI_MAGIC_COMM] = describe;
}

struct chempi_error_subject
chempi_error_subject_of(struct chempi_object *object)
{
    struct chempi_error_subject it = {0};

    subjects[object->magic - CHEMPI_MAGIC_COMM](object, &it);
    return it;
}

void chempi_error_set_default(struct chempi_object *object)
{
    atomic_store_explicit(&default_object, object, memory_order_release);
}

/* The call that fails, in words, or NULL; while it is raised. */
static _Thread_local const char *call_words;

static CHEMPI_NORETURN void die(const char *object, int code, const char *func,
                                const char *why)
{
    char text[2 * CHEMPI_ERR_TEXT_MAX];
    char added[MPI_MAX_ERROR_STRING] = "";
    const char *name = chempi_error_name(code);
    const char *words = chempi_error_detail(code, &func);
    const char *args = call_words ? strchr(call_words, '(') : NULL;
    char place[CHEMPI_CALL_SITE_TEXT];
    int len = 0;

    if (!name && chempi_error_string(code, added, &len) == MPI_SUCCESS && len)
        name = added;
    (void)chempi_call_site_find(&func, place);
    (void)snprintf(
        text, sizeof(text), "%s%s%s: %s%s%s (%s%s%s error handler is %s)%s%s%s",
        func, *place ? " at " : "", place,
        name ? name : "an error that was added", words[0] != '\0' ? ": " : "",
        words, object ? "on " : "", object ? object : "the initial",
        object ? ", whose" : "", why, args ? "; the call was " : "",
        args ? func : "", args ? args : "");
    (void)fflush(stdout); /* what the program printed before comes first */
    chempi_fatal_end(code, text, false);
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

static int raise_on(struct chempi_errhandler *eh, void *handle,
                    const char *object, int code, const char *func)
{
    chempi_error_note_raised(code, func);
    if (eh->kind == CHEMPI_ERRHANDLER_FATAL)
        die(object, code, func, "MPI_ERRORS_ARE_FATAL");
    if (eh->kind == CHEMPI_ERRHANDLER_ABORT)
        die(object, code, func, "MPI_ERRORS_ABORT");
    call_user(eh, handle, code);
    chempi_errhandler_release(eh);
    return code;
}

static struct chempi_object *object_of(struct chempi_comm *comm)
{
    return (struct chempi_object *)(void *)comm; /* how it begins */
}

void chempi_error_set_comm(struct chempi_comm *comm)
{
    culprit = object_of(comm);
}

void chempi_error_blame(struct chempi_object *object)
{
    culprit = object;
}

static int raise_initial(int code, const char *func)
{
    MPI_Comm self = MPI_COMM_SELF;

    return raise_on(chempi_errhandler_get(NULL), &self, NULL, code, func);
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
    return raise_on(chempi_errhandler_get(&eh), handle, "the object to be made",
                    code, func);
}

static int raise_on_object(struct chempi_object *object, int code,
                           const char *func)
{
    struct chempi_error_subject it = chempi_error_subject_of(object);

    return raise_on(chempi_errhandler_get(it.errhandler), &it.handle, it.name,
                    code, func);
}

/* It knows whose loss counts for it. */
static void explain_by(struct chempi_object *object, int code)
{
    struct chempi_error_subject it = {0};

    if (code != MPI_ERR_PROC_ABORTED || chempi_error_noted(code))
        return;
    it = chempi_error_subject_of(object);
    if (it.explain)
        it.explain(object, code);
}

int chempi_error_raise(struct chempi_comm *comm, int code, const char *func)
{
    struct chempi_object *object = comm ? object_of(comm) : culprit;

    culprit = NULL;
    if (code == MPI_SUCCESS)
        return code;
    if (object && object->magic != CHEMPI_MAGIC_ERRHANDLER)
        explain_by(object, code);
    chempi_error_explain(code);
    if (object && object->magic == CHEMPI_MAGIC_ERRHANDLER)
        return raise_on_handler(
            CHEMPI_CONTAINER_OF(object, struct chempi_errhandler, obj), code,
            func);
    if (!object)
        object = atomic_load_explicit(&default_object, memory_order_acquire);
    if (!object || !chempi_ctx_is_up())
        return raise_initial(code, func);
    return raise_on_object(object, code, func);
}

int chempi_error_raise_call(int code, const char *func, const char *call)
{
    const char *outer = call_words; /* of a call whose handler calls MPI */
    int rc;

    call_words = call;
    rc = chempi_error_raise(NULL, code, func);
    call_words = outer;
    return rc;
}

/* ---- handlers of objects (section 9.3) ---- */

/* By magic number, from that of communicators on. */
static const struct {
    enum chempi_errhandler_kind kind;
    const char *objects; /* for words */
    const char *call;    /* which raises errors for the program */
} kinds[] = {
    [0] = {CHEMPI_ERRHANDLER_COMM, "communicators", "MPI_Comm_call_errhandler"},
    [CHEMPI_MAGIC_SESSION -
        CHEMPI_MAGIC_COMM] = {CHEMPI_ERRHANDLER_SESSION, "sessions",
                              "MPI_Session_call_errhandler"},
    [CHEMPI_MAGIC_FILE - CHEMPI_MAGIC_COMM] = {CHEMPI_ERRHANDLER_FILE, "files",
                                               "MPI_File_call_errhandler"},
    [CHEMPI_MAGIC_WIN - CHEMPI_MAGIC_COMM] = {CHEMPI_ERRHANDLER_WIN, "windows",
                                              "MPI_Win_call_errhandler"},
};

int chempi_errhandler_attach(struct chempi_object *object,
                             struct chempi_errhandler *errhandler)
{
    uint32_t index = object->magic - CHEMPI_MAGIC_COMM;

    if (!chempi_errhandler_is_for(errhandler, kinds[index].kind))
        return chempi_error_set(MPI_ERR_ERRHANDLER,
                                "the error handler was made for another kind "
                                "of object than %s",
                                kinds[index].objects);
    chempi_errhandler_put(chempi_error_subject_of(object).errhandler,
                          errhandler);
    return MPI_SUCCESS;
}

int chempi_errhandler_query(struct chempi_object *object,
                            MPI_Errhandler *errhandler)
{
    /* The reference is the user's, to be freed by MPI_Errhandler_free. */
    *errhandler =
        chempi_errhandler_get(chempi_error_subject_of(object).errhandler)
            ->handle;
    return MPI_SUCCESS;
}

int chempi_errhandler_call(struct chempi_object *object, int errorcode)
{
    int errclass;
    int rc = chempi_error_class(errorcode, &errclass);

    if (rc)
        return rc;
    (void)chempi_error_set(errorcode, "the program raised it");
    chempi_error_blame(object);
    (void)chempi_error_raise(NULL, errorcode,
                             kinds[object->magic - CHEMPI_MAGIC_COMM].call);
    return MPI_SUCCESS;
}
