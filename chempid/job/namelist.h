/* SPDX-License-Identifier: BSD-3-Clause */
/* Where names stand in a list. */
#ifndef CHEMPI_CHEMPID_NAMELIST_H
#define CHEMPI_CHEMPID_NAMELIST_H

#include <stdint.h>

#include "common/containers/index.h"

#define CHEMPI_NAMELIST_NONE CHEMPI_INDEX_NONE

struct chempi_namelist {
    const char *const *names; /* the caller's */
    struct chempi_index index;
};

/* -ENOMEM: nothing is held. */
int chempi_namelist_init(struct chempi_namelist *list, const char *const *names,
                         uint32_t count);
void chempi_namelist_fini(struct chempi_namelist *list);

/* A place of the name, or CHEMPI_NAMELIST_NONE. */
uint32_t chempi_namelist_find(const struct chempi_namelist *list,
                              const char *name);

#endif
