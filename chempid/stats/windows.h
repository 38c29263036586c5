/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What ranks have done by one-sided operations, handed in at the end as lines
 * of text, summed over all windows of a name:
 *   window NAME REACH OPERATIONS BYTES
 *   lock NAME TAKEN WAITS SERVED
 * TAKEN are locks, WAITS those that were not free, SERVED the requests of
 * others that were executed. Lines that are not of this form are dropped:
 * statistics are worth no failure.
 */
#ifndef CHEMPI_CHEMPID_WINDOWS_H
#define CHEMPI_CHEMPID_WINDOWS_H

#include <stddef.h>
#include <stdio.h>

#include "chempid/stats/lines.h"
#include "common/words/json.h"

extern const struct chempi_lines_kind chempi_windows_kind;
extern const struct chempi_lines_kind chempi_windows_locks;

/* Print the sums as two tables; nothing where nobody has used a window. */
void chempi_windows_print(FILE *file, const void *text, size_t len);
/* The same as members "windows" and "locks", lists, of an open object. */
void chempi_windows_json(struct chempi_json *j, const void *text, size_t len);

#endif
