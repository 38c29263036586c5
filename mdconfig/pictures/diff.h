/* SPDX-License-Identifier: BSD-3-Clause */
/* What differs between two descriptions, and what that does to ways. */
#ifndef CHEMPI_MDCONFIG_DIFF_H
#define CHEMPI_MDCONFIG_DIFF_H

#include <stdbool.h>
#include <stdio.h>

#include "mdconfig/routes/route.h"

/* Print the differences, in words or as a list of JSON; the number of them. */
size_t chempi_diff(const struct chempi_graph *before,
                   const struct chempi_graph *after, bool is_json, FILE *out);

#endif
