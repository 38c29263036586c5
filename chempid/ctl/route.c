/* SPDX-License-Identifier: BSD-3-Clause */
/* The way of a message; see route.h. */
#include "chempid/ctl/route.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "chempid/ctl/status_json.h"
#include "common/base/compiler.h"
#include "common/table/load.h"
#include "common/table/parts.h"
#include "common/table/table.h"
#include "common/words/json.h"
#include "common/words/size.h"

#define GATEWAYS_MAX 64u /* that are named for a stage */

/* A table and what it is asked. */
struct question {
    FILE *file;
    struct chempi_json *json; /* NULL: words */
    struct chempi_table *table;
    const char *from;
    const char *to;
    uint64_t len; /* bytes */
    const struct chempi_table_range *ranges;
    uint32_t range_count;
};

/* Do messages of this job still go over the gateway? */
static bool is_usable(void *arg, const char *gateway)
{
    return chempi_status_fate_of(arg, gateway) != CHEMPI_FATE_LOST;
}

static bool has_way(const struct question *q, struct chempi_status_job *job,
                    const struct chempi_table_range *range)
{
    return chempi_table_broken_stage(q->table, range, is_usable, job) ==
           range->stage_count;
}

/* The gateways at the end of a stage that are used: of those that run all that
 * are equally good, else the first alternate; else drained ones. Returns how
 * many of all have a name in `names`. */
static uint32_t list_gateways(const struct question *q,
                              const struct chempi_status_job *job,
                              const struct chempi_table_range *range,
                              uint32_t stage, const char *names[GATEWAYS_MAX])
{
    const struct chempi_table_stage *s = &range->stages[stage];
    const uint32_t share = chempi_table_share(range, stage);
    static const enum chempi_status_fate turns[] = {CHEMPI_FATE_UP,
                                                    CHEMPI_FATE_DRAINED};
    uint32_t used = 0;

    for (size_t t = 0; t < CHEMPI_ARRAY_LEN(turns) && !used; t++)
        for (uint32_t i = 0;
             i < s->hop_count && used < GATEWAYS_MAX && (i < share || !used);
             i++) {
            const char *node = chempi_table_node_name(q->table, s->hops[i]);

            if (chempi_status_fate_of(job, node) == turns[t])
                names[used++] = node;
        }
    return used;
}

static void print_gateways(const struct question *q,
                           const struct chempi_status_job *job,
                           const struct chempi_table_range *range,
                           uint32_t stage)
{
    const char *names[GATEWAYS_MAX];
    const uint32_t count = list_gateways(q, job, range, stage, names);

    for (uint32_t i = 0; i < count; i++)
        (void)fprintf(q->file, "%s%s", i ? " or " : " to ", names[i]);
}

static void print_time(const struct question *q, const char *before, double us,
                       const char *after)
{
    static const char *const units[] = {"us", "ms", "s"};
    size_t unit = 0;

    for (; us >= 1000 && unit < 2; unit++)
        us /= 1000;
    (void)fprintf(q->file, "%s%.*f %s%s", before,
                  us < 10    ? 2
                  : us < 100 ? 1
                             : 0,
                  us, units[unit], after);
}

static void print_way(const struct question *q,
                      const struct chempi_table_range *range,
                      const struct chempi_status_job *job)
{
    const double us = chempi_table_time(range, q->len);

    for (uint32_t i = 0; i < range->stage_count; i++) {
        const struct chempi_table_stage *stage = &range->stages[i];

        (void)fprintf(q->file, "%s%s %s on %s", i == 0 ? "" : ", then ",
                      stage->device, stage->protocol,
                      chempi_table_network(q->table, stage->network)->name);
        if (i + 1 < range->stage_count)
            print_gateways(q, job, range, i);
    }
    if (us >= 0)
        print_time(q, "; ", us, "");
    (void)fprintf(q->file, "\n");
}

/* What a time is made of, as `mdconfig explain` says it. */
struct breakdown {
    const struct question *q;
    const struct chempi_table_range *range;
};

static void print_part(void *arg, enum chempi_table_part part, uint32_t stage,
                       double us)
{
    const struct breakdown *b = arg;
    const struct question *q = b->q;
    const char *of =
        part == CHEMPI_TABLE_FORWARDING
            ? NULL
            : chempi_table_network(q->table, b->range->stages[stage].network)
                  ->name;

    if (!q->json) {
        print_time(q, "  ", us, "  ");
        (void)fprintf(q->file, "%s%s\n", chempi_table_part_words(part),
                      of ? of : "");
        return;
    }
    chempi_json_open(q->json, NULL);
    chempi_json_text(q->json, "part", chempi_table_part_name(part));
    chempi_json_text(q->json, "of", of);
    chempi_json_real(q->json, "us", us);
    chempi_json_close(q->json);
}

