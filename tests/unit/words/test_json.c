/* SPDX-License-Identifier: BSD-3-Clause */
/* JSON, printed and looked at. */
#define _GNU_SOURCE /* open_memstream */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/words/json.h"

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

Test(json, values_stand_in_objects_and_lists)
{
    begin();
    chempi_json_open(&j, NULL);
    chempi_json_number(&j, "n", UINT64_MAX);
    chempi_json_open_list(&j, "list");
    chempi_json_bool(&j, NULL, true);
    chempi_json_open(&j, NULL);
    chempi_json_close(&j);
    chempi_json_open_list(&j, NULL);
    chempi_json_close_list(&j);
    chempi_json_text(&j, NULL, NULL);
    chempi_json_close_list(&j);
    chempi_json_decimal(&j, "load", 105, 2);
    chempi_json_close(&j);
    chempi_json_end(&j);
    expect("{\"n\": 18446744073709551615, \"list\": [true, {}, [], null], "
           "\"load\": 1.05}\n");
}

Test(json, nothing_breaks_out_of_a_string)
{
    begin();
    chempi_json_text(&j, NULL, "a\"b\\c\nd\x1b\x7f");
    expect("\"a\\\"b\\\\c\\u000ad\\u001b\\u007f\"");
}

Test(json, what_is_utf_8_stays)
{
    begin();
    chempi_json_text(&j, NULL, "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80");
    expect("\"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80\"");
}

/* Too short, too long a form, a surrogate, beyond the last, a byte alone. */
Test(json, what_is_none_is_replaced)
{
    begin();
    chempi_json_open_list(&j, NULL);
    chempi_json_text(&j, NULL, "\xc3");
    chempi_json_text(&j, NULL, "\xc0\xaf");
    chempi_json_text(&j, NULL, "\xed\xa0\x80");
    chempi_json_text(&j, NULL, "\xf4\x90\x80\x80");
    chempi_json_text(&j, NULL, "\xff");
    chempi_json_close_list(&j);
    expect("[\"\\ufffd\", \"\\ufffd\\ufffd\", \"\\ufffd\\ufffd\\ufffd\", "
           "\"\\ufffd\\ufffd\\ufffd\\ufffd\", \"\\ufffd\"]");
}

Test(json, sizes_may_be_without_end)
{
    begin();
    chempi_json_open(&j, NULL);
    chempi_json_limit(&j, "a", 7);
    chempi_json_limit(&j, "b", UINT64_MAX);
    chempi_json_close(&j);
    expect("{\"a\": 7, \"b\": null}");
}

Test(json, texts_stand_in_a_list)
{
    static const char *const names[] = {"x", "y"};

    begin();
    chempi_json_open(&j, NULL);
    chempi_json_texts(&j, "a", names, 2);
    chempi_json_texts(&j, "b", names, 0);
    chempi_json_close(&j);
    expect("{\"a\": [\"x\", \"y\"], \"b\": []}");
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
