/* SPDX-License-Identifier: BSD-3-Clause */
/* Names with numbers as ranges; see fold.h. */
#include "common/words/fold.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"

/* A name in three: text, last number, text behind it. */
struct split {
    const char *name;
    size_t head; /* bytes before the number */
    size_t digits;
    uint32_t number;
};

static struct split split_name(const char *name)
{
    struct split s = {.name = name};
    size_t end = strlen(name);
    size_t start;

    while (end > 0 && !(name[end - 1] >= '0' && name[end - 1] <= '9'))
        end--;
    start = end;
    while (start > 0 && end - start < 9 && name[start - 1] >= '0' &&
           name[start - 1] <= '9')
        start--;
    s.head = start;
    s.digits = end - start;
    for (size_t i = start; i < end; i++)
        s.number = s.number * 10 + (uint32_t)(name[i] - '0');
    return s;
}

/* Do both fit in one pair of brackets? */
static bool is_alike(const struct split *a, const struct split *b)
{
    return a->digits > 0 && b->digits > 0 && a->head == b->head &&
           strncmp(a->name, b->name, a->head) == 0 &&
           strcmp(a->name + a->head + a->digits,
                  b->name + b->head + b->digits) == 0 &&
           (a->digits == b->digits ||
            (a->name[a->head] != '0' && b->name[b->head] != '0'));
}

struct output {
    char *buf;
    size_t len;
    size_t at;
};

static void put(struct output *o, const char *text, size_t n)
{
    if (n >= o->len - o->at) { /* does not fit: end with dots */
        if (o->len > 4) {
            size_t dots = o->at < o->len - 4 ? o->at : o->len - 4;

            memcpy(o->buf + dots, "...", 4);
        }
        o->at = o->len - 1;
        return;
    }
    memcpy(o->buf + o->at, text, n);
    o->at += n;
    o->buf[o->at] = '\0';
}

/* Names first .. end - 1 are alike. */
static void put_group(struct output *o, const char *const *names, size_t first,
                      size_t end)
{
    const struct split s = split_name(names[first]);
    const char *tail = s.name + s.head + s.digits;

    if (end - first == 1) {
        put(o, s.name, strlen(s.name));
        return;
    }
    put(o, s.name, s.head);
    put(o, "[", 1);
    for (size_t i = first; i < end;) {
        const struct split low = split_name(names[i]);
        struct split high = low;
        size_t last = i;

        while (last + 1 < end &&
               split_name(names[last + 1]).number == high.number + 1)
            high = split_name(names[++last]);
        put(o, low.name + low.head, low.digits);
        if (last > i) {
            put(o, last == i + 1 ? "," : "-", 1);
            put(o, high.name + high.head, high.digits);
        }
        i = last + 1;
        if (i < end)
            put(o, ",", 1);
    }
    put(o, "]", 1);
    put(o, tail, strlen(tail));
}

void chempi_fold_names(const char *const *names, size_t count, char *buf,
                       size_t len)
{
    struct output o = {.buf = buf, .len = len};
    size_t end;

    buf[0] = '\0';
    for (size_t i = 0; i < count; i = end) {
        const struct split first = split_name(names[i]);

        for (end = i + 1; end < count; end++) {
            const struct split next = split_name(names[end]);

            if (!is_alike(&first, &next))
                break;
        }
        if (i > 0)
            put(&o, ", ", 2);
        put_group(&o, names, i, end);
    }
}

/* By the text before the number, the text behind it, the number. */
static int compare(const void *a, const void *b)
{
    const struct split x = split_name(*(const char *const *)a);
    const struct split y = split_name(*(const char *const *)b);
    const size_t x_head = x.digits ? x.head : strlen(x.name);
    const size_t y_head = y.digits ? y.head : strlen(y.name);
    int order = memcmp(x.name, y.name, x_head < y_head ? x_head : y_head);

    if (order == 0)
        order = (x_head > y_head) - (x_head < y_head);
    if (order == 0)
        order = strcmp(x.digits ? x.name + x.head + x.digits : "",
                       y.digits ? y.name + y.head + y.digits : "");
    if (order == 0)
        order = (x.number > y.number) - (x.number < y.number);
    return order ? order : strcmp(x.name, y.name);
}

void chempi_fold_sorted(const char *const *names, size_t count, char *buf,
                        size_t len)
{
    const char **sorted =
        count > 1 ? chempi_sys->calloc(count, sizeof(*sorted)) : NULL;

    if (!sorted) {
        chempi_fold_names(names, count, buf, len);
        return;
    }
    memcpy(sorted, names, count * sizeof(*sorted));
    qsort(sorted, count, sizeof(*sorted), compare);
    chempi_fold_names(sorted, count, buf, len);
    free(sorted);
}