static void print_parts(const struct question *q,
                        const struct chempi_table_range *range)
{
    struct breakdown b = {.q = q, .range = range};
    struct chempi_table_times times[CHEMPI_TABLE_STAGES_MAX];

    if (chempi_table_time(range, q->len) < 0)
        return;
    for (uint32_t i = 0; i < range->stage_count; i++)
        times[i] = range->stages[i].times;
    chempi_table_each_part(times, range->stage_count,
                           range->stage_count > 1 ? range->switch_len : 0,
                           q->len, print_part, &b);
}

/* What a job uses for this size where gateways of it have fallen, by the rules
 * of libchempi/didl/transport/routed/way.c. NULL: nothing is left. */
static const struct chempi_table_range *
range_of_job(const struct question *q, struct chempi_status_job *job,
             const struct chempi_table_range *range)
{
    const struct chempi_table_range *usable = NULL;
    const struct chempi_table_range *direct = NULL;

    if (has_way(q, job, range))
        return range;
    for (uint32_t i = 0; i < q->range_count; i++) {
        const struct chempi_table_range *other = &q->ranges[i];

        if (other->stage_count == 1) {
            direct = other;
        } else if (has_way(q, job, other) &&
                   (!usable || usable->max_len < q->len)) {
            usable = other;
        }
    }
    return usable ? usable : direct;
}

/* Is this node one of the way's gateways? */
static bool is_on(const struct question *q,
                  const struct chempi_table_range *range, const char *node)
{
    for (uint32_t i = 0; i + 1 < range->stage_count; i++)
        for (uint32_t k = 0; k < range->stages[i].hop_count; k++)
            if (strcmp(
                    chempi_table_node_name(q->table, range->stages[i].hops[k]),
                    node) == 0)
                return true;
    return false;
}

/* Has the job lost this gateway of the way, or is it drained there? */
static bool has_fallen(const struct question *q,
                       const struct chempi_table_range *range,
                       const struct chempi_status_gateway *gateway)
{
    return gateway->fate != CHEMPI_FATE_UP && is_on(q, range, gateway->node);
}

static bool has_changed(const struct question *q,
                        const struct chempi_table_range *range,
                        const struct chempi_status_job *job)
{
    for (uint32_t i = 0; i < job->gateway_count; i++)
        if (has_fallen(q, range, &job->gateways[i]))
            return true;
    return false;
}

/* Does the job have ranks on this node? */
static bool is_at(const struct chempi_status *list, uint32_t count,
                  const char *node, const struct chempi_status_job *job)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct chempi_status_job *part =
            chempi_status_find(&list[i], job->id, job->uid);

        if (part && strcmp(list[i].node, node) == 0)
            return part->local > 0;
    }
    return false;
}

/* ---- JSON --------------------------------------------------------------- */

/* range NULL: no way is left. */
static void way_json(const struct question *q,
                     const struct chempi_table_range *range,
                     const struct chempi_status_job *job)
{
    struct chempi_json *j = q->json;
    double us;

    if (!range) {
        chempi_json_text(j, "way", NULL);
        return;
    }
    chempi_json_open_list(j, "way");
    for (uint32_t i = 0; i < range->stage_count; i++) {
        const struct chempi_table_stage *stage = &range->stages[i];
        const char *names[GATEWAYS_MAX];
        const uint32_t count = i + 1 < range->stage_count
                                   ? list_gateways(q, job, range, i, names)
                                   : 0;

        chempi_json_open(j, NULL);
        chempi_json_text(j, "device", stage->device);
        chempi_json_text(j, "protocol", stage->protocol);
        chempi_json_text(j, "network",
                         chempi_table_network(q->table, stage->network)->name);
        if (i + 1 < range->stage_count)
            chempi_json_texts(j, "gateways", names, count);
        chempi_json_close(j);
    }
    chempi_json_close_list(j);
    us = chempi_table_time(range, q->len);
    chempi_json_real(j, "us", us >= 0 ? us : INFINITY);
}

static void job_json(const struct question *q,
                     const struct chempi_table_range *range,
                     struct chempi_status_job *job)
{
    const bool is_same = !has_changed(q, range, job);
    struct chempi_json *j = q->json;

