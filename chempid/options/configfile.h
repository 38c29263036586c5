/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files of programs for "chempirun --configfile" (MPI 5.0, section 11.5, form
 * B): what stands between the colons of a command line, a program a line.
 *
 *     # comment
 *     -n 2 --env "GREETING=good day" ./ocean
 *     -n 10 ./atmos input.nc \
 *         --verbose
 *
 * A line whose first character that is not blank is "#" is a comment. A
 * backslash at the end of any other line joins it with the next one; between
 * single quotes it and the end of the line stay in the word. Words, quotes and
 * backslashes are as a shell's, but a quote ends in the line in which it
 * begins; nothing is expanded.
 */
#ifndef CHEMPI_CHEMPID_CONFIGFILE_H
#define CHEMPI_CHEMPID_CONFIGFILE_H

#include <stdint.h>

#include "chempid/tree/pool.h"
#include "common/base/err.h"

#define CHEMPI_CONFIGFILE_BYTES_MAX (1u << 20)

struct chempi_configfile_line {
    char **words;    /* at least one; ends with NULL */
    uint32_t number; /* of the line in which it begins, from 1 */
};

struct chempi_configfile {                /* all in the pool */
    struct chempi_configfile_line *lines; /* [count], without empty ones */
    uint32_t count;
};

/* Read a file, which holds one program at least. -EINVAL with words that name
 * file and line, or -ENOMEM; *out is untouched then. */
int chempi_configfile_read(struct chempi_configfile *out,
                           struct chempi_pool *pool, const char *path,
                           struct chempi_err *err);

/* The words of one line, which is the value of an option; it ends with NULL.
 * As above. */
int chempi_configfile_words(char ***out, struct chempi_pool *pool,
                            const char *option, const char *line,
                            struct chempi_err *err);

#endif
