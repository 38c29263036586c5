/* SPDX-License-Identifier: BSD-3-Clause */
/* Connection tables of a description; see tables.h. */
#define _GNU_SOURCE /* mkdtemp, nftw */
#include "tests/unit/base/tables.h"

#include <criterion/criterion.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char chempi_tables_dir[] = "/tmp/chempi-tables-XXXXXX";

void chempi_tables_compile(const char *yaml, enum chempi_compile_layout layout)
{
    struct chempi_compile_result result;
    struct chempi_err err = {.code = 0};
    struct chempi_graph graph;
    struct chempi_desc desc;

    cr_assert(mkdtemp(chempi_tables_dir));
    cr_assert_eq(chempi_desc_parse("test", yaml, strlen(yaml), &desc, &err), 0,
                 "%s", err.text);
    chempi_graph_init(&graph, &desc);
    cr_assert_eq(
        chempi_compile_write(&graph, chempi_tables_dir, layout, &result, &err),
        0, "%s", err.text);
    chempi_graph_fini(&graph);
    chempi_desc_fini(&desc);
}

static int remove_one(const char *path, const struct stat *st, int kind,
                      struct FTW *ftw)
{
    (void)st;
    (void)kind;
    (void)ftw;
    return remove(path);
}

void chempi_tables_remove(void)
{
    (void)nftw(chempi_tables_dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}
