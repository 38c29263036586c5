/* SPDX-License-Identifier: BSD-3-Clause */
/* What users may have of a daemon. */
#define _GNU_SOURCE /* mkstemp */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "chempid/peers/user_shares.h"
#include "chempid/tree/limits.h"

#define OWNER 4711

static struct chempi_user_shares shares;

/* A daemon that serves all users is not its owner's any more. */
Test(user_shares, who_a_daemon_has_become_is_a_user_like_others)
{
    chempi_user_shares_init(&shares, CHEMPI_FDS_RESERVED + 200, 0);
    cr_assert_lt(
        chempi_user_shares_share(&shares, CHEMPI_USER_SHARES_CONNS, OWNER, 0),
        CHEMPI_CONN_LOCAL_MAX);
    cr_assert_eq(
        chempi_user_shares_share(&shares, CHEMPI_USER_SHARES_CONNS, OWNER, 0),
        chempi_user_shares_share(&shares, CHEMPI_USER_SHARES_CONNS, OWNER + 1,
                                 0));
    cr_assert_eq(
        chempi_user_shares_share(&shares, CHEMPI_USER_SHARES_CONNS, 0, 0),
        CHEMPI_CONN_LOCAL_MAX);
    chempi_user_shares_fini(&shares);
}

Test(user_shares, the_owner_of_a_daemon_takes_what_there_is)
{
    chempi_user_shares_init(&shares, CHEMPI_FDS_RESERVED + 200, OWNER);
    cr_assert_eq(
        chempi_user_shares_share(&shares, CHEMPI_USER_SHARES_CONNS, OWNER, 0),
        CHEMPI_CONN_LOCAL_MAX);
    cr_assert_lt(chempi_user_shares_share(&shares, CHEMPI_USER_SHARES_CONNS,
                                          OWNER + 1, 0),
                 CHEMPI_CONN_LOCAL_MAX);
    cr_assert_eq(
        chempi_user_shares_share(&shares, CHEMPI_USER_SHARES_CONNS, 0, 0),
        CHEMPI_CONN_LOCAL_MAX);
    chempi_user_shares_fini(&shares);
}

/* W1, and however much there is for all. */
Test(user_shares, a_user_has_so_much_and_is_forgotten_without)
{
    for (int kind = 0; kind < CHEMPI_USER_SHARES_KINDS; kind++) {
        struct chempi_user *users[CHEMPI_USER_JOBS_MAX + 1];
        uint32_t taken = 0;
        struct chempi_err err;

        chempi_user_shares_init(&shares, CHEMPI_FDS_MAX, 0);
        while (taken <= CHEMPI_USER_JOBS_MAX &&
               (users[taken] = chempi_user_shares_enter(
                    &shares, OWNER, (enum chempi_user_shares_kind)kind, &err)))
            taken++;
        cr_expect_leq(taken, CHEMPI_USER_JOBS_MAX, "kind %d", kind);
        shares.pools[kind] = taken;
        cr_expect_null(chempi_user_shares_enter(
            &shares, OWNER + 1, (enum chempi_user_shares_kind)kind, &err));
        while (taken)
            chempi_user_shares_leave(&shares, users[--taken],
                                     (enum chempi_user_shares_kind)kind);
        cr_expect(chempi_list_is_empty(&shares.users));
        chempi_user_shares_fini(&shares);
    }
}

/* Whatever it is of which there is so much for all. */
Test(user_shares, users_leave_as_much_as_they_take)
{
    for (int kind = 0; kind < CHEMPI_USER_SHARES_KINDS; kind++) {
        struct chempi_user *users[4096];
        uint32_t taken = 0;
        struct chempi_err err;

        chempi_user_shares_init(&shares, CHEMPI_FDS_RESERVED + 200, 0);
        shares.pools[kind] = 200;
        for (uid_t uid = 1; uid <= 5; uid++) {
            const uint32_t before = taken;

            while (
                (users[taken] = chempi_user_shares_enter(
                     &shares, uid, (enum chempi_user_shares_kind)kind, &err)))
                taken++;
            cr_expect_eq(err.code, -EDQUOT);
            cr_expect_gt(taken, before, "kind %d, user %u", kind, uid);
        }
        cr_expect_lt(taken, 200);
        while (taken)
            chempi_user_shares_leave(&shares, users[--taken],
                                     (enum chempi_user_shares_kind)kind);
        cr_expect(chempi_list_is_empty(&shares.users));
        chempi_user_shares_fini(&shares);
    }
}

static void write_subordinates(const char *text)
{
    FILE *file = fopen(shares.subordinates.path, "w");

    cr_assert(file && fputs(text, file) >= 0);
    cr_assert_eq(fclose(file), 0);
    shares.subordinates.is_read = false; /* whatever the file's time says */
}

static const struct chempi_user *enter(uid_t uid)
{
    struct chempi_err err;

    return chempi_user_shares_enter(&shares, uid, CHEMPI_USER_SHARES_QUESTIONS,
                                    &err);
}

/* W3: nobody is more than two users, whatever numbers they may have. */
Test(user_shares, subordinate_users_are_one)
{
    char path[] = "/tmp/chempi-subuid-XXXXXX";

    cr_assert_eq(close(mkstemp(path)), 0);
    chempi_user_shares_init(&shares, CHEMPI_FDS_MAX, 0);
    shares.subordinates.path = path;
    write_subordinates("# none\nx:y:z\nroot:0:65536\nann:300000:100\n"
                       "bob:100000:65536\n4712:165536:65536\n");
    cr_expect_eq(enter(100000), enter(100001));
    cr_expect_eq(enter(100000), enter(165535));
    cr_expect_eq(enter(165536), enter(231071));
    cr_expect_neq(enter(165535), enter(165536));
    cr_expect_neq(enter(299999), enter(300000));
    cr_expect_neq(enter(300099), enter(300100));
    cr_expect_neq(enter(OWNER), enter(OWNER + 1));
    write_subordinates("bob:100000:1\n");
    cr_expect_neq(enter(100000), enter(100001));
    cr_assert_eq(unlink(path), 0);
    chempi_user_shares_fini(&shares);
}
