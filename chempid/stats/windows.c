/* SPDX-License-Identifier: BSD-3-Clause */
/* What ranks have done by one-sided operations; see windows.h. */
#include "chempid/stats/windows.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "chempid/stats/lines.h"
#include "common/base/number.h"

enum { AMOUNTS = 3, NAME_WIDTH_MIN = 16 };

struct line {
    char name[32];
    char reach[16]; /* empty: locks */
    uint64_t amounts[AMOUNTS];
};

static bool parse_window(char *const *words, void *line)
{
    struct line *l = line;

    return chempi_lines_word(words[1], l->name, sizeof(l->name)) &&
           chempi_lines_word(words[2], l->reach, sizeof(l->reach)) &&
           chempi_number_parse(words[3], 0, UINT64_MAX, &l->amounts[0]) &&
           chempi_number_parse(words[4], 0, UINT64_MAX, &l->amounts[1]);
}

static bool parse_lock(char *const *words, void *line)
{
    struct line *l = line;
    bool is_ok = chempi_lines_word(words[1], l->name, sizeof(l->name));

    for (int i = 0; i < AMOUNTS && is_ok; i++)
        is_ok =
            chempi_number_parse(words[2 + i], 0, UINT64_MAX, &l->amounts[i]);
    return is_ok;
}

static int compare(const void *a, const void *b)
{
    const struct line *x = a;
    const struct line *y = b;
    int order = strcmp(x->name, y->name);

    return order ? order : strcmp(x->reach, y->reach);
}

static void add(void *line, const void *other)
{
    struct line *l = line;
    const struct line *o = other;

    for (int i = 0; i < AMOUNTS; i++)
        l->amounts[i] += o->amounts[i];
}

static const struct chempi_lines_kind window_kind = {.word = "window",
                                                     .words = 5,
                                                     .size =
                                                         sizeof(struct line),
                                                     .parse = parse_window,
                                                     .compare = compare,
                                                     .add = add};

static const struct chempi_lines_kind lock_kind = {.word = "lock",
                                                   .words = 5,
                                                   .size = sizeof(struct line),
                                                   .parse = parse_lock,
                                                   .compare = compare,
                                                   .add = add};

static void merge(const struct chempi_lines_kind *kind, const void *text,
                  size_t len, struct chempi_writer *out)
{
    struct chempi_lines all = chempi_lines_sum(kind, text, len);
    const struct line *list = all.list;

    for (size_t i = 0; i < all.count; i++) {
        const struct line *l = &list[i];
        char copy[CHEMPI_LINES_LEN_MAX];
        int n = l->reach[0]
                    ? snprintf(copy, sizeof(copy),
                               "window %s %s %" PRIu64 " %" PRIu64 "\n",
                               l->name, l->reach, l->amounts[0], l->amounts[1])
                    : snprintf(copy, sizeof(copy),
                               "lock %s %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
                               l->name, l->amounts[0], l->amounts[1],
                               l->amounts[2]);

        chempi_wire_put_raw(out, copy, (size_t)n);
    }
    free(all.list);
}

void chempi_windows_merge(const void *text, size_t len,
                          struct chempi_writer *out)
{
    merge(&window_kind, text, len, out);
    merge(&lock_kind, text, len, out);
}

/* Columns of names are as wide as the longest. */
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
    struct chempi_lines all = chempi_lines_sum(&window_kind, text, len);
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
    all = chempi_lines_sum(&lock_kind, text, len);
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
    struct chempi_lines all = chempi_lines_sum(&window_kind, text, len);
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
    all = chempi_lines_sum(&lock_kind, text, len);
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
