/* SPDX-License-Identifier: BSD-3-Clause */
/* Layouts and the iterator against a plain list of bytes. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "libchempi/services/layout/layout.h"
#include "libchempi/services/layout/segment.h"

#define ARENA 65536 /* bytes of user memory; displacement 0 is its middle */
#define MIDDLE (ARENA / 2)

/* The same random numbers in every run. */
static uint64_t next_random(void)
{
    static uint64_t state = UINT64_C(88172645463325252);

    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static uint64_t below(uint64_t n)
{
    return next_random() % n;
}

/* Every byte of a layout in packed order, as displacements. */
struct bytes {
    int64_t at[ARENA];
    size_t count;
};

static void expand(const struct chempi_layout_node *node, int64_t base,
                   struct bytes *out)
{
    base += node->offset;
    if (node->kind == CHEMPI_LAYOUT_BLOCK) {
        for (uint64_t i = 0; i < node->size; i++)
            out->at[out->count++] = base + (int64_t)i;
        return;
    }
    for (uint64_t i = 0; i < node->count; i++) {
        int64_t at = base + (node->offsets ? node->offsets[i]
                                           : (int64_t)i * node->stride);

        if (node->kind == CHEMPI_LAYOUT_RUNS)
            for (uint64_t k = node->starts[i]; k < node->starts[i + 1]; k++)
                out->at[out->count++] = at + (int64_t)(k - node->starts[i]);
        else
            expand(node->children ? node->children[i] : node->child, at, out);
    }
}

static unsigned char arena[ARENA];
static unsigned char packed[ARENA];
static unsigned char expected[ARENA];
static struct bytes map;

static void fill(void)
{
    for (size_t i = 0; i < ARENA; i++)
        arena[i] = (unsigned char)next_random();
}

/* Pack `count` elements in random portions and compare with the map. */
static void check_pack(const struct chempi_layout *layout, uint64_t count)
{
    struct chempi_segment iter;
    size_t done = 0;

    fill();
    map.count = 0;
    for (uint64_t i = 0; i < count; i++)
        expand(layout->root, (int64_t)i * layout->extent, &map);
    for (size_t i = 0; i < map.count; i++)
        expected[i] = arena[MIDDLE + map.at[i]];
    chempi_segment_init(&iter, arena + MIDDLE, count, layout);
    cr_assert_eq(iter.size, map.count);
    while (done < map.count) {
        size_t max = 1 + below(below(4) ? 40 : map.count);
        size_t n = chempi_segment_pack(&iter, packed + done, max);

        cr_assert(n > 0 && n <= max);
        cr_assert(n == max || done + n == map.count);
        done += n;
    }
    cr_assert_eq(done, map.count);
    cr_assert_eq(chempi_segment_pack(&iter, packed, 1), 0);
    cr_assert_arr_eq(packed, expected, map.count);
}

/* Unpack in random portions, in random order of portions. */
static void check_unpack(const struct chempi_layout *layout, uint64_t count)
{
    struct chempi_segment iter;
    static unsigned char want[ARENA];
    size_t half = map.count / 2;

    fill();
    memcpy(want, arena, ARENA);
    for (size_t i = 0; i < map.count; i++) {
        packed[i] = (unsigned char)next_random();
        want[MIDDLE + map.at[i]] = packed[i];
    }
    chempi_segment_init(&iter, arena + MIDDLE, count, layout);
    chempi_segment_seek(&iter, half);
    for (size_t done = half; done < map.count;) {
        size_t n = chempi_segment_unpack(&iter, packed + done, 1 + below(100));

        if (done + n > map.count)
            n = map.count - done;
        done += n;
    }
    chempi_segment_seek(&iter, 0);
    for (size_t done = 0; done < half;) {
        size_t left = half - done;
        size_t max = 1 + below(100);

        done += chempi_segment_unpack(&iter, packed + done,
                                      max < left ? max : left);
    }
    cr_assert_arr_eq(arena, want, ARENA);
}

/* Runs name every byte once, in order, and touch no neighbours. */
static void check_runs(const struct chempi_layout *layout, uint64_t count)
{
    struct chempi_segment iter;
    struct iovec runs[5];
    size_t done = 0;
    size_t n;

    chempi_segment_init(&iter, arena + MIDDLE, count, layout);
    while ((n = chempi_segment_runs(&iter, runs, 1 + below(5),
                                    1 + below(5000))) > 0) {
        for (size_t i = 0; i < n; i++)
            for (size_t k = 0; k < runs[i].iov_len; k++)
                cr_assert_eq((unsigned char *)runs[i].iov_base + k,
                             arena + MIDDLE + map.at[done++]);
    }
    cr_assert_eq(done, map.count);
}

static void check(const struct chempi_layout_node *root, int64_t extent,
                  uint64_t count)
{
    struct chempi_layout layout;

    cr_assert_not_null(root);
    layout = (struct chempi_layout){
        .size = root->size, .extent = extent, .root = root};
    check_pack(&layout, count);
    check_unpack(&layout, count);
    check_runs(&layout, count);
    chempi_layout_release(root);
}

/* A random tree whose bytes lie in [0, *span), without overlap. */
static const struct chempi_layout_node *grow(int depth, int64_t *span)
{
    const struct chempi_layout_node *child;
    const struct chempi_layout_node *children[6];
    int64_t offsets[6];
    uint64_t n = 1 + below(5);
    int64_t child_span;
    int64_t gap;

    if (depth == 0) {
        uint64_t len = below(10) ? 1 + below(17) : 60 + below(20);

        *span = (int64_t)(len + below(4));
        return chempi_layout_block((int64_t)below((uint64_t)*span - len + 1),
                                   len);
    }
    switch (below(4)) {
    case 0:
        child = grow(depth - 1, &child_span);
        gap = (int64_t)below(9);
        *span = (int64_t)n * (child_span + gap);
        return chempi_layout_repeat(child, n, child_span + gap);
    case 1:
        child = grow(depth - 1, &child_span);
        for (uint64_t i = 0; i < n; i++)
            offsets[i] = (child_span + 1) * (int64_t)(n - 1 - i);
        *span = (child_span + 1) * (int64_t)n;
        return chempi_layout_indexed(child, n, offsets);
    case 2:
        *span = 0;
        for (uint64_t i = 0; i < n; i++) {
            children[i] = grow(depth - 1, &child_span);
            offsets[i] = *span;
            *span += child_span + (int64_t)below(3);
        }
        return chempi_layout_join(n, offsets, children);
    default:
        child = grow(depth - 1, &child_span);
        gap = (int64_t)below(5);
        *span = child_span + gap;
        return chempi_layout_shift(child, gap);
    }
}

Test(iter, walks_random_trees_like_a_list_of_bytes)
{
    for (int round = 0; round < 3000; round++) {
        int64_t span = 0;
        const struct chempi_layout_node *root = grow((int)below(4), &span);
        int64_t extent = span + (int64_t)below(8);
        uint64_t most = (uint64_t)((MIDDLE - 64) / (extent ? extent : 1));
        uint64_t count = 1 + below(most < 40 ? most : 40);

        check(root, below(4) ? extent : -extent, count);
    }
}

Test(iter, copies_every_block_length)
{
    for (uint64_t len = 1; len < 140; len++) {
        int64_t offsets[7];

        check(chempi_layout_repeat(chempi_layout_block(0, len), 9,
                                   (int64_t)len + 3),
              0, 1);
        check(chempi_layout_repeat(chempi_layout_block(0, len), 30, 160), 0, 1);
        check(chempi_layout_repeat(chempi_layout_block(0, len), 30, -160), 0,
              1);
        for (int i = 0; i < 7; i++)
            offsets[i] = (int64_t)((uint64_t)((i * 4) % 7) * (len + 2));
        check(chempi_layout_indexed(chempi_layout_block(0, len), 7, offsets),
              (int64_t)(7 * (len + 2)), 3);
        check(chempi_layout_block(0, len), (int64_t)len + 1, 11);
    }
}

/* Blocks far apart in a list that reaches beyond the caches: other loops copy
 * these, from several places at a time. */
static void copy_far(uint64_t len, uint64_t count, int64_t stride,
                     uint64_t portion)
{
    uint64_t size = count * len;
    uint64_t far = (uint64_t)(stride < 0 ? -stride : stride);
    char *arena_far = calloc(count, far);
    char *mem = arena_far + (stride < 0 ? (count - 1) * far : 0);
    char *from = malloc(size);
    char *back = malloc(size);
    struct chempi_layout layout = {.extent = 0};
    struct chempi_segment iter;

    cr_assert(arena_far && from && back);
    for (uint64_t i = 0; i < size; i++)
        from[i] = (char)(i % 251 + 1);
    layout.root =
        chempi_layout_repeat(chempi_layout_block(0, len), count, stride);
    layout.size = layout.root->size;
    chempi_segment_init(&iter, mem, 1, &layout);
    while (iter.position < size)
        (void)chempi_segment_unpack(
            &iter, from + iter.position,
            size - iter.position < portion ? size - iter.position : portion);
    for (uint64_t i = 0; i < count; i++) {
        const char *block = mem + (int64_t)i * stride;

        if (memcmp(block, from + i * len, len) != 0 || block[len] != 0)
            cr_assert_fail("block %d is wrong", (int)i);
    }
    chempi_segment_init(&iter, mem, 1, &layout);
    while (iter.position < size)
        (void)chempi_segment_pack(&iter, back + iter.position, portion);
    cr_assert(memcmp(back, from, size) == 0);
    chempi_layout_release(layout.root);
    free(arena_far);
    free(from);
    free(back);
}

Test(iter, copies_short_blocks_over_much_memory)
{
    copy_far(4, 140000, 512, 777777);
    copy_far(8, 140000, 512, 777777);
    copy_far(7, 140000, 512, 777777);
}

Test(iter, copies_short_blocks_from_several_places)
{
    for (uint64_t len = 4; len <= 64; len *= 2)
        for (uint64_t more = 0; more < 9; more++) {
            copy_far(len, 4096 + more, 520, UINT64_MAX);
            copy_far(len, 4096 + more, -520, UINT64_MAX);
            copy_far(len, 64 + more, 33000, UINT64_MAX);
            copy_far(len, 4096, 640, len * (61 + more) + 3);
            copy_far(len, 65536 + more, 136, UINT64_MAX);
            copy_far(len, 65536 + more, -136, len * 40000 + 3);
        }
}

Test(iter, copies_blocks_that_share_a_set_of_the_cache)
{
    const uint64_t lens[] = {4, 8, 12, 16, 20, 24, 32, 64};

    for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        copy_far(lens[i], 300, 4096, UINT64_MAX);
        copy_far(lens[i], 300, -8192, 5 * lens[i] + 3);
        copy_far(lens[i], 1025, -2048, UINT64_MAX);
        copy_far(lens[i], 301, 1536, UINT64_MAX);
        copy_far(lens[i], 32768, 512, UINT64_MAX);
        copy_far(lens[i], 32769, 512, UINT64_MAX);
    }
}

