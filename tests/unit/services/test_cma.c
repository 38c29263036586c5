/* SPDX-License-Identifier: BSD-3-Clause */
/* libchempi/services/cma, on this process's own memory. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libchempi/services/cma.h"
#include "libchempi/services/layout/layout.h"
#include "tests/unit/base/rig.h"

#define LEN 100000u

static unsigned char *counted(size_t len)
{
    unsigned char *p = malloc(len);

    cr_assert_not_null(p);
    for (size_t i = 0; i < len; i++)
        p[i] = (unsigned char)(i * 7 + (i >> 8));
    return p;
}

Test(cma, a_probe_believes_only_the_right_byte)
{
    unsigned char byte = 0x5A;

    cr_assert_eq(chempi_cma_probe(getpid(), &byte, 0x5A), 0);
    cr_assert_eq(chempi_cma_probe(getpid(), &byte, 0x5B), -EBADMSG);
    cr_assert_eq(chempi_cma_probe(getpid(), (void *)16, 0x5A), -EFAULT);
    rig_fail(RIG_READV, 1, EPERM, 0);
    cr_assert_eq(chempi_cma_probe(getpid(), &byte, 0x5A), -EPERM);
    rig_reset();
}

Test(cma, contiguous_memory_is_copied_both_ways_in_partial_steps)
{
    unsigned char *src = counted(LEN);
    unsigned char *dst = calloc(1, LEN);
    uint64_t done;

    rig_limit(777);
    cr_assert_eq(
        chempi_cma_read(getpid(), dst, NULL, (uintptr_t)src, LEN, &done), 0);
    cr_assert_eq(done, LEN);
    cr_assert_eq(memcmp(src, dst, LEN), 0);
    memset(dst, 0, LEN);
    cr_assert_eq(
        chempi_cma_write(getpid(), src, NULL, (uintptr_t)dst, LEN, &done), 0);
    cr_assert_eq(done, LEN);
    cr_assert_eq(memcmp(src, dst, LEN), 0);
    rig_reset();
    free(src);
    free(dst);
}

/* Blocks with gaps of 6 bytes between them. */
static void scatter(struct chempi_segment *iter, struct chempi_layout *layout,
                    void *base, uint64_t blocks, uint64_t block)
{
    layout->root = chempi_layout_block(0, block);
    layout->size = block;
    layout->extent = (int64_t)block + 6;
    chempi_segment_init(iter, base, blocks, layout);
}

/* Short blocks are copied in between, long ones handed to the kernel. */
static void fill_scattered(uint64_t block)
{
    static const unsigned long limits[] = {0, 3, 10, 641};
    size_t step = block + 6;

    for (size_t l = 0; l < sizeof(limits) / sizeof(limits[0]); l++) {
        unsigned char *src = counted(LEN);
        unsigned char *dst = calloc(LEN / block, step);
        struct chempi_layout layout;
        struct chempi_segment iter;
        uint64_t done;

        scatter(&iter, &layout, dst, LEN / block, block);
        rig_limit(limits[l]);
        cr_assert_eq(chempi_cma_read(getpid(), NULL, &iter, (uintptr_t)src,
                                     LEN - 5, &done),
                     0);
        rig_reset();
        cr_assert_eq(done, LEN - 5);
        cr_assert_eq(iter.position, LEN - 5);
        for (size_t i = 0; i < LEN - 5; i++)
            cr_assert_eq(dst[i / block * step + i % block], src[i]);
        cr_assert_eq(dst[(LEN - 1) / block * step + block - 1], 0);
        chempi_layout_release(layout.root);
        free(src);
        free(dst);
    }
}

Test(cma, scattered_memory_is_filled_in_partial_steps)
{
    fill_scattered(10);
    fill_scattered(2000);
}

