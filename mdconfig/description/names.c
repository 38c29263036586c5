/* SPDX-License-Identifier: BSD-3-Clause */
/* From names to numbers; see names.h. */
#include "mdconfig/description/names.h"

#include <stdlib.h>
#include <string.h>

#include "mdconfig/description/mem.h"

static bool has_name(const void *elements, uint32_t number, const void *key)
{
    const struct chempi_names_entry *entries = elements;

    return strcmp(entries[number].name, key) == 0;
}

uint32_t chempi_names_find(const struct chempi_names *names, const char *name)
{
    const uint32_t at =
        chempi_index_find(&names->index, chempi_index_hash_text(0, name),
                          has_name, names->entries, name);

    return at == CHEMPI_INDEX_NONE ? CHEMPI_NAMES_NONE
                                   : names->entries[at].value;
}

void chempi_names_add(struct chempi_names *names, const char *name,
                      uint32_t value)
{
    names->entries = chempi_mem_grow(names->entries, names->count, &names->room,
                                     sizeof(*names->entries));
    names->entries[names->count] =
        (struct chempi_names_entry){.name = name, .value = value};
    if (!chempi_index_add(&names->index, chempi_index_hash_text(0, name),
                          (uint32_t)names->count++))
        chempi_mem_exhausted(names->count * sizeof(*names->entries));
}

void chempi_names_fini(struct chempi_names *names)
{
    free(names->entries);
    chempi_index_fini(&names->index);
    *names = (struct chempi_names){.entries = NULL};
}
