/* SPDX-License-Identifier: BSD-3-Clause */
/* What users may have of a daemon. */
#include <criterion/criterion.h>

#include "chempid/daemon/crowd.h"
#include "chempid/tree/limits.h"

#define OWNER 4711

static struct chempi_crowd crowd;

/* A daemon that serves all users is not its owner's any more. */
Test(crowd, who_a_daemon_has_become_is_a_user_like_others)
{
    chempi_crowd_init(&crowd, CHEMPI_FDS_RESERVED + 200, 0);
    cr_assert_lt(chempi_crowd_share(&crowd, OWNER, 0), CHEMPI_CONN_LOCAL_MAX);
    cr_assert_eq(chempi_crowd_share(&crowd, OWNER, 0),
                 chempi_crowd_share(&crowd, OWNER + 1, 0));
    cr_assert_eq(chempi_crowd_share(&crowd, 0, 0), CHEMPI_CONN_LOCAL_MAX);
    chempi_crowd_fini(&crowd);
}

Test(crowd, the_owner_of_a_daemon_takes_what_there_is)
{
    chempi_crowd_init(&crowd, CHEMPI_FDS_RESERVED + 200, OWNER);
    cr_assert_eq(chempi_crowd_share(&crowd, OWNER, 0), CHEMPI_CONN_LOCAL_MAX);
    cr_assert_lt(chempi_crowd_share(&crowd, OWNER + 1, 0),
                 CHEMPI_CONN_LOCAL_MAX);
    chempi_crowd_fini(&crowd);
}
