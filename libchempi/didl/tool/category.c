/* SPDX-License-Identifier: BSD-3-Clause */
/* Categories (MPI 5.0, section 15.3.9): a root that holds one category per
 * module and device. They never change. */
#include <stdio.h>
#include <string.h>

#include "libchempi/didl/tool/registry.h"
#include "libchempi/didl/tool/tool.h"

static const char *module_of(enum chempi_tool_kind kind, uint32_t i)
{
    static struct chempi_tool_pvar pvar; /* under the tool lock */

    switch (kind) {
    case CHEMPI_TOOL_CVARS:
        return chempi_tool_cvar_at(i).setting->module;
    case CHEMPI_TOOL_PVARS:
        chempi_tool_pvar_at(i, &pvar);
        return pvar.module;
    case CHEMPI_TOOL_EVENTS:
        return chempi_tool_event_module(i);
    case CHEMPI_TOOL_CATEGORIES:
        break;
    }
    return NULL;
}

static uint32_t count_all(enum chempi_tool_kind kind)
{
    switch (kind) {
    case CHEMPI_TOOL_CVARS:
        return chempi_tool_cvar_count();
    case CHEMPI_TOOL_PVARS:
        return chempi_tool_pvar_count();
    case CHEMPI_TOOL_EVENTS:
        return chempi_tool_event_count();
    case CHEMPI_TOOL_CATEGORIES:
        break;
    }
    return chempi_tool_category_count();
}

static bool is_member(int category, enum chempi_tool_kind kind, uint32_t i)
{
    const char *module = chempi_tool_category_at((uint32_t)category).module;

    if (kind == CHEMPI_TOOL_CATEGORIES)
        return !module && i != (uint32_t)category;
    return module && strcmp(module, module_of(kind, i)) == 0;
}

/* Store the first len members; returns how many there are. */
static int list(int category, enum chempi_tool_kind kind, int len,
                int indices[])
{
    uint32_t count = count_all(kind);
    int n = 0;

    for (uint32_t i = 0; i < count; i++) {
        if (!is_member(category, kind, i))
            continue;
        if (n < len)
            indices[n] = (int)i;
        n++;
    }
    return n;
}

static void name_of(int category, char name[CHEMPI_SETTING_NAME_MAX])
{
    const char *module = chempi_tool_category_at((uint32_t)category).module;

    if (!module)
        module = "";
    else if (!*module)
        module = "_general";
    (void)snprintf(name, CHEMPI_SETTING_NAME_MAX, "chempi%s%s",
                   *module && *module != '_' ? "_" : "", module);
}

static bool is_index(int i)
{
    return i >= 0 && (uint32_t)i < chempi_tool_category_count();
}

int chempi_tool_category_get_num(int *num_cat)
{
    if (!num_cat)
        return MPI_T_ERR_INVALID;
    *num_cat = (int)chempi_tool_category_count();
    return MPI_SUCCESS;
}

int chempi_tool_category_get_info(int cat_index, char *name, int *name_len,
                                  char *desc, int *desc_len, int *num_cvars,
                                  int *num_pvars, int *num_categories)
{
    char full[CHEMPI_SETTING_NAME_MAX];

    if (!is_index(cat_index))
        return MPI_T_ERR_INVALID_INDEX;
    name_of(cat_index, full);
    chempi_tool_put_text(full, name, name_len);
    chempi_tool_put_text(chempi_tool_category_at((uint32_t)cat_index).text,
                         desc, desc_len);
    chempi_tool_put(num_cvars, list(cat_index, CHEMPI_TOOL_CVARS, 0, NULL));
    chempi_tool_put(num_pvars, list(cat_index, CHEMPI_TOOL_PVARS, 0, NULL));
    chempi_tool_put(num_categories,
                    list(cat_index, CHEMPI_TOOL_CATEGORIES, 0, NULL));
    return MPI_SUCCESS;
}

int chempi_tool_category_get_num_events(int cat_index, int *num_events)
{
    if (!is_index(cat_index))
        return MPI_T_ERR_INVALID_INDEX;
    chempi_tool_put(num_events, list(cat_index, CHEMPI_TOOL_EVENTS, 0, NULL));
    return MPI_SUCCESS;
}

int chempi_tool_category_get_index(const char *name, int *cat_index)
{
    if (!name || !cat_index)
        return MPI_T_ERR_INVALID;
    for (int i = 0; is_index(i); i++) {
        char full[CHEMPI_SETTING_NAME_MAX];

        name_of(i, full);
        if (strcmp(full, name) != 0)
            continue;
        *cat_index = i;
        return MPI_SUCCESS;
    }
    return MPI_T_ERR_INVALID_NAME;
}

int chempi_tool_category_get_members(int cat_index, int len, int indices[],
                                     int kind)
{
    if (!is_index(cat_index))
        return MPI_T_ERR_INVALID_INDEX;
    if (len < 0 || (len > 0 && !indices))
        return MPI_T_ERR_INVALID;
    (void)list(cat_index, (enum chempi_tool_kind)kind, len, indices);
    return MPI_SUCCESS;
}

int chempi_tool_category_changed(int *update_number)
{
    if (!update_number)
        return MPI_T_ERR_INVALID;
    *update_number = 0;
    return MPI_SUCCESS;
}
