/* SPDX-License-Identifier: BSD-3-Clause */
/* From a description to the tables of its nodes, in memory and in files. */
#ifndef CHEMPI_MDCONFIG_COMPILE_H
#define CHEMPI_MDCONFIG_COMPILE_H

#include "common/table/build.h"
#include "mdconfig/routes/route.h"

/* The directory part. Errors: -ENOMEM. */
int chempi_compile_directory(const struct chempi_desc *desc,
                             struct chempi_blob *out, struct chempi_err *err);
/* The routes part of a class. Errors: -ENOMEM; -E2BIG: more size ranges than
 * a table holds. */
int chempi_compile_routes(const struct chempi_graph *graph,
                          const struct chempi_routes *routes,
                          struct chempi_blob *out, struct chempi_err *err);
/* The whole table of one node. */
int chempi_compile_image(const struct chempi_graph *graph, uint32_t node,
                         struct chempi_blob *out, struct chempi_err *err);

enum chempi_compile_layout {
    CHEMPI_COMPILE_AUTO,  /* alone while all files together stay small */
    CHEMPI_COMPILE_ALONE, /* every file is complete */
    CHEMPI_COMPILE_SHARED /* files share parts in DIR/shared */
};

struct chempi_compile_result {
    uint32_t table_count;
    size_t table_len_max; /* bytes, parts included */
    bool shared;
};

/*
 * Write DIR/<node>.chempi for every node, making DIR if need be. A file
 * appears whole or not at all; the table of a node is replaced by rename.
 * Errors: -errno with the file; -EBUSY: another mdconfig writes there.
 */
int chempi_compile_write(const struct chempi_graph *graph, const char *dir,
                         enum chempi_compile_layout layout,
                         struct chempi_compile_result *result,
                         struct chempi_err *err);

#endif
