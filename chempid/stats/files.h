/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What ranks have done to files, handed in at the end as lines of text:
 *   file NAME AMOUNT
 * NAME is that of a performance variable without chempi_io_. Lines that are not
 * of this form are dropped: statistics are worth no failure.
 */
#ifndef CHEMPI_CHEMPID_FILES_H
#define CHEMPI_CHEMPID_FILES_H

#include <stddef.h>
#include <stdio.h>

#include "chempid/stats/lines.h"
#include "common/words/json.h"

extern const struct chempi_lines_kind chempi_files_kind;

/* Print the sums as a table; nothing where nobody has used a file. */
void chempi_files_print(FILE *file, const void *text, size_t len);
/* The same as a member "files" of an open object. */
void chempi_files_json(struct chempi_json *j, const void *text, size_t len);

#endif
