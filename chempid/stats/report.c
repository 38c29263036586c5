/* SPDX-License-Identifier: BSD-3-Clause */
/* What a job has told, and what not; see report.h. */
#include "chempid/stats/report.h"

#include <stdlib.h>
#include <string.h>

#include "chempid/stats/lines.h"
#include "common/base/sys.h"
#include "common/control/client.h"

#define SHOWN_MAX 32u /* ranges of ranks in a line */

/* ---- sets of numbers ----------------------------------------------------- */

struct line {
    uint64_t number;
};

static const struct chempi_lines_key key =
    CHEMPI_LINES_NUMBER(1, struct line, number, UINT32_MAX);

struct chempi_report_set chempi_report_find(const void *text, size_t len,
                                            const char *word)
{
    const struct chempi_lines_kind kind = {.word = word,
                                           .size = sizeof(struct line),
                                           .keys = &key,
                                           .key_count = 1};
    struct chempi_lines lines = chempi_lines_sum(&kind, text, len);
    struct chempi_report_set set = {
        .list = chempi_sys->calloc(lines.count + 1, sizeof(*set.list))};

    for (size_t i = 0; set.list && i < lines.count; i++)
        set.list[set.count++] =
            (uint32_t)((const struct line *)lines.list)[i].number;
    free(lines.list);
    return set;
}

bool chempi_report_has(const struct chempi_report_set *set, uint32_t number)
{
    size_t low = 0;
    size_t high = set->count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (set->list[middle] < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < set->count && set->list[low] == number;
}

/* ---- gaps ---------------------------------------------------------------- */

/* "1, 3-5" */
static void print_ranks(FILE *file, const struct chempi_report_set *set)
{
    size_t shown = 0;

    for (size_t i = 0, end; i < set->count; i = end, shown++) {
        for (end = i + 1;
             end < set->count && set->list[end] == set->list[i] + (end - i);
             end++)
            ;
        (void)fprintf(file, "%s", i ? ", " : "");
        if (shown == SHOWN_MAX) {
            (void)fprintf(file, "and %zu more", set->count - i);
            return;
        }
        (void)fprintf(file, "%u", set->list[i]);
        if (end > i + 1)
            (void)fprintf(file, "-%u", set->list[end - 1]);
    }
}

static void print_missing(FILE *file, const struct chempi_report_set *set)
{
    if (!set->count)
        return;
    (void)fprintf(file, "incomplete: rank%s ", set->count == 1 ? "" : "s");
    print_ranks(file, set);
    (void)fprintf(file, " ended without giving %s figures\n",
                  set->count == 1 ? "its" : "their");
}

static bool *nodes_with_ranks(const struct chempi_spec *spec)
{
    bool *has_ranks = chempi_sys->calloc(spec->node_count, sizeof(*has_ranks));

    for (uint32_t i = 0; has_ranks && i < spec->size; i++)
        has_ranks[spec->node_of_rank[i]] = true;
    return has_ranks;
}

bool *chempi_report_lacking(const struct chempi_spec *spec, const void *text,
                            size_t len)
{
    struct chempi_report_set nodes = chempi_report_find(text, len, "node");
    struct chempi_report_set ranks = chempi_report_find(text, len, "missing");
    bool *lacking = nodes_with_ranks(spec);

    for (uint32_t i = 0; lacking && i < spec->node_count; i++)
        lacking[i] = lacking[i] && !chempi_report_has(&nodes, i);
    for (size_t i = 0; lacking && i < ranks.count; i++)
        if (ranks.list[i] < spec->size)
            lacking[spec->node_of_rank[ranks.list[i]]] = true;
    free(nodes.list);
    free(ranks.list);
    return lacking;
}

static void print_nodes(FILE *file, const struct chempi_spec *spec,
                        const struct chempi_report_set *told)
{
    bool *has_ranks = nodes_with_ranks(spec);

    for (uint32_t i = 0; has_ranks && i < spec->node_count; i++)
        if (has_ranks[i] && !chempi_report_has(told, i))
            (void)fprintf(file, "incomplete: node %s gave no figures\n",
                          spec->node_names[i]);
    free(has_ranks);
}

static void print_gateways(FILE *file, const struct chempi_spec *spec,
                           const struct chempi_report_set *told)
{
    for (uint32_t i = spec->size; i < chempi_spec_procs(spec); i++)
        if (!chempi_report_has(told, spec->node_of_rank[i]))
            (void)fprintf(
                file, "incomplete: the gateway on node %s gave no figures\n",
                spec->node_names[spec->node_of_rank[i]]);
}

static void print_short(FILE *file, const struct chempi_spec *spec,
                        const struct chempi_report_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        if (set->list[i] < spec->node_count)
            (void)fprintf(
                file,
                "incomplete: there was no room for all figures of node "
                "%s\n",
                spec->node_names[set->list[i]]);
}

/* Nothing can be done about a failing standard error. */
void chempi_report_gaps(FILE *file, const struct chempi_spec *spec,
                        const void *text, size_t len)
{
    struct chempi_report_set nodes = chempi_report_find(text, len, "node");
    struct chempi_report_set ranks = chempi_report_find(text, len, "missing");
    struct chempi_report_set gates = chempi_report_find(text, len, "gateway");
    struct chempi_report_set tight = chempi_report_find(text, len, "short");

    if (nodes.count == 0) {
        (void)fprintf(file, "incomplete: no node gave figures\n");
    } else {
        print_missing(file, &ranks);
        print_nodes(file, spec, &nodes);
        if (spec->want_stats & CHEMPI_STATS_ROUTES)
            print_gateways(file, spec, &gates);
        print_short(file, spec, &tight);
        if (ranks.count)
            (void)fprintf(file, "incomplete: lines with a star lack what these "
                                "ranks have sent\n");
    }
    free(nodes.list);
    free(ranks.list);
    free(gates.list);
    free(tight.list);
}
