/* SPDX-License-Identifier: BSD-3-Clause */
/* Where names stand in a list; see namelist.h. */
#include "chempid/job/namelist.h"

#include <errno.h>
#include <string.h>

static bool has_name(const void *elements, uint32_t number, const void *key)
{
    const char *const *names = elements;

    return strcmp(names[number], key) == 0;
}

int chempi_namelist_init(struct chempi_namelist *list, const char *const *names,
                         uint32_t count)
{
    *list = (struct chempi_namelist){.names = names};
    for (uint32_t i = 0; i < count; i++)
        if (!chempi_index_add(&list->index, chempi_index_hash_text(0, names[i]),
                              i)) {
            chempi_namelist_fini(list);
            return -ENOMEM;
        }
    return 0;
}

void chempi_namelist_fini(struct chempi_namelist *list)
{
    chempi_index_fini(&list->index);
}

uint32_t chempi_namelist_find(const struct chempi_namelist *list,
                              const char *name)
{
    return chempi_index_find(&list->index, chempi_index_hash_text(0, name),
                             has_name, list->names, name);
}
