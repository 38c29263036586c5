/* SPDX-License-Identifier: BSD-3-Clause */
/* Traffic counters; see traffic.h. */
#include "chempid/traffic.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"

#define NAME_MAX_LEN 32 /* bytes of a device's or protocol's name */
#define LINE_MAX_LEN 256

struct line {
    uint32_t from;
    uint32_t to;
    char device[NAME_MAX_LEN];
    char protocol[NAME_MAX_LEN];
    uint64_t messages;
    uint64_t bytes;
};

struct lines {
    struct line *list;
    size_t count;
    size_t cap;
};

static void parse_line(struct lines *all, const char *text, size_t len)
{
    char copy[LINE_MAX_LEN];
    struct line l = {0};
    struct line *list;
    int end = 0;

    if (len >= sizeof(copy))
        return;
    memcpy(copy, text, len);
    copy[len] = '\0';
    if (sscanf(copy,
               "traffic %" SCNu32 " %" SCNu32 " %31s %31s %" SCNu64 " %" SCNu64
               "%n",
               &l.from, &l.to, l.device, l.protocol, &l.messages, &l.bytes,
               &end) != 6 ||
        (size_t)end != len)
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
    int c;

    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    if (x->to != y->to)
        return x->to < y->to ? -1 : 1;
    c = strcmp(x->device, y->device);
    return c ? c : strcmp(x->protocol, y->protocol);
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
        int n = snprintf(
            copy, sizeof(copy),
            "traffic %" PRIu32 " %" PRIu32 " %s %s %" PRIu64 " %" PRIu64 "\n",
            l->from, l->to, l->device, l->protocol, l->messages, l->bytes);

        if (n > 0 && (size_t)n < sizeof(copy))
            chempi_wire_put_raw(out, copy, (size_t)n);
    }
    free(all.list);
}

void chempi_traffic_print(FILE *file, const void *text, size_t len,
                          char *const *node_names, uint32_t node_count)
{
    struct lines all = sum(text, len);

    /* Nothing can be done about a failing standard error. */
    (void)fprintf(file, "%-16s %-16s %-8s %-12s %12s %16s\n", "from", "to",
                  "device", "protocol", "messages", "bytes");
    for (size_t i = 0; i < all.count; i++) {
        const struct line *l = &all.list[i];

        if (l->from >= node_count || l->to >= node_count)
            continue;
        (void)fprintf(file,
                      "%-16s %-16s %-8s %-12s %12" PRIu64 " %16" PRIu64 "\n",
                      node_names[l->from], node_names[l->to], l->device,
                      l->protocol, l->messages, l->bytes);
    }
    free(all.list);
}
