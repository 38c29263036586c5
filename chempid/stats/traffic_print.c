/* SPDX-License-Identifier: BSD-3-Clause */
/* Traffic in short, and as JSON; see traffic_print.h. Nothing can be done about
 * a failing standard error. */
#include "chempid/stats/traffic_print.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "chempid/stats/trace.h"
#include "chempid/stats/traffic.h"
#include "common/base/sys.h"

#define SHOWN 8u     /* ways, and pairs where there are too many nodes */
#define SIZE_TEXT 24 /* bytes */
#define CELL 12      /* columns of a pair of nodes */

struct sheet {
    FILE *file;
    char *const *names;
    uint32_t count; /* of nodes */
    const bool *lacking;
    const struct chempi_traffic_line *list; /* of good nodes */
    size_t line_count;
};

/* Lines that are added up: the same way, or the same pair of nodes. */
struct sum {
    const struct chempi_traffic_line *line; /* the first of them */
    uint64_t messages;
    uint64_t bytes;
};

typedef bool same_fn(const struct chempi_traffic_line *a,
                     const struct chempi_traffic_line *b);

static bool is_good(const struct sheet *s, const struct chempi_traffic_line *l)
{
    return l->from < s->count && l->to < s->count;
}

/* Bytes for people: four digits and a unit. */
static const char *size_text(uint64_t bytes, char text[SIZE_TEXT])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    size_t unit = 0;

    for (; value >= 9999.5 && unit + 1 < CHEMPI_ARRAY_LEN(units); unit++)
        value /= 1024;
    (void)snprintf(text, SIZE_TEXT, "%.*f %s", unit && value < 100 ? 1 : 0,
                   value, units[unit]);
    return text;
}

static bool is_same_network(const struct chempi_traffic_line *a,
                            const struct chempi_traffic_line *b)
{
    return strcmp(a->names[0], b->names[0]) == 0;
}

static bool is_same_way(const struct chempi_traffic_line *a,
                        const struct chempi_traffic_line *b)
{
    return is_same_network(a, b) && strcmp(a->names[1], b->names[1]) == 0 &&
           strcmp(a->names[2], b->names[2]) == 0;
}

static bool is_same_pair(const struct chempi_traffic_line *a,
                         const struct chempi_traffic_line *b)
{
    return a->from == b->from && a->to == b->to;
}

/* Most bytes first. */
static int compare(const void *a, const void *b)
{
    const struct sum *x = a;
    const struct sum *y = b;

    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return x->messages > y->messages ? -1 : x->messages < y->messages;
}

/* Sorted; free() it. NULL: no memory. */
static struct sum *add_up(const struct sheet *s, same_fn *is_same,
                          size_t *count)
{
    struct sum *sums = chempi_sys->calloc(s->line_count + 1, sizeof(*sums));
    size_t n = 0;

    for (size_t i = 0; sums && i < s->line_count; i++) {
        const struct chempi_traffic_line *l = &s->list[i];
        size_t k = 0;

        if (!is_good(s, l))
            continue;
        while (k < n && !is_same(sums[k].line, l))
            k++;
        if (k == n)
            sums[n++].line = l;
        sums[k].messages += l->messages;
        sums[k].bytes += l->bytes;
    }
    if (sums)
        qsort(sums, n, sizeof(*sums), compare);
    *count = sums ? n : 0;
    return sums;
}

/* ---- in short ------------------------------------------------------------ */

/* 'a' for the network that carried most, and so on; '+' beyond 'z'. */
static char letter_of(const struct sum *networks, size_t count,
                      const struct chempi_traffic_line *l)
{
    for (size_t i = 0; i < count && i < 26; i++)
        if (is_same_network(networks[i].line, l))
            return (char)('a' + (int)i);
    return '+';
}

static void print_sum(const struct sheet *s)
{
    uint64_t messages[2] = {0}; /* all, between nodes */
    uint64_t bytes[2] = {0};
    char all[SIZE_TEXT];
    char between[SIZE_TEXT];

    for (size_t i = 0; i < s->line_count; i++)
        for (int k = 0; k < 1 + (s->list[i].from != s->list[i].to); k++) {
            messages[k] += s->list[i].messages;
            bytes[k] += s->list[i].bytes;
        }
    (void)fprintf(s->file,
                  "sent: %" PRIu64 " messages, %s; of these between nodes: "
                  "%" PRIu64 " messages, %s\n",
                  messages[0], size_text(bytes[0], all), messages[1],
                  size_text(bytes[1], between));
}

