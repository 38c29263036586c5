/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of lines that users write. */
#ifndef CHEMPI_COMMON_WORDS_LINEFILE_H
#define CHEMPI_COMMON_WORDS_LINEFILE_H

#include <stdio.h>

#include "common/base/err.h"

/* A line without its end and without what stands behind '#', which may be
 * changed; `number` counts from 1. 0 or -errno with words. */
typedef int chempi_linefile_fn(void *arg, char *line, unsigned number,
                               struct chempi_err *err);

/*
 * Call `take` with the lines of a file, up to one that it refuses: then "PATH:
 * NUMBER: " stands before its words. The file may be anything, also one that
 * never ends: what cannot be a file of `what` ("hosts") is refused. 0; -EINVAL
 * with words, or what `take` returns.
 */
int chempi_linefile_each(const char *path, const char *what,
                         chempi_linefile_fn *take, void *arg,
                         struct chempi_err *err);

/* The same with a file that is open, and is closed. */
int chempi_linefile_take(FILE *file, const char *path, const char *what,
                         chempi_linefile_fn *take, void *arg,
                         struct chempi_err *err);

#endif
