/* SPDX-License-Identifier: BSD-3-Clause */
/* The device registry; see registry.h. */
#include "libchempi/devices/registry.h"

#include <string.h>

#include "common/base/compiler.h"
#include "libchempi/devices/scivia/scivia.h"
#include "libchempi/devices/self/self.h"
#include "libchempi/devices/shm/shm.h"
#include "libchempi/devices/tcp/tcp.h"

static const struct chempi_dev_ops *const devices[] = {
    &chempi_self_ops,
    &chempi_shm_ops,
    &chempi_tcp_ops,
    &chempi_scivia_ops,
};

const struct chempi_dev_ops *const *chempi_registry_all(size_t *count)
{
    *count = CHEMPI_ARRAY_LEN(devices);
    return devices;
}

const struct chempi_dev_ops *chempi_registry_find(const char *name)
{
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(devices); i++) {
        if (devices[i]->abi == CHEMPI_DEV_ABI &&
            strcmp(devices[i]->name, name) == 0)
            return devices[i];
    }
    return NULL;
}

const struct chempi_dev_ops *chempi_registry_foreign(void)
{
    return &chempi_tcp_ops;
}