    chempi_json_open(j, NULL);
    chempi_json_text(j, "job", job->id);
    chempi_json_bool(j, "is_same", is_same);
    way_json(q, is_same ? range : range_of_job(q, job, range), job);
    chempi_json_open_list(j, "fallen");
    for (uint32_t g = 0; g < job->gateway_count; g++)
        if (has_fallen(q, range, &job->gateways[g]))
            chempi_status_json_gateway(j, &job->gateways[g]);
    chempi_json_close_list(j);
    chempi_json_close(j);
}

/* ---- words -------------------------------------------------------------- */

/* What is left in a job of a way whose gateways are lost or drained. */
static void print_change(const struct question *q,
                         const struct chempi_table_range *range,
                         struct chempi_status_job *job)
{
    const struct chempi_table_range *now = range_of_job(q, job, range);

    (void)fprintf(q->file, "job %s: ", job->id);
    if (now)
        print_way(q, now, job);
    else
        (void)fprintf(q->file, "no way is left: the gateways are lost\n");
    for (uint32_t g = 0; g < job->gateway_count; g++)
        if (has_fallen(q, range, &job->gateways[g]))
            (void)fprintf(q->file, "  the gateway on %s is %s\n",
                          job->gateways[g].node,
                          chempi_status_fate_word(job->gateways[g].fate));
}

static void print_job(const struct question *q,
                      const struct chempi_table_range *range,
                      struct chempi_status_job *job)
{
    if (has_changed(q, range, job))
        print_change(q, range, job);
    else
        (void)fprintf(q->file, "job %s: the same\n", job->id);
}

/* ---- both --------------------------------------------------------------- */

static void print_jobs(const struct question *q,
                       const struct chempi_table_range *range,
                       const struct chempi_status *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < list[i].job_count; k++) {
            struct chempi_status_job *job = &list[i].jobs[k];

            if (chempi_status_has_job(list, i, job) ||
                !is_at(list, count, q->from, job) ||
                !is_at(list, count, q->to, job))
                continue;
            (q->json ? job_json : print_job)(q, range, job);
        }
}

static void print_all(const struct question *q,
                      const struct chempi_table_range *range,
                      const struct chempi_status *list, uint32_t count)
{
    struct chempi_json *j = q->json;

    if (!j) {
        (void)fprintf(q->file, "%" PRIu64 " bytes from %s to %s: ", q->len,
                      q->from, q->to);
        print_way(q, range, NULL);
        print_parts(q, range);
        print_jobs(q, range, list, count);
        return;
    }
    chempi_json_open(j, NULL);
    chempi_json_number(j, "bytes", q->len);
    chempi_json_text(j, "from", q->from);
    chempi_json_text(j, "to", q->to);
    way_json(q, range, NULL);
    chempi_json_open_list(j, "parts");
    print_parts(q, range);
    chempi_json_close_list(j);
    chempi_json_open_list(j, "jobs");
    print_jobs(q, range, list, count);
    chempi_json_close_list(j);
    chempi_json_close(j);
    chempi_json_end(j);
}

static int answer(struct question *q, const struct chempi_status *list,
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
    q->ranges = range;
    q->range_count = ranges;
    while (q->len > range->max_len)
        range++;
    print_all(q, range, list, count);
    return 0;
}

/* The table of `from`, in the first directory that has it whole; else the
 * words are of the first that has it. */
static int load(const struct chempi_status *list, uint32_t count,
                const char *from, void **data, size_t *len,
                struct chempi_err *err)
{
    char path[4096];
    bool has_tables = false;
    int rc = -ENOENT;

    for (uint32_t i = 0; i < count; i++) {
        int now;

        if (!list[i].tables || !*list[i].tables)
            continue;
        has_tables = true;
        if (snprintf(path, sizeof(path), "%s/%s" CHEMPI_TABLE_SUFFIX,
                     list[i].tables, from) >= (int)sizeof(path))
            continue;
        now = chempi_table_load(path, data, len, rc == -ENOENT ? err : NULL);
        if (!now)
            return 0;
        if (rc == -ENOENT)
            rc = now;
    }
    if (rc != -ENOENT)
        return rc;
    return chempi_err_set(
        err, -ENOENT,
        has_tables ? "there is no connection table of node %s here; ask on "
                     "that node"
                   : "no daemon has connection tables (chempid --tables), so "
                     "node %s has no ways to tell of",
        from);
}

int chempi_route_show(FILE *file, bool is_json,
                      const struct chempi_status *list, uint32_t count,
                      const char *from, const char *to, const char *size,
                      struct chempi_err *err)
{
    struct chempi_json j = {.file = file};
    struct question q = {
        .file = file, .json = is_json ? &j : NULL, .from = from, .to = to};
    void *data = NULL;
    size_t len = 0;
    int rc;

    if (chempi_size_parse(size, UINT64_MAX, &q.len))
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
