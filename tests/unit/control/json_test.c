/* SPDX-License-Identifier: BSD-3-Clause */
/* The printer of JSON. */
#define _POSIX_C_SOURCE 200809L /* open_memstream */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "common/base/json.h"

static char *text;
static size_t len;
static struct chempi_json json;

static void set_up(void)
{
    json = (struct chempi_json){.file = open_memstream(&text, &len)};
    cr_assert(json.file);
}

static void expect(const char *words)
{
    cr_assert_eq(fclose(json.file), 0);
    cr_assert_str_eq(text, words);
    free(text);
}

TestSuite(json, .init = set_up);

Test(json, values_stand_in_objects_and_lists)
{
    chempi_json_open(&json, NULL);
    chempi_json_number(&json, "n", UINT64_MAX);
    chempi_json_open_list(&json, "list");
    chempi_json_bool(&json, NULL, true);
    chempi_json_open(&json, NULL);
    chempi_json_close(&json);
    chempi_json_open_list(&json, NULL);
    chempi_json_close_list(&json);
    chempi_json_text(&json, NULL, NULL);
    chempi_json_close_list(&json);
    chempi_json_decimal(&json, "load", 105, 2);
    chempi_json_close(&json);
    chempi_json_end(&json);
    expect("{\"n\": 18446744073709551615, \"list\": [true, {}, [], null], "
           "\"load\": 1.05}\n");
}

Test(json, nothing_breaks_out_of_a_string)
{
    chempi_json_text(&json, NULL, "a\"b\\c\nd\x1b\x7f");
    expect("\"a\\\"b\\\\c\\u000ad\\u001b\\u007f\"");
}

Test(json, what_is_utf_8_stays)
{
    chempi_json_text(&json, NULL, "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80");
    expect("\"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80\"");
}

/* Too short, too long a form, a surrogate, beyond the last, a byte alone. */
Test(json, what_is_none_is_replaced)
{
    chempi_json_open_list(&json, NULL);
    chempi_json_text(&json, NULL, "\xc3");
    chempi_json_text(&json, NULL, "\xc0\xaf");
    chempi_json_text(&json, NULL, "\xed\xa0\x80");
    chempi_json_text(&json, NULL, "\xf4\x90\x80\x80");
    chempi_json_text(&json, NULL, "\xff");
    chempi_json_close_list(&json);
    expect("[\"\\ufffd\", \"\\ufffd\\ufffd\", \"\\ufffd\\ufffd\\ufffd\", "
           "\"\\ufffd\\ufffd\\ufffd\\ufffd\", \"\\ufffd\"]");
}