static void print_ways(const struct sheet *s, const struct sum *networks,
                       size_t network_count)
{
    size_t count;
    struct sum *ways = add_up(s, is_same_way, &count);
    char size[SIZE_TEXT];

    (void)fprintf(s->file, "%-17s %-8s %-14s %12s %12s\n", "  network",
                  "device", "protocol", "messages", "bytes");
    for (size_t i = 0; i < count && i < SHOWN; i++)
        (void)fprintf(s->file, "%c %-15s %-8s %-14s %12" PRIu64 " %12s\n",
                      letter_of(networks, network_count, ways[i].line),
                      ways[i].line->names[0], ways[i].line->names[1],
                      ways[i].line->names[2], ways[i].messages,
                      size_text(ways[i].bytes, size));
    if (count > SHOWN)
        (void)fprintf(s->file, "and %zu more ways (--stats=long)\n",
                      count - SHOWN);
    free(ways);
}

/* "123 ab", or "." where nothing went. */
static void print_cell(const struct sheet *s, const struct sum *networks,
                       size_t network_count, uint32_t from, uint32_t to)
{
    char text[64] = "";
    char letters[32] = "";
    uint64_t messages = 0;
    size_t n = 0;

    for (size_t i = 0; i < s->line_count; i++) {
        const struct chempi_traffic_line *l = &s->list[i];
        char letter;

        if (l->from != from || l->to != to)
            continue;
        messages += l->messages;
        letter = letter_of(networks, network_count, l);
        if (!strchr(letters, letter) && n + 1 < sizeof(letters))
            letters[n++] = letter;
    }
    (void)snprintf(text, sizeof(text), "%" PRIu64 " %s", messages, letters);
    (void)fprintf(s->file, " %*s", CELL - 1, n ? text : ".");
}

static void print_square(const struct sheet *s, const struct sum *networks,
                         size_t network_count)
{
    (void)fprintf(s->file, "%-14s", "from \\ to");
    for (uint32_t i = 0; i < s->count; i++)
        (void)fprintf(s->file, " %*.*s", CELL - 1, CELL - 1, s->names[i]);
    (void)fprintf(s->file, "\n");
    for (uint32_t i = 0; i < s->count; i++) {
        (void)fprintf(s->file, "%-14.14s", s->names[i]);
        for (uint32_t k = 0; k < s->count; k++)
            print_cell(s, networks, network_count, i, k);
        (void)fprintf(s->file, "%s\n", s->lacking && s->lacking[i] ? " *" : "");
    }
}

static void print_pairs(const struct sheet *s)
{
    size_t count;
    struct sum *pairs = add_up(s, is_same_pair, &count);
    char size[SIZE_TEXT];

    (void)fprintf(s->file, "%-16s %-16s %12s %12s\n", "from", "to", "messages",
                  "bytes");
    for (size_t i = 0; i < count && i < SHOWN; i++)
        (void)fprintf(
            s->file, "%-16s %-16s %12" PRIu64 " %12s%s\n",
            s->names[pairs[i].line->from], s->names[pairs[i].line->to],
            pairs[i].messages, size_text(pairs[i].bytes, size),
            s->lacking && s->lacking[pairs[i].line->from] ? " *" : "");
    if (count > SHOWN)
        (void)fprintf(s->file, "and %zu more pairs (--stats=long)\n",
                      count - SHOWN);
    free(pairs);
}

void chempi_traffic_summary(FILE *file, const void *text, size_t len,
                            char *const *node_names, uint32_t node_count,
                            const bool *lacking)
{
    struct chempi_lines all = chempi_lines_sum(&chempi_traffic_kind, text, len);
    const struct sheet s = {.file = file,
                            .names = node_names,
                            .count = node_count,
                            .lacking = lacking,
                            .list = all.list,
                            .line_count = all.count};
    size_t count;
    struct sum *networks;

    if (all.count == 0) {
        (void)fprintf(file, "no messages were counted\n");
        free(all.list);
        return;
    }
    networks = add_up(&s, is_same_network, &count);
    print_sum(&s);
    print_ways(&s, networks, count);
    if (node_count > CHEMPI_TRAFFIC_SQUARE)
        print_pairs(&s);
    else if (node_count > 1)
        print_square(&s, networks, count);
    free(networks);
    free(all.list);
}

/* ---- JSON ---------------------------------------------------------------- */

static const char *name_of(char *const *names, uint32_t count, uint64_t node)
{
    return node < count ? names[node] : NULL;
}

static bool is_whole(const bool *lacking, uint32_t count, uint64_t node)
{
    return !lacking || node >= count || !lacking[node];
}

