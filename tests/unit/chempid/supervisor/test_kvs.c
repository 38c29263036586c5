/* SPDX-License-Identifier: BSD-3-Clause */
/* The key-value store of a job at a node. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "chempid/supervisor/kvs.h"
#include "common/control/msg.h"

static unsigned served;
static struct chempi_kvs_waiter last;

static void serve(void *arg, const struct chempi_kvs_waiter *waiter,
                  const struct chempi_kvs_entry *e)
{
    (void)arg;
    (void)e;
    served++;
    last = *waiter;
}

Test(kvs, a_value_is_found_by_rank_and_key)
{
    struct chempi_kvs kvs = {0};
    struct chempi_kvs_entry *a = chempi_kvs_entry(&kvs, 1, "card", true);
    struct chempi_kvs_entry *b = chempi_kvs_entry(&kvs, 2, "card", true);

    cr_assert(a && b && a != b);
    cr_assert_eq(chempi_kvs_set(&kvs, a, "one", 3, serve, NULL), 0);
    cr_assert_eq(chempi_kvs_entry(&kvs, 1, "card", true), a);
    cr_assert(a->has_value);
    cr_assert_eq(memcmp(a->value, "one", 3), 0);
    cr_assert_not(b->has_value);
    chempi_kvs_fini(&kvs);
}

Test(kvs, many_entries_are_all_found_again)
{
    struct chempi_kvs kvs = {0};
    char key[16];

    for (unsigned i = 0; i < 5000; i++) {
        struct chempi_kvs_entry *e;

        (void)snprintf(key, sizeof(key), "k%u", i % 7);
        e = chempi_kvs_entry(&kvs, i, key, true);
        cr_assert_eq(chempi_kvs_set(&kvs, e, &i, sizeof(i), serve, NULL), 0);
    }
    cr_assert_eq(kvs.count, 5000);
    for (unsigned i = 0; i < 5000; i++) {
        (void)snprintf(key, sizeof(key), "k%u", i % 7);
        cr_assert_eq(memcmp(chempi_kvs_entry(&kvs, i, key, true)->value, &i, 4),
                     0);
    }
    chempi_kvs_fini(&kvs);
}

Test(kvs, who_waits_is_served_once_when_the_value_comes)
{
    struct chempi_kvs kvs = {0};
    struct chempi_kvs_entry *e = chempi_kvs_entry(&kvs, 1, "card", false);

    for (uint32_t i = 0; i < 9; i++)
        cr_assert_eq(
            chempi_kvs_wait(&kvs, e, (struct chempi_kvs_waiter){.index = i}),
            0);
    cr_assert_eq(kvs.waiting, 9);
    cr_assert_eq(chempi_kvs_set(&kvs, e, "v", 1, serve, NULL), 0);
    cr_assert_eq(served, 9);
    cr_assert_eq(last.index, 8);
    cr_assert_eq(kvs.waiting, 0);
    cr_assert_eq(chempi_kvs_set(&kvs, e, "w", 1, serve, NULL), 0);
    cr_assert_eq(served, 9);
    chempi_kvs_fini(&kvs);
}

Test(kvs, the_number_of_questions_is_limited)
{
    struct chempi_kvs kvs = {0};
    struct chempi_kvs_entry *e = chempi_kvs_entry(&kvs, 1, "card", false);
    const struct chempi_kvs_waiter waiter = {.index = 0};

    for (uint32_t i = 0; i < CHEMPI_RANK_GETS_MAX; i++)
        cr_assert_eq(chempi_kvs_wait(&kvs, e, waiter), 0);
    cr_assert_eq(chempi_kvs_wait(&kvs, e, waiter), -ENOBUFS);
    chempi_kvs_fini(&kvs);
}

Test(kvs, learned_values_are_forgotten_own_ones_and_questions_are_not)
{
    struct chempi_kvs kvs = {0};
    struct chempi_kvs_entry *own = chempi_kvs_entry(&kvs, 0, "k", true);
    struct chempi_kvs_entry *learned = chempi_kvs_entry(&kvs, 5, "k", false);
    struct chempi_kvs_entry *asked = chempi_kvs_entry(&kvs, 6, "k", false);

    cr_assert_eq(chempi_kvs_set(&kvs, own, "o", 1, serve, NULL), 0);
    cr_assert_eq(chempi_kvs_set(&kvs, learned, "l", 1, serve, NULL), 0);
    cr_assert_eq(
        chempi_kvs_wait(&kvs, asked, (struct chempi_kvs_waiter){.index = 1}),
        0);
    chempi_kvs_forget(&kvs);
    cr_assert_eq(kvs.count, 2);
    cr_assert(chempi_kvs_entry(&kvs, 0, "k", true)->has_value);
    cr_assert_not(chempi_kvs_entry(&kvs, 5, "k", false)->has_value);
    cr_assert_eq(chempi_kvs_entry(&kvs, 6, "k", false)->waiter_count, 1);
    chempi_kvs_fini(&kvs);
}
