/* SPDX-License-Identifier: BSD-3-Clause */
/* Rolls of sides, as rank 0 of a job sees them that meets another one. */
#include <criterion/criterion.h>
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/comm/comm.h"
#include "libchempi/didl/proc/roll.h"

enum { COUNT = 3, CONTEXT = CHEMPI_CONTEXT_OPEN };

static const uint8_t job_secret[CHEMPI_JOB_SECRET_BYTES] = {1};
static const uint8_t other_secret[CHEMPI_JOB_SECRET_BYTES] = {2};
static struct chempi_err err;

static void start(void)
{
    chempi_ctx.services.job_id = "job";
    chempi_ctx.services.secret = job_secret;
    chempi_ctx.services.rank_count = COUNT;
}

TestSuite(roll, .init = start);

static struct chempi_vouch_use use_of(bool is_first)
{
    return (struct chempi_vouch_use){.meeting = {3},
                                     .is_first = is_first,
                                     .context = CONTEXT,
                                     .count = COUNT};
}

static void sign(struct chempi_introduction *in, const uint8_t *secret,
                 const struct chempi_vouch_use *use)
{
    chempi_ctx.services.secret = secret;
    chempi_vouch_sign(in, use); /* for the key, which gives the name */
    (void)crypto_generichash((uint8_t *)in->name.world, sizeof(in->name.world),
                             in->key, sizeof(in->key), NULL, 0);
    chempi_vouch_sign(in, use);
    chempi_ctx.services.secret = job_secret;
}

/* The last member is of another world. */
static void introduce(struct chempi_introduction members[COUNT], bool is_first)
{
    struct chempi_vouch_use use = use_of(is_first);

    memset(members, 0, COUNT * sizeof(*members));
    for (; use.number < COUNT; use.number++) {
        members[use.number].name.rank = use.number;
        sign(&members[use.number],
             use.number + 1 < COUNT ? job_secret : other_secret, &use);
    }
}

static struct chempi_roll *make(bool is_first)
{
    struct chempi_introduction members[COUNT];
    struct chempi_roll *roll;

    introduce(members, is_first);
    roll = chempi_roll_make(members, COUNT, 1, CONTEXT);
    cr_assert_not_null(roll);
    return roll;
}

Test(roll, what_is_whole_is_taken)
{
    struct chempi_roll *roll = make(false);
    const size_t len = chempi_roll_len(COUNT);

    cr_assert_eq(chempi_roll_check(roll, len, false, &err), 0, "%s", err.text);
    cr_assert_eq(chempi_roll_compare(roll, &err), 0, "%s", err.text);
    cr_assert_eq(
        chempi_roll_verify(chempi_roll_members(roll), use_of(false), &err), 0,
        "%s", err.text);
    free(roll);
}

static void expect_malformed(const struct chempi_roll *roll, size_t len,
                             bool has_boxes)
{
    cr_expect_eq(chempi_roll_check(roll, len, has_boxes, &err), -EPROTO,
                 "%zu bytes", len);
}

Test(roll, what_is_malformed_is_refused)
{
    struct chempi_roll *roll = make(false);
    const size_t len = chempi_roll_len(COUNT);
    struct chempi_roll good = *roll;

    for (size_t n = 0; n < len; n++)
        expect_malformed(roll, n, false);
    expect_malformed(roll, len + 1, false);
    expect_malformed(roll, len + 96, false); /* a box */
    expect_malformed(roll, len + 95, true);
    roll->count = UINT32_MAX;
    expect_malformed(roll, len, false);
    roll->count = CHEMPI_FOREIGN_MAX + COUNT + 1; /* cannot be known */
    expect_malformed(roll, chempi_roll_len(roll->count), false);
    *roll = good;
    roll->root = COUNT;
    expect_malformed(roll, len, false);
    *roll = good;
    roll->context = 0;
    expect_malformed(roll, len, false);
    roll->context = CONTEXT + 1;
    expect_malformed(roll, len, false);
    *roll = good;
    roll->setting_count = CHEMPI_REGION_WORDS + 1;
    expect_malformed(roll, len, false);
    *roll = good;
    roll->magic++;
    expect_malformed(roll, len, false);
    free(roll);
}

