/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Binding ranks to cores or sockets. The machine is described by the program
 * chempi-topology, which uses hwloc; its answer is parsed with bounds.
 */
#ifndef CHEMPI_CHEMPID_BIND_H
#define CHEMPI_CHEMPID_BIND_H

#include <stddef.h>
#include <stdint.h>

#include "chempid/spec.h"
#include "common/base/err.h"

#define CHEMPI_BIND_CPUS_MAX 8192u /* largest processor number, plus one */
#define CHEMPI_BIND_PLACES_MAX 4096u

struct chempi_bind_place {
    uint32_t socket;
    uint8_t cpus[CHEMPI_BIND_CPUS_MAX / 8]; /* bit per processor */
};

struct chempi_bind_map { /* all zero: no binding */
    struct chempi_bind_place *places;
    uint32_t count;
};

/* Ask the helper and lay out cores or sockets. Blocks while it runs. 0 or
 * -errno with words. */
int chempi_bind_init(struct chempi_bind_map *map, enum chempi_bind kind,
                     struct chempi_err *err);
/* The same from the helper's text. -EINVAL with the line. */
int chempi_bind_parse(struct chempi_bind_map *map, enum chempi_bind kind,
                      const char *text, struct chempi_err *err);
void chempi_bind_fini(struct chempi_bind_map *map);

/* Bind this process to place number `index`, counted round and round. 0 or
 * -errno. */
int chempi_bind_self(const struct chempi_bind_map *map, uint32_t index);

#endif
