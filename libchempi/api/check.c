/* SPDX-License-Identifier: BSD-3-Clause */
/* The cold half of the API's argument checks; see check.h. */
#define _GNU_SOURCE /* strnlen */
#include "libchempi/api/check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/words/plain.h"

/* What the call that fails now is raised at; NULL: what was blamed before. */
static int blame(struct chempi_comm *comm, int errclass)
{
    if (comm)
        chempi_error_set_comm(comm);
    return errclass;
}

int chempi_api_bad_phase(void)
{
    int phase = atomic_load(&chempi_ctx.phase);

    if (phase == CHEMPI_PHASE_BEFORE)
        (void)chempi_error_set(MPI_ERR_OTHER,
                               "called before MPI was initialized; call "
                               "MPI_Init, MPI_Init_thread or "
                               "MPI_Session_init first");
    else
        (void)chempi_error_set(MPI_ERR_OTHER,
                               "called after MPI_Finalize had begun; move "
                               "the call before it");
    return MPI_ERR_OTHER;
}

/* The name of a predefined handle, or NULL. */
static const char *handle_name(uintptr_t value)
{
    static const struct {
        uint16_t value;
        char name[30];
    } names[] = {
#include "libchempi/api/handle_names.inc"
    };

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(names); i++)
        if (names[i].value == value)
            return names[i].name;
    return NULL;
}

static const char *handle_words(uintptr_t value, const char *name)
{
    const char *end = name ? strrchr(name, '_') : NULL;

    if (!chempi_ctx_has_world() && (value == (uintptr_t)MPI_COMM_WORLD ||
                                    value == (uintptr_t)MPI_COMM_SELF))
        return "exists between MPI_Init and MPI_Finalize only";
    if (value == 0)
        return "is 0, which is never a valid handle";
    if (end && strcmp(end, "_NULL") == 0)
        return "is a null handle";
    if (name)
        return "is a handle of another kind";
    return "names no live object: it was freed, or never set";
}

int chempi_api_note_handle(const char *arg, int errclass, const void *handle)
{
    uintptr_t value = (uintptr_t)handle;
    const char *name = handle_name(value);
    char number[CHEMPI_ERROR_HANDLE_TEXT];

    return chempi_error_set(errclass, "argument %s (%s) %s", arg,
                            name ? name
                                 : chempi_error_put_handle(number, handle),
                            handle_words(value, name));
}

int chempi_api_bad_handle(struct chempi_comm *comm, const char *arg,
                          int errclass, const void *handle)
{
    (void)chempi_api_note_handle(arg, errclass, handle);
    return blame(comm, errclass);
}

int chempi_api_bad_type(struct chempi_comm *comm, const char *arg,
                        MPI_Datatype handle)
{
    if (!chempi_datatype_lookup(handle))
        return chempi_api_bad_handle(comm, arg, MPI_ERR_TYPE,
                                     (const void *)handle);
    (void)chempi_error_set(MPI_ERR_TYPE,
                           "the datatype in argument %s is not committed; "
                           "call MPI_Type_commit first",
                           arg);
    return blame(comm, MPI_ERR_TYPE);
}

int chempi_api_bad_count(struct chempi_comm *comm, const char *arg,
                         MPI_Count value)
{
    (void)chempi_error_set(
        MPI_ERR_COUNT, "argument %s is %" PRId64 "; a count must be 0 or more",
        arg, value);
    return blame(comm, MPI_ERR_COUNT);
}

int chempi_api_bad_rank(struct chempi_comm *comm, const char *arg, int value)
{
    (void)chempi_error_set(MPI_ERR_RANK,
                           "argument %s is %d; this communicator has ranks 0 "
                           "to %" PRIu32,
                           arg, value, comm->remote_size - 1);
    return blame(comm, MPI_ERR_RANK);
}

int chempi_api_bad_root(struct chempi_comm *comm, const char *arg, int value)
{
    (void)chempi_error_set(MPI_ERR_ROOT,
                           "argument %s is %d; the root must be a rank from 0 "
                           "to %" PRIu32 "%s",
                           arg, value, comm->remote_size - 1,
                           comm->is_inter ? ", MPI_ROOT or MPI_PROC_NULL" : "");
    return blame(comm, MPI_ERR_ROOT);
}

int chempi_api_bad_tag(struct chempi_comm *comm, const char *arg, int value)
{
    (void)chempi_error_set(MPI_ERR_TAG,
                           "argument %s is %d; a tag must be 0 or more (only "
                           "a receive or probe may use MPI_ANY_TAG)",
                           arg, value);
    return blame(comm, MPI_ERR_TAG);
}