Test(roll, other_ways_of_collective_operations_are_named)
{
    struct chempi_roll *roll = make(false);

    roll->settings[1]++;
    cr_assert_eq(chempi_roll_compare(roll, &err), -EPROTO);
    cr_assert_not_null(strstr(err.text, "CHEMPI_COLL_"), "%s", err.text);
    roll->settings[1]--;
    roll->setting_count--;
    cr_assert_eq(chempi_roll_compare(roll, &err), -EPROTO);
    roll->setting_count++;
    roll->settings[0]++;
    cr_assert_eq(chempi_roll_compare(roll, &err), -EPROTO);
    cr_assert_not_null(strstr(err.text, "different settings"), "%s", err.text);
    free(roll);
}

static void expect_liar(const struct chempi_introduction *members,
                        struct chempi_vouch_use use)
{
    cr_expect_eq(chempi_roll_verify(members, use, &err), -EPROTO);
}

/* What is right in one place is wrong in any other. */
Test(roll, members_are_who_they_claim_to_be)
{
    struct chempi_introduction members[COUNT];
    struct chempi_introduction first;
    struct chempi_vouch_use use = use_of(false);

    introduce(members, false);
    cr_assert_eq(chempi_roll_verify(members, use, &err), 0);
    first = members[0];
    members[0] = members[1]; /* twice the same */
    expect_liar(members, use);
    members[1] = first; /* in another order */
    expect_liar(members, use);
    introduce(members, true); /* of the other side */
    expect_liar(members, use);
    introduce(members, false);
    use.meeting[40]++; /* played again */
    expect_liar(members, use);
    use = use_of(false);
    use.context += 8; /* messages would go to another communicator */
    expect_liar(members, use);
    use = use_of(false);
    use.count--; /* without the last one */
    expect_liar(members, use);
    use.count++;
    memset(&members[2], 0, sizeof(members[2])); /* not signed */
    memcpy(&members[2].name, &members[0].name, sizeof(members[2].name));
    members[2].name.rank = 2;
    memcpy(members[2].key, members[0].key, sizeof(members[2].key));
    expect_liar(members, use);
    sign(&members[2], other_secret, &use);
    memcpy(members[2].name.world, members[0].name.world,
           sizeof(members[2].name.world)); /* another world's name */
    expect_liar(members, use);
}

static void take_secret(struct chempi_roll *roll,
                        const struct chempi_roll *mine, bool is_first,
                        uint8_t secret[CHEMPI_BOND_SECRET_BYTES])
{
    const uint8_t none[CHEMPI_BOND_SECRET_BYTES] = {0};
    struct chempi_vouch_use use = use_of(is_first);
    struct chempi_roll *theirs = malloc(chempi_roll_len(COUNT));
    size_t len = chempi_roll_len(COUNT);

    cr_assert_not_null(theirs);
    memcpy(theirs, roll, len);
    cr_assert_eq(chempi_roll_add_boxes(&theirs, &len, mine,
                                       chempi_roll_members(mine), &use, &err),
                 0, "%s", err.text);
    cr_assert_arr_eq(theirs->secret, none, sizeof(none)); /* in boxes only */
    cr_assert_eq(chempi_roll_check(theirs, len, true, &err), 0);
    cr_assert_eq(chempi_roll_open(theirs, len, secret, &err), 0, "%s",
                 err.text);
    /* The box of the other world. */
    cr_assert_eq(len, chempi_roll_len(COUNT) + 2 * 96);
    ((uint8_t *)theirs)[chempi_roll_len(COUNT) + 50] ^= 1;
    cr_assert_eq(chempi_roll_open(theirs, len, secret, &err), -EPROTO);
    ((uint8_t *)theirs)[chempi_roll_len(COUNT) + 50] ^= 1;
    cr_assert_eq(chempi_roll_open(theirs, len, secret, &err), 0);
    free(theirs);
}

/* It is the same on both sides, and neither's alone. */
Test(roll, worlds_of_both_sides_find_one_secret)
{
    struct chempi_roll *first = make(true);
    struct chempi_roll *second = make(false);
    uint8_t a[CHEMPI_BOND_SECRET_BYTES];
    uint8_t b[CHEMPI_BOND_SECRET_BYTES];

    take_secret(second, first, true, a);
    take_secret(first, second, false, b);
    cr_assert_arr_eq(a, b, sizeof(a));
    second->secret[0]++;
    take_secret(second, first, true, b);
    cr_assert_neq(memcmp(a, b, sizeof(a)), 0);
    first->secret[0]++;
    take_secret(second, first, true, a);
    cr_assert_neq(memcmp(a, b, sizeof(a)), 0);
    free(first);
    free(second);
}
