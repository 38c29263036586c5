/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <string.h>

#include "common/words/plain.h"

static void expect(const char *text, const char *kept, const char *wanted)
{
    char copy[64];

    strcpy(copy, text);
    chempi_plain(copy, strlen(copy), kept);
    cr_assert_str_eq(copy, wanted);
}

Test(plain, control_characters_are_replaced)
{
    expect("a\x1b]0;b\x07\x7f\t\n", "", "a?]0;b????");
    expect("a\r\nb\n", "\n", "a?\nb\n");
    expect("", "", "");
}

Test(plain, those_of_latin_1_too)
{
    expect("a\xc2\x9b"
           "31m",
           "", "a??31m");
    expect("a\x9b"
           "b",
           "", "a?b");
}

Test(plain, other_characters_stay)
{
    expect("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xc2\xa3", "",
           "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xc2\xa3");
}

Test(plain, zeros_do_not_end_it)
{
    char text[] = {'a', '\0', '\x1b', 'b'};

    chempi_plain(text, sizeof(text), "\n");
    cr_assert_arr_eq(text, "a??b", 4);
}

Test(plain, halves_in_two_calls_give_no_order)
{
    char text[] = "a\xc2\x9b"
                  "b";

    chempi_plain(text, 2, "");
    chempi_plain(text + 2, 2, "");
    cr_assert_eq(text[2], '?');
}
