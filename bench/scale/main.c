/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stages of jobs of many ranks, without processes behind them: the code of
 * mdconfig, launcher, daemons, supervisors and of the hierarchy of collective
 * operations itself, and what it costs.
 *
 * scale PER_NODE PER_RACK RUNS RANKS...
 *
 * prints for each number of ranks and each stage a line
 *
 *   cost STAGE|BEARER|ranks|nodes|ns|steps|allocations|peak|kept
 *
 * ns is the median of the runs, peak and kept are bytes.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/scale/stages.h"
#include "chempid/remote/remote.h"
#include "chempid/tree/nodes/pieces.h"

#define RUNS_MAX 99u

void scale_die(const char *what, const struct chempi_err *err)
{
    (void)fprintf(stderr, "scale: %s: %s\n", what, err ? err->text : "failed");
    exit(1);
}

static int compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a;
    const uint64_t y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static void run_stage(struct scale_job *job, const struct scale_stage *stage,
                      uint32_t runs)
{
    static const char *const bearers[] = {"cluster", "job", "path", "node",
                                          "rank"};
    uint64_t ns[RUNS_MAX];
    struct cost cost = {.ns = 0};

    for (uint32_t i = 0; i < runs; i++) {
        stage->run(job, &cost);
        ns[i] = cost.ns;
    }
    qsort(ns, runs, sizeof(*ns), compare);
    (void)printf("cost %s|%s|%u|%u|%" PRIu64 "|%" PRIu64 "|%" PRIu64 "|%" PRIu64
                 "|%" PRIu64 "\n",
                 stage->name, bearers[stage->bearer], job->ranks, job->nodes,
                 ns[runs / 2], cost.steps, cost.allocations, cost.peak,
                 cost.kept);
}

static void run_stages(struct scale_job *job, const struct scale_stage *stages,
                       uint32_t runs)
{
    for (; stages->run; stages++)
        run_stage(job, stages, runs);
}

/* Levels of a tree in which each cuts what it is told of into pieces, with a
 * place of its own in each level or (the root) without. */
static uint32_t depth_of(uint32_t count, uint32_t most, uint32_t own)
{
    uint32_t depth = 0;

    for (count -= own; count > 0; depth++)
        count = chempi_pieces_len(count, most) - 1;
    return depth;
}

int main(int argc, char **argv)
{
    const uint32_t per_node = argc > 4 ? (uint32_t)atoi(argv[1]) : 0;
    const uint32_t per_rack = argc > 4 ? (uint32_t)atoi(argv[2]) : 0;
    const uint32_t runs = argc > 4 ? (uint32_t)atoi(argv[3]) : 0;

    if (!per_node || !runs || runs > RUNS_MAX) {
        (void)fprintf(stderr, "usage: scale PER_NODE PER_RACK RUNS RANKS...\n");
        return 2;
    }
    for (int i = 4; i < argc; i++) {
        struct scale_job job;

        scale_job_init(&job, (uint32_t)atoi(argv[i]), per_node, per_rack);
        run_stages(&job, scale_mdconfig_stages, runs);
        run_stages(&job, scale_launch_stages, runs);
        run_stages(&job, scale_library_stages, runs);
        (void)printf("sizes %u|%u|%u|%zu|%u|%u\n", job.ranks, job.nodes,
                     job.desc.class_count, job.table.len,
                     depth_of(job.nodes, CHEMPI_DAEMON_FANOUT, 1),
                     depth_of(job.nodes, CHEMPI_REMOTE_CALLS, 0));
        scale_job_fini(&job);
    }
    return 0;
}
