/* SPDX-License-Identifier: BSD-3-Clause */
/* Open addressing, at most half full; see names.h. */
#include "mdconfig/description/names.h"

#include <stdlib.h>
#include <string.h>

#include "mdconfig/description/mem.h"

static size_t hash_name(const char *name)
{
    uint64_t hash = 14695981039346656037u; /* FNV-1a */

    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 1099511628211u;
    return (size_t)(hash ^ hash >> 32);
}

/* The entry of the name, or the free one where it belongs. */
static struct chempi_names_entry *locate(const struct chempi_names *names,
                                         const char *name)
{
    size_t at = hash_name(name) & (names->room - 1);

    while (names->entries[at].name &&
           strcmp(names->entries[at].name, name) != 0)
        at = (at + 1) & (names->room - 1);
    return &names->entries[at];
}

uint32_t chempi_names_find(const struct chempi_names *names, const char *name)
{
    const struct chempi_names_entry *entry;

    if (names->count == 0)
        return CHEMPI_NAMES_NONE;
    entry = locate(names, name);
    return entry->name ? entry->value : CHEMPI_NAMES_NONE;
}

static void enlarge(struct chempi_names *names)
{
    struct chempi_names larger = {.room = names->room ? names->room * 2 : 64};

    larger.entries = chempi_mem_get(larger.room, sizeof(*larger.entries));
    larger.count = names->count;
    for (size_t i = 0; i < names->room; i++) {
        if (names->entries[i].name)
            *locate(&larger, names->entries[i].name) = names->entries[i];
    }
    free(names->entries);
    *names = larger;
}

void chempi_names_add(struct chempi_names *names, const char *name,
                      uint32_t value)
{
    if (names->count >= names->room / 2)
        enlarge(names);
    *locate(names, name) =
        (struct chempi_names_entry){.name = name, .value = value};
    names->count++;
}

void chempi_names_fini(struct chempi_names *names)
{
    free(names->entries);
    *names = (struct chempi_names){.entries = NULL};
}
