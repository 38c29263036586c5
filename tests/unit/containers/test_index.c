/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "common/containers/index.h"
#include "tests/unit/base/rig.h"

#define COUNT 1000u

static bool has_value(const void *elements, uint32_t number, const void *key)
{
    const uint32_t *values = elements;

    return values[number] == *(const uint32_t *)key;
}

/* All that was added is found, and nothing else, for hashes as `mix` makes
 * them of values. */
static void check_all(uint32_t (*mix)(uint32_t value))
{
    struct chempi_index index = {.slots = NULL};
    uint32_t values[COUNT];
    uint32_t other;

    for (uint32_t i = 0; i < COUNT; i++) {
        values[i] = 7 * i + 1;
        cr_assert(chempi_index_add(&index, mix(values[i]), i));
    }
    cr_assert_eq(index.count, COUNT);
    cr_assert_null(chempi_index_check(&index));
    index.room /= 2; /* looked at before any number is */
    cr_assert(strstr(chempi_index_check(&index), "I1"));
    index.room *= 2;
    for (uint32_t i = 0; i < COUNT; i++) {
        cr_assert_eq(chempi_index_find(&index, mix(values[i]), has_value,
                                       values, &values[i]),
                     i);
        other = 7 * i;
        cr_assert_eq(
            chempi_index_find(&index, mix(other), has_value, values, &other),
            CHEMPI_INDEX_NONE);
    }
    chempi_index_fini(&index);
}

static uint32_t good(uint32_t value)
{
    return chempi_index_hash_number(value);
}

static uint32_t all_meet(uint32_t value)
{
    (void)value;
    return UINT32_MAX; /* the walk goes round the end */
}

Test(index, what_was_added_is_found)
{
    check_all(good);
}

Test(index, keys_of_one_hash_are_told_apart)
{
    check_all(all_meet);
}

Test(index, an_empty_table_finds_nothing)
{
    const uint32_t key = 1;
    struct chempi_index index = {.slots = NULL};

    cr_assert_eq(chempi_index_find(&index, 1, has_value, &key, &key),
                 CHEMPI_INDEX_NONE);
    chempi_index_clear(&index);
    cr_assert(chempi_index_add(&index, 1, 0));
    chempi_index_clear(&index);
    cr_assert_eq(chempi_index_find(&index, 1, has_value, &key, &key),
                 CHEMPI_INDEX_NONE);
    chempi_index_fini(&index);
}

Test(index, without_memory_all_stays)
{
    struct chempi_index index = {.slots = NULL};
    uint32_t values[COUNT];
    uint32_t count = 0;

    cr_assert(chempi_index_add(&index, 0, 0));
    values[count++] = 0;
    rig_fail(RIG_MALLOC, 1, ENOMEM, true);
    for (; count < COUNT; count++) {
        values[count] = count;
        if (!chempi_index_add(&index, count, count))
            break;
    }
    rig_reset();
    cr_assert_lt(count, COUNT);
    cr_assert_eq(index.count, count);
    for (uint32_t i = 0; i < count; i++)
        cr_assert_eq(
            chempi_index_find(&index, i, has_value, values, &values[i]), i);
    cr_assert(chempi_index_add(&index, count, count));
    chempi_index_fini(&index);
}

Test(index, what_room_was_made_for_can_be_added_without_memory)
{
    struct chempi_index index = {.slots = NULL};

    cr_assert(chempi_index_add(&index, 0, 0));
    cr_assert(chempi_index_reserve(&index, COUNT));
    rig_fail(RIG_MALLOC, 1, ENOMEM, true);
    for (uint32_t i = 1; i <= COUNT; i++)
        cr_assert(chempi_index_add(&index, i, i));
    cr_assert(chempi_index_reserve(&index, 0));
    cr_assert_not(chempi_index_reserve(&index, 100 * COUNT));
    rig_reset();
    cr_assert_eq(index.count, COUNT + 1u);
    cr_assert_null(chempi_index_check(&index));
    chempi_index_fini(&index);
}

Test(index, texts_have_hashes_of_their_own)
{
    cr_assert_neq(chempi_index_hash_text(0, "a"),
                  chempi_index_hash_text(0, ""));
    cr_assert_neq(chempi_index_hash_text(0, "ab"),
                  chempi_index_hash_text(0, "ba"));
    cr_assert_neq(chempi_index_hash_text(1, "a"),
                  chempi_index_hash_text(2, "a"));
}
