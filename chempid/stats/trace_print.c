/* SPDX-License-Identifier: BSD-3-Clause */
/* Which way messages went, for people; see trace.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "chempid/stats/report.h"
#include "chempid/stats/trace.h"
#include "common/base/sys.h"
#include "common/table/table.h"

#define GATES_MAX CHEMPI_TABLE_STAGES_MAX
#define TEXT_MAX_LEN (GATES_MAX * (CHEMPI_NODE_NAME_MAX + 2u) + 8u)

struct sheet {
    FILE *file;
    char *const *names; /* of nodes */
    uint32_t name_count;
    struct chempi_report_set told; /* nodes whose gateway has told */
    const struct chempi_trace_hop *hops;
    size_t hop_count;
    const bool *lacking; /* nodes that lack figures */
};

/* Nothing can be done about a failing standard error. */
static void print_row(const struct sheet *s, const char *const words[5],
                      const char *const counts[5], bool is_lacking)
{
    (void)fprintf(s->file, "%-12s %-12s %12s %-28s %-24s %10s %16s %8s",
                  words[0], words[1], words[2], words[3], words[4], counts[0],
                  counts[1], counts[2]);
    if (*counts[3])
        (void)fprintf(s->file, " %8s %8s", counts[3], counts[4]);
    (void)fprintf(s->file, "%s\n", is_lacking ? " *" : "");
}

static bool is_lacking(const struct sheet *s, uint64_t node)
{
    return s->lacking && node < s->name_count && s->lacking[node];
}

static const char *name_of(const struct sheet *s, uint64_t node)
{
    return node < s->name_count ? s->names[node] : "?";
}

/* The nodes in "2,5"; none for "-". Returns their number. */
static uint32_t parse_via(const char *via, uint64_t nodes[GATES_MAX])
{
    uint32_t count = 0;
    char *end;

    for (const char *at = via; *at >= '0' && *at <= '9' && count < GATES_MAX;
         at = *end == ',' ? end + 1 : end)
        nodes[count++] = strtoul(at, &end, 10);
    return count;
}

static const char *via_text(const struct sheet *s, const uint64_t *nodes,
                            uint32_t count, char text[TEXT_MAX_LEN])
{
    size_t len = 0;

    if (!count)
        return "direct";
    for (uint32_t i = 0; i < count; i++)
        len += (size_t)snprintf(text + len, TEXT_MAX_LEN - len, "%s%s",
                                i ? ", " : "over ", name_of(s, nodes[i]));
    return text;
}

static void number_texts(const uint64_t *numbers, size_t count,
                         char texts[5][32], const char *out[5])
{
    for (size_t i = 0; i < 5; i++) {
        out[i] = i < count ? texts[i] : "";
        if (i < count)
            (void)snprintf(texts[i], 32, "%" PRIu64, numbers[i]);
    }
}

/* ---- hops ---------------------------------------------------------------- */

struct span {
    uint64_t from;
    uint64_t to;
    uint64_t class;
    const char *via;
    uint64_t gates[GATES_MAX];
    uint32_t gate_count;
    bool has_sender; /* that told of it */
};

static int order(const struct chempi_trace_hop *h, const struct span *span)
{
    if (h->from != span->from)
        return h->from < span->from ? -1 : 1;
    if (h->to != span->to)
        return h->to < span->to ? -1 : 1;
    if (h->class != span->class)
        return h->class < span->class ? -1 : 1;
    return strcmp(h->via, span->via);
}

static uint64_t start_of(const struct span *span, uint32_t at)
{
    return at ? span->gates[at - 1] : span->from;
}

static void print_hop(const struct sheet *s, const struct span *span,
                      uint32_t at, const char *by, const char *note,
                      const uint64_t *counts)
{
    static const uint64_t none[3];
    char from[CHEMPI_NODE_NAME_MAX + 2];
    char place[32];
    char texts[5][32];
    const char *numbers[5];
    const char *words[5] = {from, NULL, place, by, note};

    (void)snprintf(from, sizeof(from), "  %s", name_of(s, start_of(span, at)));
    words[1] = name_of(s, at < span->gate_count ? span->gates[at] : span->to);
    (void)snprintf(place, sizeof(place), "hop %u", at + 1);
    number_texts(counts ? counts : none, counts ? 3 : 0, texts, numbers);
    for (size_t i = 0; i < 3 && !counts; i++)
        numbers[i] = "?";
    print_row(s, words, numbers, !at && is_lacking(s, span->from));
}

/* What nobody has counted: nothing passed there, or nobody told. */
static void print_gap(const struct sheet *s, const struct span *span,
                      uint32_t at)
{
    static const uint64_t none[3];
    const bool is_told =
        at ? chempi_report_has(&s->told, (uint32_t)start_of(span, at))
           : span->has_sender;

    print_hop(s, span, at, is_told ? "-" : "?",
              is_told ? "frames" : "no figures", is_told ? none : NULL);
}

