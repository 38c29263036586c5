/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of numbers in pieces. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "libchempi/didl/coll/hier/hier_lists.h"

enum { NUMBERS = 600, LISTS_MAX = 60 };

/* Number i is in list of[i]; lists begin in their order. */
static struct chempi_lists make(const int *of, int count, int lists)
{
    struct chempi_lists_builder b;
    struct chempi_lists made;

    chempi_lists_begin(&b, lists);
    for (int i = 0; i < count; i++)
        chempi_lists_put(&b, of[i], i);
    cr_assert(chempi_lists_end(&b, &made));
    cr_assert_eq(made.count, lists);
    return made;
}

static void check(const struct chempi_lists *l, const int *of, int count)
{
    int len[LISTS_MAX] = {0};

    for (int i = 0; i < count; i++) {
        int list;
        int index;

        cr_assert_eq(chempi_lists_get(l, of[i], len[of[i]]), i);
        cr_assert_eq(chempi_lists_find(l, of[i], i), len[of[i]]);
        cr_assert(chempi_lists_search(l, i, &list, &index));
        cr_assert(list == of[i] && index == len[of[i]]);
        len[of[i]]++;
    }
    for (int list = 0; list < l->count; list++) {
        cr_assert_eq(chempi_lists_len(l, list), len[list]);
        cr_assert_eq(chempi_lists_find(l, list, count), -1);
        cr_assert_eq(chempi_lists_find(l, list, -1), -1);
    }
}

static void hold(const int *of, int count, int lists, int pieces)
{
    struct chempi_lists l = make(of, count, lists);

    check(&l, of, count);
    if (pieces)
        cr_assert_eq(l.piece_count, pieces, "%d pieces", l.piece_count);
    chempi_lists_fini(&l);
}

Test(hier_lists, blocks_are_one_piece)
{
    int of[NUMBERS];

    for (int i = 0; i < NUMBERS; i++)
        of[i] = i / 10;
    hold(of, NUMBERS, 60, 1);
}

Test(hier_lists, turns_are_one_piece)
{
    int of[NUMBERS];

    for (int i = 0; i < NUMBERS; i++)
        of[i] = i % 60;
    hold(of, NUMBERS, 60, 1);
}

Test(hier_lists, a_last_list_that_is_shorter_is_a_piece)
{
    int of[NUMBERS];

    for (int i = 0; i < NUMBERS; i++)
        of[i] = i / 11;
    hold(of, NUMBERS, 55, 2);
}

/* The second node has room for three, the others for six. */
Test(hier_lists, turns_that_leave_a_full_list_out_are_two_pieces_of_each)
{
    int of[NUMBERS];
    int count = 0;

    for (int turn = 0; turn < 6; turn++)
        for (int list = 0; list < 4; list++)
            if (list != 1 || turn < 3)
                of[count++] = list;
    hold(of, count, 4, 7);
}

Test(hier_lists, any_lists_are_held)
{
    int of[NUMBERS];

    srand(1);
    for (int run = 0; run < 200; run++) {
        const int lists = 1 + rand() % LISTS_MAX;

        for (int i = 0; i < NUMBERS; i++)
            of[i] = i < lists ? i : rand() % lists;
        hold(of, NUMBERS, lists, 0);
    }
}

Test(hier_lists, lists_that_come_one_by_one_share_a_slot)
{
    struct chempi_lists_builder b;
    struct chempi_lists l;

    chempi_lists_begin(&b, 1);
    for (int list = 0; list < 20; list++) {
        chempi_lists_put(&b, list, 7);
        if (list % 5 == 0)
            chempi_lists_put(&b, list, 100 + list);
    }
    cr_assert(chempi_lists_end(&b, &l));
    cr_assert_eq(l.piece_count, 8);
    for (int list = 0; list < 20; list++) {
        cr_assert_eq(chempi_lists_len(&l, list), 1 + (list % 5 == 0));
        cr_assert_eq(chempi_lists_get(&l, list, 0), 7);
        if (list % 5 == 0)
            cr_assert_eq(chempi_lists_get(&l, list, 1), 100 + list);
    }
    chempi_lists_fini(&l);
}
