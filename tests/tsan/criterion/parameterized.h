/* SPDX-License-Identifier: BSD-3-Clause */
/* See criterion.h. */
#ifndef CHEMPI_TESTS_TSAN_PARAMETERIZED_H
#define CHEMPI_TESTS_TSAN_PARAMETERIZED_H

#include <criterion/criterion.h>

#endif
