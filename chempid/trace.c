/* SPDX-License-Identifier: BSD-3-Clause */
/* Which way messages went; see trace.h. */
#define _GNU_SOURCE /* strtok_r */
#include "chempid/trace.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "common/control/client.h"

#define FIELDS 11
#define VIA_MAX 192
#define LINE_MAX_LEN 768
#define TEXT_MAX_LEN 1536 /* of the gateways' names */

struct line {
    uint64_t from;
    uint64_t to;
    uint64_t size;
    char names[3][CHEMPI_NODE_NAME_MAX]; /* network, device, protocol */
    char via[VIA_MAX];
    uint64_t messages;
    uint64_t bytes;
    uint64_t waits;
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

static bool get_word(const char *text, char *out, size_t size)
{
    if (strlen(text) >= size)
        return false;
    memcpy(out, text, strlen(text) + 1);
    return true;
}

/* Cuts the text into words. */
static bool parse_words(char *text, struct line *l)
{
    char *words[FIELDS + 1] = {NULL};
    char *next = NULL;
    bool is_good = true;
    int n = 0;

    for (char *w = strtok_r(text, " ", &next); w && n <= FIELDS;
         w = strtok_r(NULL, " ", &next))
        words[n++] = w;
    if (n != FIELDS || strcmp(words[0], "route") != 0)
        return false;
    is_good &= get_number(words[1], UINT32_MAX, &l->from);
    is_good &= get_number(words[2], UINT32_MAX, &l->to);
    is_good &= get_number(words[3], UINT64_MAX, &l->size);
    for (int i = 0; i < 3; i++)
        is_good &= get_word(words[4 + i], l->names[i], sizeof(l->names[i]));
    is_good &= get_word(words[7], l->via, sizeof(l->via));
    is_good &= get_number(words[8], UINT64_MAX, &l->messages);
    is_good &= get_number(words[9], UINT64_MAX, &l->bytes);
    is_good &= get_number(words[10], UINT64_MAX, &l->waits);
    return is_good;
}

static void parse_line(struct lines *all, const char *text, size_t len)
{
    char copy[LINE_MAX_LEN];
    struct line l = {0};

    if (len >= sizeof(copy))
        return;
    memcpy(copy, text, len);
    copy[len] = '\0';
    if (!parse_words(copy, &l))
        return;
    if (all->count == all->cap) {
        const size_t cap = all->cap ? 2 * all->cap : 64;
        struct line *list = chempi_sys->realloc(all->list, cap * sizeof(*list));

        if (!list)
            return; /* statistics are worth no failure */
        all->list = list;
        all->cap = cap;
    }
    all->list[all->count++] = l;
}

static int compare_numbers(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int compare(const void *a, const void *b)
{
    const struct line *x = a;
    const struct line *y = b;
    int c = compare_numbers(x->from, y->from);

    c = c ? c : compare_numbers(x->to, y->to);
    c = c ? c : compare_numbers(x->size, y->size);
    for (int i = 0; i < 3; i++)
        c = c ? c : strcmp(x->names[i], y->names[i]);
    return c ? c : strcmp(x->via, y->via);
}

static struct lines sum(const char *text, size_t len)
{
    struct lines all = {0};
    size_t kept = 0;

    while (len) {
        const char *nl = memchr(text, '\n', len);
        const size_t n = nl ? (size_t)(nl - text) : len;

        parse_line(&all, text, n);
        text += n + (nl != NULL);
        len -= n + (nl != NULL);
    }
    if (all.count == 0)
        return all;
    qsort(all.list, all.count, sizeof(*all.list), compare);
    for (size_t i = 1; i < all.count; i++) {
        struct line *last = &all.list[kept];

        if (compare(last, &all.list[i]) != 0) {
            all.list[++kept] = all.list[i];
            continue;
        }
        last->messages += all.list[i].messages;
        last->bytes += all.list[i].bytes;
        last->waits += all.list[i].waits;
    }
    all.count = kept + 1;
    return all;
}

void chempi_trace_merge(const void *text, size_t len, struct chempi_writer *out)
{
    struct lines all = sum(text, len);

    for (size_t i = 0; i < all.count; i++) {
        const struct line *l = &all.list[i];
        char copy[LINE_MAX_LEN];
        int n = snprintf(copy, sizeof(copy),
                         "route %" PRIu64 " %" PRIu64 " %" PRIu64
                         " %s %s %s %s %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
                         l->from, l->to, l->size, l->names[0], l->names[1],
                         l->names[2], l->via, l->messages, l->bytes, l->waits);

        if (n > 0 && (size_t)n < sizeof(copy))
            chempi_wire_put_raw(out, copy, (size_t)n);
    }
    free(all.list);
}

/* ---- for people ---------------------------------------------------------- */

static const char *size_text(uint64_t size, char text[32])
{
    if (size == UINT64_MAX)
        return "any";
    (void)snprintf(text, 32, "%" PRIu64, size);
    return text;
}

/* "c, d" for "2,3" */
static const char *via_text(const struct line *l, char *const *names,
                            uint32_t count, char text[TEXT_MAX_LEN])
{
    const char *at = l->via;
    size_t len = 0;

    if (strcmp(at, "-") == 0)
        return "direct";
    text[0] = '\0';
    while (isdigit((unsigned char)*at)) {
        char *end;
        unsigned long node = strtoul(at, &end, 10);

        if (node >= count || len + CHEMPI_NODE_NAME_MAX + 4 > TEXT_MAX_LEN)
            break;
        len += (size_t)snprintf(text + len, TEXT_MAX_LEN - len, "%s%s",
                                len ? ", " : "over ", names[node]);
        at = *end == ',' ? end + 1 : end;
    }
    return text;
}

void chempi_trace_print(FILE *file, const void *text, size_t len,
                        char *const *node_names, uint32_t node_count)
{
    struct lines all = sum(text, len);

    /* Nothing can be done about a failing standard error. */
    if (all.count)
        (void)fprintf(file, "%-12s %-12s %12s %-28s %-24s %10s %16s %8s\n",
                      "from", "to", "up to bytes", "first by", "way",
                      "messages", "bytes", "waits");
    for (size_t i = 0; i < all.count; i++) {
        const struct line *l = &all.list[i];
        char via[TEXT_MAX_LEN];
        char size[32];
        char by[3 * CHEMPI_NODE_NAME_MAX];

        if (l->from >= node_count || l->to >= node_count)
            continue;
        (void)snprintf(by, sizeof(by), "%s %s %s", l->names[0], l->names[1],
                       l->names[2]);
        (void)fprintf(file,
                      "%-12s %-12s %12s %-28s %-24s %10" PRIu64 " %16" PRIu64
                      " %8" PRIu64 "\n",
                      node_names[l->from], node_names[l->to],
                      size_text(l->size, size), by,
                      via_text(l, node_names, node_count, via), l->messages,
                      l->bytes, l->waits);
    }
    free(all.list);
}