static void put_ends(struct chempi_json *j, uint64_t from, uint64_t to,
                     char *const *names, uint32_t count)
{
    chempi_json_text(j, "from", name_of(names, count, from));
    chempi_json_text(j, "to", name_of(names, count, to));
}

/* The first of these. */
static void put_way(struct chempi_json *j,
                    const char (*names)[CHEMPI_NODE_NAME_MAX], int count)
{
    static const char *const keys[] = {"network", "device", "protocol"};

    for (int i = 0; i < count; i++)
        chempi_json_text(j, keys[i], names[i]);
}

void chempi_traffic_json(struct chempi_json *j, const void *text, size_t len,
                         char *const *node_names, uint32_t node_count,
                         const bool *lacking)
{
    struct chempi_lines all = chempi_lines_sum(&chempi_traffic_kind, text, len);
    const struct chempi_traffic_line *list = all.list;
    uint64_t messages = 0;
    uint64_t bytes = 0;

    for (size_t i = 0; i < all.count; i++) {
        messages += list[i].messages;
        bytes += list[i].bytes;
    }
    chempi_json_number(j, "messages", messages);
    chempi_json_number(j, "bytes", bytes);
    chempi_json_open_list(j, "traffic");
    for (size_t i = 0; i < all.count; i++) {
        const struct chempi_traffic_line *l = &list[i];

        chempi_json_open(j, NULL);
        put_ends(j, l->from, l->to, node_names, node_count);
        put_way(j, l->names, 3);
        chempi_json_number(j, "messages", l->messages);
        chempi_json_number(j, "bytes", l->bytes);
        chempi_json_bool(j, "is_whole", is_whole(lacking, node_count, l->from));
        chempi_json_close(j);
    }
    chempi_json_close_list(j);
    free(all.list);
}

/* Names of the nodes in "2,5"; none of "-". */
static void put_via(struct chempi_json *j, const char *via, char *const *names,
                    uint32_t count)
{
    char *end;

    chempi_json_open_list(j, "via");
    for (const char *at = via; *at >= '0' && *at <= '9';
         at = *end == ',' ? end + 1 : end)
        chempi_json_text(j, NULL, name_of(names, count, strtoul(at, &end, 10)));
    chempi_json_close_list(j);
}

static void put_hops(struct chempi_json *j, const struct chempi_lines *hops,
                     char *const *names, uint32_t count)
{
    static const char *const numbers[] = {"frames", "bytes", "waits"};
    const struct chempi_trace_hop *list = hops->list;

    chempi_json_open_list(j, "hops");
    for (size_t i = 0; i < hops->count; i++) {
        const struct chempi_trace_hop *h = &list[i];

        chempi_json_open(j, NULL);
        put_ends(j, h->from, h->to, names, count);
        chempi_json_number(j, "class", h->class);
        put_via(j, h->via, names, count);
        chempi_json_number(j, "at", h->at);
        put_way(j, h->names, 2);
        for (int k = 0; k < 3; k++)
            chempi_json_number(j, numbers[k], h->counts[k]);
        chempi_json_close(j);
    }
    chempi_json_close_list(j);
}

void chempi_routes_json(struct chempi_json *j, const void *text, size_t len,
                        char *const *node_names, uint32_t node_count,
                        const bool *lacking)
{
    static const char *const numbers[] = {"messages", "bytes", "waits", "moved",
                                          "resent"};
    struct chempi_lines routes =
        chempi_lines_sum(&chempi_trace_routes, text, len);
    struct chempi_lines hops = chempi_lines_sum(&chempi_trace_hops, text, len);
    const struct chempi_trace_route *list = routes.list;

    chempi_json_open_list(j, "routes");
    for (size_t i = 0; i < routes.count; i++) {
        const struct chempi_trace_route *l = &list[i];

        chempi_json_open(j, NULL);
        put_ends(j, l->from, l->to, node_names, node_count);
        chempi_json_number(j, "class", l->class);
        if (l->class && l->size != UINT64_MAX)
            chempi_json_number(j, "up_to_bytes", l->size);
        put_way(j, l->names, 3);
        put_via(j, l->via, node_names, node_count);
        for (int k = 0; k < 5; k++)
            chempi_json_number(j, numbers[k], l->counts[k]);
        chempi_json_bool(j, "is_whole", is_whole(lacking, node_count, l->from));
        chempi_json_close(j);
    }
    chempi_json_close_list(j);
    put_hops(j, &hops, node_names, node_count);
    free(routes.list);
    free(hops.list);
}
