/* SPDX-License-Identifier: BSD-3-Clause */
/* From displacements to positions, and layouts as words, against lists of
 * bytes. */
#include "libchempi/services/layout/layout_order.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <sys/uio.h>

#include "libchempi/services/layout/segment.h"

typedef const struct chempi_layout_node node_t;

static uint64_t state = 7;

static uint64_t draw(uint64_t below)
{
    state =
        state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (state >> 33) % below;
}

/* Any layout of up to three levels whose displacements grow. */
static node_t *random_layout(int depth)
{
    node_t *child = chempi_layout_block((int64_t)draw(5), 1 + draw(9));
    uint64_t count = 2 + draw(4);
    int64_t offsets[6];
    uint64_t lens[6];
    int64_t at = 0;

    if (depth > 0) {
        chempi_layout_release(child);
        child = random_layout(depth - 1);
    }
    for (uint64_t i = 0; i < count; i++) {
        offsets[i] = at + (int64_t)draw(7);
        lens[i] = 1 + draw(6);
        at = offsets[i] + (int64_t)lens[i];
    }
    switch (draw(4)) {
    case 0:
        at = chempi_layout_end(child) - chempi_layout_first(child);
        return chempi_layout_repeat(child, count, at + (int64_t)draw(9));
    case 1:
        chempi_layout_release(child);
        return chempi_layout_blocks(count, offsets, lens);
    case 2:
        at = chempi_layout_end(child);
        for (uint64_t i = 0; i < count; i++)
            offsets[i] = (int64_t)i * (at + 3) + (int64_t)draw(3);
        return chempi_layout_indexed(child, count, offsets);
    default:
        return chempi_layout_shift(child, (int64_t)draw(20));
    }
}

/* The displacement of each packed byte. */
static uint64_t list_bytes(node_t *node, int64_t *bytes)
{
    struct chempi_layout layout = {node->size, 1 << 20, node};
    struct chempi_segment iter;
    struct iovec run;
    uint64_t n = 0;

    chempi_segment_init(&iter, NULL, 1, &layout);
    while (chempi_segment_runs(&iter, &run, 1, 1) == 1)
        bytes[n++] = (int64_t)(uintptr_t)run.iov_base;
    return n;
}

Test(layout_order, positions_and_offsets_are_those_of_the_list)
{
    static int64_t bytes[20000];

    for (int i = 0; i < 400; i++) {
        node_t *node = random_layout((int)draw(3));
        uint64_t n = list_bytes(node, bytes);
        uint64_t below = 0;

        cr_assert(chempi_layout_is_ordered(node));
        cr_assert_eq(chempi_layout_first(node), bytes[0]);
        cr_assert_eq(chempi_layout_end(node), bytes[n - 1] + 1);
        for (uint64_t pos = 0; pos < n; pos++)
            cr_assert_eq(chempi_layout_at(node, pos), bytes[pos]);
        for (int64_t x = 0; x < bytes[n - 1] + 3; x++) {
            while (below < n && bytes[below] < x)
                below++;
            cr_assert_eq(chempi_layout_below(node, x), below);
        }
        chempi_layout_release(node);
    }
}

Test(layout_order, a_layout_survives_its_journey_as_words)
{
    static int64_t before[20000];
    static int64_t after[20000];
    uint64_t words[4096];

    for (int i = 0; i < 400; i++) {
        node_t *node = random_layout((int)draw(3));
        uint64_t count = chempi_layout_encode(node, NULL, 0);
        uint64_t n = list_bytes(node, before);
        node_t *copy;

        cr_assert_leq(count, 4096);
        cr_assert_eq(chempi_layout_encode(node, words, 4096), count);
        copy = chempi_layout_decode(words, count);
        cr_assert_not_null(copy);
        cr_assert_eq(list_bytes(copy, after), n);
        cr_assert_arr_eq(before, after, n * sizeof(before[0]));
        chempi_layout_release(copy);
        cr_assert_null(chempi_layout_decode(words, count - 1));
        chempi_layout_release(node);
    }
}

Test(layout_order, words_that_are_no_layout_are_refused)
{
    uint64_t words[64];

    for (int i = 0; i < 20000; i++) {
        uint64_t count = draw(64);
        node_t *node;

        for (uint64_t k = 0; k < count; k++)
            words[k] = draw(3) ? draw(6) : draw(UINT64_C(1) << 62) << 2;
        node = chempi_layout_decode(words, count);
        if (node)
            cr_assert_gt(node->size, 0);
        chempi_layout_release(node);
    }
}

Test(layout_order, overlapping_and_descending_layouts_are_not_ordered)
{
    const int64_t down[2] = {8, 0};
    const int64_t twice[2] = {0, 2};
    const uint64_t lens[2] = {4, 4};
    node_t *node = chempi_layout_blocks(2, down, lens);

    cr_assert(!chempi_layout_is_ordered(node));
    chempi_layout_release(node);
    node = chempi_layout_blocks(2, twice, lens);
    cr_assert(!chempi_layout_is_ordered(node));
    chempi_layout_release(node);
    node = chempi_layout_repeat(chempi_layout_block(0, 4), 3, -8);
    cr_assert(!chempi_layout_is_ordered(node));
    chempi_layout_release(node);
}

Test(layout_order, what_begins_at_the_lowest_offset_is_not_repeated)
{
    node_t *node = chempi_layout_block(0, 4);

    node = chempi_layout_repeat(chempi_layout_shift(node, INT64_MIN), 3, 8);
    cr_assert_null(node);
}