static void print_hops(struct sheet *s, const struct span *span, size_t first,
                       size_t end)
{
    for (uint32_t at = 0; at <= span->gate_count; at++) {
        bool is_any = false;

        for (size_t i = first; i < end; i++) {
            const struct chempi_trace_hop *h = &s->hops[i];
            char by[2 * CHEMPI_NODE_NAME_MAX];

            if (h->at != at)
                continue;
            (void)snprintf(by, sizeof(by), "%s %s", h->names[0], h->names[1]);
            print_hop(s, span, at, by, "frames", h->counts);
            is_any = true;
        }
        if (!is_any)
            print_gap(s, span, at);
    }
}

/* ---- routes -------------------------------------------------------------- */

static const char *size_text(const struct chempi_trace_route *l, char text[32])
{
    if (l->class == 0)
        return "-";
    if (l->size == UINT64_MAX)
        return "any";
    (void)snprintf(text, 32, "%" PRIu64, l->size);
    return text;
}

static void print_route(const struct sheet *s,
                        const struct chempi_trace_route *l,
                        const struct span *span)
{
    char via[TEXT_MAX_LEN];
    char size[32];
    char by[3 * CHEMPI_NODE_NAME_MAX];
    char texts[5][32];
    const char *numbers[5];
    const char *words[5] = {name_of(s, l->from), name_of(s, l->to),
                            size_text(l, size), by, NULL};

    (void)snprintf(by, sizeof(by), "%s %s %s", l->names[0], l->names[1],
                   l->names[2]);
    words[4] = via_text(s, span->gates, span->gate_count, via);
    number_texts(l->counts, 5, texts, numbers);
    print_row(s, words, numbers, is_lacking(s, l->from));
}

static void print_stray(const struct sheet *s, const struct span *span)
{
    static const char *const counts[5] = {"?", "?", "?", "?", "?"};
    char via[TEXT_MAX_LEN];
    const char *words[5] = {name_of(s, span->from), name_of(s, span->to), "?",
                            "no figures", NULL};

    words[4] = via_text(s, span->gates, span->gate_count, via);
    print_row(s, words, counts, is_lacking(s, span->from));
}

/* The hops of a span, which lie together: the first and the end. */
static size_t find_hops(const struct sheet *s, const struct span *span,
                        size_t *end)
{
    size_t low = 0;
    size_t high = s->hop_count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (order(&s->hops[middle], span) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (*end = low; *end < s->hop_count && !order(&s->hops[*end], span);
         ++*end)
        ;
    return low;
}

static void print_routes(struct sheet *s, const struct chempi_lines *routes,
                         bool *is_shown)
{
    const struct chempi_trace_route *list = routes->list;

    for (size_t i = 0; i < routes->count; i++) {
        const struct chempi_trace_route *l = &list[i];
        struct span span = {.from = l->from,
                            .to = l->to,
                            .class = l->class,
                            .via = l->via,
                            .has_sender = true};
        size_t first;
        size_t end;

        span.gate_count = parse_via(l->via, span.gates);
        print_route(s, l, &span);
        if (l->class == CHEMPI_STATS_CLASS_DIRECT)
            continue;
        first = find_hops(s, &span, &end);
        if (first < end && is_shown[first])
            continue;
        print_hops(s, &span, first, end);
        memset(is_shown + first, true, end - first);
    }
}

/* Of senders that did not tell. */
static void print_strays(struct sheet *s, const bool *is_shown)
{
    for (size_t first = 0, end; first < s->hop_count; first = end) {
        const struct chempi_trace_hop *h = &s->hops[first];
        struct span span = {
            .from = h->from, .to = h->to, .class = h->class, .via = h->via};

        span.gate_count = parse_via(h->via, span.gates);
        (void)find_hops(s, &span, &end);
        if (is_shown[first])
            continue;
        print_stray(s, &span);
        print_hops(s, &span, first, end);
    }
}

static void print_head(const struct sheet *s)
{
    static const char *const words[5] = {"from", "to", "up to bytes", "by",
                                         "way"};
    static const char *const counts[5] = {"messages", "bytes", "waits", "moved",
                                          "resent"};

    print_row(s, words, counts, false);
}

void chempi_trace_print(FILE *file, const void *text, size_t len,
                        char *const *node_names, uint32_t node_count,
                        const bool *lacking)
{
    struct chempi_lines routes =
        chempi_lines_sum(&chempi_trace_routes, text, len);
    struct chempi_lines hops = chempi_lines_sum(&chempi_trace_hops, text, len);
    struct sheet s = {.file = file,
                      .names = node_names,
                      .name_count = node_count,
                      .hops = hops.list,
                      .hop_count = hops.count,
                      .lacking = lacking};
    bool *is_shown = chempi_sys->calloc(hops.count + 1, sizeof(*is_shown));

    s.told = chempi_report_find(text, len, "gateway");
    if (is_shown && routes.count + hops.count > 0) {
        print_head(&s);
        print_routes(&s, &routes, is_shown);
        print_strays(&s, is_shown);
    }
    free(is_shown);
    free(s.told.list);
    free(routes.list);
    free(hops.list);
}
