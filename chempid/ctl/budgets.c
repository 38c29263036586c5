/* SPDX-License-Identifier: BSD-3-Clause */
/* chempictl budgets; see budgets.h. */
#include "chempid/ctl/budgets.h"

#include <inttypes.h>
#include <string.h>

#include "chempid/ctl/status_json.h"
#include "chempid/tree/nodes/budget.h"

#define SIZE_TEXT 24 /* bytes */

/* "12.3M", at most 8 characters. */
static const char *size_text(uint64_t bytes, char text[SIZE_TEXT])
{
    static const char units[] = "KMGTP";
    double size = (double)bytes;
    int unit = -1;

    if (bytes == CHEMPI_BUDGET_NONE)
        return "-";
    while (size >= 1000.0 && unit < (int)sizeof(units) - 2) {
        size /= 1024.0;
        unit++;
    }
    if (unit < 0)
        (void)snprintf(text, SIZE_TEXT, "%" PRIu64, bytes);
    else
        (void)snprintf(text, SIZE_TEXT, "%.1f%c", size, units[unit]);
    return text;
}

/* "-", "in 400 ms", "late" */
static const char *due_text(const struct chempi_status_grant *g, char text[24])
{
    if (g->is_late)
        return "late";
    if (g->ordered >= g->granted)
        return "-";
    (void)snprintf(text, 24, "in %" PRIu32 " ms", g->due_ms);
    return text;
}

/* The gateway of a job is numbered behind its ranks. */
static bool is_gateway(const struct chempi_status *s,
                       const struct chempi_status_grant *g)
{
    for (uint32_t i = 0; i < s->job_count; i++)
        if (strcmp(s->jobs[i].id, g->job) == 0)
            return g->rank >= s->jobs[i].size;
    return false;
}

static void print_grant(FILE *to, const struct chempi_status *s,
                        const struct chempi_status_grant *g)
{
    char rank[SIZE_TEXT];
    char granted[SIZE_TEXT];
    char used[SIZE_TEXT];
    char wanted[SIZE_TEXT];
    char ordered[SIZE_TEXT];
    char due[24];

    (void)snprintf(rank, sizeof(rank), "%" PRIu32, g->rank);
    (void)fprintf(to, "%-20s %-18s %6s %8s %8s %8s %8s %8" PRIu64 "  %s\n",
                  s->node, g->job, is_gateway(s, g) ? "gate" : rank,
                  size_text(g->granted, granted), size_text(g->used, used),
                  size_text(g->wanted, wanted),
                  g->ordered < g->granted ? size_text(g->ordered, ordered)
                                          : "-",
                  g->degraded, due_text(g, due));
}

static int print_table(FILE *to, const struct chempi_status *list,
                       uint32_t count)
{
    char total[SIZE_TEXT];
    char granted[SIZE_TEXT];
    int status = 0;

    (void)fprintf(to, "%-20s %-18s %6s %8s %8s %8s %8s %8s  %s\n", "node",
                  "job", "rank", "granted", "in use", "asked", "keep",
                  "degraded", "due");
    for (uint32_t i = 0; i < count; i++) {
        const struct chempi_status *s = &list[i];

        if (*s->error) {
            (void)fprintf(to, "%-20s %s\n", s->node, s->error);
            status = 1;
            continue;
        }
        (void)fprintf(to, "%-20s %-18s %6s %8s of %s\n", s->node, "all", "-",
                      size_text(s->memory_granted, granted),
                      size_text(s->memory, total));
        for (uint32_t k = 0; k < s->grant_count; k++)
            print_grant(to, s, &s->grants[k]);
    }
    return status;
}

/* --- JSON --- */

static void put_grant(struct chempi_json *j, const struct chempi_status *s,
                      const struct chempi_status_grant *g)
{
    chempi_json_open(j, NULL);
    chempi_json_text(j, "job", g->job);
    chempi_json_number(j, "rank", g->rank);
    chempi_json_number(j, "granted", g->granted);
    chempi_json_number(j, "used", g->used);
    chempi_json_number(j, "wanted", g->wanted);
    chempi_json_number(j, "keep", g->ordered);
    chempi_json_number(j, "degraded", g->degraded);
    if (g->ordered < g->granted)
        chempi_json_number(j, "due_ms", g->due_ms);
    else
        chempi_json_text(j, "due_ms", NULL);
    chempi_json_bool(j, "late", g->is_late);
    chempi_json_bool(j, "gateway", is_gateway(s, g));
    chempi_json_close(j);
}

static void put_node(struct chempi_json *j, const struct chempi_status *s)
{
    if (s->memory == CHEMPI_BUDGET_NONE)
        chempi_json_text(j, "total", NULL);
    else
        chempi_json_number(j, "total", s->memory);
    chempi_json_number(j, "granted", s->memory_granted);
    chempi_json_open_list(j, "ranks");
    for (uint32_t i = 0; i < s->grant_count; i++)
        put_grant(j, s, &s->grants[i]);
    chempi_json_close_list(j);
}

static int print_json(FILE *to, const struct chempi_status *list,
                      uint32_t count)
{
    return chempi_status_json(to, list, count, put_node);
}

int chempi_budgets_print(FILE *to, const struct chempi_status *list,
                         uint32_t count, bool is_json)
{
    return is_json ? print_json(to, list, count) : print_table(to, list, count);
}
