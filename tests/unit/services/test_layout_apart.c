/* SPDX-License-Identifier: BSD-3-Clause */
/* Overlaps of layouts, against lists of bytes. */
#include "libchempi/services/layout/layout_apart.h"

#include <criterion/criterion.h>
#include <stdbool.h>
#include <string.h>
#include <sys/uio.h>

#include "libchempi/services/layout/segment.h"

enum { SPAN = 4096, ELEMENTS = 24 };

static uint64_t state = 11;

static uint64_t draw(uint64_t below)
{
    state =
        state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (state >> 33) % below;
}

static const struct chempi_layout_node *random_layout(int depth)
{
    const struct chempi_layout_node *child =
        depth ? random_layout(depth - 1)
              : chempi_layout_block((int64_t)draw(3), 1 + draw(3));
    const uint64_t count = 2 + draw(3);
    int64_t offsets[4];
    uint64_t lens[4];

    for (uint64_t i = 0; i < count; i++) {
        offsets[i] = (int64_t)draw(60) - 20;
        lens[i] = 1 + draw(4);
    }
    switch (draw(4)) {
    case 0:
        return chempi_layout_repeat(child, count, (int64_t)draw(40) - 15);
    case 1:
        return chempi_layout_indexed(child, count, offsets);
    case 2:
        chempi_layout_release(child);
        return chempi_layout_blocks(count, offsets, lens);
    default:
        return chempi_layout_shift(child, (int64_t)draw(9));
    }
}

/* Byte by byte: how many elements can stand in a row, at most ELEMENTS. */
static uint64_t count_apart(const struct chempi_layout *layout)
{
    static char memory[SPAN * 2];
    static char is_used[SPAN * 2];

    memset(is_used, 0, sizeof(is_used));
    for (int i = 0; i < ELEMENTS; i++) {
        struct chempi_segment iter;
        struct iovec run;

        chempi_segment_init(&iter, memory + SPAN + i * layout->extent, 1,
                            layout);
        while (chempi_segment_runs(&iter, &run, 1, 1) == 1) {
            const size_t at = (size_t)((char *)run.iov_base - memory);

            if (is_used[at])
                return (uint64_t)i;
            is_used[at] = 1;
        }
    }
    return UINT64_MAX;
}

Test(layout_apart, elements_overlap_when_two_bytes_of_them_do)
{
    int kinds[3] = {0};

    for (int i = 0; i < 20000; i++) {
        const struct chempi_layout_node *root = random_layout((int)draw(3));
        const struct chempi_layout layout = {root->size, (int64_t)draw(90) - 30,
                                             root};
        const uint64_t expected = count_apart(&layout);
        const uint64_t found = chempi_layout_apart(&layout);

        cr_assert(found == expected ||
                      (expected == UINT64_MAX && found >= ELEMENTS),
                  "layout %d: %llu and not %llu", i, (unsigned long long)found,
                  (unsigned long long)expected);
        kinds[expected == 0 ? 0 : expected == UINT64_MAX ? 2 : 1]++;
        chempi_layout_release(root);
    }
    for (int i = 0; i < 3; i++)
        cr_assert(kinds[i] > 500, "only %d layouts of kind %d", kinds[i], i);
}

Test(layout_apart, columns_of_a_matrix_fill_it_and_no_more)
{
    const struct chempi_layout_node *column =
        chempi_layout_repeat(chempi_layout_block(0, 8), 1000, 800);
    const struct chempi_layout layout = {column->size, 8, column};

    cr_assert_eq(chempi_layout_apart(&layout), 100);
    chempi_layout_release(column);
}
