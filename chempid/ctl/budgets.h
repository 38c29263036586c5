/* SPDX-License-Identifier: BSD-3-Clause */
/* chempictl budgets: who may register how much memory. */
#ifndef CHEMPI_CHEMPID_BUDGETS_H
#define CHEMPI_CHEMPID_BUDGETS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "chempid/tree/nodes/status.h"

/* Print records of nodes as a table, or as JSON. Returns the exit status: 1
 * when a node did not answer. */
int chempi_budgets_print(FILE *to, const struct chempi_status *list,
                         uint32_t count, bool is_json);

#endif