Test(iter, packs_columns_of_small_irregular_elements)
{
    int64_t offsets[] = {0, 8, 24, 41};
    uint64_t lens[] = {4, 12, 9, 1};

    check(chempi_layout_blocks(4, offsets, lens), 48, 500);
    check(chempi_layout_blocks(4, offsets, lens), 48, 3);
}

Test(layout, merges_neighbours_into_one_block)
{
    int64_t offsets[] = {0, 4, 8};
    uint64_t lens[] = {4, 4, 8};
    const struct chempi_layout_node *node =
        chempi_layout_blocks(3, offsets, lens);

    cr_assert_eq(node->kind, CHEMPI_LAYOUT_BLOCK);
    cr_assert_eq(node->size, 16);
    chempi_layout_release(node);
}

Test(layout, collapses_nested_vectors)
{
    const struct chempi_layout_node *node = chempi_layout_repeat(
        chempi_layout_repeat(chempi_layout_block(0, 8), 4, 16), 8, 64);

    cr_assert_eq(node->kind, CHEMPI_LAYOUT_STRIDED);
    cr_assert_eq(node->count, 32);
    cr_assert_eq(node->child->kind, CHEMPI_LAYOUT_BLOCK);
    chempi_layout_release(node);
}

Test(layout, sees_a_vector_in_a_list_of_equal_distances)
{
    int64_t offsets[] = {100, 80, 60, 40};
    uint64_t lens[] = {8, 8, 8, 8};
    const struct chempi_layout_node *node =
        chempi_layout_blocks(4, offsets, lens);

    cr_assert_eq(node->kind, CHEMPI_LAYOUT_STRIDED);
    cr_assert_eq(node->stride, -20);
    chempi_layout_release(node);
}

