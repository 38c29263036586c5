/* SPDX-License-Identifier: BSD-3-Clause */
/* Which way exchanges take, by what they have taken. */
#define _GNU_SOURCE /* unsetenv */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "common/control/client.h"
#include "libchempi/didl/coll/node/copy/way_choice.h"
#include "libchempi/didl/locality/affinity.h"

enum { TRIED = 4, LEARNING = 16 + TRIED + 1, SHORT_NS = 1000, LONG_NS = 2000 };

static const struct chempi_way_exchange usual = {.block_len = 64 << 10,
                                                 .members = 4};

/* What the two ways take, and every fifth time much more. */
struct times {
    uint64_t rings_ns;
    uint64_t copies_ns;
};

/* How many of them go through rings. */
static int exchange(const struct chempi_way_exchange *x, int count,
                    struct times times)
{
    int by_rings = 0;

    for (int i = 0; i < count; i++) {
        const bool is_rings = chempi_way_is_rings(x);
        const uint64_t ns = is_rings ? times.rings_ns : times.copies_ns;

        chempi_way_note(x, is_rings, i % 5 == 1 ? 100 * ns : ns);
        by_rings += is_rings;
    }
    return by_rings;
}

static const struct times rings_win = {SHORT_NS, LONG_NS};
static const struct times copies_win = {LONG_NS, SHORT_NS};

Test(way_choice, both_ways_are_tried_and_the_shorter_one_is_taken)
{
    cr_assert_eq(exchange(&usual, LEARNING, rings_win), TRIED);
    cr_assert_eq(exchange(&usual, CHEMPI_WAY_EVERY - LEARNING, rings_win),
                 CHEMPI_WAY_EVERY - LEARNING);
    cr_assert_eq(exchange(&usual, LEARNING, copies_win), LEARNING - TRIED);
    cr_assert_eq(exchange(&usual, CHEMPI_WAY_EVERY - LEARNING, copies_win), 0);
    cr_assert_eq(exchange(&usual, CHEMPI_WAY_EVERY, copies_win), TRIED);
}

Test(way_choice, what_is_hardly_shorter_is_not_taken)
{
    const struct times even = {SHORT_NS * 15 / 16, SHORT_NS};

    cr_assert_eq(exchange(&usual, CHEMPI_WAY_EVERY, even), TRIED);
}

Test(way_choice, the_first_ones_need_no_memory)
{
    cr_assert_eq(exchange(&usual, LEARNING - TRIED - 1, rings_win), 0);
}

Test(way_choice, sizes_members_and_later_waits_learn_apart)
{
    struct chempi_way_exchange others[] = {usual, usual, usual};

    others[0].block_len *= 4;
    others[1].members = 16;
    others[2].is_later = true;
    (void)exchange(&usual, LEARNING, rings_win);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        (void)exchange(&others[i], LEARNING, copies_win);
        cr_assert_eq(exchange(&others[i], 10, copies_win), 0, "%zu", i);
    }
    cr_assert_eq(exchange(&usual, 10, rings_win), 10);
}

/* Any size and number has a class. */
Test(way_choice, extremes_are_counted_too)
{
    const struct chempi_way_exchange ends[] = {
        {.block_len = 1, .members = 3},
        {.block_len = UINT64_MAX, .members = 1 << 20}};

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        (void)exchange(&ends[i], LEARNING, rings_win);
        cr_assert_eq(exchange(&ends[i], 10, rings_win), 10);
    }
}

Test(way_choice, what_fits_no_cache_and_crowds_have_none)
{
    struct chempi_way_exchange x = usual;

    cr_assert_eq(unsetenv(CHEMPI_CPUS_ENV), 0);
    cr_assert_eq(unsetenv(CHEMPI_HOST_CPUS_ENV), 0);
    chempi_affinity_init(1);
    x.block_len = 0; /* fits, however many processors there are */
    x.members = 4 * (int)chempi_affinity_cores();
    cr_assert(chempi_way_is_open(&x));
    x.members++;
    cr_assert_not(chempi_way_is_open(&x));
    x.members = 2;
    x.block_len = 8 << 20;
    cr_assert(chempi_way_is_open(&x));
    x.block_len++;
    cr_assert_not(chempi_way_is_open(&x));
}
