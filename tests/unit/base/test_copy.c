/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include <criterion/criterion.h>

#include "common/base/copy.h"

#define ROOM (3 * CHEMPI_COPY_BLOCK)
#define GUARD 0x5a

/* Both on a page boundary; `from` holds a pattern, `to` the guard. */
static unsigned char *from;
static unsigned char *to;

static void set_up(void)
{
    from = aligned_alloc(CHEMPI_COPY_PAGE, ROOM);
    to = aligned_alloc(CHEMPI_COPY_PAGE, ROOM);
    cr_assert_not_null(from);
    cr_assert_not_null(to);
    for (size_t i = 0; i < ROOM; i++)
        from[i] = (unsigned char)(i * 7 + i / 251);
}

static void tear_down(void)
{
    free(from);
    free(to);
}

TestSuite(copy, .init = set_up, .fini = tear_down);

static void expect_copy_by(void (*copy)(void *, const void *, size_t),
                           size_t further, size_t len)
{
    memset(to, GUARD, ROOM);
    copy(to + further, from + 64, len);
    for (size_t i = 0; i < further; i++)
        cr_assert_eq(to[i], GUARD, "%zu bytes: before the place", len);
    cr_assert_arr_eq(to + further, from + 64, len);
    for (size_t i = further + len; i < ROOM; i++)
        cr_assert_eq(to[i], GUARD, "%zu bytes: behind the place", len);
}

static void expect_copy(size_t further, size_t len)
{
    expect_copy_by(chempi_copy, further, len);
}

Test(copy, all_of_it_and_nothing_else_is_copied)
{
    static const size_t places[] = {63, 64, 65, 72, 80, 127, 128, 2000};
    static const size_t lens[] = {0,    1,    511,  2047, 2048, 2049,
                                  2559, 2560, 4095, 4096, 5000, 9001};

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(places); i++) {
        for (size_t k = 0; k < CHEMPI_ARRAY_LEN(lens); k++)
            expect_copy(places[i], lens[k]);
    }
}

Test(copy, short_ones_are_exact_up_to_the_longest)
{
    for (size_t len = 0; len <= CHEMPI_COPY_SHORT; len++) {
        memset(to, GUARD, 2 * CHEMPI_COPY_SHORT);
        chempi_copy_short(to + 1, from + 3, len);
        cr_expect_eq(memcmp(to + 1, from + 3, len), 0, "%zu bytes", len);
        cr_expect_eq(to[0], GUARD);
        cr_expect_eq(to[1 + len], GUARD, "%zu bytes", len);
    }
    chempi_copy_short(to, NULL, 0);
}

Test(copy, copies_past_the_caches_are_whole)
{
    static const size_t places[] = {0, 1, 63, 64, 2000};
    static const size_t lens[] = {0,    1,     63,    64,    65,   127,
                                  2048, 16383, 16384, 16385, 40000};

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(places); i++) {
        for (size_t k = 0; k < CHEMPI_ARRAY_LEN(lens); k++) {
            expect_copy_by(chempi_copy_past, places[i], lens[k]);
            expect_copy_by(chempi_copy_groups_past, places[i], lens[k]);
        }
    }
}

Test(copy, long_copies_are_made_of_whole_blocks_and_a_rest)
{
    static const size_t lens[] = {CHEMPI_COPY_BLOCK - 1, CHEMPI_COPY_BLOCK,
                                  CHEMPI_COPY_BLOCK + 1, 2 * CHEMPI_COPY_BLOCK,
                                  2 * CHEMPI_COPY_BLOCK + 4097};

    for (size_t k = 0; k < CHEMPI_ARRAY_LEN(lens); k++) {
        expect_copy(2000, lens[k]);
        expect_copy(65, lens[k]);
    }
}

Test(copy, places_meet_less_than_a_line_further_in_the_page)
{
    cr_assert_not(chempi_copy_meets(to, from));
    cr_assert(chempi_copy_meets(to + 1, from));
    cr_assert(chempi_copy_meets(to + 63, from));
    cr_assert_not(chempi_copy_meets(to + 64, from));
    cr_assert(chempi_copy_meets(to + CHEMPI_COPY_PAGE + 8, from));
    cr_assert(
        chempi_copy_meets(to + CHEMPI_COPY_PAGE, from + CHEMPI_COPY_PAGE - 8));
    cr_assert_not(chempi_copy_meets(to, from + 8));
}
