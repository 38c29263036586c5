/* SPDX-License-Identifier: BSD-3-Clause */
/* What users say of several ranks at once: file names with %r, and lists of
 * ranks. */
#ifndef CHEMPI_CHEMPID_PATTERN_H
#define CHEMPI_CHEMPID_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What stands for what in a name. */
struct chempi_pattern {
    uint32_t rank;    /* %r */
    const char *node; /* %h */
    uint32_t number;  /* %p, of the node in the job */
    const char *job;  /* %j */
};

/* The name of a pattern, in which %% is a percent sign and %g, a number of
 * the world, 0. False: it has another sign, is empty or too long. */
bool chempi_pattern_expand(const char *text, const struct chempi_pattern *what,
                           char *out, size_t size);
/* Does each rank get a name of its own? */
bool chempi_pattern_has_rank(const char *text);

/* Lists of ranks: numbers and ranges with commas between them, "0,4-7"; "all".
 * Is it one? And is the rank in it, which is one? */
bool chempi_pattern_is_ranks(const char *list);
bool chempi_pattern_has(const char *list, uint32_t rank);

#endif
