/* SPDX-License-Identifier: BSD-3-Clause */
/* What more can be said of a program that cannot be executed. */
#ifndef CHEMPI_CHEMPID_EXEC_HINT_H
#define CHEMPI_CHEMPID_EXEC_HINT_H

#include <stddef.h>
#include <stdint.h>

#include "chempid/job/spec.h"

/* Words that follow the error `code` (an errno) of a rank's program: that it is
 * not in PATH, that its interpreter is missing, or the like. The text stays as
 * it is where there is nothing to add. */
void chempi_exec_hint(const struct chempi_spec *spec, uint32_t rank, int code,
                      char *text, size_t size);

#endif
