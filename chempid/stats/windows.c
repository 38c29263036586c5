/* SPDX-License-Identifier: BSD-3-Clause */
/* What ranks have done by one-sided operations; see windows.h. */
#include "chempid/stats/windows.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { AMOUNTS = 3, NAME_WIDTH_MIN = 16 };

struct line {
    char name[32];
    char reach[16]; /* empty: locks */
    uint64_t amounts[AMOUNTS];
};

static const struct chempi_lines_key keys[] = {
    CHEMPI_LINES_TEXT(1, struct line, name),
    CHEMPI_LINES_TEXT(2, struct line, reach)}; /* of windows only */

const struct chempi_lines_kind chempi_windows_kind = {
    .word = "window",
    .size = sizeof(struct line),
    .keys = keys,
    .key_count = 2,
    .amount_count = 2,
    .amounts = offsetof(struct line, amounts)};

const struct chempi_lines_kind chempi_windows_locks = {
    .word = "lock",
    .size = sizeof(struct line),
    .keys = keys,
    .key_count = 1,
    .amount_count = AMOUNTS,
    .amounts = offsetof(struct line, amounts)};

static int name_width(const struct chempi_lines *all)
{
    const struct line *list = all->list;
    size_t width = NAME_WIDTH_MIN;

    for (size_t i = 0; i < all->count; i++)
        if (strlen(list[i].name) > width)
            width = strlen(list[i].name);
    return (int)width;
}

/* Nothing can be done about a failing standard error. */
void chempi_windows_print(FILE *file, const void *text, size_t len)
{
    struct chempi_lines all = chempi_lines_sum(&chempi_windows_kind, text, len);
    const struct line *list = all.list;
    int width = name_width(&all);

    if (all.count > 0)
        (void)fprintf(file, "%-*s  %-8s  %16s  %16s\n", width, "windows",
                      "reach", "operations", "bytes");
    for (size_t i = 0; i < all.count; i++)
        (void)fprintf(file, "%-*s  %-8s  %16" PRIu64 "  %16" PRIu64 "\n", width,
                      list[i].name, list[i].reach, list[i].amounts[0],
                      list[i].amounts[1]);
    free(all.list);
    all = chempi_lines_sum(&chempi_windows_locks, text, len);
    list = all.list;
    width = name_width(&all);
    if (all.count > 0)
        (void)fprintf(file, "%-*s  %12s  %12s  %12s\n", width, "windows",
                      "locks", "waited for", "served");
    for (size_t i = 0; i < all.count; i++)
        (void)fprintf(file,
                      "%-*s  %12" PRIu64 "  %12" PRIu64 "  %12" PRIu64 "\n",
                      width, list[i].name, list[i].amounts[0],
                      list[i].amounts[1], list[i].amounts[2]);
    free(all.list);
}

void chempi_windows_json(struct chempi_json *j, const void *text, size_t len)
{
    struct chempi_lines all = chempi_lines_sum(&chempi_windows_kind, text, len);
    const struct line *list = all.list;

    chempi_json_open_list(j, "windows");
    for (size_t i = 0; i < all.count; i++) {
        chempi_json_open(j, NULL);
        chempi_json_text(j, "window", list[i].name);
        chempi_json_text(j, "reach", list[i].reach);
        chempi_json_number(j, "operations", list[i].amounts[0]);
        chempi_json_number(j, "bytes", list[i].amounts[1]);
        chempi_json_close(j);
    }
    chempi_json_close_list(j);
    free(all.list);
    all = chempi_lines_sum(&chempi_windows_locks, text, len);
    list = all.list;
    chempi_json_open_list(j, "locks");
    for (size_t i = 0; i < all.count; i++) {
        chempi_json_open(j, NULL);
        chempi_json_text(j, "window", list[i].name);
        chempi_json_number(j, "locks", list[i].amounts[0]);
        chempi_json_number(j, "waited_for", list[i].amounts[1]);
        chempi_json_number(j, "served", list[i].amounts[2]);
        chempi_json_close(j);
    }
    chempi_json_close_list(j);
    free(all.list);
}
