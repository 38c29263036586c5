/* SPDX-License-Identifier: BSD-3-Clause */
/* The stages of a job that are simulated, and the job. */
#ifndef CHEMPI_BENCH_SCALE_STAGES_H
#define CHEMPI_BENCH_SCALE_STAGES_H

#include <stdint.h>

#include "bench/scale/cost.h"
#include "chempid/job/spec.h"
#include "common/table/build.h"
#include "mdconfig/routes/compile.h"

struct scale_job {
    uint32_t ranks;
    uint32_t per_node;
    uint32_t nodes;
    uint32_t per_rack; /* nodes with a fast network of their own; 0: there is
                          one fast network of all */
    char *text;        /* the description */
    size_t text_len;
    struct chempi_desc desc;
    struct chempi_graph graph;
    struct chempi_blob table; /* of the first node */
    struct chempi_spec spec;
};

/* Who bears a stage's cost. */
enum scale_bearer {
    SCALE_CLUSTER, /* mdconfig, once for all jobs */
    SCALE_JOB,     /* the launcher, once */
    SCALE_PATH,    /* the daemons from the first to the last one, in a row */
    SCALE_NODE,    /* each node's supervisor */
    SCALE_RANK     /* each rank */
};

struct scale_stage {
    const char *name;
    enum scale_bearer bearer;
    /* One run. Ends the program when it fails. */
    void (*run)(struct scale_job *job, struct cost *cost);
};

extern const struct scale_stage scale_mdconfig_stages[];
extern const struct scale_stage scale_launch_stages[];
extern const struct scale_stage scale_library_stages[];

/* What all stages need. */
void scale_job_init(struct scale_job *job, uint32_t ranks, uint32_t per_node,
                    uint32_t per_rack);
void scale_job_fini(struct scale_job *job);
void scale_plan(struct scale_job *job, struct chempi_spec *spec,
                struct cost *cost);

_Noreturn void scale_die(const char *what, const struct chempi_err *err);

#endif