Test(layout, stays_shallow_whatever_the_nesting)
{
    const struct chempi_layout_node *node = chempi_layout_block(0, 1);
    const struct chempi_layout_node *pair[2];

    for (int i = 0; i < 2000; i++) {
        int64_t offsets[] = {0, 3 + i};

        pair[0] = node;
        pair[1] = chempi_layout_block(0, 1);
        node = chempi_layout_join(2, offsets, pair);
        cr_assert_not_null(node);
    }
    cr_assert_leq(node->depth, CHEMPI_LAYOUT_DEPTH_MAX);
    cr_assert_eq(node->size, 2001);
    chempi_layout_release(node);
}

Test(layout, refuses_sizes_beyond_63_bits)
{
    const struct chempi_layout_node *node =
        chempi_layout_repeat(chempi_layout_block(0, UINT64_C(1) << 40),
                             UINT64_C(1) << 30, INT64_C(1) << 41);

    cr_assert_null(node);
}

Test(layout, holds_huge_vectors_in_one_node)
{
    struct chempi_layout layout;
    struct chempi_segment iter;
    struct iovec run;
    const struct chempi_layout_node *node =
        chempi_layout_repeat(chempi_layout_block(0, 8), UINT64_C(1) << 40, 16);

    layout = (struct chempi_layout){
        .size = node->size, .extent = INT64_C(1) << 44, .root = node};
    chempi_segment_init(&iter, NULL, 1, &layout);
    chempi_segment_seek(&iter, (UINT64_C(1) << 42) + 3);
    cr_assert_eq(chempi_segment_runs(&iter, &run, 1, 100), 1);
    cr_assert_eq((uintptr_t)run.iov_base, (UINT64_C(1) << 43) + 3);
    cr_assert_eq(run.iov_len, 5);
    chempi_layout_release(node);
}
