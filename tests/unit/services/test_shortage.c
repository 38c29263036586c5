/* SPDX-License-Identifier: BSD-3-Clause */
/* libchempi/services/shortage, by a clock of its own. */
#define _GNU_SOURCE /* syscall */
#include <criterion/criterion.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "libchempi/services/shortage.h"

#define STEP_NS (CHEMPI_NS_PER_S / 2)

static uint64_t ahead_ns;

/* In the place of the library's, for all of this program. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
    const long rc = syscall(SYS_clock_gettime, clock, now);

    if (clock == CLOCK_MONOTONIC) {
        now->tv_sec += (time_t)(ahead_ns / CHEMPI_NS_PER_S);
        now->tv_nsec += (long)(ahead_ns % CHEMPI_NS_PER_S);
    }
    return (int)rc;
}

/* Refused again and again, for nearly as long as may be. */
static bool is_waited_for(struct chempi_shortage *shortage)
{
    uint64_t ns = 0;

    while (chempi_shortage_may_wait(shortage)) {
        ns += STEP_NS;
        if (ns >= CHEMPI_SHORTAGE_PATIENCE_NS)
            return true;
        ahead_ns += STEP_NS;
    }
    return false;
}

Test(shortage, it_is_waited_for_but_not_for_ever)
{
    struct chempi_shortage shortage = {0};

    cr_assert_not(chempi_shortage_is(&shortage));
    cr_assert(is_waited_for(&shortage));
    cr_assert(chempi_shortage_is(&shortage));
    ahead_ns += STEP_NS + 1;
    cr_assert_not(chempi_shortage_may_wait(&shortage));
}

Test(shortage, one_that_comes_after_another_has_the_same_patience)
{
    struct chempi_shortage shortage = {0};

    for (int i = 0; i < 3; i++) {
        cr_assert(is_waited_for(&shortage), "shortage %d", i);
        ahead_ns += 3 * STEP_NS; /* nobody has asked */
    }
}

Test(shortage, memory_ends_it)
{
    struct chempi_shortage shortage = {0};

    for (int i = 0; i < 3; i++) {
        cr_assert(is_waited_for(&shortage), "shortage %d", i);
        chempi_shortage_end(&shortage);
        cr_assert_not(chempi_shortage_is(&shortage));
    }
}
