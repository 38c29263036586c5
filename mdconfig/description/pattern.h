/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names and addresses with ranges: "node[00-31]", "a[1,3,5-7]",
 * "r[0-3]n[00-15]". A pattern stands for a list of names; the last bracket
 * varies fastest. Numbers keep the width of the first number of their range.
 */
#ifndef CHEMPI_MDCONFIG_PATTERN_H
#define CHEMPI_MDCONFIG_PATTERN_H

#include <stddef.h>
#include <stdint.h>

#include "mdconfig/description/mem.h"

#define CHEMPI_PATTERN_COUNT_MAX 1048576u /* names of one pattern */
#define CHEMPI_PATTERN_NAME_MAX 256u      /* bytes with the zero */

struct chempi_pattern_run { /* numbers first .. first + count - 1 */
    uint32_t first;
    uint32_t count;
    int width;
};

struct chempi_pattern_group {
    const char *prefix; /* text before the bracket */
    struct chempi_pattern_run *runs;
    size_t run_count;
    uint32_t count; /* numbers of all runs */
};

struct chempi_pattern {
    struct chempi_pattern_group *groups;
    size_t group_count;
    const char *suffix; /* text after the last bracket */
    uint32_t count;     /* names */
};

/* Memory comes from the arena. 0, or -EINVAL with *why = what is wrong (static
 * text) and *at = the offset of it. */
int chempi_pattern_parse(const char *text, struct chempi_arena *arena,
                         struct chempi_pattern *out, const char **why,
                         size_t *at);

/* Name number i (< count). Names are shorter than the limit, which parse
 * checks. */
void chempi_pattern_name(const struct chempi_pattern *pattern, uint32_t i,
                         char buf[CHEMPI_PATTERN_NAME_MAX]);

#endif
