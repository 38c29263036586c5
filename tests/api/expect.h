/* SPDX-License-Identifier: BSD-3-Clause */
/* One-line checks for the API tests: a failure is printed and counted. */
#ifndef CHEMPI_TESTS_API_EXPECT_H
#define CHEMPI_TESTS_API_EXPECT_H

#include <stdio.h>

static int expect_failures;

#define EXPECT(condition)                                                      \
    do {                                                                       \
        if (!(condition)) {                                                    \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__,       \
                    #condition);                                               \
            expect_failures++;                                                 \
        }                                                                      \
    } while (0)

#endif
