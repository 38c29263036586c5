/* SPDX-License-Identifier: BSD-3-Clause */
/* The devices that this build knows; registry.c is the one file that names
 * them. Constant; thread-safe. */
#ifndef CHEMPI_LIBCHEMPI_DEVICES_REGISTRY_H
#define CHEMPI_LIBCHEMPI_DEVICES_REGISTRY_H

#include <stddef.h>

#include "libchempi/ddi.h"

/* The operations of the device with this name (as in the network
 * description), or NULL. */
const struct chempi_dev_ops *chempi_registry_find(const char *name);

/* All devices, *count of them, in the order of preference for a process that
 * several of them reach. */
const struct chempi_dev_ops *const *chempi_registry_all(size_t *count);

/* The one that reaches processes of other worlds (chempi_services.bonds). */
const struct chempi_dev_ops *chempi_registry_foreign(void);

#endif
