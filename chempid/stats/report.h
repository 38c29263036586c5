/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a job has told of its messages (chempirun --stats, --trace-routes), and
 * whether that is all: supervisors name what is missing (stats_collect.c).
 */
#ifndef CHEMPI_CHEMPID_REPORT_H
#define CHEMPI_CHEMPID_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "chempid/job/spec.h"

/* Numbers in order, each once. */
struct chempi_report_set {
    uint32_t *list; /* free() it */
    size_t count;
};

/* The numbers N of the lines "WORD N"; none without memory. */
struct chempi_report_set chempi_report_find(const void *text, size_t len,
                                            const char *word);
bool chempi_report_has(const struct chempi_report_set *set, uint32_t number);

/* Nodes of the job whose ranks have not all told: [node_count], free() it;
 * NULL without memory. */
bool *chempi_report_lacking(const struct chempi_spec *spec, const void *text,
                            size_t len);

/* Say what is missing in the lines that the nodes of a job have told: of
 * ranks, and, where routes are wanted, of gateways. */
void chempi_report_gaps(FILE *file, const struct chempi_spec *spec,
                        const void *text, size_t len);

#endif
