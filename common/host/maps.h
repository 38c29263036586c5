/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What of a range of addresses is mapped in this process, after
 * /proc/self/maps. Dear: for the ways that are rarely gone.
 */
#ifndef CHEMPI_COMMON_HOST_MAPS_H
#define CHEMPI_COMMON_HOST_MAPS_H

#include <stddef.h>
#include <stdint.h>

typedef void chempi_maps_fn(void *arg, uintptr_t start, size_t len);

/* Call fn for each mapping's part in [start, end), in ascending order. fn must
 * not map or unmap. 0 or -errno (no /proc). */
int chempi_maps_each(uintptr_t start, uintptr_t end, chempi_maps_fn *fn,
                     void *arg);

#endif
