/* SPDX-License-Identifier: BSD-3-Clause */
/* The devices to test; see suite.h. */
#include "tests/conformance/device/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libchempi/devices/registry.h"

struct criterion_test_params suite_device_names(void)
{
    static char names[8][DEVICE_NAME_MAX];
    size_t count;
    const struct chempi_dev_ops *const *all = chempi_registry_all(&count);
    const char *only = getenv("DEVICE");
    size_t n = 0;

    cr_assert(count <= CHEMPI_ARRAY_LEN(names));
    for (size_t i = 0; i < count; i++) {
        if (!only || strcmp(only, all[i]->name) == 0)
            (void)snprintf(names[n++], DEVICE_NAME_MAX, "%s", all[i]->name);
    }
    return cr_make_param_array(char[DEVICE_NAME_MAX], names, n);
}

uint32_t suite_procs(const char *device, uint32_t count)
{
    return strcmp(device, "self") == 0 ? 1 : count;
}
