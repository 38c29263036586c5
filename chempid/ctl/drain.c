/* SPDX-License-Identifier: BSD-3-Clause */
/* Orders to spare gateways; see drain.h. */
#define _GNU_SOURCE /* geteuid */
#include "chempid/ctl/drain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chempid/tree/nodes/reachability.h"
#include "common/control/msg.h"
#include "common/table/load.h"
#include "common/table/table.h"
#include "common/words/fold.h"

#define NAMES_TEXT 320 /* bytes of a list of nodes */
#define PAIRS_TEXT 400 /* bytes of pairs of nodes */

/* An order, and what it is asked about. */
struct order {
    const struct chempi_drain *d;
    struct chempi_pool pool;
    const char **names; /* [d->count], for lists */
    const char **dirs;  /* of tables */
    uint32_t dir_count;
    const struct chempi_status *node;
    const struct chempi_status_job *job; /* NULL: jobs to come */
};

static int make_order(const struct chempi_drain *d, struct order *o)
{
    *o = (struct order){.d = d};
    o->names = chempi_pool_array(&o->pool, d->count, sizeof(*o->names));
    o->dirs = chempi_pool_array(&o->pool, d->count, sizeof(*o->dirs));
    if (!o->names || !o->dirs)
        return -ENOMEM;
    for (uint32_t i = 0; i < d->count; i++) {
        uint32_t k = 0;

        if (!d->list[i].tables || !*d->list[i].tables)
            continue;
        while (k < o->dir_count && strcmp(o->dirs[k], d->list[i].tables) != 0)
            k++;
        if (k == o->dir_count)
            o->dirs[o->dir_count++] = d->list[i].tables;
    }
    return 0;
}

static const struct chempi_status_gateway *
gateway_of(const struct chempi_status_job *job, const char *node)
{
    for (uint32_t i = 0; i < job->gateway_count; i++)
        if (strcmp(job->gateways[i].node, node) == 0)
            return &job->gateways[i];
    return NULL;
}

/* ---- is there such a thing? --------------------------------------------- */

static int find_node(struct order *o, struct chempi_err *err)
{
    const struct chempi_drain *d = o->d;
    char known[NAMES_TEXT];

    for (uint32_t i = 0; i < d->count; i++) {
        o->names[i] = d->list[i].node;
        if (strcmp(d->list[i].node, d->node) == 0)
            o->node = &d->list[i];
    }
    if (o->node && *o->node->error)
        return chempi_err_set(err, -ENOENT, "node %s: %s", d->node,
                              o->node->error);
    if (o->node)
        return 0;
    chempi_fold_names(o->names, d->count, known, sizeof(known));
    return chempi_err_set(err, -ENOENT,
                          "no daemon runs for a node %s; there are %s", d->node,
                          known);
}

/* A job that is named must run, be ours, and have a gateway there. */
static int find_named_job(struct order *o, struct chempi_err *err)
{
    const struct chempi_drain *d = o->d;
    const struct chempi_status_job *job = NULL;
    const char *names[64] = {NULL};
    char text[NAMES_TEXT];
    uint32_t count = 0;

    for (uint32_t i = 0; i < d->count && !job; i++)
        job = chempi_status_find(&d->list[i], d->job, d->uid);
    if (!job)
        return chempi_err_set(err, -ESRCH, "no job %s runs; see chempictl jobs",
                              d->job);
    if (geteuid() != 0 && geteuid() != job->uid)
        return chempi_err_set(err, -EPERM,
                              "job %s: only root and the user whose job it is "
                              "may do so",
                              d->job);
    if (gateway_of(job, d->node))
        return 0;
    for (; count < job->gateway_count && count < 64; count++)
        names[count] = job->gateways[count].node;
    chempi_fold_names(names, count, text, sizeof(text));
    return chempi_err_set(err, -ENOENT, "job %s has no gateway on node %s%s%s",
                          d->job, d->node,
                          count ? ", but on " : " nor on any other", text);
}

static int open_table(const struct order *o, void **data,
                      struct chempi_table **table)
{
    char path[4096];
    size_t len = 0;
    int rc = -ENOENT;

    for (uint32_t i = 0; rc && i < o->dir_count; i++) {
        const int n = snprintf(path, sizeof(path), "%s/%s" CHEMPI_TABLE_SUFFIX,
                               o->dirs[i], o->d->node);

        if (n > 0 && (size_t)n < sizeof(path))
            rc = chempi_table_load(path, data, &len, NULL);
    }
    if (rc)
        return rc;
    rc = chempi_table_open(*data, len, table, NULL);
    if (rc)
        free(*data);
    return rc;
}

