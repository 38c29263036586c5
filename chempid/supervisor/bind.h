/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Binding ranks to cores or sockets. The machine is described by the program
 * chempi-topology, which uses hwloc; its answer is parsed with bounds.
 */
#ifndef CHEMPI_CHEMPID_BIND_H
#define CHEMPI_CHEMPID_BIND_H

#include <stddef.h>
#include <stdint.h>

#include "chempid/job/spec.h"
#include "common/base/err.h"
#include "common/host/cpus.h"

#define CHEMPI_BIND_PLACES_MAX 4096u

struct chempi_bind_place {
    uint32_t socket; /* or the core's first processor (cores.h) */
    struct chempi_cpus cpus;
};

struct chempi_bind_map { /* all zero: no binding */
    struct chempi_bind_place *places;
    uint32_t count;
    uint32_t offset; /* ranks before the first of this node (bind_self) */
    bool is_share;   /* nobody asked for it (cores.h) */
    struct chempi_cpus allowed; /* all that ranks may be bound to */
    int *holds;                 /* descriptors that hold cores (cores.h) */
    uint32_t hold_count;
};

/* The places of a node's ranks, within --cpu-set, which holds for this process
 * afterwards. For cores, sockets or lists the helper is asked; the call blocks
 * while that runs. 0 or -errno with words. */
int chempi_bind_init(struct chempi_bind_map *map,
                     const struct chempi_spec *spec, uint32_t node,
                     struct chempi_err *err);
/* The same from the helper's text. -EINVAL with the line. */
int chempi_bind_parse(struct chempi_bind_map *map, enum chempi_bind kind,
                      const char *text, struct chempi_err *err);
/* A place for each rank of the node by the job's lists, from `cores`, where
 * each place is a core. -EINVAL with words that name file, line and rank. */
int chempi_bind_list(const struct chempi_bind_map *cores,
                     const struct chempi_spec *spec, uint32_t node,
                     struct chempi_bind_map *map, struct chempi_err *err);
void chempi_bind_fini(struct chempi_bind_map *map);

/* Bind this process, the rank number `local` of its node, to its place. They
 * are counted round and round. 0 or -errno. */
int chempi_bind_self(const struct chempi_bind_map *map, uint32_t local);

#endif
