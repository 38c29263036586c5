/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Start and finish of sessions (MPI 5.0, section 11.3.1).
 *
 *   S1  an open session is one user of the core
 */
#include <string.h>

#include "libchempi/api/api_impl.h"
#include "libchempi/didl/comm/session/session.h"
#include "libchempi/didl/entry/core.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/info/info.h"
#include "libchempi/didl/pt2pt/buffer.h"
#include "libchempi/didl/transport/lane.h"

#define LEVEL_KEY "thread_level"

static const struct {
    const char *name;
    int level;
} levels[] = {
    {"MPI_THREAD_SINGLE", MPI_THREAD_SINGLE},
    {"MPI_THREAD_FUNNELED", MPI_THREAD_FUNNELED},
    {"MPI_THREAD_SERIALIZED", MPI_THREAD_SERIALIZED},
    {"MPI_THREAD_MULTIPLE", MPI_THREAD_MULTIPLE},
};

/* The thread level that the hints ask for; the lowest without any. */
static int wanted_level(const struct chempi_info *info, int *level)
{
    const char *text = chempi_info_find(info, LEVEL_KEY);

    *level = MPI_THREAD_SINGLE;
    if (!text)
        return MPI_SUCCESS;
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(levels); i++)
        if (strcmp(text, levels[i].name) == 0) {
            *level = levels[i].level;
            return MPI_SUCCESS;
        }
    return chempi_error_set(MPI_ERR_INFO_VALUE,
                            "\"%s\" is no thread level; " LEVEL_KEY " takes "
                            "MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, "
                            "MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE",
                            text);
}

static const char *name_of_level(int level)
{
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(levels); i++)
        if (levels[i].level == level)
            return levels[i].name;
    return levels[0].name;
}

int chempi_session_init(struct chempi_info *info,
                        struct chempi_errhandler *errhandler,
                        MPI_Session *session)
{
    struct chempi_session *made;
    int level;
    int rc = wanted_level(info, &level);

    *session = MPI_SESSION_NULL;
    if (rc)
        return rc;
    if (!chempi_errhandler_is_for(errhandler, CHEMPI_ERRHANDLER_SESSION))
        return chempi_error_set(MPI_ERR_ERRHANDLER,
                                "the error handler was made for another kind "
                                "of object than sessions");
    made = chempi_session_make(info, errhandler);
    if (!made)
        return MPI_ERR_NO_MEM;
    rc = chempi_core_enter(level, &level);
    if (rc) {
        chempi_session_destroy(made);
        return rc;
    }
    /* Who asked for nothing is told what others have made available. */
    if (!chempi_info_find(info, LEVEL_KEY) && chempi_lane_main.is_locking)
        level = MPI_THREAD_MULTIPLE;
    rc = chempi_info_set(made->hints, LEVEL_KEY, name_of_level(level));
    if (!rc)
        rc = chempi_info_set(made->hints, CHEMPI_ERRHANDLER_INITIAL_KEY,
                             chempi_errhandler_initial_name());
    if (rc) {
        chempi_core_leave();
        chempi_session_destroy(made);
        return rc;
    }
    *session = (MPI_Session)(void *)made;
    return MPI_SUCCESS;
}

int chempi_session_finalize(MPI_Session *session)
{
    struct chempi_session *old = chempi_session_lookup(*session);

    if (!old)
        return chempi_error_set(MPI_ERR_SESSION, "the handle names no session: "
                                                 "it was finalized, or never "
                                                 "set");
    chempi_buffer_fini_session(old);
    chempi_core_leave();
    chempi_session_destroy(old);
    *session = MPI_SESSION_NULL;
    return MPI_SUCCESS;
}
