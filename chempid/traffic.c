/* SPDX-License-Identifier: BSD-3-Clause */
/* Traffic counters; see traffic.h. */
#define _GNU_SOURCE /* strtok_r */
#include "chempid/traffic.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "common/control/client.h"

#define FIELDS 8
#define LINE_MAX_LEN 512

struct line {
    uint32_t from;
    uint32_t to;
    char names[3][CHEMPI_NODE_NAME_MAX]; /* network, device, protocol */
    uint64_t messages;
    uint64_t bytes;
};

struct lines {
    struct line *list;
    size_t count;
    size_t cap;
};

static bool get_number(const char *text, uint64_t max, uint64_t *out)
{
    char *end;

    errno = 0;
    *out = strtoull(text, &end, 10);
    return isdigit((unsigned char)text[0]) && !*end && !errno && *out <= max;
}

/* Cuts the text into words. */
static bool parse_words(char *text, struct line *l)
{
    char *words[FIELDS + 1] = {NULL};
    char *next = NULL;
    uint64_t from;
    uint64_t to;
    int n = 0;

    for (char *w = strtok_r(text, " ", &next); w && n <= FIELDS;
         w = strtok_r(NULL, " ", &next))
        words[n++] = w;
    if (n != FIELDS || strcmp(words[0], "traffic") != 0 ||
        !get_number(words[1], UINT32_MAX, &from) ||
        !get_number(words[2], UINT32_MAX, &to) ||
        !get_number(words[6], UINT64_MAX, &l->messages) ||
        !get_number(words[7], UINT64_MAX, &l->bytes))
        return false;
    l->from = (uint32_t)from;
    l->to = (uint32_t)to;
    for (int i = 0; i < 3; i++) {
        if (strlen(words[3 + i]) >= sizeof(l->names[i]))
            return false;
        memcpy(l->names[i], words[3 + i], strlen(words[3 + i]) + 1);
    }
    return true;
}

static void parse_line(struct lines *all, const char *text, size_t len)
{
    char copy[LINE_MAX_LEN];
    struct line l = {0};
    struct line *list;

    if (len >= sizeof(copy))
        return;
    memcpy(copy, text, len);
    copy[len] = '\0';
    if (!parse_words(copy, &l))
        return;
    if (all->count == all->cap) {
        const size_t cap = all->cap ? 2 * all->cap : 64;

        list = chempi_sys->realloc(all->list, cap * sizeof(*list));
        if (!list)
            return;
        all->list = list;
        all->cap = cap;
    }
    all->list[all->count++] = l;
}

static struct lines parse(const char *text, size_t len)
{
    struct lines all = {0};

    while (len) {
        const char *nl = memchr(text, '\n', len);
        const size_t n = nl ? (size_t)(nl - text) : len;

        parse_line(&all, text, n);
        text += n;
        len -= n;
        if (nl) {
            text++;
            len--;
        }
    }
    return all;
}

static int compare(const void *a, const void *b)
{
    const struct line *x = a;
    const struct line *y = b;

    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    if (x->to != y->to)
        return x->to < y->to ? -1 : 1;
    for (int i = 0; i < 3; i++) {
        const int c = strcmp(x->names[i], y->names[i]);

        if (c)
            return c;
    }
    return 0;
}

static struct lines sum(const char *text, size_t len)
{
    struct lines all = parse(text, len);
    size_t kept = 0;

    if (all.count == 0)
        return all;
    qsort(all.list, all.count, sizeof(*all.list), compare);
    for (size_t i = 1; i < all.count; i++) {
        if (compare(&all.list[kept], &all.list[i]) == 0) {
            all.list[kept].messages += all.list[i].messages;
            all.list[kept].bytes += all.list[i].bytes;
        } else {
            all.list[++kept] = all.list[i];
        }
    }
    all.count = kept + 1;
    return all;
}

void chempi_traffic_merge(const void *text, size_t len,
                          struct chempi_writer *out)
{
    struct lines all = sum(text, len);

    for (size_t i = 0; i < all.count; i++) {
        const struct line *l = &all.list[i];
        char copy[LINE_MAX_LEN];
        int n = snprintf(copy, sizeof(copy),
                         "traffic %" PRIu32 " %" PRIu32 " %s %s %s %" PRIu64
                         " %" PRIu64 "\n",
                         l->from, l->to, l->names[0], l->names[1], l->names[2],
                         l->messages, l->bytes);

        if (n > 0 && (size_t)n < sizeof(copy))
            chempi_wire_put_raw(out, copy, (size_t)n);
    }
    free(all.list);
}

static void widen(int *width, const char *word)
{
    const int len = (int)strlen(word);

    *width = len > *width ? len : *width;
}

void chempi_traffic_print(FILE *file, const void *text, size_t len,
                          char *const *node_names, uint32_t node_count)
{
    static const char *const heads[] = {"from", "to", "network", "device",
                                        "protocol"};
    struct lines all = sum(text, len);
    int width[CHEMPI_ARRAY_LEN(heads)] = {0};

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(heads); i++)
        widen(&width[i], heads[i]);
    for (size_t i = 0; i < all.count; i++) {
        const struct line *l = &all.list[i];

        if (l->from >= node_count || l->to >= node_count)
            continue;
        widen(&width[0], node_names[l->from]);
        widen(&width[1], node_names[l->to]);
        for (int k = 0; k < 3; k++)
            widen(&width[2 + k], l->names[k]);
    }
    /* Nothing can be done about a failing standard error. */
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(heads); i++)
        (void)fprintf(file, "%-*s  ", width[i], heads[i]);
    (void)fprintf(file, "%12s  %16s\n", "messages", "bytes");
    for (size_t i = 0; i < all.count; i++) {
        const struct line *l = &all.list[i];

        if (l->from >= node_count || l->to >= node_count)
            continue;
        (void)fprintf(
            file,
            "%-*s  %-*s  %-*s  %-*s  %-*s  %12" PRIu64 "  %16" PRIu64 "\n",
            width[0], node_names[l->from], width[1], node_names[l->to],
            width[2], l->names[0], width[3], l->names[1], width[4], l->names[2],
            l->messages, l->bytes);
    }
    free(all.list);
}
