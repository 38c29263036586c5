/* SPDX-License-Identifier: BSD-3-Clause */
/* Pairs of nodes without a way; see reachability.h. */
#define _GNU_SOURCE /* strverscmp */
#include "chempid/tree/nodes/reachability.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "common/table/load.h"
#include "common/table/table.h"
#include "common/words/fold.h"
#include "common/words/pairs.h"

#define CANDIDATES_MAX 64u /* nodes that would do as a gateway */
#define GROUP_TEXT 320     /* bytes of one group in words */
#define NAMES_TEXT 120     /* bytes of a list of names */

struct finder {
    const struct chempi_reachability_question *q;
    struct chempi_reachability *out;
    uint32_t count;   /* nodes that are looked at */
    uint8_t *cut;     /* [count * count], from and to */
    uint8_t *classes; /* of the table at hand: 0, or 1 + is cut off */
    size_t class_room;
};

static bool has_way(const struct chempi_reachability_question *q,
                    chempi_table_usable_fn *is_usable,
                    const struct chempi_table *table,
                    const struct chempi_table_range *ranges, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (chempi_table_broken_stage(table, &ranges[i], is_usable, q->arg) ==
            ranges[i].stage_count)
            return true;
    return false;
}

/* ---- what would help ---------------------------------------------------- */

/* Nodes that do not forward but are on both networks. */
static void hint_between(struct finder *f, const struct chempi_table *table,
                         uint32_t here, uint32_t there)
{
    const char *near = chempi_table_network(table, here)->name;
    const char *far = chempi_table_network(table, there)->name;
    const char *names[CANDIDATES_MAX] = {NULL};
    char list[NAMES_TEXT];
    uint32_t count = 0;

    for (uint32_t n = 0; n < chempi_table_node_count(table); n++)
        if (count < CANDIDATES_MAX && !chempi_table_node_is_gateway(table, n) &&
            chempi_table_is_attached(table, n, here) &&
            chempi_table_is_attached(table, n, there))
            names[count++] = chempi_table_node_name(table, n);
    chempi_fold_names(names, count, list, sizeof(list));
    if (count)
        (void)snprintf(f->out->hint, sizeof(f->out->hint),
                       "`gateway: true` for %s%s, which %s on networks %.30s "
                       "and %.30s",
                       count > 1 ? "one of " : "", list,
                       count > 1 ? "are" : "is", near, far);
    else
        (void)snprintf(f->out->hint, sizeof(f->out->hint),
                       "another gateway that is attached to networks %.60s and "
                       "%.60s",
                       near, far);
}

/* There never was a way from the table's node to this one. */
static void hint_apart(struct finder *f, const struct chempi_table *table,
                       uint32_t to)
{
    const uint32_t self = chempi_table_self(table);
    const char *names[CANDIDATES_MAX] = {NULL};
    char list[NAMES_TEXT];
    uint32_t count = 0;

    for (uint32_t n = 0; n < chempi_table_node_count(table); n++)
        if (count < CANDIDATES_MAX && n != self && n != to &&
            !chempi_table_node_is_gateway(table, n) &&
            chempi_table_has_common(table, n, self) &&
            chempi_table_has_common(table, n, to))
            names[count++] = chempi_table_node_name(table, n);
    chempi_fold_names(names, count, list, sizeof(list));
    if (count)
        (void)snprintf(f->out->hint, sizeof(f->out->hint),
                       "`gateway: true` for %s%s, which %s on networks of both "
                       "sides",
                       count > 1 ? "one of " : "", list,
                       count > 1 ? "are" : "is");
    else
        (void)snprintf(f->out->hint, sizeof(f->out->hint),
                       "a common network, or a gateway that is attached to "
                       "networks of both sides");
}

/* ---- one table ---------------------------------------------------------- */

static bool is_cut_off(struct finder *f, const struct chempi_table *table,
                       uint32_t to)
{
    uint32_t count = 0;
    const struct chempi_table_range *ranges =
        chempi_table_ranges(table, to, &count);

    if (has_way(f->q, f->q->is_usable, table, ranges, count))
        return false;
    if (f->q->was_usable &&
        !has_way(f->q, f->q->was_usable, table, ranges, count))
        return false;
    if (f->out->hint[0])
        return true;
    if (count) {
        const uint32_t i = chempi_table_broken_stage(
            table, &ranges[0], f->q->is_usable, f->q->arg);

        hint_between(f, table, ranges[0].stages[i].network,
                     ranges[0].stages[i + 1].network);
    } else {
        hint_apart(f, table, to);
    }
    return true;
}

/* Nodes of a class are reached alike. */
static bool is_class_cut_off(struct finder *f, const struct chempi_table *table,
                             uint32_t to)
{
    uint8_t *known = &f->classes[chempi_table_node_class(table, to)];

    if (!*known)
        *known = is_cut_off(f, table, to) ? 2 : 1;
    return *known == 2;
}

static int ask_table(struct finder *f, const struct chempi_table *table,
                     uint32_t from)
{
    const size_t classes = chempi_table_class_count(table);

    if (classes > f->class_room) {
        uint8_t *grown = chempi_sys->realloc(f->classes, classes);

        if (!grown)
            return -ENOMEM;
        f->classes = grown;
        f->class_room = classes;
    }
    memset(f->classes, 0, f->class_room);
    for (uint32_t to = 0; to < f->count; to++) {
        const uint32_t node = chempi_table_find_node(table, f->q->nodes[to]);

        if (to != from && node != CHEMPI_TABLE_NONE &&
            is_class_cut_off(f, table, node))
            f->cut[(size_t)from * f->count + to] = 1;
    }
    return 0;
}