int chempi_api_bad_buffer(struct chempi_comm *comm, const char *arg)
{
    (void)chempi_error_set(MPI_ERR_BUFFER,
                           "argument %s is NULL (MPI_BOTTOM) although "
                           "elements of a predefined datatype are to be moved",
                           arg);
    return blame(comm, MPI_ERR_BUFFER);
}

int chempi_api_null_pointer(struct chempi_comm *comm, const char *arg,
                            int errclass)
{
    (void)chempi_error_set(errclass, "argument %s must not be NULL", arg);
    return blame(comm, errclass);
}

int chempi_api_too_large(struct chempi_comm *comm, const char *func,
                         const char *arg, MPI_Count value)
{
    (void)chempi_error_set(MPI_ERR_VALUE_TOO_LARGE,
                           "the value of argument %s would be %" PRId64
                           ", more than an int can hold; use %s_c",
                           arg, value, func);
    return blame(comm, MPI_ERR_VALUE_TOO_LARGE);
}

/* ---- the call in words ---- */

/* What is appended to it; cut where there is no room. */
struct words {
    size_t len;
    char text[CHEMPI_ERROR_CALL_TEXT];
};

static CHEMPI_PRINTF(2, 3) void put(struct words *w, const char *fmt, ...)
{
    const size_t room = sizeof(w->text) - w->len;
    va_list args;
    int n;

    va_start(args, fmt);
    n = vsnprintf(w->text + w->len, room, fmt, args);
    va_end(args);
    if (n > 0)
        w->len += (size_t)n < room ? (size_t)n : room - 1;
}

/* The name of a number that has a meaning of its own, or NULL. */
static const char *number_name(char kind, long long value)
{
    static const struct {
        char kind;
        int value;
        const char *name;
    } names[] = {
        {'r', MPI_ANY_SOURCE, "MPI_ANY_SOURCE"},
        {'r', MPI_PROC_NULL, "MPI_PROC_NULL"},
        {'r', MPI_ROOT, "MPI_ROOT"},
        {'t', MPI_ANY_TAG, "MPI_ANY_TAG"},
    };

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(names); i++)
        if (names[i].kind == kind && names[i].value == value)
            return names[i].name;
    return NULL;
}

enum { STRING_MOST = 64 }; /* bytes of a string that are shown */

static void put_string(struct words *w, const char *name, int len,
                       const char *string)
{
    char shown[STRING_MOST + 1];
    const size_t whole = strnlen(string, STRING_MOST + 1);
    const size_t n = whole < STRING_MOST ? whole : STRING_MOST;

    memcpy(shown, string, n);
    shown[n] = '\0';
    chempi_plain(shown, n, "");
    put(w, "%.*s=\"%s\"%s", len, name, shown, whole > n ? ".." : "");
}

static void put_argument(struct words *w, char kind, const char *name, int len,
                         long long value)
{
    const char *word =
        kind == 'h' ? handle_name((uintptr_t)value) : number_name(kind, value);
    char number[CHEMPI_ERROR_HANDLE_TEXT];

    if (word && kind == 'h')
        put(w, "%s", word);
    else if (word)
        put(w, "%.*s=%s", len, name, word);
    else if ((kind == 'p' || kind == 's') && value == 0)
        put(w, "%.*s=NULL", len, name);
    else if (kind == 'p' && value == (intptr_t)MPI_IN_PLACE)
        put(w, "%.*s=MPI_IN_PLACE", len, name);
    else if (kind == 's')
        put_string(w, name, len, (const char *)(intptr_t)value);
    else if (kind == 'h')
        put(w, "%.*s=%s", len, name,
            chempi_error_put_handle(number, (const void *)(intptr_t)value));
    else if (kind == 'p')
        put(w, "%.*s=0x%llx", len, name, (unsigned long long)value);
    else
        put(w, "%.*s=%lld", len, name, value);
}

void chempi_api_blame_comm(intptr_t handle)
{
    chempi_error_set_comm(chempi_comm_lookup((MPI_Comm)handle));
}

int chempi_api_fail(int code, const char *func, const char *params, ...)
{
    struct words w = {0};
    va_list args;

    put(&w, "%s(", func);
    va_start(args, params);
    while (*params) {
        const int len = (int)strcspn(params + 1, " ");

        put_argument(&w, params[0], params + 1, len, va_arg(args, long long));
        params += 1 + len;
        if (*params == ' ') {
            put(&w, ", ");
            params++;
        }
    }
    va_end(args);
    put(&w, ")");
    return chempi_error_raise_call(code, func, w.text);
}
