/* SPDX-License-Identifier: BSD-3-Clause */
/* Which way messages went; see trace.h. */
#include "chempid/trace.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "chempid/lines.h"
#include "common/control/client.h"

#define VIA_MAX 192
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

static bool parse(char *const *words, void *line)
{
    struct line *l = line;
    bool is_good = true;

    is_good &= chempi_lines_number(words[1], UINT32_MAX, &l->from);
    is_good &= chempi_lines_number(words[2], UINT32_MAX, &l->to);
    is_good &= chempi_lines_number(words[3], UINT64_MAX, &l->size);
    for (int i = 0; i < 3; i++)
        is_good &=
            chempi_lines_word(words[4 + i], l->names[i], sizeof(l->names[i]));
    is_good &= chempi_lines_word(words[7], l->via, sizeof(l->via));
    is_good &= chempi_lines_number(words[8], UINT64_MAX, &l->messages);
    is_good &= chempi_lines_number(words[9], UINT64_MAX, &l->bytes);
    is_good &= chempi_lines_number(words[10], UINT64_MAX, &l->waits);
    return is_good;
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

static void add(void *line, const void *other)
{
    struct line *l = line;
    const struct line *o = other;

    l->messages += o->messages;
    l->bytes += o->bytes;
    l->waits += o->waits;
}

static const struct chempi_lines_kind kind = {.word = "route",
                                              .words = 11,
                                              .size = sizeof(struct line),
                                              .parse = parse,
                                              .compare = compare,
                                              .add = add};

void chempi_trace_merge(const void *text, size_t len, struct chempi_writer *out)
{
    struct chempi_lines all = chempi_lines_sum(&kind, text, len);
    const struct line *list = all.list;

    for (size_t i = 0; i < all.count; i++) {
        const struct line *l = &list[i];
        char copy[CHEMPI_LINES_LEN_MAX];
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
    struct chempi_lines all = chempi_lines_sum(&kind, text, len);
    const struct line *list = all.list;

    /* Nothing can be done about a failing standard error. */
    if (all.count)
        (void)fprintf(file, "%-12s %-12s %12s %-28s %-24s %10s %16s %8s\n",
                      "from", "to", "up to bytes", "first by", "way",
                      "messages", "bytes", "waits");
    for (size_t i = 0; i < all.count; i++) {
        const struct line *l = &list[i];
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
