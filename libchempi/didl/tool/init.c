/* SPDX-License-Identifier: BSD-3-Clause */
/* The tool interface: start, end, enumerations; see tool.h. */
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/tool/registry.h"
#include "libchempi/didl/tool/tool.h"
#include "libchempi/didl/transport/lane.h"

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
    *provided = level_for(required);
    chempi_tool_open(*provided == MPI_THREAD_MULTIPLE);
    return MPI_SUCCESS;
}

int chempi_tool_finalize(void)
{
    bool is_last;
    int rc = chempi_tool_enter();

    if (rc)
        return rc;
    is_last = chempi_tool_close_locked();
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

    words = find_enum(enumtype);
    if (!words)
        return MPI_T_ERR_INVALID_HANDLE;
    chempi_tool_put(num, (int)words->count);
    chempi_tool_put_text(words->name, name, name_len);
    return MPI_SUCCESS;
}

int chempi_tool_enum_get_item(MPI_T_enum enumtype, int indx, int *value,
                              char *name, int *name_len)
{
    const struct chempi_words *words;

    words = find_enum(enumtype);
    if (!words)
        return MPI_T_ERR_INVALID_HANDLE;
    if (indx < 0 || (uint32_t)indx >= words->count)
        return MPI_T_ERR_INVALID_INDEX;
    chempi_tool_put(value, indx);
    chempi_tool_put_text(words->list[indx], name, name_len);
    return MPI_SUCCESS;
}