static int load(const struct chempi_reachability_question *q, const char *node,
                void **data, size_t *len)
{
    char path[4096];
    int rc = -ENOENT;

    for (uint32_t i = 0; rc && rc != -ENOMEM && i < q->dir_count; i++) {
        const int n = snprintf(path, sizeof(path), "%s/%s" CHEMPI_TABLE_SUFFIX,
                               q->dirs[i], node);

        if (n > 0 && (size_t)n < sizeof(path))
            rc = chempi_table_load(path, data, len, NULL);
    }
    return rc;
}

static int ask_node(struct finder *f, uint32_t from)
{
    struct chempi_table *table = NULL;
    void *data = NULL;
    size_t len = 0;
    int rc = load(f->q, f->q->nodes[from], &data, &len);

    if (!rc)
        rc = chempi_table_open(data, len, &table, NULL);
    if (!rc)
        rc = ask_table(f, table, from);
    chempi_table_close(table);
    free(data);
    if (!rc || rc == -ENOMEM)
        return rc;
    f->out->unknown++; /* a damaged table has its own words elsewhere */
    return 0;
}

/* ---- groups ------------------------------------------------------------- */

static const char **names_of(struct finder *f, const uint32_t *list,
                             uint32_t count)
{
    const char **names =
        chempi_pool_array(&f->out->pool, count, sizeof(*names));

    for (uint32_t i = 0; names && i < count; i++)
        names[i] = f->q->nodes[list[i]];
    return names;
}

static int add_group(void *arg, const uint32_t *from, uint32_t from_count,
                     const uint32_t *to, uint32_t to_count, bool is_one_way)
{
    struct finder *f = arg;
    struct chempi_reachability *out = f->out;
    const struct chempi_reachability_group g = {
        .from = names_of(f, from, from_count),
        .to = names_of(f, to, to_count),
        .from_count = from_count,
        .to_count = to_count,
        .is_one_way = is_one_way,
    };

    if (!g.from || !g.to)
        return -ENOMEM;
    out->groups[out->group_count++] = g;
    out->pairs += (uint64_t)from_count * to_count;
    return 0;
}

/* Of each node at most two: both ways, and one way. */
static int make_groups(struct finder *f)
{
    uint32_t *scratch =
        chempi_sys->calloc(2 * (size_t)f->count, sizeof(*scratch));
    int rc = -ENOMEM;

    f->out->groups = chempi_pool_array(&f->out->pool, 2 * (size_t)f->count,
                                       sizeof(*f->out->groups));
    if (scratch && f->out->groups)
        rc = chempi_pairs_group(f->cut, f->count, scratch, add_group, f);
    free(scratch);
    return rc;
}

int chempi_reachability_find(const struct chempi_reachability_question *q,
                             struct chempi_reachability *out)
{
    struct finder f = {.q = q, .out = out};
    bool is_any = false;
    int rc = 0;

    *out = (struct chempi_reachability){.pairs = 0};
    f.count = q->node_count < CHEMPI_REACHABILITY_NODES_MAX
                  ? q->node_count
                  : CHEMPI_REACHABILITY_NODES_MAX;
    out->unknown = q->node_count - f.count;
    if (f.count < 2)
        return 0;
    f.cut = chempi_sys->calloc(f.count, f.count);
    if (!f.cut)
        rc = -ENOMEM;
    for (uint32_t i = 0; !rc && i < f.count; i++) {
        rc = ask_node(&f, i);
        is_any |= !rc && memchr(f.cut + (size_t)i * f.count, 1, f.count);
    }
    if (!rc && is_any)
        rc = make_groups(&f);
    free(f.cut);
    free(f.classes);
    if (rc)
        chempi_reachability_fini(out);
    return rc;
}

void chempi_reachability_fini(struct chempi_reachability *cuts)
{
    chempi_pool_fini(&cuts->pool);
    *cuts = (struct chempi_reachability){.pairs = 0};
}

/* ---- words -------------------------------------------------------------- */

static int compare_names(const void *a, const void *b)
{
    return strverscmp(*(const char *const *)a, *(const char *const *)b);
}

void chempi_reachability_put_group(
    const struct chempi_reachability_group *group, char *buf, size_t len)
{
    char from[NAMES_TEXT];
    char to[NAMES_TEXT];

    qsort(group->from, group->from_count, sizeof(*group->from), compare_names);
    qsort(group->to, group->to_count, sizeof(*group->to), compare_names);
    chempi_fold_names(group->from, group->from_count, from, sizeof(from));
    chempi_fold_names(group->to, group->to_count, to, sizeof(to));
    (void)snprintf(buf, len, "%s %s %s", from, group->is_one_way ? "to" : "and",
                   to);
}

void chempi_reachability_put(const struct chempi_reachability *cuts, char *buf,
                             size_t len)
{
    char text[GROUP_TEXT];
    char more[96];
    size_t at = 0;

    buf[0] = '\0';
    for (uint32_t i = 0; i < cuts->group_count; i++) {
        size_t n;

        chempi_reachability_put_group(&cuts->groups[i], text, sizeof(text));
        n = strlen(text);
        if (i > 0 && at + n + 2 + sizeof(more) > len) {
            (void)snprintf(more, sizeof(more),
                           ", and others: %" PRIu64 " pairs in all (mdconfig "
                           "check --all lists them)",
                           cuts->pairs);
            n = strlen(more) < len - at ? strlen(more) : len - at - 1;
            memcpy(buf + at, more, n);
            buf[at + n] = '\0';
            return;
        }
        (void)snprintf(buf + at, len - at, "%s%s", i ? "; " : "", text);
        at += strlen(buf + at);
    }
}
