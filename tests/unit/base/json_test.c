/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* open_memstream */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"

static char *text;
static size_t len;
static struct chempi_json j;

static void begin(void)
{
    j = (struct chempi_json){.file = open_memstream(&text, &len)};
    cr_assert(j.file);
}

static void expect(const char *wanted)
{
    (void)fclose(j.file);
    cr_assert_str_eq(text, wanted);
    free(text);
}

Test(json, values_have_their_names_and_commas)
{
    begin();
    chempi_json_open(&j, NULL);
    chempi_json_text(&j, "a", "b");
    chempi_json_open_list(&j, "c");
    chempi_json_number(&j, NULL, UINT64_MAX);
    chempi_json_bool(&j, NULL, true);
    chempi_json_text(&j, NULL, NULL);
    chempi_json_close_list(&j);
    chempi_json_decimal(&j, "d", 1205, 2);
    chempi_json_close(&j);
    chempi_json_end(&j);
    expect("{\"a\": \"b\", \"c\": [18446744073709551615, true, null], "
           "\"d\": 12.05}\n");
}

Test(json, nothing_breaks_out_of_a_string)
{
    begin();
    chempi_json_text(&j, NULL,
                     "\"\\\n\x7f"
                     "gr\xc3\xbc\xc3\x9f \xff\xc3");
    expect("\"\\\"\\\\\\u000a\\u007fgr\xc3\xbc\xc3\x9f \\ufffd\\ufffd\"");
}

Test(json, reals_have_nine_digits)
{
    begin();
    chempi_json_open_list(&j, NULL);
    chempi_json_real(&j, NULL, 0.0);
    chempi_json_real(&j, NULL, -1.5);
    chempi_json_real(&j, NULL, 1e-30);
    chempi_json_real(&j, NULL, 123456789012.0);
    chempi_json_real(&j, NULL, 1.0 / 3.0);
    chempi_json_close_list(&j);
    expect("[0, -1.5, 1e-30, 1.23456789e+11, 0.333333333]");
}

Test(json, what_is_no_number_is_null)
{
    begin();
    chempi_json_open_list(&j, NULL);
    chempi_json_real(&j, NULL, (double)INFINITY);
    chempi_json_real(&j, NULL, -(double)INFINITY);
    chempi_json_real(&j, NULL, (double)NAN);
    chempi_json_close_list(&j);
    expect("[null, null, null]");
}

static bool is_value(const char *value)
{
    return chempi_json_is_value(value, strlen(value));
}

Test(json, whole_values_are_told)
{
    static const char *const good[] = {
        "0",
        "-1.5e+3",
        "\"\"",
        " [ ] ",
        "{}",
        "[1, [2, {\"a\": null}]]\n",
        "{\"a\":true,\"b\":false}",
        "\"\\u00e9\\\"\\\\ gr\xc3\xbc\xc3\x9f\"",
        "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]",
    };

    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
        cr_expect(is_value(good[i]), "%s", good[i]);
}

Test(json, others_are_not)
{
    static const char *const bad[] = {
        "",
        " ",
        "01",
        "1.",
        "-",
        "1e",
        "+1",
        ".5",
        "nul",
        "nullx",
        "[1,]",
        "[1 2]",
        "[",
        "]",
        "{\"a\"}",
        "{\"a\":}",
        "{a: 1}",
        "{\"a\": 1,}",
        "{\"a\": 1}}",
        "[1}",
        "\"",
        "\"\\\"",
        "\"\\x\"",
        "\"\\u12g4\"",
        "\"\n\"",
        "\"\xff\"",
        "\"\xc3\"",
        "1, 2",
        "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]",
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        cr_expect(!is_value(bad[i]), "%s", bad[i]);
    cr_expect(!chempi_json_is_value("1\0", 2));
    cr_expect(!chempi_json_is_value("\"\xc3\xbc\"", 2), "it is cut");
}

Test(json, values_of_others_are_embedded)
{
    begin();
    chempi_json_open(&j, NULL);
    chempi_json_embed(&j, "a", "[1]x", 3);
    chempi_json_number(&j, "b", 2);
    chempi_json_close(&j);
    expect("{\"a\": [1], \"b\": 2}");
}
