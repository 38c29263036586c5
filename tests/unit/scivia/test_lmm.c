/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The locked-memory manager: nesting and merging against a model that counts
 * locks page by page, and a pager that knows which pages the kernel holds.
 */
#define _DEFAULT_SOURCE /* mincore */
#include "libchempi/devices/scivia/adapter/memory/lmm.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/unit/base/rig.h"

#define PAGE 4096u
#define PAGES 96u

static char *const base = (char *)0x10000000;
static bool is_held[PAGES]; /* by the "kernel" */
static unsigned calls_left; /* lock calls until one fails; 0: never */

static int set(const void *start, size_t len, bool value)
{
    size_t first = (size_t)((const char *)start - base) / PAGE;

    cr_assert_eq(len % PAGE, 0);
    cr_assert_leq(first + len / PAGE, PAGES);
    for (size_t i = first; i < first + len / PAGE; i++) {
        /* Nesting is the manager's business: mlock would not nest. */
        cr_assert_neq(is_held[i], value);
        is_held[i] = value;
    }
    return 0;
}

static int lock(const void *start, size_t len)
{
    if (calls_left && --calls_left == 0) {
        errno = EAGAIN;
        return -1;
    }
    return set(start, len, true);
}

static int unlock(const void *start, size_t len)
{
    return set(start, len, false);
}

static const struct chempi_lmm_pager pager = {lock, unlock};

static struct chempi_lmm *make(uint64_t budget)
{
    struct chempi_lmm *lmm = NULL;

    memset(is_held, 0, sizeof(is_held));
    calls_left = 0;
    cr_assert_eq(chempi_lmm_create(&pager, budget, &lmm), 0);
    return lmm;
}

/* The areas as "first-last*count" words. */
static void write_area(void *arg, const struct chempi_lmm_area *area)
{
    char *text = arg;

    (void)sprintf(text + strlen(text), "%u-%u*%u ",
                  (unsigned)((area->start - (uintptr_t)base) / PAGE),
                  (unsigned)((area->end - (uintptr_t)base) / PAGE - 1),
                  (unsigned)area->count);
}

static const char *areas(const struct chempi_lmm *lmm)
{
    static char text[4096];

    text[0] = '\0';
    chempi_lmm_walk(lmm, write_area, text);
    return text;
}

static int lock_pages(struct chempi_lmm *lmm, unsigned first, unsigned last)
{
    return chempi_lmm_lock_area(lmm, base + first * PAGE,
                                (last - first + 1) * PAGE);
}

static int unlock_pages(struct chempi_lmm *lmm, unsigned first, unsigned last)
{
    return chempi_lmm_unlock_area(lmm, base + first * PAGE,
                                  (last - first + 1) * PAGE);
}

Test(lmm, an_area_locked_twice_needs_two_unlocks)
{
    struct chempi_lmm *lmm = make(UINT64_MAX);

    cr_expect_eq(lock_pages(lmm, 3, 5), 0);
    cr_expect_eq(lock_pages(lmm, 3, 5), 0);
    cr_expect_eq(unlock_pages(lmm, 3, 5), 0);
    cr_expect(is_held[4]);
    cr_expect_eq(unlock_pages(lmm, 3, 5), 0);
    cr_expect(!is_held[4]);
    cr_expect_eq(unlock_pages(lmm, 3, 5), -ENOENT);
    chempi_lmm_destroy(lmm);
}

