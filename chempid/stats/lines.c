/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines of statistics; see lines.h. */
#define _GNU_SOURCE /* strtok_r, qsort_r */
#include "chempid/stats/lines.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/number.h"
#include "common/containers/array.h"

static uint64_t *amounts_of(const struct chempi_lines_kind *kind, void *line)
{
    return (void *)((char *)line + kind->amounts);
}

static bool parse_key(const struct chempi_lines_key *key, const char *word,
                      void *at)
{
    if (!key->size)
        return chempi_number_parse(word, 0, key->max, at);
    if (strlen(word) >= key->size)
        return false;
    memcpy(at, word, strlen(word) + 1);
    return true;
}

/* A line of the kind's number of words, the first of which is its own. */
static bool parse(const struct chempi_lines_kind *kind, char *text, char *line)
{
    const uint32_t count = 1 + kind->key_count + kind->amount_count;
    char *words[CHEMPI_LINES_WORDS_MAX + 1] = {NULL};
    char *next = NULL;
    uint32_t n = 0;

    for (char *w = strtok_r(text, " ", &next); w && n <= count;
         w = strtok_r(NULL, " ", &next))
        words[n++] = w;
    if (n != count || strcmp(words[0], kind->word) != 0)
        return false;
    memset(line, 0, kind->size);
    for (uint32_t i = 0; i < kind->key_count; i++)
        if (!parse_key(&kind->keys[i], words[kind->keys[i].word],
                       line + kind->keys[i].offset))
            return false;
    for (uint32_t i = 0; i < kind->amount_count; i++)
        if (!chempi_number_parse(words[1 + kind->key_count + i], 0, UINT64_MAX,
                                 &amounts_of(kind, line)[i]))
            return false;
    return true;
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

static int compare_numbers(const uint64_t *a, const uint64_t *b)
{
    return *a < *b ? -1 : *a > *b;
}

static int compare(const void *a, const void *b, void *arg)
{
    const struct chempi_lines_kind *kind = arg;
    int order = 0;

    for (uint32_t i = 0; i < kind->key_count && !order; i++) {
        const void *x = (const char *)a + kind->keys[i].offset;
        const void *y = (const char *)b + kind->keys[i].offset;

        order = kind->keys[i].size ? strcmp(x, y) : compare_numbers(x, y);
    }
    return order;
}

static void add(const struct chempi_lines_kind *kind, void *line, void *other)
{
    for (uint32_t i = 0; i < kind->amount_count; i++)
        amounts_of(kind, line)[i] += amounts_of(kind, other)[i];
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
    qsort_r(list, all.count, kind->size, compare, (void *)(uintptr_t)kind);
    for (size_t i = 1; i < all.count; i++) {
        char *last = list + kept * kind->size;
        char *line = list + i * kind->size;

        if (compare(last, line, (void *)(uintptr_t)kind) == 0) {
            add(kind, last, line);
        } else {
            kept++;
            memmove(list + kept * kind->size, line, kind->size);
        }
    }
    all.count = kept + 1;
    return all;
}

static void put_number(struct chempi_writer *out, uint64_t number)
{
    char text[32];
    const int len = snprintf(text, sizeof(text), " %" PRIu64, number);

    chempi_wire_put_raw(out, text, (size_t)len);
}

/* The key that is this word of the line. */
static void put_key(const struct chempi_lines_kind *kind, const char *line,
                    uint32_t word, struct chempi_writer *out)
{
    const struct chempi_lines_key *key = kind->keys;
    const void *at;

    while (key->word != word)
        key++;
    at = line + key->offset;
    if (!key->size) {
        put_number(out, *(const uint64_t *)at);
        return;
    }
    chempi_wire_put_u8(out, ' ');
    chempi_wire_put_raw(out, at, strlen(at));
}

void chempi_lines_merge(const struct chempi_lines_kind *kind, const char *text,
                        size_t len, struct chempi_writer *out)
{
    struct chempi_lines all = chempi_lines_sum(kind, text, len);

    for (size_t i = 0; i < all.count; i++) {
        char *line = (char *)all.list + i * kind->size;

        chempi_wire_put_raw(out, kind->word, strlen(kind->word));
        for (uint32_t word = 1; word <= kind->key_count; word++)
            put_key(kind, line, word, out);
        for (uint32_t k = 0; k < kind->amount_count; k++)
            put_number(out, amounts_of(kind, line)[k]);
        chempi_wire_put_u8(out, '\n');
    }
    free(all.list);
}
