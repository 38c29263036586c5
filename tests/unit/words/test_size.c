/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdint.h>

#include <criterion/criterion.h>

#include "common/base/compiler.h"
#include "common/words/size.h"

static uint64_t parsed(const char *text)
{
    uint64_t n = 0;

    cr_assert_eq(chempi_size_parse(text, UINT64_MAX, &n), 0, "%s", text);
    return n;
}

Test(size, numbers_and_units_are_read)
{
    cr_assert_eq(parsed("0"), 0);
    cr_assert_eq(parsed("007"), 7);
    cr_assert_eq(parsed("3K"), 3 << 10);
    cr_assert_eq(parsed("3k"), 3 << 10);
    cr_assert_eq(parsed("2M"), 2 << 20);
    cr_assert_eq(parsed("1G"), 1 << 30);
    cr_assert_eq(parsed("64KiB"), 64 << 10);
    cr_assert_eq(parsed("1TiB"), UINT64_C(1) << 40);
    cr_assert_eq(parsed("5T"), UINT64_C(5) << 40);
    cr_assert_eq(parsed("17B"), 17);
    cr_assert_eq(parsed("17 B"), 17);
    cr_assert_eq(parsed("2kB"), 2000);
    cr_assert_eq(parsed("2 MB"), 2000000);
    cr_assert_eq(parsed("3GB"), UINT64_C(3000000000));
    cr_assert_eq(parsed("3 TB"), UINT64_C(3000000000000));
    cr_assert_eq(parsed("64  KiB"), 64 << 10);
    cr_assert_eq(parsed("1.5 KiB"), 1536);
    cr_assert_eq(parsed("0.25K"), 256);
    cr_assert_eq(parsed("1.50000000000 MB"), 1500000);
    cr_assert_eq(parsed("1.1234567 GB"), 1123456700);
    cr_assert_eq(parsed("0.9765625 TiB"), UINT64_C(1000) << 30);
    cr_assert_eq(parsed("18446744073709551615"), UINT64_MAX);
}

static void refuse(const char *text, int rc)
{
    uint64_t n = 42;

    cr_expect_eq(chempi_size_parse(text, UINT64_MAX, &n), rc, "\"%s\"", text);
    cr_expect_eq(n, 42, "\"%s\"", text);
}

Test(size, what_is_no_number_is_refused)
{
    static const char *const texts[] = {"",   " 1", "-1",  "+1",  "K",
                                        ".5", "1.", "1.K", "inf", "nan"};

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(texts); i++)
        refuse(texts[i], -EINVAL);
}

Test(size, what_is_no_unit_is_refused)
{
    static const char *const texts[] = {"1 ",    "1Q",  "1KB", "1kb",  "0x10",
                                        "1K ",   "1Ki", "1iB", "1Kib", "1KiBs",
                                        "1.5.5", "1e9", "1mB", "1\tK"};

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(texts); i++)
        refuse(texts[i], -ENOTSUP);
}

Test(size, what_is_no_number_of_bytes_is_refused)
{
    static const char *const texts[] = {"1.5", "0.3 KiB", "1.0001 kB",
                                        "1.12345678 GB"};

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(texts); i++)
        refuse(texts[i], -ERANGE);
}

Test(size, what_is_too_much_is_refused)
{
    uint64_t n = 42;

    cr_assert_eq(chempi_size_parse("18446744073709551616", UINT64_MAX, &n),
                 -ERANGE);
    cr_assert_eq(chempi_size_parse("18014398509481984K", UINT64_MAX, &n),
                 -ERANGE);
    cr_assert_eq(chempi_size_parse("16777216T", UINT64_MAX, &n), -ERANGE);
    cr_assert_eq(chempi_size_parse("2K", 2047, &n), -ERANGE);
    cr_assert_eq(chempi_size_parse("2.5K", 2559, &n), -ERANGE);
    cr_assert_eq(chempi_size_parse("0.5K", 511, &n), -ERANGE);
    cr_assert_eq(chempi_size_parse("20000000000GB", UINT64_MAX, &n), -ERANGE);
    cr_assert_eq(n, 42);
    cr_assert_eq(chempi_size_parse("2K", 2048, &n), 0);
    cr_assert_eq(n, 2048);
    cr_assert_eq(chempi_size_parse("16777215T", UINT64_MAX, &n), 0);
}
