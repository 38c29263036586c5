/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of invariants: each finds what was broken on purpose, and a build with
 * -Dinvariants=true ends the process that breaks one. */
#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>

#include "common/base/invariant.h"
#include "libchempi/services/handle_table.h"
#include "libchempi/services/layout/layout.h"

TestSuite(invariant);

static void fill(struct chempi_handle_table *slots, uint64_t tokens[3])
{
    static int things[3];

    *slots = (struct chempi_handle_table){0};
    for (int i = 0; i < 3; i++)
        cr_assert_eq(chempi_handle_table_put(slots, &things[i], &tokens[i]), 0);
    cr_assert_not_null(chempi_handle_table_take(slots, tokens[1]));
    cr_assert_null(chempi_handle_table_check(slots));
}

Test(invariant, a_slot_without_a_generation_is_found)
{
    struct chempi_handle_table slots;
    uint64_t tokens[3];

    fill(&slots, tokens);
    slots.at[0].generation = 0;
    cr_assert(strstr(chempi_handle_table_check(&slots), "L1"));
    chempi_handle_table_fini(&slots);
}

Test(invariant, a_slot_that_is_free_and_used_is_found)
{
    struct chempi_handle_table slots;
    uint64_t tokens[3];

    fill(&slots, tokens);
    slots.free_slot = 1;
    cr_assert(strstr(chempi_handle_table_check(&slots), "L2"));
    slots.free_slot = 0;
    cr_assert(strstr(chempi_handle_table_check(&slots), "L2"));
    chempi_handle_table_fini(&slots);
}

Test(invariant, slots_whose_list_runs_in_a_circle_are_found)
{
    struct chempi_handle_table slots;
    uint64_t tokens[3];

    fill(&slots, tokens);
    slots.at[slots.free_slot - 1].next_free = slots.free_slot;
    cr_assert(strstr(chempi_handle_table_check(&slots), "L2"));
    chempi_handle_table_fini(&slots);
}

Test(invariant, blocks_of_a_layout_that_touch_are_found)
{
    const int64_t offsets[] = {0, 16, 40};
    const uint64_t lens[] = {8, 4, 8};
    int64_t touching[] = {0, 8, 40};
    const struct chempi_layout_node *node =
        chempi_layout_blocks(3, offsets, lens);
    struct chempi_layout_node broken;

    cr_assert_null(chempi_layout_check(node));
    memcpy(&broken, node, sizeof(broken));
    broken.offsets = touching;
    cr_assert(strstr(chempi_layout_check(&broken), "L2"));
    broken.count = 1;
    cr_assert(strstr(chempi_layout_check(&broken), "L1"));
    chempi_layout_release(node);
}

Test(invariant, a_layout_that_is_smaller_than_its_children_is_found)
{
    const struct chempi_layout_node *node =
        chempi_layout_repeat(chempi_layout_block(0, 8), 5, 24);
    struct chempi_layout_node broken;

    cr_assert_null(chempi_layout_check(node));
    memcpy(&broken, node, sizeof(broken));
    broken.size = 39;
    cr_assert(strstr(chempi_layout_check(&broken), "L5"));
    chempi_layout_release(node);
}

#ifdef CHEMPI_INVARIANTS
#define EXPECTED_CALLS 4 /* 1st, 3rd and 5th of five, and one */
#else
#define EXPECTED_CALLS 0
#endif

static int calls;

static const char *count_call(void)
{
    calls++;
    return NULL;
}

Test(invariant, checks_are_called_only_where_they_are_compiled_in)
{
    cr_assert_null(count_call());
    calls = 0;
    for (int i = 0; i < 5; i++)
        CHEMPI_CHECK_EVERY(2, count_call());
    CHEMPI_CHECK(count_call());
    cr_assert_eq(calls, EXPECTED_CALLS);
}

Test(invariant, a_broken_one_ends_the_process, .signal = SIGABRT)
{
    chempi_invariant_hold("x X1: it does not hold", "x.c", 1);
}
