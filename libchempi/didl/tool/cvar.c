/* SPDX-License-Identifier: BSD-3-Clause */
/* Control variables (MPI 5.0, section 15.3.6). */
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/sys.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/tool/registry.h"
#include "libchempi/didl/tool/tool.h"

struct cvar_handle {
    struct chempi_list link;
    struct chempi_tool_cvar cvar;
};

static struct chempi_list handles = {&handles, &handles};

static struct cvar_handle *find_handle(MPI_T_cvar_handle handle)
{
    CHEMPI_LIST_FOR (pos, &handles) {
        struct cvar_handle *h =
            CHEMPI_CONTAINER_OF(pos, struct cvar_handle, link);

        if ((MPI_T_cvar_handle)(void *)h == handle)
            return h;
    }
    return NULL;
}

static bool is_index(int i)
{
    return i >= 0 && (uint32_t)i < chempi_tool_cvar_count();
}

int chempi_tool_cvar_get_num(int *num_cvar)
{
    if (!num_cvar)
        return MPI_T_ERR_INVALID;
    *num_cvar = (int)chempi_tool_cvar_count();
    return MPI_SUCCESS;
}

int chempi_tool_cvar_get_info(int cvar_index, char *name, int *name_len,
                              int *verbosity, MPI_Datatype *datatype,
                              MPI_T_enum *enumtype, char *desc, int *desc_len,
                              int *bind, int *scope)
{
    char full[CHEMPI_SETTING_NAME_MAX];
    const struct chempi_setting *s;

    if (!is_index(cvar_index))
        return MPI_T_ERR_INVALID_INDEX;
    s = chempi_tool_cvar_at((uint32_t)cvar_index).setting;
    chempi_setting_name(s, full);
    chempi_tool_put_text(full, name, name_len);
    chempi_tool_put_text(s->text, desc, desc_len);
    chempi_tool_put(verbosity, s->is_basic ? MPI_T_VERBOSITY_USER_BASIC
                                           : MPI_T_VERBOSITY_TUNER_DETAIL);
    chempi_tool_put(bind, MPI_T_BIND_NO_OBJECT);
    chempi_tool_put(scope, s->scope == CHEMPI_SETTING_ALL ? MPI_T_SCOPE_ALL_EQ
                                                          : MPI_T_SCOPE_LOCAL);
    if (datatype)
        *datatype = s->words ? MPI_INT : MPI_UNSIGNED_LONG_LONG;
    if (enumtype)
        *enumtype = chempi_tool_enum(s->words);
    return MPI_SUCCESS;
}

static bool has_name(uint32_t i, const char *name)
{
    char full[CHEMPI_SETTING_NAME_MAX];

    chempi_setting_name(chempi_tool_cvar_at(i).setting, full);
    return strcmp(full, name) == 0;
}

int chempi_tool_cvar_get_index(const char *name, int *cvar_index)
{
    if (!name || !cvar_index)
        return MPI_T_ERR_INVALID;
    for (uint32_t i = 0; i < chempi_tool_cvar_count(); i++) {
        if (!has_name(i, name))
            continue;
        *cvar_index = (int)i;
        return MPI_SUCCESS;
    }
    return MPI_T_ERR_INVALID_NAME;
}

int chempi_tool_cvar_handle_alloc(int cvar_index, void *obj_handle,
                                  MPI_T_cvar_handle *handle, int *count)
{
    struct cvar_handle *h;

    (void)obj_handle; /* no variable is bound to an object */
    if (!is_index(cvar_index))
        return MPI_T_ERR_INVALID_INDEX;
    if (!handle || !count)
        return MPI_T_ERR_INVALID;
    h = chempi_sys->malloc(sizeof(*h));
    if (!h)
        return MPI_T_ERR_OUT_OF_HANDLES;
    h->cvar = chempi_tool_cvar_at((uint32_t)cvar_index);
    chempi_list_append(&handles, &h->link);
    *handle = (MPI_T_cvar_handle)(void *)h;
    *count = 1;
    return MPI_SUCCESS;
}

static void destroy(struct cvar_handle *h)
{
    chempi_list_remove(&h->link);
    free(h);
}

int chempi_tool_cvar_handle_free(MPI_T_cvar_handle *handle)
{
    struct cvar_handle *h;

    h = handle ? find_handle(*handle) : NULL;
    if (!h)
        return MPI_T_ERR_INVALID_HANDLE;
    destroy(h);
    *handle = MPI_T_CVAR_HANDLE_NULL;
    return MPI_SUCCESS;
}

void chempi_tool_cvar_fini(void)
{
    CHEMPI_LIST_FOR_SAFE (pos, &handles)
        destroy(CHEMPI_CONTAINER_OF(pos, struct cvar_handle, link));
}

int chempi_tool_cvar_read(MPI_T_cvar_handle handle, void *buf)
{
    struct cvar_handle *h;
    uint64_t value;

    h = find_handle(handle);
    if (!h)
        return MPI_T_ERR_INVALID_HANDLE;
    if (!buf)
        return MPI_T_ERR_INVALID;
    value = atomic_load_explicit(h->cvar.value, memory_order_relaxed);
    if (h->cvar.setting->words)
        *(int *)buf = (int)value;
    else
        *(unsigned long long *)buf = value;
    return MPI_SUCCESS;
}

static int write_value(const struct chempi_tool_cvar *cvar, const void *buf)
{
    const struct chempi_setting *s = cvar->setting;
    uint64_t value;

    if (s->words && *(const int *)buf < 0)
        return MPI_T_ERR_INVALID;
    if (s->words)
        value = (uint64_t)(*(const int *)buf);
    else
        value = *(const unsigned long long *)buf;
    if (value < s->min || value > s->max)
        return MPI_T_ERR_INVALID;
    if (s->is_fixed && (chempi_tool_is_attached() ||
                        atomic_load(&chempi_ctx.world) != CHEMPI_PHASE_BEFORE))
        return MPI_T_ERR_CVAR_SET_NOT_NOW;
    atomic_store_explicit(cvar->value, value, memory_order_relaxed);
    return MPI_SUCCESS;
}

int chempi_tool_cvar_write(MPI_T_cvar_handle handle, const void *buf)
{
    struct cvar_handle *h;

    h = find_handle(handle);
    if (!h)
        return MPI_T_ERR_INVALID_HANDLE;
    if (!buf)
        return MPI_T_ERR_INVALID;
    return write_value(&h->cvar, buf);
}
