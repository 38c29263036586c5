/* SPDX-License-Identifier: BSD-3-Clause */
/* Stages of mdconfig: from a description to tables. */
#define _GNU_SOURCE /* open_memstream */
#include <stdio.h>
#include <stdlib.h>

#include "bench/scale/stages.h"
#include "common/table/table.h"

static void describe(struct scale_job *job)
{
    FILE *out = open_memstream(&job->text, &job->text_len);

    if (!out)
        scale_die("no memory for a description", NULL);
    (void)fprintf(out,
                  "cluster: scale\nnodes:\n  n[0-%u]: { slots: %u }\n"
                  "networks:\n  eth:\n    type: ethernet\n"
                  "    attach: [ 'n[0-%u]' ]\n",
                  job->nodes - 1, job->per_node, job->nodes - 1);
    for (uint32_t i = 0; i < job->nodes; i += job->per_rack) {
        uint32_t end = job->nodes;

        if (job->per_rack && end - i > job->per_rack)
            end = i + job->per_rack;
        (void)fprintf(out,
                      "  fast%u:\n    type: infiniband\n"
                      "    attach: [ 'n[%u-%u]' ]\n",
                      i, i, end - 1);
        if (!job->per_rack)
            break;
    }
    if (fclose(out) != 0)
        scale_die("no memory for a description", NULL);
}

static void parse(const struct scale_job *job, struct chempi_desc *desc)
{
    struct chempi_err err = {.code = 0};

    if (chempi_desc_parse("scale", job->text, job->text_len, desc, &err))
        scale_die("description", &err);
}

void scale_job_init(struct scale_job *job, uint32_t ranks, uint32_t per_node,
                    uint32_t per_rack)
{
    struct chempi_err err = {.code = 0};
    struct cost cost;

    *job = (struct scale_job){.ranks = ranks,
                              .per_node = per_node,
                              .nodes = (ranks + per_node - 1) / per_node,
                              .per_rack = per_rack};
    describe(job);
    parse(job, &job->desc);
    chempi_graph_init(&job->graph, &job->desc);
    if (chempi_compile_image(&job->graph, 0, &job->table, &err))
        scale_die("table", &err);
    scale_plan(job, &job->spec, &cost);
}

void scale_job_fini(struct scale_job *job)
{
    chempi_spec_fini(&job->spec);
    chempi_blob_fini(&job->table);
    chempi_graph_fini(&job->graph);
    chempi_desc_fini(&job->desc);
    free(job->text);
}

static void read_description(struct scale_job *job, struct cost *cost)
{
    struct chempi_desc desc;

    cost_begin(cost);
    parse(job, &desc);
    cost_end(cost);
    chempi_desc_fini(&desc);
}

/* Of the first class; mdconfig does it for each. */
static void find_routes(struct scale_job *job, struct cost *cost)
{
    struct chempi_err err = {.code = 0};
    struct chempi_blob blob = {.data = NULL};
    struct chempi_routes routes;

    cost_begin(cost);
    chempi_route_source(&job->graph, 0, &routes);
    if (chempi_compile_routes(&job->graph, &routes, &blob, &err))
        scale_die("routes", &err);
    chempi_routes_fini(&routes);
    cost_end(cost);
    chempi_blob_fini(&blob);
}

static void make_directory(struct scale_job *job, struct cost *cost)
{
    struct chempi_err err = {.code = 0};
    struct chempi_blob blob = {.data = NULL};

    cost_begin(cost);
    if (chempi_compile_directory(&job->desc, &blob, &err))
        scale_die("directory", &err);
    cost_end(cost);
    chempi_blob_fini(&blob);
}

const struct scale_stage scale_mdconfig_stages[] = {
    {"description", SCALE_CLUSTER, read_description},
    {"directory", SCALE_CLUSTER, make_directory},
    {"routes", SCALE_CLUSTER, find_routes},
    {NULL, SCALE_CLUSTER, NULL}};
