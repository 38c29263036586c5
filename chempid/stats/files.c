/* SPDX-License-Identifier: BSD-3-Clause */
/* What ranks have done to files; see files.h. */
#include "chempid/stats/files.h"

#include <inttypes.h>
#include <stdlib.h>

struct line {
    char name[32];
    uint64_t amount;
};

static const struct chempi_lines_key key =
    CHEMPI_LINES_TEXT(1, struct line, name);

const struct chempi_lines_kind chempi_files_kind = {
    .word = "file",
    .size = sizeof(struct line),
    .keys = &key,
    .key_count = 1,
    .amount_count = 1,
    .amounts = offsetof(struct line, amount)};

void chempi_files_print(FILE *file, const void *text, size_t len)
{
    struct chempi_lines all = chempi_lines_sum(&chempi_files_kind, text, len);
    const struct line *list = all.list;

    if (all.count > 0)
        (void)fprintf(file, "%-16s  %16s\n", "files", "amount");
    for (size_t i = 0; i < all.count; i++)
        (void)fprintf(file, "%-16s  %16" PRIu64 "\n", list[i].name,
                      list[i].amount);
    free(all.list);
}

void chempi_files_json(struct chempi_json *j, const void *text, size_t len)
{
    struct chempi_lines all = chempi_lines_sum(&chempi_files_kind, text, len);
    const struct line *list = all.list;

    chempi_json_open(j, "files");
    for (size_t i = 0; i < all.count; i++)
        chempi_json_number(j, list[i].name, list[i].amount);
    chempi_json_close(j);
    free(all.list);
}
