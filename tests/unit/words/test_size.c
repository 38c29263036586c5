/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdint.h>

#include <criterion/criterion.h>

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
    cr_assert_eq(parsed("18446744073709551615"), UINT64_MAX);
}

Test(size, what_is_no_number_is_refused)
{
    static const char *const texts[] = {
        "",    " 1",   "-1",  "+1",  "1 ",  "K",  "1Q",   "1KB",
        "1.5", "0x10", "1K ", "1Ki", "1iB", "1B", "1Kib", "1KiBs"};
    uint64_t n = 42;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        cr_assert_eq(chempi_size_parse(texts[i], UINT64_MAX, &n), -EINVAL,
                     "\"%s\"", texts[i]);
    cr_assert_eq(n, 42);
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
    cr_assert_eq(n, 42);
    cr_assert_eq(chempi_size_parse("2K", 2048, &n), 0);
    cr_assert_eq(n, 2048);
    cr_assert_eq(chempi_size_parse("16777215T", UINT64_MAX, &n), 0);
}
