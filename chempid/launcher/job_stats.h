/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the processes of a job have counted, shown when it has ended.
 */
#ifndef CHEMPI_CHEMPID_JOB_STATS_H
#define CHEMPI_CHEMPID_JOB_STATS_H

#include <stddef.h>
#include <stdio.h>

#include "chempid/job/spec.h"
#include "chempid/options/options.h"

/* As the options ask: messages and bytes by way, files, routes. `text` is what
 * supervisors have sent (len bytes, STATS). */
void chempi_job_stats_print(FILE *file, const struct chempi_options *opt,
                            const struct chempi_spec *spec, const void *text,
                            size_t len);

#endif
