/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables in memory: what fails is told. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "mdconfig/routes/compile.h"

static unsigned calls;
static unsigned failing; /* the number of the call that fails */

static void *realloc_but_one(void *ptr, size_t size)
{
    return ++calls == failing ? NULL : realloc(ptr, size);
}

/* The last memory that it takes is that of the whole image. */
Test(compile, says_that_there_is_no_memory_for_the_image)
{
    static const char yaml[] = "nodes: [ a, b ]\n";
    struct chempi_sys rigged = chempi_sys_libc;
    struct chempi_err err = {.code = 0};
    struct chempi_blob image;
    struct chempi_graph graph;
    struct chempi_desc desc;

    cr_assert_eq(chempi_desc_parse("test", yaml, strlen(yaml), &desc, &err), 0,
                 "%s", err.text);
    chempi_graph_init(&graph, &desc);
    rigged.realloc = realloc_but_one;
    chempi_sys = &rigged;
    cr_assert_eq(chempi_compile_image(&graph, 1, &image, &err), 0);
    chempi_blob_fini(&image);
    failing = calls;
    calls = 0;
    cr_expect_eq(chempi_compile_image(&graph, 1, &image, &err), -ENOMEM);
    cr_expect(strstr(err.text, "the table of node b: "), "%s", err.text);
    chempi_sys = &chempi_sys_libc;
    chempi_graph_fini(&graph);
    chempi_desc_fini(&desc);
}
