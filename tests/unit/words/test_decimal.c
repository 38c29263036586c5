/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "common/base/compiler.h"
#include "common/words/decimal.h"

Test(decimal, numbers_within_limits_are_read)
{
    double v = -1;

    cr_assert(chempi_decimal_parse("5", 0, 10, &v));
    cr_assert_float_eq(v, 5, 1e-12);
    cr_assert(chempi_decimal_parse("0.25", 0, 10, &v));
    cr_assert_float_eq(v, 0.25, 1e-12);
    cr_assert(chempi_decimal_parse(".5", 0.5, 10, &v));
    cr_assert_float_eq(v, 0.5, 1e-12);
    cr_assert(chempi_decimal_parse("10", 0, 10, &v));
    cr_assert_float_eq(v, 10, 1e-12);
}

Test(decimal, everything_else_is_refused)
{
    static const char *const bad[] = {
        "",   ".",  "inf", "nan", "infinity", "0x4", "4e0", "-4",
        "+4", " 4", "4 ",  "4s",  "4.0.0",    "4,5", "0.9", "10.5"};
    double v = 42;

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(bad); i++)
        cr_expect_not(chempi_decimal_parse(bad[i], 1, 10, &v), "\"%s\"",
                      bad[i]);
    cr_expect_float_eq(v, 42, 1e-12);
}
