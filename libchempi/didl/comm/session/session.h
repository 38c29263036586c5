/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions and process sets (MPI 5.0, section 11.3; doc/sessions.md). */
#ifndef CHEMPI_LIBCHEMPI_DIDL_SESSION_H
#define CHEMPI_LIBCHEMPI_DIDL_SESSION_H

#include <mpi.h>

#include "libchempi/didl/base/object.h"

struct chempi_errhandler;
struct chempi_info;
struct chempi_origin;

struct chempi_session {
    struct chempi_object obj;
    uint64_t serial; /* from 1; no other session of the process has it */
    struct chempi_errhandler *errhandler; /* held */
    struct chempi_info *hints;            /* what MPI_Session_get_info tells */
    uint32_t kinds;                       /* chempi_session_kinds() */
};

/* NULL when the handle names no session. */
static inline struct chempi_session *chempi_session_lookup(MPI_Session handle)
{
    struct chempi_session *session = (struct chempi_session *)(void *)handle;

    if (!chempi_handle_is_address(handle))
        return NULL;
    return session->obj.magic == CHEMPI_MAGIC_SESSION ? session : NULL;
}

/* What raising an error must know of sessions; before the library is up. */
void chempi_session_prepare(void);

/* A session with the hints and the error handler that its user brings; NULL
 * with words when there is no memory. */
struct chempi_session *chempi_session_make(const struct chempi_info *info,
                                           struct chempi_errhandler *eh);
void chempi_session_destroy(struct chempi_session *session);

/* ---- process sets ---- */

/*
 * The sets that this process belongs to, in this order: mpi://WORLD,
 * mpi://SELF, chempi://node/NAME, and chempi://network/NAME for each network
 * of the connection table that its node is attached to.
 */
uint32_t chempi_session_pset_count(void);

/* Name number n (valid) as snprintf(out, room, ...) would write it. */
int chempi_session_pset_name(uint32_t n, char *out, size_t room);

/*
 * The processes of a set, this one's or not, in the order of world ranks:
 * *procs is malloc'ed, NULL for all. MPI_ERR_ARG with words when there is no
 * such set, or an error class. Scheme and kind ignore case, names do not.
 */
int chempi_session_pset_find(const char *name, uint32_t **procs,
                             uint32_t *size);

/* Is this process in the set? Errors as above. */
int chempi_session_pset_has_self(const char *name, bool *has_self);

/*
 * Kinds of memory that MPI calls accept (MPI 5.0, section 11.4.3): all objects
 * of a session, or of the world model, tell the same ones. "system" and "mpi"
 * are always there; a set of bits says which others are, of those that were
 * asked for. Put the words for a set into an info object: an error class.
 */
/* Ask the environment, once. */
void chempi_session_load_kinds(void);
uint32_t chempi_session_kinds(const struct chempi_origin *origin);
int chempi_session_put_kinds(struct chempi_info *info, uint32_t kinds);

#endif
