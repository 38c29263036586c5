/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables of which few entries are used. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/compiler.h"
#include "common/containers/sparse.h"

enum { ENTRY = 160, COUNT = 500, PAGES_MAX = 64 };

/* Fill the heap's memory, and give it back to it. */
static void use_heap(void)
{
    char *old = malloc((size_t)COUNT * ENTRY);

    cr_assert_not_null(old);
    memset(old, 'x', (size_t)COUNT * ENTRY);
    free(old);
}

static int pages_of(const char *table, size_t len)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const uintptr_t from = (uintptr_t)table & ~(uintptr_t)(page - 1);
    unsigned char has[PAGES_MAX];
    const size_t all = ((uintptr_t)table + len - from + page - 1) / page;
    int count = 0;

    cr_assert_leq(all, PAGES_MAX);
    cr_assert_eq(mincore((void *)from, all * page, has), 0);
    for (size_t i = 0; i < all; i++)
        count += has[i] & 1;
    return count;
}

Test(sparse, has_the_pages_that_are_written)
{
    char *table;
    int wrong = 0;

    use_heap();
    table = chempi_sparse_alloc(COUNT, ENTRY);
    cr_assert_not_null(table);
    cr_assert_eq(pages_of(table, (size_t)COUNT * ENTRY), 0);
    table[COUNT / 2 * ENTRY] = 1;
    cr_assert_eq(pages_of(table, (size_t)COUNT * ENTRY), 1);
    for (int i = 0; i < COUNT * ENTRY; i++)
        wrong += table[i] != (i == COUNT / 2 * ENTRY);
    cr_assert_eq(wrong, 0);
    chempi_sparse_free(table, COUNT, ENTRY);
}

Test(sparse, is_zero_where_it_is_small)
{
    char *table;
    int wrong = 0;

    use_heap();
    table = chempi_sparse_alloc(3, ENTRY);
    cr_assert_not_null(table);
    for (int i = 0; i < 3 * ENTRY; i++)
        wrong += table[i] != 0;
    cr_assert_eq(wrong, 0);
    cr_expect_eq((uintptr_t)table % CHEMPI_CACHE_LINE, 0);
    chempi_sparse_free(table, 3, ENTRY);
    chempi_sparse_free(NULL, 3, ENTRY);
    chempi_sparse_free(NULL, COUNT, ENTRY);
}

Test(sparse, refuses_what_is_too_much)
{
    cr_assert_null(chempi_sparse_alloc(SIZE_MAX / 2, 3));
    cr_assert_null(chempi_sparse_alloc(SIZE_MAX / 8, 7));
}
