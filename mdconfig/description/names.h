/* SPDX-License-Identifier: BSD-3-Clause */
/* A hash table from names to numbers; the names stay the caller's. */
#ifndef CHEMPI_MDCONFIG_NAMES_H
#define CHEMPI_MDCONFIG_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "common/containers/index.h"

#define CHEMPI_NAMES_NONE UINT32_MAX

struct chempi_names_entry {
    const char *name;
    uint32_t value;
};

struct chempi_names { /* zero-initialised: empty */
    struct chempi_names_entry *entries;
    size_t room;
    size_t count;
    struct chempi_index index;
};

/* Value of a name, or CHEMPI_NAMES_NONE. */
uint32_t chempi_names_find(const struct chempi_names *names, const char *name);
/* The name must not be there yet and must outlive the table. */
void chempi_names_add(struct chempi_names *names, const char *name,
                      uint32_t value);
void chempi_names_fini(struct chempi_names *names);

#endif
