/* SPDX-License-Identifier: BSD-3-Clause */
/* Stages of the library: what a rank learns of the job, and its way through it
 * in collective operations. */
#include <stdlib.h>

#include "bench/scale/stages.h"
#include "common/base/sys.h"
#include "common/table/table.h"
#include "libchempi/didl/coll/hier/hier.h"

/* What a hierarchy follows from. */
struct facts {
    const struct scale_job *job;
    struct chempi_table *table;
};

static uint32_t node_of(const void *arg, int rank)
{
    const struct facts *f = arg;

    return f->job->spec.node_of_rank[rank];
}

static bool attachment(const void *arg, uint32_t node, uint32_t i, int *network)
{
    const struct facts *f = arg;
    struct chempi_table_attachment a;

    if (i >= chempi_table_attachment_count(f->table, node))
        return false;
    chempi_table_attachment(f->table, node, i, &a);
    *network = (int)a.network;
    return true;
}

/* Fast networks cost a third of the others. */
static uint64_t *cost_networks(const struct chempi_desc *desc)
{
    uint64_t *costs = chempi_sys->calloc(desc->network_count, sizeof(*costs));

    if (!costs)
        scale_die("no memory for networks", NULL);
    for (uint32_t i = 0; i < desc->network_count; i++)
        costs[i] = desc->networks[i].name[0] == 'f' ? 1000 : 3000;
    return costs;
}

/* With trees from rank `root`, those of all kinds. */
static void plant(struct scale_job *job, bool has_trees, struct cost *cost)
{
    struct facts facts = {.job = job};
    struct chempi_err err = {.code = 0};
    struct chempi_hier_plan plan = {
        .size = (int)job->ranks,
        .rank = (int)job->ranks / 2,
        .node_of = node_of,
        .node_limit = job->nodes,
        .network_count = (int)job->desc.network_count,
        .costs = cost_networks(&job->desc),
        .attachment = attachment,
        .similar_percent = 25,
    };
    struct chempi_hier *h;

    if (chempi_table_open(job->table.data, job->table.len, &facts.table, &err))
        scale_die("table", &err);
    plan.arg = &facts;
    if (!has_trees)
        cost_begin(cost);
    h = chempi_hier_create(&plan);
    if (!h)
        scale_die("no hierarchy", NULL);
    if (has_trees)
        cost_begin(cost);
    for (int kind = 0; has_trees && kind < CHEMPI_HIER_KIND_COUNT; kind++)
        if (!chempi_hier_tree(h, (enum chempi_hier_kind)kind, 0))
            scale_die("no tree", NULL);
    cost_end(cost);
    chempi_hier_destroy(h);
    chempi_table_close(facts.table);
    free((void *)(uintptr_t)plan.costs);
}

static void make_hierarchy(struct scale_job *job, struct cost *cost)
{
    plant(job, false, cost);
}

static void make_trees(struct scale_job *job, struct cost *cost)
{
    plant(job, true, cost);
}

const struct scale_stage scale_library_stages[] = {
    {"hierarchy", SCALE_RANK, make_hierarchy},
    {"its trees", SCALE_RANK, make_trees},
    {NULL, SCALE_RANK, NULL}};
