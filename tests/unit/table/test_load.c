/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables in files: what is missing is named, what was replaced read anew. */
#define _GNU_SOURCE /* mkdtemp, nftw */
#include <criterion/criterion.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "common/table/load.h"
#include "mdconfig/routes/compile.h"

static char folder[] = "/tmp/chempi-load-XXXXXX";
static char table[64]; /* of node a */
static unsigned opened;
static unsigned missed; /* this one of those that are opened is not there */

static int open_but_one(const char *path, int flags, mode_t mode)
{
    if (++opened == missed) {
        errno = ENOENT;
        return -1;
    }
    return chempi_sys_libc.open(path, flags, mode);
}

static void compile(void)
{
    static const char yaml[] = "nodes: [ a, b ]\n";
    struct chempi_compile_result result;
    struct chempi_err err = {.code = 0};
    struct chempi_graph graph;
    struct chempi_desc desc;

    cr_assert(mkdtemp(folder));
    (void)snprintf(table, sizeof(table), "%s/a" CHEMPI_TABLE_SUFFIX, folder);
    cr_assert_eq(chempi_desc_parse("test", yaml, strlen(yaml), &desc, &err), 0,
                 "%s", err.text);
    chempi_graph_init(&graph, &desc);
    cr_assert_eq(chempi_compile_write(&graph, folder, CHEMPI_COMPILE_SHARED,
                                      &result, &err),
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

static void remove_tables(void)
{
    (void)nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* Read the table of node a while the open() of this number fails. */
static int load(unsigned number, struct chempi_err *err)
{
    struct chempi_sys rigged = chempi_sys_libc;
    void *data = NULL;
    size_t len;
    int rc;

    rigged.open = open_but_one;
    opened = 0;
    missed = number;
    *err = (struct chempi_err){.code = 0};
    chempi_sys = &rigged;
    rc = chempi_table_load(table, &data, &len, err);
    chempi_sys = &chempi_sys_libc;
    free(data);
    return rc;
}

Test(load, reads_a_table_anew_whose_parts_were_replaced, .init = compile,
     .fini = remove_tables)
{
    struct chempi_err err;

    cr_expect_eq(load(0, &err), 0, "%s", err.text);
    cr_expect_eq(opened, 3); /* the table, its ways, the nodes */
    for (unsigned number = 2; number <= 3; number++) {
        cr_expect_eq(load(number, &err), 0, "%s", err.text);
        cr_expect_str_eq(err.text, "");
        cr_expect_eq(opened, number + 3);
    }
}

Test(load, tells_a_missing_table_from_a_missing_part, .init = compile,
     .fini = remove_tables)
{
    struct chempi_err err;
    char shared[80];

    (void)snprintf(shared, sizeof(shared), "%s/" CHEMPI_TABLE_SHARED_DIR "/",
                   folder);
    cr_expect_eq(load(1, &err), -ENOENT);
    cr_expect(strstr(err.text, table), "%s", err.text);
    (void)nftw(shared, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    cr_expect_eq(load(0, &err), -ESTALE, "%s", err.text);
    cr_expect(strstr(err.text, table), "%s", err.text);
    cr_expect(strstr(err.text, shared), "%s", err.text);
    cr_expect(strstr(err.text, "--alone"), "%s", err.text);
}
