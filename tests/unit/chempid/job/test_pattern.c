/* SPDX-License-Identifier: BSD-3-Clause */
/* Names with signs, and lists of ranks. */
#include <criterion/criterion.h>

#include "chempid/job/pattern.h"

static const struct chempi_pattern what = {
    .rank = 12, .node = "a1", .number = 3, .job = "beef"};

static const char *expand(const char *text)
{
    static char out[16];

    return chempi_pattern_expand(text, &what, out, sizeof(out)) ? out : "no";
}

Test(pattern, signs_stand_for_what_they_say)
{
    cr_assert_str_eq(expand("out.%r"), "out.12");
    cr_assert_str_eq(expand("%h/%j.%p%g"), "a1/beef.30");
    cr_assert_str_eq(expand("100%%"), "100%");
    cr_assert_str_eq(expand("plain"), "plain");
}

Test(pattern, what_means_nothing_is_refused)
{
    cr_assert_str_eq(expand("%"), "no");
    cr_assert_str_eq(expand("%x"), "no");
    cr_assert_str_eq(expand(""), "no");
}

Test(pattern, the_longest_name_has_room_for_its_zero)
{
    cr_assert_str_eq(expand("123456789012%h1"), "123456789012a11");
    cr_assert_str_eq(expand("123456789012%h12"), "no");
}

Test(pattern, a_name_for_each_rank)
{
    cr_assert(chempi_pattern_has_rank("a%%%r"));
    cr_assert_not(chempi_pattern_has_rank("a%%r"));
    cr_assert_not(chempi_pattern_has_rank("%"));
}

Test(pattern, lists_of_ranks)
{
    cr_assert(chempi_pattern_is_ranks("0"));
    cr_assert(chempi_pattern_is_ranks("0,4-7,9"));
    cr_assert(chempi_pattern_is_ranks("all"));
    cr_assert_not(chempi_pattern_is_ranks(""));
    cr_assert_not(chempi_pattern_is_ranks("1,"));
    cr_assert_not(chempi_pattern_is_ranks("7-4"));
    cr_assert_not(chempi_pattern_is_ranks("4-"));
    cr_assert_not(chempi_pattern_is_ranks("-4"));
    cr_assert_not(chempi_pattern_is_ranks("99999999999999999999"));
    cr_assert_not(chempi_pattern_is_ranks("1 2"));
}

Test(pattern, ranks_of_a_list)
{
    cr_assert(chempi_pattern_has("0,4-7,9", 0));
    cr_assert(chempi_pattern_has("0,4-7,9", 7));
    cr_assert(chempi_pattern_has("0,4-7,9", 9));
    cr_assert_not(chempi_pattern_has("0,4-7,9", 8));
    cr_assert(chempi_pattern_has("all", 8));
}
