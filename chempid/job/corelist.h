/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists of cores as files of ranks have them (Open MPI's "slot="): "2",
 * "0-3,8",
 * "*" for all; "1:0-2" counts cores within socket 1, also those behind the next
 * commas, up to another socket: "0:0,1;1:0". Numbers begin at 0.
 */
#ifndef CHEMPI_CHEMPID_CORELIST_H
#define CHEMPI_CHEMPID_CORELIST_H

#include <stdint.h>

#include "common/base/err.h"

#define CHEMPI_CORELIST_ANY UINT32_MAX /* of no socket in particular */
#define CHEMPI_CORELIST_NUMBER_MAX 65535u

/* The cores from first to last, or with UINT32_MAX as last all that there are.
 * What is not 0 ends the list. */
typedef int chempi_corelist_fn(void *arg, uint32_t socket, uint32_t first,
                               uint32_t last);

/* Call `take` for each item; NULL: only look at the text. 0, what `take`
 * returns, or -EINVAL with words that say what was expected where. */
int chempi_corelist_each(const char *text, chempi_corelist_fn *take, void *arg,
                         struct chempi_err *err);

#endif
