/* SPDX-License-Identifier: BSD-3-Clause */
/* The way of a message; see route.h. */
#include "chempid/route.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/control/msg.h"
#include "common/table/load.h"
#include "common/table/table.h"

/* A table and what it is asked. */
struct question {
    FILE *file;
    struct chempi_table *table;
    const char *from;
    const char *to;
    uint64_t len; /* bytes */
};

/* "100", "64KiB", "64K", "4 MiB" as one word. */
static int parse_size(const char *text, uint64_t *out)
{
    static const char units[] = "KMGT";
    char *end;
    const char *unit;
    unsigned shift = 0;
    uint64_t n;

    errno = 0;
    n = strtoull(text, &end, 10);
    if (errno || !isdigit((unsigned char)text[0]))
        return -EINVAL;
    unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
    if (unit) {
        shift = 10 * (unsigned)(unit - units + 1);
        end++;
    }
    if (strcmp(end, "") != 0 && strcmp(end, "B") != 0 &&
        (!unit || strcmp(end, "iB") != 0))
        return -EINVAL;
    if (n > UINT64_MAX >> shift)
        return -EINVAL;
    *out = n << shift;
    return 0;
}

static const char *fall_word(uint8_t fall)
{
    return fall == CHEMPI_FALL_DRAINED + 1 ? "drained" : "lost";
}

/* What has become of the gateway on a node in this job (NULL: no job). */
static uint8_t fall_of(const struct chempi_status_job *job, const char *node)
{
    for (uint32_t i = 0; job && i < job->gateway_count; i++)
        if (strcmp(job->gateways[i].node, node) == 0)
            return job->gateways[i].fall;
    return 0;
}

/* The gateways of a stage that are used: the first `share` of those that run,
 * else the first alternate, else drained ones. Returns their number. */
static uint32_t print_stage(const struct question *q,
                            const struct chempi_status_job *job,
                            const uint32_t *hops, uint32_t count,
                            uint32_t share)
{
    const uint8_t turns[] = {0, CHEMPI_FALL_DRAINED + 1};
    uint32_t used = 0;

    for (size_t t = 0; t < sizeof(turns) && !used; t++)
        for (uint32_t i = 0; i < count && (i < share || !used); i++) {
            const char *name = chempi_table_node_name(q->table, hops[i]);

            if (fall_of(job, name) != turns[t])
                continue;
            (void)fprintf(q->file, "%s%s", used ? " or " : " to ", name);
            used++;
        }
    return used;
}

static void print_way(const struct question *q,
                      const struct chempi_table_range *range,
                      const struct chempi_status_job *job)
{
    for (uint32_t i = 0; i < range->stage_count; i++) {
        const struct chempi_table_stage *stage = &range->stages[i];
        bool is_last = i + 1 == range->stage_count;
        bool is_first = i == 0;

        (void)fprintf(q->file, "%s%s %s on %s", is_first ? "" : ", then ",
                      stage->device, stage->protocol,
                      chempi_table_network(q->table, stage->network)->name);
        if (is_last)
            continue;
        if (print_stage(q, job, is_first ? range->hops : stage->hops,
                        is_first ? range->hop_count : stage->hop_count,
                        is_first ? range->share_count : stage->hop_count) == 0)
            (void)fprintf(q->file, " to nobody: all its gateways are lost");
    }
    (void)fprintf(q->file, "\n");
}

static bool has_changed(const struct chempi_status_job *job)
{
    for (uint32_t i = 0; i < job->gateway_count; i++)
        if (job->gateways[i].fall)
            return true;
    return false;
}

static void print_jobs(const struct question *q,
                       const struct chempi_table_range *range,
                       const struct chempi_status *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < list[i].job_count; k++) {
            const struct chempi_status_job *job = &list[i].jobs[k];

            if (!has_changed(job) || chempi_status_has_job(list, i, job->id))
                continue;
            (void)fprintf(q->file, "job %s: ", job->id);
            print_way(q, range, job);
            for (uint32_t g = 0; g < job->gateway_count; g++)
                if (job->gateways[g].fall)
                    (void)fprintf(q->file, "  the gateway on %s is %s\n",
                                  job->gateways[g].node,
                                  fall_word(job->gateways[g].fall));
        }
}

static int answer(const struct question *q, const struct chempi_status *list,
                  uint32_t count, struct chempi_err *err)
{
    const struct chempi_table_range *range;
    uint32_t node = chempi_table_find_node(q->table, q->to);
    uint32_t ranges = 0;

    if (node == CHEMPI_TABLE_NONE)
        return chempi_err_set(err, -ENOENT,
                              "the network description does not know node %s",
                              q->to);
    range = chempi_table_ranges(q->table, node, &ranges);
    if (ranges == 0)
        return chempi_err_set(err, -EHOSTUNREACH,
                              "no way leads from node %s to node %s", q->from,
                              q->to);
    while (q->len > range->max_len)
        range++;
    (void)fprintf(q->file, "%" PRIu64 " bytes from %s to %s: ", q->len, q->from,
                  q->to);
    print_way(q, range, NULL);
    print_jobs(q, range, list, count);
    return 0;
}

/* The table of `from`, in the first directory that has it. */
static int load(const struct chempi_status *list, uint32_t count,
                const char *from, void **data, size_t *len,
                struct chempi_err *err)
{
    char path[4096];
    bool has_tables = false;

    for (uint32_t i = 0; i < count; i++) {
        if (!list[i].tables || !*list[i].tables)
            continue;
        has_tables = true;
        if (snprintf(path, sizeof(path), "%s/%s" CHEMPI_TABLE_SUFFIX,
                     list[i].tables, from) < (int)sizeof(path) &&
            chempi_table_load(path, data, len, err) == 0)
            return 0;
    }
    return chempi_err_set(
        err, -ENOENT,
        has_tables ? "there is no connection table of node %s here; ask on "
                     "that node"
                   : "no daemon has connection tables (chempid --tables), so "
                     "node %s has no ways to tell of",
        from);
}

int chempi_route_show(FILE *file, const struct chempi_status *list,
                      uint32_t count, const char *from, const char *to,
                      const char *size, struct chempi_err *err)
{
    struct question q = {.file = file, .from = from, .to = to};
    void *data = NULL;
    size_t len = 0;
    int rc;

    if (parse_size(size, &q.len))
        return chempi_err_set(err, -EINVAL,
                              "%s is no size; expected 100, 64KiB, 4M", size);
    rc = load(list, count, from, &data, &len, err);
    if (rc)
        return rc;
    rc = chempi_table_open(data, len, &q.table, err);
    if (!rc) {
        rc = answer(&q, list, count, err);
        chempi_table_close(q.table);
    }
    free(data);
    return rc;
}
