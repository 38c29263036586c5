/* SPDX-License-Identifier: BSD-3-Clause */
/* What users may have of a daemon. */
#include <criterion/criterion.h>
#include <errno.h>

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
