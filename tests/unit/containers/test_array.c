/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include <criterion/criterion.h>

#include "common/containers/array.h"
#include "tests/unit/base/rig.h"

Test(array, elements_survive_growth)
{
    int *list = NULL;
    uint32_t room = 0;
    int moves = 0;

    for (uint32_t i = 0; i < 1000; i++) {
        const uint32_t before = room;

        cr_assert(CHEMPI_ARRAY_FIT(list, room, i + 1));
        cr_assert(room > i);
        moves += room != before;
        list[i] = (int)i;
    }
    cr_assert_leq(moves, 7, "a longer list moves more rarely");
    for (int i = 0; i < 1000; i++)
        cr_assert_eq(list[i], i);
    free(list);
}

Test(array, rooms_are_powers_of_two)
{
    struct {
        char bytes[24];
    } *list = NULL;
    size_t room = 0;

    cr_assert(CHEMPI_ARRAY_FIT(list, room, 1));
    cr_assert_eq(room, 8);
    cr_assert(CHEMPI_ARRAY_FIT(list, room, 100));
    cr_assert_eq(room, 128);
    cr_assert(CHEMPI_ARRAY_FIT(list, room, 3));
    cr_assert_eq(room, 128);
    free(list);
}

Test(array, more_than_can_be_counted_is_refused)
{
    uint64_t *list = NULL;
    int small = 0;
    size_t large = 0;

    cr_assert_not(CHEMPI_ARRAY_FIT(list, small, (size_t)INT32_MAX + 1));
    cr_assert_not(CHEMPI_ARRAY_FIT(list, large, SIZE_MAX / 8));
    cr_assert_not(CHEMPI_ARRAY_FIT(list, large, SIZE_MAX));
    cr_assert_null(list);
    cr_assert_eq(small, 0);
    cr_assert_eq(large, 0);
}

Test(array, without_memory_all_stays)
{
    char *list = NULL;
    size_t room = 0;
    char *before;

    cr_assert(CHEMPI_ARRAY_FIT(list, room, 1));
    before = list;
    rig_fail(RIG_MALLOC, 1, ENOMEM, true);
    cr_assert_not(CHEMPI_ARRAY_FIT(list, room, 1000));
    rig_reset();
    cr_assert_eq(list, before);
    cr_assert_eq(room, 128);
    free(list);
}
