/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables of calls as text and as JSON; see stats.h. A failing file cannot be
 * told to anybody. */
#define _GNU_SOURCE /* clock_gettime */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/words/json.h"
#include "programs/libchempi-stats/sites.h"

static double seconds(uint64_t ns)
{
    return (double)ns / (double)CHEMPI_NS_PER_S;
}

/* All processes' lines in one table of operations and bins. */
static struct stats_lines sum(const struct stats_lines all[], int ranks)
{
    struct stats_lines total = {0};
    struct stats_line *table =
        calloc((size_t)STATS_COUNT * STATS_BINS, sizeof(*table));

    if (!table)
        return total;
    for (int r = 0; r < ranks; r++) {
        total.run_ns += all[r].run_ns;
        for (size_t i = 0; i < all[r].count; i++) {
            const struct stats_line *l = &all[r].list[i];
            struct stats_line *to = &table[l->id * STATS_BINS + l->bin];

            to->id = l->id;
            to->bin = l->bin;
            to->calls += l->calls;
            to->bytes += l->bytes;
            to->time_ns += l->time_ns;
        }
    }
    total.list = table;
    for (size_t i = 0; i < (size_t)STATS_COUNT * STATS_BINS; i++)
        if (table[i].calls)
            table[total.count++] = table[i];
    return total;
}

static uint64_t time_in_mpi(const struct stats_lines *lines)
{
    uint64_t ns = 0;

    for (size_t i = 0; i < lines->count; i++)
        ns += lines->list[i].time_ns;
    return ns;
}

/* ---- text ---- */

static void print_sizes(FILE *file, uint32_t bin)
{
    char text[64] = "-";
    int64_t from = stats_bin_from(bin);

    if (from == 0 || from == 1)
        (void)snprintf(text, sizeof(text), "%" PRId64, from);
    else if (from > 1)
        (void)snprintf(text, sizeof(text), "%" PRId64 " to %" PRId64, from,
                       from + (from - 1));
    (void)fprintf(file, "%-26s", text);
}

/* Times of the ranks' own lines of an operation and bin. */
struct spread {
    uint64_t least_ns;
    uint64_t most_ns;
};

/* A rank that has made no such call has spent no time there. */
static struct spread find_spread(const struct stats_lines all[], int ranks,
                                 const struct stats_line *of)
{
    struct spread spread = {.least_ns = UINT64_MAX};

    for (int r = 0; r < ranks; r++) {
        uint64_t ns = 0;

        for (size_t i = 0; i < all[r].count; i++)
            if (all[r].list[i].id == of->id && all[r].list[i].bin == of->bin)
                ns = all[r].list[i].time_ns;
        spread.least_ns = ns < spread.least_ns ? ns : spread.least_ns;
        spread.most_ns = ns > spread.most_ns ? ns : spread.most_ns;
    }
    return spread;
}

/* What took most time first. */
static int compare(const void *a, const void *b)
{
    const struct stats_line *x = a;
    const struct stats_line *y = b;

    if (x->time_ns != y->time_ns)
        return x->time_ns > y->time_ns ? -1 : 1;
    return x->id != y->id ? (x->id < y->id ? -1 : 1)
                          : (x->bin > y->bin) - (x->bin < y->bin);
}

/* all: the lines of so many ranks, which these are the sum of; NULL: they are
 * those of one rank. */
static void print_lines(FILE *file, const struct stats_lines *lines,
                        const struct stats_lines all[], int ranks)
{
    qsort(lines->list, lines->count, sizeof(*lines->list), compare);
    (void)fprintf(file, "%-32s %-26s %12s %16s %12s %10s%s\n", "operation",
                  "bytes of a message", "calls", "bytes", "seconds",
                  "us a call",
                  all ? "    least of      mean     most of a rank" : "");
    for (size_t i = 0; i < lines->count; i++) {
        const struct stats_line *l = &lines->list[i];

        (void)fprintf(file, "%-32s ", stats_names[l->id]);
        print_sizes(file, l->bin);
        (void)fprintf(file, " %12" PRIu64 " %16" PRIu64 " %12.6f %10.3f",
                      l->calls, l->bytes, seconds(l->time_ns),
                      seconds(l->time_ns) * 1e6 / (double)l->calls);
        if (all) {
            const struct spread s = find_spread(all, ranks, l);

            (void)fprintf(file, " %11.6f %9.6f %16.6f", seconds(s.least_ns),
                          seconds(l->time_ns) / ranks, seconds(s.most_ns));
        }
        (void)fputc('\n', file);
    }
}

void stats_print_text(FILE *file, const struct stats_lines all[], int ranks,
                      int process, bool wants_ranks,
                      const struct stats_sites *sites)
{
    struct stats_lines total = sum(all, ranks);

    if (process == STATS_ALL)
        (void)fprintf(file, "MPI calls of %d process%s", ranks,
                      ranks == 1 ? "" : "es");
    else
        (void)fprintf(file, "MPI calls of process %d alone", process);
    (void)fprintf(file, ": %.6f s in MPI of %.6f s\n",
                  seconds(time_in_mpi(&total)), seconds(total.run_ns));
    print_lines(file, &total, ranks > 1 ? all : NULL, ranks);
    if (sites)
        stats_sites_print_text(file, sites, (uint32_t)ranks);
    for (int r = 0; r < ranks && wants_ranks; r++) {
        (void)fprintf(file, "\nRank %d: %.6f s in MPI of %.6f s\n", r,
                      seconds(time_in_mpi(&all[r])), seconds(all[r].run_ns));
        print_lines(file, &all[r], NULL, 1);
    }
    free(total.list);
}

/* ---- JSON ---- */

static void json_seconds(struct chempi_json *j, const char *name, uint64_t ns)
{
    chempi_json_decimal(j, name, ns, 9);
}

/* name: of the object, NULL for one in a list. */
static void json_lines(struct chempi_json *j, const char *name,
                       const struct stats_lines *lines)
{
    chempi_json_open(j, name);
    json_seconds(j, "seconds", lines->run_ns);
    json_seconds(j, "seconds_in_mpi", time_in_mpi(lines));
    chempi_json_open_list(j, "calls");
    for (size_t i = 0; i < lines->count; i++) {
        const struct stats_line *l = &lines->list[i];

        chempi_json_open(j, NULL);
        chempi_json_text(j, "operation", stats_names[l->id]);
        if (stats_bin_from(l->bin) >= 0)
            chempi_json_number(j, "size_from",
                               (uint64_t)stats_bin_from(l->bin));
        chempi_json_number(j, "calls", l->calls);
        chempi_json_number(j, "bytes", l->bytes);
        json_seconds(j, "seconds", l->time_ns);
        chempi_json_close(j);
    }
    chempi_json_close_list(j);
    chempi_json_close(j);
}

void stats_print_json(FILE *file, const struct stats_lines all[], int ranks,
                      int process, const struct stats_sites *sites)
{
    struct chempi_json j = {.file = file};
    struct stats_lines total = sum(all, ranks);

    chempi_json_open(&j, NULL);
    chempi_json_number(&j, "processes", (uint64_t)ranks);
    if (process != STATS_ALL)
        chempi_json_number(&j, "process", (uint64_t)process);
    json_lines(&j, "sum", &total);
    chempi_json_open_list(&j, "ranks");
    for (int r = 0; r < ranks; r++)
        json_lines(&j, NULL, &all[r]);
    chempi_json_close_list(&j);
    if (sites)
        stats_sites_print_json(&j, sites);
    chempi_json_close(&j);
    chempi_json_end(&j);
    free(total.list);
}
