/* SPDX-License-Identifier: BSD-3-Clause */
/* A test case that runs once for every device of the registry. */
#ifndef CHEMPI_TESTS_CONFORMANCE_DEVICE_SUITE_H
#define CHEMPI_TESTS_CONFORMANCE_DEVICE_SUITE_H

#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include "tests/conformance/device/party.h"

#define DEVICE_NAME_MAX 16

/* All names, or the one that the environment variable DEVICE holds. */
struct criterion_test_params suite_device_names(void);

/* `count`, or 1 for a device that only reaches its own process. */
uint32_t suite_procs(const char *device, uint32_t count);

#define DEVICE_TEST(name)                                                      \
    ParameterizedTestParameters(device, name)                                  \
    {                                                                          \
        return suite_device_names();                                           \
    }                                                                          \
    ParameterizedTest(char device[DEVICE_NAME_MAX], device, name,              \
                      .timeout = 100)

#endif