Test(lmm, the_five_ways_in_which_areas_meet)
{
    struct chempi_lmm *lmm = make(UINT64_MAX);

    cr_expect_eq(lock_pages(lmm, 10, 19), 0);
    cr_expect_eq(lock_pages(lmm, 8, 12), 0); /* front */
    cr_expect_str_eq(areas(lmm), "8-9*1 10-12*2 13-19*1 ");
    cr_expect_eq(lock_pages(lmm, 18, 21), 0); /* rear */
    cr_expect_str_eq(areas(lmm), "8-9*1 10-12*2 13-17*1 18-19*2 20-21*1 ");
    cr_expect_eq(lock_pages(lmm, 14, 15), 0); /* middle */
    cr_expect_str_eq(areas(lmm),
                     "8-9*1 10-12*2 13-13*1 14-15*2 16-17*1 18-19*2 20-21*1 ");
    cr_expect_eq(lock_pages(lmm, 30, 31), 0); /* disjoint */
    cr_expect_eq(lock_pages(lmm, 5, 40), 0);  /* total */
    cr_expect_str_eq(areas(lmm),
                     "5-7*1 8-9*2 10-12*3 13-13*2 14-15*3 16-17*2 18-19*3 "
                     "20-21*2 22-29*1 30-31*2 32-40*1 ");
    cr_expect_null(chempi_lmm_check(lmm));
    chempi_lmm_destroy(lmm);
    for (unsigned i = 0; i < PAGES; i++)
        cr_expect(!is_held[i]);
}

Test(lmm, neighbours_with_equal_counts_are_one_area)
{
    struct chempi_lmm *lmm = make(UINT64_MAX);

    cr_expect_eq(lock_pages(lmm, 1, 2), 0);
    cr_expect_eq(lock_pages(lmm, 5, 6), 0);
    cr_expect_eq(lock_pages(lmm, 3, 4), 0);
    cr_expect_str_eq(areas(lmm), "1-6*1 ");
    cr_expect_eq(unlock_pages(lmm, 2, 3), 0); /* a part: no kernel's area */
    cr_expect_str_eq(areas(lmm), "1-1*1 4-6*1 ");
    chempi_lmm_destroy(lmm);
}

Test(lmm, unaligned_ranges_lock_whole_pages)
{
    struct chempi_lmm *lmm = make(UINT64_MAX);

    cr_expect_eq(chempi_lmm_lock_area(lmm, base + PAGE - 1, 2), 0);
    cr_expect_str_eq(areas(lmm), "0-1*1 ");
    cr_expect_eq(chempi_lmm_lock_area(lmm, base, 0), -EINVAL);
    cr_expect_eq(chempi_lmm_lock_area(lmm, base, SIZE_MAX), -EINVAL);
    chempi_lmm_destroy(lmm);
}

Test(lmm, the_budget_is_not_exceeded_but_nesting_is_free)
{
    struct chempi_lmm *lmm = make(10 * PAGE);

    cr_expect_eq(lock_pages(lmm, 0, 7), 0);
    cr_expect_eq(lock_pages(lmm, 6, 10), -ENOSPC);
    cr_expect_eq(chempi_lmm_locked_bytes(lmm), 8 * PAGE);
    cr_expect_eq(lock_pages(lmm, 6, 9), 0);
    cr_expect_eq(lock_pages(lmm, 0, 9), 0);
    chempi_lmm_set_budget(lmm, PAGE);
    cr_expect_eq(lock_pages(lmm, 2, 3), 0); /* locked already */
    cr_expect_eq(lock_pages(lmm, 20, 20), -ENOSPC);
    chempi_lmm_destroy(lmm);
}

Test(lmm, a_refused_lock_changes_nothing)
{
    struct chempi_lmm *lmm = make(UINT64_MAX);

    cr_expect_eq(lock_pages(lmm, 2, 3), 0);
    cr_expect_eq(lock_pages(lmm, 6, 7), 0);
    for (unsigned n = 1; n <= 3; n++) {
        calls_left = n;
        cr_expect_eq(lock_pages(lmm, 0, 9), -EAGAIN);
        cr_expect_str_eq(areas(lmm), "2-3*1 6-7*1 ");
        cr_expect(!is_held[0] && !is_held[4] && !is_held[8]);
        cr_expect_null(chempi_lmm_check(lmm));
    }
    calls_left = 0;
    rig_fail(RIG_MALLOC, 1, ENOMEM, 1);
    cr_expect_eq(lock_pages(lmm, 0, 9), -ENOMEM);
    rig_reset();
    cr_expect_str_eq(areas(lmm), "2-3*1 6-7*1 ");
    cr_expect(!is_held[0] && !is_held[4] && !is_held[8]);
    cr_expect_eq(lock_pages(lmm, 0, 9), 0);
    chempi_lmm_destroy(lmm);
}

