/* SPDX-License-Identifier: BSD-3-Clause */
/* What ranks have done to files; see files.h. */
#include "chempid/stats/files.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "chempid/stats/lines.h"
#include "common/base/number.h"

struct line {
    char name[32];
    uint64_t amount;
};

static bool parse(char *const *words, void *line)
{
    struct line *l = line;

    return chempi_lines_word(words[1], l->name, sizeof(l->name)) &&
           chempi_number_parse(words[2], 0, UINT64_MAX, &l->amount);
}

static int compare(const void *a, const void *b)
{
    const struct line *x = a;
    const struct line *y = b;

    return strcmp(x->name, y->name);
}

static void add(void *line, const void *other)
{
    struct line *l = line;
    const struct line *o = other;

    l->amount += o->amount;
}

static const struct chempi_lines_kind kind = {.word = "file",
                                              .words = 3,
                                              .size = sizeof(struct line),
                                              .parse = parse,
                                              .compare = compare,
                                              .add = add};

void chempi_files_merge(const void *text, size_t len, struct chempi_writer *out)
{
    struct chempi_lines all = chempi_lines_sum(&kind, text, len);
    const struct line *list = all.list;

    for (size_t i = 0; i < all.count; i++) {
        char copy[CHEMPI_LINES_LEN_MAX];
        int n = snprintf(copy, sizeof(copy), "file %s %" PRIu64 "\n",
                         list[i].name, list[i].amount);

        chempi_wire_put_raw(out, copy, (size_t)n);
    }
    free(all.list);
}

/* Nothing can be done about a failing standard error. */
void chempi_files_print(FILE *file, const void *text, size_t len)
{
    struct chempi_lines all = chempi_lines_sum(&kind, text, len);
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
    struct chempi_lines all = chempi_lines_sum(&kind, text, len);
    const struct line *list = all.list;

    chempi_json_open(j, "files");
    for (size_t i = 0; i < all.count; i++)
        chempi_json_number(j, list[i].name, list[i].amount);
    chempi_json_close(j);
    free(all.list);
}
