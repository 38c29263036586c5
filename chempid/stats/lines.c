/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines of statistics; see lines.h. */
#define _GNU_SOURCE /* strtok_r */
#include "chempid/stats/lines.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/array.h"

bool chempi_lines_word(const char *word, char *out, size_t size)
{
    if (strlen(word) >= size)
        return false;
    memcpy(out, word, strlen(word) + 1);
    return true;
}

/* Cuts the text into words. */
static bool parse(const struct chempi_lines_kind *kind, char *text, void *line)
{
    char *words[CHEMPI_LINES_WORDS_MAX + 1] = {NULL};
    char *next = NULL;
    int n = 0;

    for (char *w = strtok_r(text, " ", &next); w && n <= kind->words;
         w = strtok_r(NULL, " ", &next))
        words[n++] = w;
    if (n != kind->words || strcmp(words[0], kind->word) != 0)
        return false;
    memset(line, 0, kind->size);
    return kind->parse(words, line);
}

static void append(const struct chempi_lines_kind *kind,
                   struct chempi_lines *all, size_t *cap, const char *text,
                   size_t len)
{
    char copy[CHEMPI_LINES_LEN_MAX];

    if (len >= sizeof(copy))
        return;
    memcpy(copy, text, len);
    copy[len] = '\0';
    if (all->count == *cap && !chempi_array_grow(&all->list, kind->size, cap,
                                                 sizeof(*cap), all->count + 1))
        return;
    if (parse(kind, copy, (char *)all->list + all->count * kind->size))
        all->count++;
}

struct chempi_lines chempi_lines_sum(const struct chempi_lines_kind *kind,
                                     const char *text, size_t len)
{
    struct chempi_lines all = {0};
    size_t cap = 0;
    size_t kept = 0;
    char *list;

    while (len) {
        const char *nl = memchr(text, '\n', len);
        const size_t n = nl ? (size_t)(nl - text) : len;

        append(kind, &all, &cap, text, n);
        text += n + (nl != NULL);
        len -= n + (nl != NULL);
    }
    if (all.count == 0)
        return all;
    list = all.list;
    qsort(list, all.count, kind->size, kind->compare);
    for (size_t i = 1; i < all.count; i++) {
        char *last = list + kept * kind->size;
        const char *line = list + i * kind->size;

        if (kind->compare(last, line) == 0) {
            kind->add(last, line);
        } else {
            kept++;
            memmove(list + kept * kind->size, line, kind->size);
        }
    }
    all.count = kept + 1;
    return all;
}
