/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cores that ranks are bound to when nobody has asked for anything: as
 * long as a job has no more ranks on a host than this process has cores, and
 * so many are free, each rank gets its share of them.
 *
 *   K1  the ranks of a node are bound all or not at all; those of another
 *       node of the same host need not be
 *   K2  a core is given by default to one job of the host at a time, and to
 *       none while one has it that has asked for it: who has bound the name
 *       that stands for it, an abstract socket's. The name is that of the
 *       core's first processor, whether or not this process may use it: all
 *       jobs must mean the same. The kernel takes it back from a dead process
 *   K3  a rank never gets a processor that this process may not use
 *   K4  under a daemon a rank has the cores of a slot, so that the others are
 *       there for other jobs; without one, all cores are the job's
 */
#ifndef CHEMPI_CHEMPID_CORES_H
#define CHEMPI_CHEMPID_CORES_H

#include "chempid/supervisor/bind.h"

#define CHEMPI_CORES_DIR "/sys/devices/system/cpu"

/* The cores among `allowed`, as places: their allowed processors, and in
 * `socket` the number of the core's first processor (K2). They are in the order
 * of their first allowed processors; dir: as CHEMPI_CORES_DIR. Without such a
 * folder each processor is a core. 0 or -ENOMEM. */
int chempi_cores_find(const char *dir, const struct chempi_cpus *allowed,
                      struct chempi_bind_map *map);

/* The place of rank number `index` of `total` (not more than the cores): its
 * share of them. */
void chempi_cores_share(const struct chempi_bind_map *cores, uint32_t index,
                        uint32_t total, struct chempi_bind_place *place);

/* Places for the ranks of a node, and the names that hold their cores; an
 * empty map if they shall not be bound. Whatever fails, they are not. */
void chempi_cores_choose(const struct chempi_spec *spec, uint32_t node,
                         struct chempi_bind_map *map);

/* Hold the cores of the first `count` ranks of a map that somebody has asked
 * for, so that no other job gets them by default. Those that another job has
 * are left to it, and whatever fails is left out. */
void chempi_cores_claim(struct chempi_bind_map *map, uint32_t count);

/* Let go of the names. */
void chempi_cores_release(struct chempi_bind_map *map);

#endif
