/* SPDX-License-Identifier: BSD-3-Clause */
/* Who is silent, and who only seems so: with a clock of the tests' own. */
#define _GNU_SOURCE /* clock_gettime */
#include <criterion/criterion.h>

#include "chempid/tree/silence.h"
#include "common/base/clock.h"

#define PERIOD (250 * CHEMPI_NS_PER_MS)
#define LIMIT (4 * PERIOD)

static struct chempi_looks looks;
static struct chempi_silence silence;
static uint64_t now;

static void begin(void)
{
    now = 1000 * CHEMPI_NS_PER_S;
    silence = (struct chempi_silence){0};
    chempi_looks_begin(&looks, PERIOD, now);
}

/* The next look, so much later, finds nothing. Is the peer given up? */
static bool miss_after(uint64_t gap)
{
    now += gap;
    chempi_looks_next(&looks, now);
    return chempi_silence_lasts(&silence, &looks, LIMIT);
}

static uint64_t misses_until_given_up(uint64_t gap)
{
    uint64_t n = 1;

    while (!miss_after(gap))
        cr_assert_lt(++n, 1000, "it is never given up");
    return n;
}

Test(silence, lasts_as_long_as_the_limit, .init = begin)
{
    cr_assert_eq(misses_until_given_up(PERIOD), LIMIT / PERIOD);
}

Test(silence, is_not_shorter_for_looks_that_come_early, .init = begin)
{
    cr_assert_eq(misses_until_given_up(PERIOD / 10), 35); /* 3.5 periods */
}

/* One that keeps this process from looking, but not for an absence. */
Test(silence, is_not_counted_while_nobody_looks, .init = begin)
{
    cr_assert_eq(misses_until_given_up(2 * PERIOD), LIMIT / PERIOD);
}

/* Stopped for longer than the limit, just before it would have given up. */
Test(silence, begins_anew_after_an_absence, .init = begin)
{
    for (uint64_t i = 1; i < LIMIT / PERIOD; i++)
        cr_assert_not(miss_after(PERIOD));
    cr_assert_not(miss_after(100 * LIMIT));
    cr_assert_eq(misses_until_given_up(PERIOD), LIMIT / PERIOD);
}

/* Who never runs in time still notices in the end. */
Test(silence, begins_anew_only_once, .init = begin)
{
    cr_assert_eq(misses_until_given_up(3 * PERIOD), 1 + LIMIT / PERIOD);
}

Test(silence, is_forgiven_again_once_the_peer_was_heard, .init = begin)
{
    cr_assert_not(miss_after(100 * LIMIT));
    cr_assert(silence.is_forgiven);
    silence = (struct chempi_silence){0};
    for (uint64_t i = 1; i < LIMIT / PERIOD; i++)
        cr_assert_not(miss_after(PERIOD));
    cr_assert_not(miss_after(100 * LIMIT));
}