static int refuse_table(const struct order *o, const struct chempi_table *table,
                        struct chempi_err *err)
{
    const char *names[256] = {NULL};
    char text[NAMES_TEXT];
    uint32_t count = 0;

    for (uint32_t n = 0; n < chempi_table_node_count(table); n++)
        if (chempi_table_node_is_gateway(table, n) && count < 256)
            names[count++] = chempi_table_node_name(table, n);
    chempi_fold_names(names, count, text, sizeof(text));
    return chempi_err_set(
        err, -ENOENT, "node %s is no gateway by the network description%s%s",
        o->d->node, count ? "; gateways are " : ", nor is any", text);
}

/* A node must be a gateway by its table or in some job. */
static int check_gateway(const struct order *o, struct chempi_err *err)
{
    struct chempi_table *table = NULL;
    void *data = NULL;
    int rc = 0;

    for (uint32_t i = 0; i < o->node->job_count; i++)
        if (gateway_of(&o->node->jobs[i], o->d->node))
            return 0;
    if (open_table(o, &data, &table))
        return chempi_err_set(
            err, -ENOENT,
            "node %s is no gateway of any job that runs, and "
            "there is no connection table of it here (chempid "
            "--tables)",
            o->d->node);
    if (!chempi_table_node_is_gateway(table, chempi_table_self(table)))
        rc = refuse_table(o, table, err);
    chempi_table_close(table);
    free(data);
    return rc;
}

/* ---- is it the last one? ------------------------------------------------ */

static bool was_usable(void *arg, const char *gateway)
{
    const struct order *o = arg;

    if (o->job) {
        const struct chempi_status_gateway *g = gateway_of(o->job, gateway);

        return g && g->fate == CHEMPI_FATE_UP;
    }
    for (uint32_t i = 0; i < o->d->count; i++)
        if (strcmp(o->d->list[i].node, gateway) == 0)
            return !*o->d->list[i].error && !o->d->list[i].is_drained;
    return false; /* no daemon there, no gateway */
}

static bool is_usable(void *arg, const char *gateway)
{
    const struct order *o = arg;

    return strcmp(gateway, o->d->node) != 0 && was_usable(arg, gateway);
}

/* The nodes of a job's ranks, or all that answer. */
static uint32_t list_ends(const struct order *o)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < o->d->count; i++) {
        const struct chempi_status *s = &o->d->list[i];
        const struct chempi_status_job *job =
            o->job ? chempi_status_find(s, o->job->id, o->job->uid) : NULL;

        if (!*s->error && (!o->job || (job && job->local)))
            o->names[count++] = s->node;
    }
    return count;
}

/* What is said of a job, or of those to come. */
static void open_remark(const struct order *o, const char *what)
{
    chempi_json_open(o->d->json, NULL);
    chempi_json_text(o->d->json, "what", what);
    chempi_json_text(o->d->json, "job", o->job ? o->job->id : NULL);
}

static void last_json(const struct order *o,
                      const struct chempi_reachability *cuts)
{
    struct chempi_json *j = o->d->json;

    for (uint32_t i = 0; i < cuts->group_count; i++) {
        const struct chempi_reachability_group *g = &cuts->groups[i];

        open_remark(o, "stays in use");
        chempi_json_texts(j, "from", g->from, g->from_count);
        chempi_json_texts(j, "to", g->to, g->to_count);
        chempi_json_bool(j, "is_one_way", g->is_one_way);
        chempi_json_close(j);
    }
}

static int tell_last(const struct order *o,
                     const struct chempi_reachability *cuts,
                     struct chempi_err *err)
{
    char pairs[PAIRS_TEXT];
    char who[64] = "";

    if (o->job)
        (void)snprintf(who, sizeof(who), " in job %s", o->job->id);
    if (o->d->json && o->d->is_forced) {
        last_json(o, cuts);
        return 0;
    }
    for (uint32_t i = 0;
         !o->d->json && cuts->group_count > 1 && i < cuts->group_count; i++) {
        chempi_reachability_put_group(&cuts->groups[i], pairs, sizeof(pairs));
        (void)fprintf(o->d->out, "%s\n", pairs);
    }
    chempi_reachability_put(cuts, pairs, sizeof(pairs));
    if (o->d->is_forced) {
        (void)fprintf(o->d->out,
                      "the gateway on node %s stays in use%s between %s, which "
                      "have no other\n",
                      o->d->node, who, pairs);
        return 0;
    }
    return chempi_err_set(err, -EBUSY,
                          "the gateway on node %s is the last one%s between "
                          "%s; nothing was changed (--force drains it for all "
                          "others)",
                          o->d->node, who, pairs);
}