/* --- against the model --- */

struct range {
    unsigned first;
    unsigned last;
};

static unsigned random_below(unsigned *state, unsigned max)
{
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) % max;
}

static void check_model(const struct chempi_lmm *lmm, const unsigned *model)
{
    unsigned expected = 0;
    char text[4096] = "";

    for (unsigned i = 0; i < PAGES;) {
        unsigned end = i;

        cr_assert_eq(is_held[i], model[i] > 0);
        while (end < PAGES && model[end] == model[i]) {
            cr_assert_eq(is_held[end], model[end] > 0);
            end++;
        }
        if (model[i]) {
            (void)sprintf(text + strlen(text), "%u-%u*%u ", i, end - 1,
                          model[i]);
            expected += end - i;
        }
        i = end;
    }
    cr_assert_str_eq(areas(lmm), text);
    cr_assert_eq(chempi_lmm_locked_bytes(lmm), (uint64_t)expected * PAGE);
    cr_assert_null(chempi_lmm_check(lmm));
}

static void wander(unsigned seed)
{
    struct chempi_lmm *lmm = make(UINT64_MAX);
    struct range held[64];
    unsigned model[PAGES] = {0};
    unsigned count = 0;

    for (unsigned step = 0; step < 400; step++) {
        bool is_lock =
            count == 0 || (count < 64 && random_below(&seed, 100) < 52);

        if (is_lock) {
            struct range *r = &held[count++];

            r->first = random_below(&seed, PAGES);
            r->last = r->first + random_below(&seed, PAGES - r->first);
            cr_assert_eq(lock_pages(lmm, r->first, r->last), 0);
            for (unsigned i = r->first; i <= r->last; i++)
                model[i]++;
        } else {
            unsigned which = random_below(&seed, count);
            struct range r = held[which];

            held[which] = held[--count];
            cr_assert_eq(unlock_pages(lmm, r.first, r.last), 0);
            for (unsigned i = r.first; i <= r.last; i++)
                model[i]--;
        }
        check_model(lmm, model);
    }
    while (count > 0) {
        struct range r = held[--count];

        cr_assert_eq(unlock_pages(lmm, r.first, r.last), 0);
    }
    cr_assert_str_eq(areas(lmm), "");
    chempi_lmm_destroy(lmm);
}

Test(lmm, random_nestings_agree_with_a_count_per_page, .timeout = 60)
{
    for (unsigned seed = 1; seed <= 60; seed++)
        wander(seed);
}

Test(lmm, real_pages_are_locked)
{
    struct chempi_lmm *lmm = NULL;
    void *memory = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char resident[4] = {0};
    /* Sanitizers pretend that everything can be locked. */
    bool is_real = mlock((const void *)PAGE, PAGE) != 0;

    cr_assert_neq(memory, MAP_FAILED);
    cr_assert_eq(chempi_lmm_create(NULL, UINT64_MAX, &lmm), 0);
    cr_assert_eq(chempi_lmm_lock_area(lmm, memory, 4 * PAGE), 0);
    cr_expect_eq(mincore(memory, 4 * PAGE, resident), 0);
    for (int i = 0; is_real && i < 4; i++)
        cr_expect(resident[i] & 1);
    (void)munmap(memory, 4 * PAGE);
    cr_expect_eq(chempi_lmm_unlock_area(lmm, memory, 4 * PAGE), 0);
    /* What is not mapped cannot be locked. */
    if (is_real) {
        cr_expect_lt(chempi_lmm_lock_area(lmm, memory, 4 * PAGE), 0);
        cr_expect_eq(chempi_lmm_locked_bytes(lmm), 0);
    }
    chempi_lmm_destroy(lmm);
}
