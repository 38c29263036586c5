/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sessions (MPI 5.0, section 11.3): objects with an error handler and hints of
 * their own. Process sets are in session_pset.c; what a session starts and
 * finishes, in entry/session_start.c.
 *
 *   S1  objects made from a session keep its serial number, no pointer: they
 *       may outlive it, though no operation on them may, and are no later
 *       session's
 */
#include "libchempi/didl/comm/session/session.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/sys.h"
#include "common/control/client.h"
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/comm/group.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/info/info.h"

static int no_memory(void)
{
    return chempi_error_set(MPI_ERR_NO_MEM, "no room for a session");
}

/* ---- memory kinds ---- */

/* What we can tell apart, beyond "system" and "mpi", which are always there:
 * memory of MPI_Alloc_mem. */
static const char *const kinds[] = {"mpi:alloc_mem"};
#define KINDS_ARE_KNOWN (1u << 31)

static bool lists(const char *list, const char *kind)
{
    size_t len = strlen(kind);

    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncasecmp(at, kind, len) == 0 && (at[len] == ',' || !at[len]))
            return true;
    }
    return false;
}

/* Of a list that asks for kinds, or NULL, those that we have. */
static uint32_t grant(const char *list)
{
    uint32_t granted = 0;

    for (size_t i = 0; list && i < CHEMPI_ARRAY_LEN(kinds); i++)
        if (lists(list, kinds[i]))
            granted |= 1u << i;
    return granted;
}

/* Of the launcher's list. Asked once, before the first communicator: what the
 * program does to its environment from then on does not matter. */
static uint32_t launchers_kinds(void)
{
    static _Atomic uint32_t known; /* with KINDS_ARE_KNOWN, or 0 */
    uint32_t it = atomic_load_explicit(&known, memory_order_relaxed);

    if (it == 0) {
        it = KINDS_ARE_KNOWN | grant(getenv(CHEMPI_KINDS_ENV));
        atomic_store_explicit(&known, it, memory_order_relaxed);
    }
    return it & ~KINDS_ARE_KNOWN;
}

void chempi_session_load_kinds(void)
{
    (void)launchers_kinds();
}

/* The launcher's list stands for all sessions that bring none. */
static uint32_t grant_session(const struct chempi_info *wish)
{
    const char *list = chempi_info_find(wish, CHEMPI_SESSION_KINDS_KEY);

    return list ? grant(list) : launchers_kinds();
}

uint32_t chempi_session_kinds(const struct chempi_origin *origin)
{
    return origin->session ? origin->kinds : launchers_kinds();
}

int chempi_session_put_kinds(struct chempi_info *info, uint32_t granted)
{
    char text[64] = "system,mpi";

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(kinds); i++)
        if (granted & 1u << i) {
            strcat(text, ",");
            strcat(text, kinds[i]);
        }
    return chempi_info_set(info, CHEMPI_SESSION_KINDS_KEY, text);
}

/* ---- life ---- */

void chempi_session_destroy(struct chempi_session *session)
{
    chempi_errhandler_put(&session->errhandler, NULL);
    chempi_info_release(session->hints);
    session->obj.magic = 0;
    free(session);
}

struct chempi_session *chempi_session_make(const struct chempi_info *info,
                                           struct chempi_errhandler *eh)
{
    static _Atomic uint64_t made;
    struct chempi_session *session = chempi_sys->calloc(1, sizeof(*session));

    if (!session) {
        (void)no_memory();
        return NULL;
    }
    chempi_object_init(&session->obj, CHEMPI_MAGIC_SESSION);
    session->serial =
        atomic_fetch_add_explicit(&made, 1, memory_order_relaxed) + 1;
    chempi_errhandler_put(&session->errhandler, eh);
    session->kinds = grant_session(info);
    session->hints = chempi_info_copy(NULL);
    if (session->hints &&
        chempi_session_put_kinds(session->hints, session->kinds) == MPI_SUCCESS)
        return session;
    (void)no_memory();
    chempi_session_destroy(session);
    return NULL;
}

/* ---- questions ---- */

int chempi_session_get_info(struct chempi_session *session, MPI_Info *info_used)
{
    struct chempi_info *copy = chempi_info_copy(session->hints);

    if (!copy)
        return no_memory();
    *info_used = (MPI_Info)(void *)copy;
    return MPI_SUCCESS;
}

int chempi_session_get_num_psets(struct chempi_session *session,
                                 struct chempi_info *info, int *npset_names)
{
    (void)session;
    (void)info;
    *npset_names = (int)chempi_session_pset_count();
    return MPI_SUCCESS;
}

int chempi_session_get_nth_pset(struct chempi_session *session,
                                struct chempi_info *info, int n, int *pset_len,
                                char *pset_name)
{
    int room = *pset_len;

    (void)session;
    (void)info;
    if (n < 0 || (uint32_t)n >= chempi_session_pset_count())
        return chempi_error_set(MPI_ERR_ARG,
                                "there is no process set number %d: this "
                                "process belongs to %u",
                                n, chempi_session_pset_count());
    if (room < 0 || (room > 0 && !pset_name))
        return chempi_error_set(MPI_ERR_ARG,
                                room < 0 ? "pset_len is negative"
                                         : "pset_name is NULL, although "
                                           "pset_len is not 0");
    *pset_len = chempi_session_pset_name((uint32_t)n, room ? pset_name : NULL,
                                         (size_t)room) +
                1;
    return MPI_SUCCESS;
}

int chempi_session_get_pset_info(struct chempi_session *session,
                                 const char *pset_name, MPI_Info *info)
{
    uint32_t *procs = NULL;
    uint32_t size;
    struct chempi_info *made;
    char text[16];
    int rc = chempi_session_pset_find(pset_name, &procs, &size);

    (void)session;
    if (rc)
        return rc;
    free(procs);
    made = chempi_info_copy(NULL);
    if (!made)
        return no_memory();
    (void)snprintf(text, sizeof(text), "%u", size);
    rc = chempi_info_set(made, "mpi_size", text);
    if (rc)
        chempi_info_release(made);
    else
        *info = (MPI_Info)(void *)made;
    return rc;
}

int chempi_group_from_session_pset(struct chempi_session *session,
                                   const char *pset_name, MPI_Group *newgroup)
{
    struct chempi_group *group;
    uint32_t *procs = NULL;
    uint32_t size;
    int rc;

    *newgroup = MPI_GROUP_NULL;
    rc = chempi_session_pset_find(pset_name, &procs, &size);
    if (rc)
        return rc;
    group = chempi_group_make(size, procs);
    if (!group)
        return no_memory();
    group->origin = (struct chempi_origin){session->serial, session->kinds};
    *newgroup = (MPI_Group)(void *)group;
    return MPI_SUCCESS;
}

/* ---- error handlers ---- */

static void describe(struct chempi_object *object,
                     struct chempi_error_subject *out)
{
    struct chempi_session *session =
        CHEMPI_CONTAINER_OF(object, struct chempi_session, obj);

    *out = (struct chempi_error_subject){.errhandler = &session->errhandler,
                                         .handle = session,
                                         .name = "a session"};
}

void chempi_session_prepare(void)
{
    chempi_error_set_subject(CHEMPI_MAGIC_SESSION, describe);
}
