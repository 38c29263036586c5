/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables in files: what is missing is named, what was replaced read anew. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "common/table/load.h"
#include "tests/unit/base/tables.h"

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
    chempi_tables_compile("nodes: [ a, b ]\n", CHEMPI_COMPILE_SHARED);
    (void)snprintf(table, sizeof(table), "%s/a" CHEMPI_TABLE_SUFFIX,
                   chempi_tables_dir);
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
     .fini = chempi_tables_remove)
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
     .fini = chempi_tables_remove)
{
    struct chempi_err err;
    char shared[80];
    char moved[80];

    (void)snprintf(shared, sizeof(shared), "%s/" CHEMPI_TABLE_SHARED_DIR "/",
                   chempi_tables_dir);
    (void)snprintf(moved, sizeof(moved), "%s/moved", chempi_tables_dir);
    cr_expect_eq(load(1, &err), -ENOENT);
    cr_expect(strstr(err.text, table), "%s", err.text);
    cr_assert_eq(rename(shared, moved), 0);
    cr_expect_eq(load(0, &err), -ESTALE, "%s", err.text);
    cr_expect(strstr(err.text, table), "%s", err.text);
    cr_expect(strstr(err.text, shared), "%s", err.text);
    cr_expect(strstr(err.text, "--alone"), "%s", err.text);
}
