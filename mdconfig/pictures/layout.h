/* SPDX-License-Identifier: BSD-3-Clause */
/* Letting Graphviz lay out a picture. */
#ifndef CHEMPI_MDCONFIG_LAYOUT_H
#define CHEMPI_MDCONFIG_LAYOUT_H

#include <stdio.h>

#include "common/base/err.h"
#include "mdconfig/routes/route.h"

#define CHEMPI_LAYOUT_LIMIT_S 60u /* of Graphviz */

/*
 * Draw what chempi_dot() writes as SVG by the program "dot" of the PATH. `out`
 * gets the whole picture or nothing. Blocks while it runs, for at most
 * CHEMPI_LAYOUT_LIMIT_S of wall time. 0; -ENOENT: there is no such program;
 * -ETIME: it was ended; -EIO: it failed, or has not drawn anything; or
 * -errno, with words.
 */
int chempi_layout_draw(const struct chempi_graph *graph, uint32_t from,
                       uint64_t len, FILE *out, struct chempi_err *err);

#endif
