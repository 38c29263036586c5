/* SPDX-License-Identifier: BSD-3-Clause */
/* Which way messages went: lines, and their sums; see trace.h. */
#include "chempid/stats/trace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/number.h"

static bool parse_numbers(char *const *words, uint64_t *out, size_t count)
{
    bool is_good = true;

    for (size_t i = 0; i < count; i++)
        is_good &= chempi_number_parse(words[i], 0, UINT64_MAX, &out[i]);
    return is_good;
}

static bool parse_names(char *const *words, char (*out)[CHEMPI_NODE_NAME_MAX],
                        size_t count)
{
    bool is_good = true;

    for (size_t i = 0; i < count; i++)
        is_good &= chempi_lines_word(words[i], out[i], sizeof(out[i]));
    return is_good;
}

static bool parse_route(char *const *words, void *line)
{
    struct chempi_trace_route *l = line;

    return chempi_number_parse(words[1], 0, UINT32_MAX, &l->from) &&
           chempi_number_parse(words[2], 0, UINT32_MAX, &l->to) &&
           chempi_number_parse(words[3], 0, CHEMPI_STATS_CLASS_DIRECT,
                               &l->class) &&
           chempi_number_parse(words[4], 0, UINT64_MAX, &l->size) &&
           parse_names(&words[5], l->names, 3) &&
           chempi_lines_word(words[8], l->via, sizeof(l->via)) &&
           parse_numbers(&words[9], l->counts, 5);
}

static bool parse_hop(char *const *words, void *line)
{
    struct chempi_trace_hop *l = line;

    return chempi_number_parse(words[1], 0, UINT32_MAX, &l->from) &&
           chempi_number_parse(words[2], 0, UINT32_MAX, &l->to) &&
           chempi_number_parse(words[3], 0, CHEMPI_STATS_CLASS_DIRECT,
                               &l->class) &&
           chempi_lines_word(words[4], l->via, sizeof(l->via)) &&
           chempi_number_parse(words[5], 0, UINT32_MAX, &l->at) &&
           parse_names(&words[6], l->names, 2) &&
           parse_numbers(&words[8], l->counts, 3);
}

static int compare_numbers(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int compare_names(const char (*a)[CHEMPI_NODE_NAME_MAX],
                         const char (*b)[CHEMPI_NODE_NAME_MAX], size_t count)
{
    int c = 0;

    for (size_t i = 0; i < count && !c; i++)
        c = strcmp(a[i], b[i]);
    return c;
}

static int compare_routes(const void *a, const void *b)
{
    const struct chempi_trace_route *x = a;
    const struct chempi_trace_route *y = b;
    int c = compare_numbers(x->from, y->from);

    c = c ? c : compare_numbers(x->to, y->to);
    c = c ? c : compare_numbers(x->size, y->size);
    c = c ? c : compare_numbers(x->class, y->class);
    c = c ? c : compare_names(x->names, y->names, 3);
    return c ? c : strcmp(x->via, y->via);
}

static int compare_hops(const void *a, const void *b)
{
    const struct chempi_trace_hop *x = a;
    const struct chempi_trace_hop *y = b;
    int c = compare_numbers(x->from, y->from);

    c = c ? c : compare_numbers(x->to, y->to);
    c = c ? c : compare_numbers(x->class, y->class);
    c = c ? c : strcmp(x->via, y->via);
    c = c ? c : compare_numbers(x->at, y->at);
    return c ? c : compare_names(x->names, y->names, 2);
}

static void add_route(void *line, const void *other)
{
    struct chempi_trace_route *l = line;
    const struct chempi_trace_route *o = other;

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(l->counts); i++)
        l->counts[i] += o->counts[i];
}

static void add_hop(void *line, const void *other)
{
    struct chempi_trace_hop *l = line;
    const struct chempi_trace_hop *o = other;

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(l->counts); i++)
        l->counts[i] += o->counts[i];
}

const struct chempi_lines_kind chempi_trace_routes = {
    .word = "route",
    .words = 14,
    .size = sizeof(struct chempi_trace_route),
    .parse = parse_route,
    .compare = compare_routes,
    .add = add_route};

const struct chempi_lines_kind chempi_trace_hops = {
    .word = "hop",
    .words = 11,
    .size = sizeof(struct chempi_trace_hop),
    .parse = parse_hop,
    .compare = compare_hops,
    .add = add_hop};

/* ---- sums ---------------------------------------------------------------- */

static void put(struct chempi_writer *out, const char *line, int n)
{
    if (n > 0 && n < (int)CHEMPI_LINES_LEN_MAX)
        chempi_wire_put_raw(out, line, (size_t)n);
}

static void put_route(struct chempi_writer *out,
                      const struct chempi_trace_route *l)
{
    char line[CHEMPI_LINES_LEN_MAX];

    put(out, line,
        snprintf(line, sizeof(line),
                 "route %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
                 " %s %s %s %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
                 " %" PRIu64 "\n",
                 l->from, l->to, l->class, l->size, l->names[0], l->names[1],
                 l->names[2], l->via, l->counts[0], l->counts[1], l->counts[2],
                 l->counts[3], l->counts[4]));
}

static void put_hop(struct chempi_writer *out, const struct chempi_trace_hop *l)
{
    char line[CHEMPI_LINES_LEN_MAX];

    put(out, line,
        snprintf(line, sizeof(line),
                 "hop %" PRIu64 " %" PRIu64 " %" PRIu64 " %s %" PRIu64
                 " %s %s %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
                 l->from, l->to, l->class, l->via, l->at, l->names[0],
                 l->names[1], l->counts[0], l->counts[1], l->counts[2]));
}

void chempi_trace_merge(const void *text, size_t len, struct chempi_writer *out)
{
    struct chempi_lines routes =
        chempi_lines_sum(&chempi_trace_routes, text, len);
    struct chempi_lines hops = chempi_lines_sum(&chempi_trace_hops, text, len);

    for (size_t i = 0; i < routes.count; i++)
        put_route(out, (const struct chempi_trace_route *)routes.list + i);
    for (size_t i = 0; i < hops.count; i++)
        put_hop(out, (const struct chempi_trace_hop *)hops.list + i);
    free(routes.list);
    free(hops.list);
}
