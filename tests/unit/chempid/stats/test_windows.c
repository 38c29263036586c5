/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* open_memstream */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "chempid/stats/windows.h"

static const char told[] = "window table node 3 24\n"
                           "traffic 0 1 - shm eager 1 2\n"
                           "lock table 1 0 5\n"
                           "window table message 1 8\n"
                           "window other node 9 9\n"
                           "window table node 4 32\n"
                           "window table node 4\n"
                           "window table node 4 x\n"
                           "lock table 2 1 7\n"
                           "lock table 2 1 -7\n";

Test(windows, sums_lines_of_one_name_and_reach_and_drops_others)
{
    struct chempi_writer w = {0};

    chempi_lines_merge(&chempi_windows_kind, told, sizeof(told) - 1, &w);
    chempi_lines_merge(&chempi_windows_locks, told, sizeof(told) - 1, &w);
    chempi_wire_put_u8(&w, 0);
    cr_assert_str_eq((const char *)w.data, "window other node 9 9\n"
                                           "window table message 1 8\n"
                                           "window table node 7 56\n"
                                           "lock table 3 1 12\n");
    chempi_wire_clear(&w);
}

static char *shown(const char *text)
{
    char *printed;
    size_t len;
    FILE *file = open_memstream(&printed, &len);

    chempi_windows_print(file, text, strlen(text));
    (void)fclose(file);
    return printed;
}

Test(windows, prints_tables_of_sums)
{
    char *printed = shown("window table node 3 24\nlock table 1 0 5\n"
                          "window table node 1 8\n");

    cr_assert_str_eq(
        printed,
        "windows           reach           operations             bytes\n"
        "table             node                     4                32\n"
        "windows                  locks    waited for        served\n"
        "table                        1             0             5\n");
    free(printed);
}

Test(windows, keeps_columns_apart_from_long_names)
{
    char *printed = shown("window a_table_of_many_words node 3 24\n");

    cr_assert_str_eq(printed,
                     "windows                reach           operations"
                     "             bytes\n"
                     "a_table_of_many_words  node                     3"
                     "                24\n");
    free(printed);
}

Test(windows, tells_sums_as_json)
{
    static const char text[] = "window table node 3 24\nlock table 1 0 5\n";
    char *printed;
    size_t len;
    FILE *file = open_memstream(&printed, &len);
    struct chempi_json j = {.file = file};

    chempi_json_open(&j, NULL);
    chempi_windows_json(&j, text, sizeof(text) - 1);
    chempi_json_close(&j);
    (void)fclose(file);
    cr_assert_str_eq(printed,
                     "{\"windows\": [{\"window\": \"table\", \"reach\": "
                     "\"node\", \"operations\": 3, \"bytes\": 24}], "
                     "\"locks\": [{\"window\": \"table\", \"locks\": 1, "
                     "\"waited_for\": 0, \"served\": 5}]}");
    free(printed);
}

Test(windows, prints_nothing_where_no_window_was_used)
{
    char *printed = shown("traffic 0 1 - shm eager 1 2\n");

    cr_assert_str_eq(printed, "");
    free(printed);
}
