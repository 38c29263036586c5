/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of the tool interface (MPI 5.0, chapter 15) share. Its
 * functions return error codes, never raise an error handler, and may be
 * called before MPI is initialized and after it is finalized.
 *
 *   L1  one lock guards sessions, handles and registrations; the order is
 *       tool lock, lane lock
 *   L2  handles from the user are looked up in lists, never followed
 *   -   no lock is held while the user's callbacks run
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_TOOL_TOOL_H
#define CHEMPI_LIBCHEMPI_DIDL_TOOL_TOOL_H

#include <mpi.h>

#include "common/containers/list.h"
#include "libchempi/api/api_impl.h"
#include "libchempi/services/setting.h"

/* What categories have. */
enum chempi_tool_kind {
    CHEMPI_TOOL_CVARS,
    CHEMPI_TOOL_PVARS,
    CHEMPI_TOOL_EVENTS,
    CHEMPI_TOOL_CATEGORIES
};

/* What can be done to the handle of a performance variable. */
enum chempi_tool_pvar_verb {
    CHEMPI_TOOL_PVAR_START,
    CHEMPI_TOOL_PVAR_STOP,
    CHEMPI_TOOL_PVAR_RESET
};

/* Take the lock: MPI_SUCCESS, or MPI_T_ERR_NOT_INITIALIZED without it. The API
 * layer does it around all calls of chapter 15 but those that gen_api.py names.
 */
int chempi_tool_enter(void);
/* Let it go; returns rc. */
int chempi_tool_leave(int rc);

/* Did a tool ask for MPI_THREAD_MULTIPLE? Then the library locks. */
bool chempi_tool_is_threaded(void);
/* One more user, who may call from several threads; one less, after enter():
 * was it the last one? */
void chempi_tool_open(bool is_threaded);
bool chempi_tool_close_locked(void);

/* Hand a string to the user as section 15.3.3 says: *len is the room in and
 * the bytes with the terminating zero out; either pointer may be NULL. */
void chempi_tool_put_text(const char *text, char *buf, int *len);

/* Store value if the user wants it. */
static inline void chempi_tool_put(int *to, int value)
{
    if (to)
        *to = value;
}

/* Enumerations as handles. */
static inline MPI_T_enum chempi_tool_enum(const struct chempi_words *words)
{
    return words ? (MPI_T_enum)(uintptr_t)words : MPI_T_ENUM_NULL;
}

/* The names of an event's elements, if i is an event, or NULL. */
const struct chempi_words *chempi_tool_event_words(int i);

/* At the last MPI_T_finalize: release what the user did not. */
void chempi_tool_cvar_fini(void);
void chempi_tool_pvar_fini(void);
/* Registrations are destroyed by chempi_tool_event_settle() afterwards, which
 * needs no lock held and waits for callbacks that another thread runs. */
void chempi_tool_event_fini(void);
void chempi_tool_event_settle(void);

/* The module that the variables of a category come from. */
uint32_t chempi_tool_event_count(void);
const char *chempi_tool_event_module(uint32_t i);

#endif
