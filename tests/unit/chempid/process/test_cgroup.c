/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether a process is in a job's control group, by what the kernel tells. */
#include <criterion/criterion.h>

#include "chempid/process/cgroup.h"

#define NAME "/system.slice/chempid.service/chempi.a.7"
#define JOB "j-12"

static bool tells(const char *lines)
{
    return chempi_cgroup_tells(lines, NAME, JOB);
}

Test(cgroup, members_are_found_in_both_versions)
{
    cr_assert(tells("0::" NAME "/" JOB "\n"));
    cr_assert(tells("0::" NAME "/" JOB));
    cr_assert(tells("0::" NAME "/" JOB "/below\n"));
    cr_assert(tells("9:name=systemd:/\n4:memory:" NAME "/" JOB "\n0::/\n"));
}

Test(cgroup, names_alike_elsewhere_do_not_count)
{
    cr_assert_not(tells(""));
    cr_assert_not(tells("0::/\n"));
    cr_assert_not(tells("0::" NAME "\n"));
    cr_assert_not(tells("0::" NAME "/" JOB "3\n"));
    cr_assert_not(tells("0::" NAME "0/" JOB "\n"));
    cr_assert_not(tells("0::/user.slice/u" NAME "/" JOB "\n"));
    cr_assert_not(tells("0::/user.slice/chempi.a.7/" JOB "\n"));
    cr_assert_not(tells("0::/user.slice/" JOB "\n"));
    cr_assert_not(tells("1:cpu:/u\n0::" NAME "/other/" JOB "\n"));
}