static void read_scattered(uint64_t block)
{
    static const unsigned long limits[] = {0, 7, 40000};
    size_t step = block + 6;

    for (size_t l = 0; l < sizeof(limits) / sizeof(limits[0]); l++) {
        unsigned char *src = counted(LEN / block * step);
        unsigned char *dst = calloc(1, LEN);
        struct chempi_layout layout;
        struct chempi_segment iter;
        uint64_t done;

        scatter(&iter, &layout, src, LEN / block, block);
        rig_limit(limits[l]);
        cr_assert_eq(chempi_cma_write(getpid(), NULL, &iter, (uintptr_t)dst,
                                      LEN - 5, &done),
                     0);
        rig_reset();
        cr_assert_eq(done, LEN - 5);
        cr_assert_eq(iter.position, LEN - 5);
        for (size_t i = 0; i < LEN - 5; i++)
            cr_assert_eq(dst[i], src[i / block * step + i % block]);
        cr_assert_eq(dst[LEN - 1], 0);
        cr_assert_eq(
            chempi_cma_write(getpid(), NULL, &iter, (uintptr_t)dst, 6, &done),
            -EINVAL);
        chempi_layout_release(layout.root);
        free(src);
        free(dst);
    }
}

Test(cma, scattered_memory_is_read_in_partial_steps)
{
    read_scattered(10);
    read_scattered(2000);
}

/* Both sides scattered, with runs of other lengths. */
static void copy_scattered(bool is_write, uint64_t here, uint64_t there)
{
    static const unsigned long limits[] = {0, 7, 5000, 40000};
    size_t step = here + 6;
    size_t far_step = there + 6;

    for (size_t l = 0; l < sizeof(limits) / sizeof(limits[0]); l++) {
        unsigned char *mem = counted((LEN / here + 1) * step);
        unsigned char *far = counted((LEN / there + 1) * far_step);
        unsigned char *to = is_write ? far : mem;
        struct chempi_layout layouts[2];
        struct chempi_segment iters[2];
        uint64_t done;

        memset(to, 0, is_write ? LEN / there * far_step : LEN / here * step);
        scatter(&iters[0], &layouts[0], mem, LEN / here, here);
        scatter(&iters[1], &layouts[1], far, LEN / there, there);
        rig_limit(limits[l]);
        cr_assert_eq(
            chempi_cma_copy(
                is_write, getpid(), (struct chempi_cma_side){.iter = &iters[0]},
                (struct chempi_cma_side){.iter = &iters[1]}, LEN / 2, &done),
            0);
        rig_reset();
        cr_assert_eq(done, LEN / 2);
        cr_assert_eq(iters[0].position, LEN / 2);
        cr_assert_eq(iters[1].position, LEN / 2);
        for (size_t i = 0; i < LEN / 2; i++)
            cr_assert_eq(mem[i / here * step + i % here],
                         far[i / there * far_step + i % there]);
        cr_assert_eq(is_write
                         ? far[LEN / 2 / there * far_step + LEN / 2 % there]
                         : mem[LEN / 2 / here * step + LEN / 2 % here],
                     0);
        cr_assert_eq(
            chempi_cma_copy(
                is_write, getpid(), (struct chempi_cma_side){.iter = &iters[0]},
                (struct chempi_cma_side){.iter = &iters[1]}, LEN, &done),
            -EINVAL);
        chempi_layout_release(layouts[0].root);
        chempi_layout_release(layouts[1].root);
        free(mem);
        free(far);
    }
}

Test(cma, runs_of_both_sides_are_followed)
{
    for (int is_write = 0; is_write < 2; is_write++) {
        copy_scattered(is_write, 10, 2000);
        copy_scattered(is_write, 2000, 100);
        copy_scattered(is_write, 3000, 5000);
    }
}

Test(cma, what_was_copied_before_a_failure_is_told)
{
    unsigned char *src = counted(LEN);
    unsigned char *dst = calloc(1, LEN);
    uint64_t done = 99;

    rig_limit(1000);
    rig_fail(RIG_READV, 4, EPERM, 1);
    cr_assert_eq(
        chempi_cma_read(getpid(), dst, NULL, (uintptr_t)src, LEN, &done),
        -EPERM);
    cr_assert_eq(done, 3000);
    rig_fail(RIG_READV, 2, EINTR, 0);
    cr_assert_eq(
        chempi_cma_read(getpid(), dst, NULL, (uintptr_t)src, LEN, &done), 0);
    rig_reset();
    cr_assert_eq(chempi_cma_read(getpid(), dst, NULL, 16, LEN, &done), -EFAULT);
    cr_assert_eq(done, 0);
    cr_assert_eq(chempi_cma_write(getpid(), src, NULL, 16, LEN, &done),
                 -EFAULT);
    free(src);
    free(dst);
}
