/* SPDX-License-Identifier: BSD-3-Clause */
/* A registry with the tutorial's device alone, in place of the library's. */
#include "libchempi/devices/registry.h"

#include <string.h>

#include "tests/tutorial/mailbox.h"

static const struct chempi_dev_ops *const devices[] = {&chempi_mailbox_ops};

const struct chempi_dev_ops *const *chempi_registry_all(size_t *count)
{
    *count = 1;
    return devices;
}

const struct chempi_dev_ops *chempi_registry_find(const char *name)
{
    return strcmp(name, devices[0]->name) == 0 ? devices[0] : NULL;
}
