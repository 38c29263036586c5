/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdint.h>
#include <string.h>

#include <criterion/criterion.h>

#include "common/base/number.h"
#include "common/fd/file.h"

Test(number, whole_texts_between_the_limits_are_read)
{
    uint64_t n = 0;
    uint32_t small = 0;

    cr_assert(chempi_number_parse("0", 0, UINT64_MAX, &n));
    cr_assert_eq(n, 0);
    cr_assert(chempi_number_parse("18446744073709551615", 0, UINT64_MAX, &n));
    cr_assert_eq(n, UINT64_MAX);
    cr_assert(chempi_number_parse32("007", 7, 7, &small));
    cr_assert_eq(small, 7);
}

Test(number, what_is_no_number_or_beyond_the_limits_changes_nothing)
{
    static const char *const texts[] = {
        "", " 1", "-1", "+1", "1 ", "1K", "0x10", "18446744073709551616"};
    uint64_t n = 42;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        cr_assert_not(chempi_number_parse(texts[i], 0, UINT64_MAX, &n),
                      "\"%s\"", texts[i]);
    cr_assert_not(chempi_number_parse("6", 7, 9, &n));
    cr_assert_not(chempi_number_parse("10", 7, 9, &n));
    cr_assert_eq(n, 42);
}

Test(number, scanning_stops_behind_the_digits_or_stays)
{
    const char *at = "12,x";
    uint64_t n = 0;

    cr_assert(chempi_number_scan(&at, 12, &n));
    cr_assert_eq(n, 12);
    cr_assert_str_eq(at, ",x");
    cr_assert_not(chempi_number_scan(&at, 12, &n));
    cr_assert_str_eq(at, ",x");
    at = "13";
    cr_assert_not(chempi_number_scan(&at, 12, &n));
    cr_assert_str_eq(at, "13");
}

Test(number, a_range_is_read_whole_or_not_at_all)
{
    const char *at = "4-7,9";
    const char *wrong[] = {"7-4", "4-", "-4", "4-13", ""};
    uint32_t first = 0;
    uint32_t last = 0;

    cr_assert(chempi_number_scan_range(&at, 12, &first, &last));
    cr_assert(first == 4 && last == 7);
    cr_assert_str_eq(at++, ",9");
    cr_assert(chempi_number_scan_range(&at, 12, &first, &last));
    cr_assert(first == 9 && last == 9);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        at = wrong[i];
        cr_assert_not(chempi_number_scan_range(&at, 12, &first, &last));
        cr_assert_eq(at, wrong[i]);
    }
}

Test(number, this_host_is_always_the_same)
{
    static const uint8_t unknown[CHEMPI_FILE_HOST_BYTES];
    uint8_t one[CHEMPI_FILE_HOST_BYTES];
    uint8_t other[CHEMPI_FILE_HOST_BYTES];

    chempi_file_host(one);
    chempi_file_host(other);
    cr_assert_eq(memcmp(one, other, sizeof(one)), 0);
    cr_assert_neq(memcmp(one, unknown, sizeof(one)), 0);
}
