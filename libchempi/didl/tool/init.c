/* SPDX-License-Identifier: BSD-3-Clause */
/* The tool interface: start, end, strings, enumerations; see tool.h. */
#include <pthread.h>
#include <string.h>

#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/tool/registry.h"
#include "libchempi/didl/tool/tool.h"
#include "libchempi/didl/transport/lane.h"

static struct {
    pthread_mutex_t lock;
    uint32_t users;   /* MPI_T_init_thread without MPI_T_finalize */
    bool is_threaded; /* one of them may call from several threads */
} tool = {.lock = PTHREAD_MUTEX_INITIALIZER};

int chempi_tool_enter(void)
{
    (void)pthread_mutex_lock(&tool.lock);
    if (tool.users > 0)
        return MPI_SUCCESS;
    (void)pthread_mutex_unlock(&tool.lock);
    return MPI_T_ERR_NOT_INITIALIZED;
}

int chempi_tool_leave(int rc)
{
    (void)pthread_mutex_unlock(&tool.lock);
    return rc;
}

bool chempi_tool_is_threaded(void)
{
    bool is_threaded;

    (void)pthread_mutex_lock(&tool.lock);
    is_threaded = tool.is_threaded;
    (void)pthread_mutex_unlock(&tool.lock);
    return is_threaded;
}

/* MPI decided at its start whether it locks; a tool that comes later can
 * have several threads only if it does. */
static int level_for(int required)
{
    int phase = atomic_load(&chempi_ctx.phase);

    if (required == MPI_THREAD_MULTIPLE && phase != CHEMPI_PHASE_BEFORE &&
        !chempi_lane_main.is_locking)
        return MPI_THREAD_SERIALIZED;
    return required;
}

int chempi_tool_init_thread(int required, int *provided)
{
    if (required < MPI_THREAD_SINGLE || required > MPI_THREAD_MULTIPLE ||
        !provided)
        return MPI_T_ERR_INVALID;
    /* A variable that is wrong keeps its initial value here; MPI_Init will
     * complain, which can say what is wrong. */
    (void)chempi_tool_load(NULL);
    (void)pthread_mutex_lock(&tool.lock);
    *provided = level_for(required);
    tool.users++;
    tool.is_threaded |= *provided == MPI_THREAD_MULTIPLE;
    (void)pthread_mutex_unlock(&tool.lock);
    return MPI_SUCCESS;
}

int chempi_tool_finalize(void)
{
    bool is_last;
    int rc = chempi_tool_enter();

    if (rc)
        return rc;
    is_last = --tool.users == 0;
    if (is_last) {
        chempi_tool_cvar_fini();
        chempi_tool_pvar_fini();
        chempi_tool_event_fini();
    }
    (void)chempi_tool_leave(MPI_SUCCESS);
    if (is_last)
        chempi_tool_event_settle(); /* lets registrations go */
    return MPI_SUCCESS;
}

void chempi_tool_put_text(const char *text, char *buf, int *len)
{
    size_t need = strlen(text) + 1;

    if (!len)
        return;
    if (buf && *len > 0) {
        size_t n = need < (size_t)*len ? need : (size_t)*len;

        memcpy(buf, text, n);
        buf[n - 1] = '\0';
    }
    *len = (int)need;
}

/* ---- enumerations ---- */

/* L2: the handle must be that of some variable or event. */
static const struct chempi_words *find_enum(MPI_T_enum handle)
{
    for (uint32_t i = 0; i < chempi_tool_cvar_count(); i++) {
        const struct chempi_words *words =
            chempi_tool_cvar_at(i).setting->words;

        if (words && handle == chempi_tool_enum(words))
            return words;
    }
    for (int i = 0; chempi_tool_event_words(i); i++)
        if (handle == chempi_tool_enum(chempi_tool_event_words(i)))
            return chempi_tool_event_words(i);
    return NULL;
}

int chempi_tool_enum_get_info(MPI_T_enum enumtype, int *num, char *name,
                              int *name_len)
{
    const struct chempi_words *words;
    int rc = chempi_tool_enter();

    if (rc)
        return rc;
    words = find_enum(enumtype);
    if (!words)
        return chempi_tool_leave(MPI_T_ERR_INVALID_HANDLE);
    chempi_tool_put(num, (int)words->count);
    chempi_tool_put_text(words->name, name, name_len);
    return chempi_tool_leave(MPI_SUCCESS);
}

int chempi_tool_enum_get_item(MPI_T_enum enumtype, int indx, int *value,
                              char *name, int *name_len)
{
    const struct chempi_words *words;
    int rc = chempi_tool_enter();

    if (rc)
        return rc;
    words = find_enum(enumtype);
    if (!words)
        return chempi_tool_leave(MPI_T_ERR_INVALID_HANDLE);
    if (indx < 0 || (uint32_t)indx >= words->count)
        return chempi_tool_leave(MPI_T_ERR_INVALID_INDEX);
    chempi_tool_put(value, indx);
    chempi_tool_put_text(words->list[indx], name, name_len);
    return chempi_tool_leave(MPI_SUCCESS);
}
