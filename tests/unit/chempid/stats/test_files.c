/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* open_memstream */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "chempid/stats/files.h"

static const char told[] = "file rounds 3\n"
                           "traffic 0 1 - shm eager 1 2\n"
                           "file bytes_asked 10\n"
                           "file bytes_asked 18446744073709551606\n"
                           "file rounds 4\n"
                           "file rounds\n"
                           "file rounds x\n"
                           "file a_name_that_is_longer_than_any_counters 1\n";

Test(files, sums_lines_of_one_name_and_drops_what_is_no_such_line)
{
    struct chempi_writer w = {0};

    chempi_lines_merge(&chempi_files_kind, told, sizeof(told) - 1, &w);
    chempi_wire_put_u8(&w, 0);
    cr_assert_str_eq((const char *)w.data,
                     "file bytes_asked 0\nfile rounds 7\n");
    chempi_wire_clear(&w);
}

static char *shown(const char *text)
{
    char *printed;
    size_t len;
    FILE *file = open_memstream(&printed, &len);

    chempi_files_print(file, text, strlen(text));
    (void)fclose(file);
    return printed;
}

Test(files, prints_a_table_of_sums)
{
    char *printed = shown("file rounds 3\nfile rounds 4\n");

    cr_assert_str_eq(printed, "files                       amount\n"
                              "rounds                           7\n");
    free(printed);
}

Test(files, prints_nothing_where_no_file_was_used)
{
    char *printed = shown("traffic 0 1 - shm eager 1 2\n");

    cr_assert_str_eq(printed, "");
    free(printed);
}
