/* SPDX-License-Identifier: BSD-3-Clause */
/* The numbers of ranks that --soft permits. */
#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chempid/hosts/process_count_range.h"

enum { MOST = 40 };

Test(process_count_range, the_examples_of_the_standard)
{
    static const char powers[] = "1,2,4,8,16,32,64,128,256,512,1024,2048,4096";

    cr_expect_eq(chempi_count_range_largest("0:7", 5), 5);
    cr_expect_eq(chempi_count_range_largest("0:7", 9), 7);
    cr_expect_eq(chempi_count_range_largest(powers, 1000), 512);
    cr_expect_eq(chempi_count_range_largest(powers, 1024), 1024);
    cr_expect_eq(chempi_count_range_largest("2:10000:2", 4999), 4998);
    cr_expect_eq(chempi_count_range_largest("2:10:2,7", 7), 7);
    cr_expect_eq(chempi_count_range_largest("2:10:2,7", 9), 8);
    cr_expect_eq(chempi_count_range_largest("2:10:2,7", 1), 0);
    cr_expect_eq(chempi_count_range_smallest("2:10:2,7"), 2);
    cr_expect_eq(chempi_count_range_smallest("0:7"), 1);
}

Test(process_count_range, numbers_that_are_not_positive_are_ignored)
{
    cr_expect_null(chempi_count_range_check("-5:0,-3"));
    cr_expect_eq(chempi_count_range_largest("-5:0,-3", 10), 0);
    cr_expect_eq(chempi_count_range_smallest("-5:0,-3"), 0);
    cr_expect_eq(chempi_count_range_largest("-5:7:4", 10), 7);
    cr_expect_eq(chempi_count_range_smallest("-5:7:4"), 3);
    cr_expect_eq(chempi_count_range_largest("7:-5:-4", 6), 3);
    cr_expect_eq(chempi_count_range_smallest("7:-5:-4"), 3);
}

Test(process_count_range, the_largest_numbers_do_not_overflow)
{
    cr_expect_null(
        chempi_count_range_check("-2147483647:2147483647:2147483647"));
    cr_expect_eq(chempi_count_range_largest("-2147483647:2147483647:2147483647",
                                            4000000000u),
                 2147483647u);
    cr_expect_eq(
        chempi_count_range_smallest("2147483647:-2147483647:-2147483647"),
        2147483647u);
}

Test(process_count_range, mistakes_are_refused)
{
    static const char *const bad[] = {"",
                                      ",",
                                      "1,",
                                      ",1",
                                      "a",
                                      "1:",
                                      ":2",
                                      "1:2:",
                                      "1::2",
                                      "1:2:3:4",
                                      "1 2",
                                      " 1",
                                      "+1",
                                      "1:5:0",
                                      "1:5:-1",
                                      "5:1",
                                      "5:1:1",
                                      "3:3:0",
                                      "1;2",
                                      "2147483648",
                                      "1,,2",
                                      "0x10",
                                      "99999999999999999999",
                                      "--1",
                                      "-"};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        cr_expect_not_null(chempi_count_range_check(bad[i]), "'%s'", bad[i]);
}

/* The members of a triplet, one after the other, by the definition. */
static void mark(bool *is_in, int a, int b, int c)
{
    for (int k = 0;; k++) {
        const int v = a + k * c;

        if (c > 0 ? v > b : v < b)
            break;
        if (v >= 1 && v <= MOST)
            is_in[v] = true;
    }
}

static void compare(const char *list, const bool *is_in)
{
    unsigned least = 0;
    unsigned best = 0;

    cr_assert_null(chempi_count_range_check(list), "%s", list);
    for (unsigned max = 1; max <= MOST; max++) {
        best = is_in[max] ? max : best;
        least = least == 0 ? best : least;
        cr_assert_eq(chempi_count_range_largest(list, max), best, "%s to %u",
                     list, max);
    }
    cr_assert_eq(chempi_count_range_smallest(list), least, "%s", list);
}

Test(process_count_range, agrees_with_sets_for_all_small_triplets)
{
    char list[64];

    for (int a = -7; a <= 12; a++)
        for (int b = -7; b <= 12; b++)
            for (int c = -5; c <= 5; c++) {
                bool is_in[MOST + 1] = {false};

                if (c == 0 || (b > a && c < 0) || (b < a && c > 0))
                    continue;
                mark(is_in, a, b, c);
                (void)snprintf(list, sizeof(list), "%d:%d:%d", a, b, c);
                compare(list, is_in);
                mark(is_in, 20, 31, 5);
                (void)snprintf(list, sizeof(list), "20:31:5,%d:%d:%d", a, b, c);
                compare(list, is_in);
            }
}
