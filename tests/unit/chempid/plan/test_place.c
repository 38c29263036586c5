/* SPDX-License-Identifier: BSD-3-Clause */
/* Which node each rank goes to. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "chempid/plan/place.h"

static void expect_places(const struct chempi_place_node *nodes, uint32_t count,
                          uint32_t ppn, enum chempi_map map, const char *want)
{
    uint32_t where[32];
    char text[33] = "";
    const uint32_t size = (uint32_t)strlen(want);

    cr_assert_eq(chempi_place_ranks(nodes, count, size, ppn, map, where, NULL),
                 0);
    for (uint32_t i = 0; i < size; i++)
        text[i] = (char)('0' + where[i]);
    cr_assert_str_eq(text, want);
}

static const struct chempi_place_node unknown[3];
static const struct chempi_place_node sized[3] = {
    {2, 0, 0, false}, {4, 0, 0, false}, {2, 0, 0, false}};
static const struct chempi_place_node loaded[3] = {
    {2, 3, 0, false}, {2, 0, 0, false}, {2, 1, 0, false}};
static const struct chempi_place_node taken[3] = {
    {2, 0, 1, false}, {4, 0, 1, false}, {2, 0, 2, false}};

Test(place, blocks_fill_node_after_node)
{
    expect_places(unknown, 3, 0, CHEMPI_MAP_BLOCK, "001122");
    expect_places(unknown, 3, 0, CHEMPI_MAP_BLOCK, "0001122");
    expect_places(sized, 3, 0, CHEMPI_MAP_BLOCK, "00111");
    expect_places(sized, 3, 1, CHEMPI_MAP_BLOCK, "012");
}

Test(place, more_ranks_than_slots_are_shared_out_by_slots)
{
    expect_places(sized, 3, 0, CHEMPI_MAP_BLOCK, "0000111111112222");
    expect_places(sized, 3, 0, CHEMPI_MAP_BLOCK, "000111122");
}

Test(place, cyclic_deals_ranks_out)
{
    expect_places(unknown, 3, 0, CHEMPI_MAP_CYCLIC, "0120120");
    expect_places(sized, 3, 0, CHEMPI_MAP_CYCLIC, "01201211");
    expect_places(unknown, 3, 2, CHEMPI_MAP_CYCLIC, "012012");
}

Test(place, load_prefers_idle_nodes)
{
    expect_places(loaded, 3, 0, CHEMPI_MAP_LOAD, "112");
    expect_places(loaded, 3, 0, CHEMPI_MAP_LOAD, "001122");
}

/* As it is said: one rank after the other to the least loaded node. */
static void place_by_load(const struct chempi_place_node *nodes, uint32_t count,
                          uint32_t size, uint32_t ppn, uint32_t *ranks)
{
    for (uint32_t i = 0; i < size; i++) {
        uint32_t best = count;
        double least = 0;

        for (uint32_t k = 0; k < count; k++) {
            const double load = (nodes[k].load + ranks[k] + 1) / nodes[k].slots;

            if (ranks[k] < ppn && (best == count || load < least)) {
                best = k;
                least = load;
            }
        }
        ranks[best]++;
    }
}

Test(place, load_is_even_among_many_nodes)
{
    struct chempi_place_node nodes[40] = {0};
    uint32_t where[600];

    for (uint32_t size = 1; size <= 600; size += 37) {
        uint32_t want[40] = {0};
        uint32_t got[40] = {0};

        for (uint32_t k = 0; k < 40; k++) {
            nodes[k].slots = 15 + k * size % 5; /* more than ppn each */
            nodes[k].load = k * 7 % 11;
        }
        place_by_load(nodes, 40, size, 15, want);
        cr_assert_eq(chempi_place_ranks(nodes, 40, size, 15, CHEMPI_MAP_LOAD,
                                        where, NULL),
                     0);
        for (uint32_t i = 0; i < size; i++)
            got[where[i]]++;
        cr_assert_arr_eq(got, want, sizeof(want));
    }
}

Test(place, full_nodes_leave_the_round)
{
    static const struct chempi_place_node nodes[4] = {
        {1, 0, 0, false}, {3, 0, 0, false}, {1, 0, 0, false}, {4, 0, 0, false}};

    expect_places(nodes, 4, 0, CHEMPI_MAP_CYCLIC, "012313133");
}

Test(place, free_slots_come_first)
{
    expect_places(taken, 3, 0, CHEMPI_MAP_BLOCK, "0111");
    expect_places(taken, 3, 0, CHEMPI_MAP_CYCLIC, "0111");
    expect_places(taken, 3, 0, CHEMPI_MAP_LOAD, "0111");
    expect_places(taken, 3, 1, CHEMPI_MAP_BLOCK, "01");
    expect_places(taken, 3, 2, CHEMPI_MAP_BLOCK, "011");
    expect_places(taken, 3, 2, CHEMPI_MAP_BLOCK, "0011");
    expect_places(taken, 3, 0, CHEMPI_MAP_BLOCK, "000111111122");
    expect_places(taken, 3, 0, CHEMPI_MAP_BLOCK, "000111");
}

Test(place, what_is_free_is_told)
{
    static const char *const names[] = {"a", "b", "c"};
    struct chempi_err err;

    cr_assert_eq(chempi_place_check(taken, names, 3, 4, 0, NULL), 0);
    cr_assert_eq(chempi_place_check(taken, names, 3, 5, 0, &err), -EDQUOT);
    cr_assert(strstr(err.text, ": a 1 of 2, b 3 of 4, c 0 of 2;"), "%s",
              err.text);
    cr_assert_eq(chempi_place_check(taken, names, 3, 4, 2, NULL), -EDQUOT);
    cr_assert_eq(chempi_place_check(unknown, names, 3, 99, 0, NULL), 0);
}

Test(place, ranks_that_do_not_fit_are_an_error_with_a_remedy)
{
    struct chempi_err err;
    uint32_t where[8];

    cr_assert_eq(
        chempi_place_ranks(unknown, 3, 7, 2, CHEMPI_MAP_BLOCK, where, &err),
        -ENOSPC);
    cr_assert(strstr(err.text, "--ppn"));
}