static void tell_unknown(const struct order *o, uint32_t count)
{
    if (!o->d->json) {
        (void)fprintf(o->d->out,
                      "%u nodes were not looked at: there is no connection "
                      "table of them here, or there are more than %u\n",
                      count, CHEMPI_REACHABILITY_NODES_MAX);
        return;
    }
    open_remark(o, "not looked at");
    chempi_json_number(o->d->json, "nodes", count);
    chempi_json_close(o->d->json);
}

static int check_last(struct order *o, const struct chempi_status_job *job,
                      struct chempi_err *err)
{
    struct chempi_reachability_question q = {
        .nodes = o->names,
        .dirs = o->dirs,
        .dir_count = o->dir_count,
        .is_usable = is_usable,
        .was_usable = was_usable,
        .arg = o,
    };
    struct chempi_reachability cuts;
    int rc;

    o->job = job;
    q.node_count = list_ends(o);
    rc = chempi_reachability_find(&q, &cuts);
    if (rc)
        return chempi_err_set(err, rc, "out of memory");
    if (cuts.unknown)
        tell_unknown(o, cuts.unknown);
    if (cuts.pairs)
        rc = tell_last(o, &cuts, err);
    chempi_reachability_fini(&cuts);
    return rc;
}

static int check_order(struct order *o, struct chempi_err *err)
{
    const struct chempi_drain *d = o->d;
    int rc = find_node(o, err);

    if (!rc)
        rc = d->job ? find_named_job(o, err) : check_gateway(o, err);
    if (rc || d->is_undrain)
        return rc;
    for (uint32_t i = 0; !rc && i < o->node->job_count; i++) {
        const struct chempi_status_job *job = &o->node->jobs[i];

        if (gateway_of(job, d->node) &&
            (!d->job || (strcmp(d->job, job->id) == 0 && d->uid == job->uid)))
            rc = check_last(o, job, err);
    }
    return rc || d->job ? rc : check_last(o, NULL, err);
}

int chempi_drain_check(const struct chempi_drain *d, struct chempi_err *err)
{
    struct order o;
    int rc = make_order(d, &o);

    rc = rc ? chempi_err_set(err, rc, "out of memory") : check_order(&o, err);
    chempi_pool_fini(&o.pool);
    return rc;
}

/* ---- what is drained ---------------------------------------------------- */

/* json NULL: words. job NULL: in all of them. */
static void list_gateway(FILE *out, struct chempi_json *json, const char *node,
                         const char *job)
{
    if (!json) {
        (void)fprintf(out, "%-20s %s%s\n", node, job ? "job " : "all jobs",
                      job ? job : "");
        return;
    }
    chempi_json_open(json, NULL);
    chempi_json_text(json, "node", node);
    chempi_json_text(json, "job", job);
    chempi_json_close(json);
}

static void list_job(FILE *out, struct chempi_json *json,
                     const struct chempi_status *list, uint32_t count,
                     const struct chempi_status_job *job)
{
    for (uint32_t i = 0; i < job->gateway_count; i++) {
        const struct chempi_status_gateway *g = &job->gateways[i];
        bool is_told = g->fate != CHEMPI_FATE_DRAINED;

        for (uint32_t k = 0; k < count && !is_told; k++)
            is_told = list[k].is_drained && strcmp(list[k].node, g->node) == 0;
        if (!is_told)
            list_gateway(out, json, g->node, job->id);
    }
}

void chempi_drain_list(FILE *out, bool is_json,
                       const struct chempi_status *list, uint32_t count)
{
    struct chempi_json j = {.file = out};
    struct chempi_json *json = is_json ? &j : NULL;

    if (json)
        chempi_json_open_list(json, NULL);
    for (uint32_t i = 0; i < count; i++)
        if (list[i].is_drained)
            list_gateway(out, json, list[i].node, NULL);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < list[i].job_count; k++)
            if (!chempi_status_has_job(list, i, &list[i].jobs[k]))
                list_job(out, json, list, count, &list[i].jobs[k]);
    if (json) {
        chempi_json_close_list(json);
        chempi_json_end(json);
    }
}
