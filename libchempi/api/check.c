/* SPDX-License-Identifier: BSD-3-Clause */
/* The cold half of the API's argument checks; see check.h. */
#include "libchempi/api/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int chempi_api_bad_phase(const char *func)
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
    return chempi_error_raise(NULL, MPI_ERR_OTHER, func);
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
    if (value < CHEMPI_HANDLE_PREDEFINED_END)
        return "is a handle of another kind";
    return "names no live object: it was freed, or never set";
}

int chempi_api_note_handle(const char *arg, int errclass, const void *handle)
{
    uintptr_t value = (uintptr_t)handle;
    const char *name = handle_name(value);
    char number[32];

    (void)snprintf(number, sizeof(number), "0x%" PRIxPTR, value);
    return chempi_error_set(errclass, "argument %s (%s) %s", arg,
                            name ? name : number, handle_words(value, name));
}

int chempi_api_bad_handle(struct chempi_comm *comm, const char *func,
                          const char *arg, int errclass, const void *handle)
{
    (void)chempi_api_note_handle(arg, errclass, handle);
    return chempi_error_raise(comm, errclass, func);
}

int chempi_api_bad_type(struct chempi_comm *comm, const char *func,
                        const char *arg, MPI_Datatype handle)
{
    if (!chempi_datatype_lookup(handle))
        return chempi_api_bad_handle(comm, func, arg, MPI_ERR_TYPE,
                                     (const void *)handle);
    (void)chempi_error_set(MPI_ERR_TYPE,
                           "the datatype in argument %s is not committed; "
                           "call MPI_Type_commit first",
                           arg);
    return chempi_error_raise(comm, MPI_ERR_TYPE, func);
}

int chempi_api_bad_count(struct chempi_comm *comm, const char *func,
                         const char *arg, MPI_Count value)
{
    (void)chempi_error_set(
        MPI_ERR_COUNT, "argument %s is %" PRId64 "; a count must be 0 or more",
        arg, value);
    return chempi_error_raise(comm, MPI_ERR_COUNT, func);
}

int chempi_api_bad_rank(struct chempi_comm *comm, const char *func,
                        const char *arg, int value)
{
    (void)chempi_error_set(MPI_ERR_RANK,
                           "argument %s is %d; this communicator has ranks 0 "
                           "to %" PRIu32,
                           arg, value, comm->remote_size - 1);
    return chempi_error_raise(comm, MPI_ERR_RANK, func);
}

int chempi_api_bad_root(struct chempi_comm *comm, const char *func,
                        const char *arg, int value)
{
    (void)chempi_error_set(MPI_ERR_ROOT,
                           "argument %s is %d; the root must be a rank from 0 "
                           "to %" PRIu32 "%s",
                           arg, value, comm->remote_size - 1,
                           comm->is_inter ? ", MPI_ROOT or MPI_PROC_NULL" : "");
    return chempi_error_raise(comm, MPI_ERR_ROOT, func);
}

int chempi_api_bad_tag(struct chempi_comm *comm, const char *func,
                       const char *arg, int value)
{
    (void)chempi_error_set(MPI_ERR_TAG,
                           "argument %s is %d; a tag must be 0 or more (only "
                           "a receive or probe may use MPI_ANY_TAG)",
                           arg, value);
    return chempi_error_raise(comm, MPI_ERR_TAG, func);
}

int chempi_api_bad_buffer(struct chempi_comm *comm, const char *func,
                          const char *arg)
{
    (void)chempi_error_set(MPI_ERR_BUFFER,
                           "argument %s is NULL (MPI_BOTTOM) although "
                           "elements of a predefined datatype are to be moved",
                           arg);
    return chempi_error_raise(comm, MPI_ERR_BUFFER, func);
}

int chempi_api_null_pointer(struct chempi_comm *comm, const char *func,
                            const char *arg, int errclass)
{
    (void)chempi_error_set(errclass, "argument %s must not be NULL", arg);
    return chempi_error_raise(comm, errclass, func);
}

int chempi_api_too_large(struct chempi_comm *comm, const char *func,
                         const char *arg, MPI_Count value)
{
    (void)chempi_error_set(MPI_ERR_VALUE_TOO_LARGE,
                           "the value of argument %s would be %" PRId64
                           ", more than an int can hold; use %s_c",
                           arg, value, func);
    return chempi_error_raise(comm, MPI_ERR_VALUE_TOO_LARGE, func);
}

int chempi_api_unsupported(const char *func, int chapter, const char *title)
{
    (void)chempi_error_set(MPI_ERR_UNSUPPORTED_OPERATION,
                           "not implemented in this version of CHEMPI: "
                           "%s, chapter %d of MPI 5.0; see chempi(7)",
                           title, chapter);
    return chempi_error_raise(NULL, MPI_ERR_UNSUPPORTED_OPERATION, func);
}

int chempi_api_unsupported_tool(const char *func)
{
    (void)func;
    return MPI_T_ERR_NOT_SUPPORTED;
}
