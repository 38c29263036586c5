/* SPDX-License-Identifier: BSD-3-Clause */
/* Figures of measured times: exact without noise, near with a lot of it. */
#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/base/compiler.h"
#include "mdconfig/measure/fit.h"
#include "mdconfig/measure/measure.h"

#define ROUNDS 16

static const uint64_t sizes[] = {0,     64,    256,    1024,    4096,
                                 16384, 65536, 262144, 1048576, 4194304};

/* From 0 to 1; the same numbers in every run. */
static double uniform(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (double)(*state >> 11) / 9007199254740992.0;
}

/* Times of a line; with a seed, some of them far too long, all a bit. */
static void make(struct chempi_fit_samples *s, double base_us, double bw,
                 double rate_us, uint64_t seed)
{
    *s = (struct chempi_fit_samples){.round_count = ROUNDS,
                                     .point_count = CHEMPI_ARRAY_LEN(sizes)};
    for (size_t r = 0; r < ROUNDS; r++) {
        for (size_t i = 0; i < s->point_count; i++) {
            double us = base_us + (double)sizes[i] / bw;

            if (seed && uniform(&seed) < 0.1)
                us *= 1 + 50 * uniform(&seed);
            else if (seed)
                us *= 1 + 0.03 * uniform(&seed);
            s->points[i].len = sizes[i];
            s->points[i].us[r] = us;
        }
        s->rate_us[r] = rate_us;
        if (seed && uniform(&seed) < 0.1)
            s->rate_us[r] *= 10;
    }
}

static void expect_near(double value, double wanted, double share)
{
    cr_expect(fabs(value - wanted) <= share * wanted, "%g, not %g", value,
              wanted);
}

Test(fit, of_a_line_is_the_line)
{
    struct chempi_fit_samples s;
    struct chempi_fit f;

    make(&s, 30, 100, 2, 0);
    chempi_fit_figures(&s, 1, &f);
    expect_near(f.latency.value, 28, 1e-6);
    expect_near(f.bw.value, 100, 1e-6);
    expect_near(f.cost.value, 2, 1e-6);
    cr_expect(f.latency.is_known && f.bw.is_known && f.cost.is_known);
    cr_expect_lt(f.latency.spread, 1e-6);
    cr_expect_lt(f.bw.spread, 1e-6);
}

Test(fit, is_not_moved_by_a_tenth_of_wrong_times)
{
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct chempi_fit_samples s;
        struct chempi_fit f;

        make(&s, 30, 100, 2, seed);
        chempi_fit_figures(&s, 1, &f);
        expect_near(f.latency.value + f.cost.value, 30, 0.08);
        expect_near(f.bw.value, 100, 0.08);
        expect_near(f.cost.value, 2, 0.05);
        cr_expect(f.latency.spread > 0 && f.latency.spread < 0.5, "%g",
                  f.latency.spread);
        cr_expect(chempi_fit_is_steady(&f));
    }
}

Test(fit, takes_the_bandwidth_that_is_given_where_sizes_do_not_tell)
{
    struct chempi_fit_samples s;
    struct chempi_fit f;

    make(&s, 0.2, 4000, 0.05, 0);
    s.point_count = 2; /* 0 and 64 bytes */
    chempi_fit_figures(&s, 4000, &f);
    cr_expect_not(f.bw.is_known);
    expect_near(f.bw.value, 4000, 1e-9);
    expect_near(f.latency.value, 0.15, 1e-6);
    make(&s, 30, 1e6, 2, 0);
    s.point_count = 4; /* 1024 bytes take 1 ns */
    chempi_fit_figures(&s, 80, &f);
    cr_expect_not(f.bw.is_known);
}

Test(fit, divides_the_time_of_a_message_into_latency_and_cost)
{
    struct chempi_fit_samples s;
    struct chempi_fit f;

    make(&s, 10, 100, 25, 0); /* messages in a row slower than alone */
    chempi_fit_figures(&s, 1, &f);
    expect_near(f.cost.value, 5, 1e-6);
    expect_near(f.latency.value, 5, 1e-6);
    make(&s, 10, 100, 3, 0);
    s.rate_len = 200; /* 2 us for its bytes */
    chempi_fit_figures(&s, 1, &f);
    expect_near(f.cost.value, 1, 1e-6);
    expect_near(f.latency.value, 9, 1e-6);
}

/* Rounds [first, last) of all sizes take longer by a factor. */
static void disturb(struct chempi_fit_samples *s, size_t first, size_t last,
                    double factor)
{
    for (size_t r = first; r < last; r++) {
        for (size_t i = 0; i < s->point_count; i++)
            s->points[i].us[r] *= factor;
        s->rate_us[r] *= factor;
    }
}

Test(fit, takes_what_was_seen_twice_and_states_what_else_was)
{
    struct chempi_fit_samples s;
    struct chempi_fit f;

    make(&s, 30, 100, 2, 0);
    disturb(&s, 0, ROUNDS / 4, 1.2); /* all of the first group */
    chempi_fit_figures(&s, 1, &f);
    expect_near(f.latency.value, 28, 1e-6);
    expect_near(f.bw.value, 100, 1e-6);
    cr_expect(f.latency.spread > 0.19, "%g", f.latency.spread);
    cr_expect(f.bw.spread > 0.16, "%g", f.bw.spread);
    cr_expect(chempi_fit_is_steady(&f));
    make(&s, 30, 100, 2, 0);
    s.points[0].us[3] = 1; /* never seen again */
    chempi_fit_figures(&s, 1, &f);
    expect_near(f.latency.value, 28, 1e-6);
}

Test(fit, is_not_steady_where_times_of_the_measurement_differ)
{
    struct chempi_fit_samples s;
    struct chempi_fit f;

    make(&s, 30, 100, 2, 0);
    disturb(&s, ROUNDS / 2, ROUNDS, 3);
    chempi_fit_figures(&s, 1, &f);
    cr_expect_not(chempi_fit_is_steady(&f));
    cr_expect(f.latency.spread > 1.9, "%g", f.latency.spread);
    make(&s, 30, 100, 2, 0);
    s.point_count = 2; /* no bandwidth, latency alone */
    disturb(&s, 0, ROUNDS / 4, 2);
    chempi_fit_figures(&s, 100, &f);
    cr_expect_not(chempi_fit_is_steady(&f));
    make(&s, 30, 100, 2, 0);
    for (size_t r = ROUNDS / 2; r < ROUNDS; r++)
        s.points[s.point_count - 1].us[r] *= 2; /* the largest size alone */
    chempi_fit_figures(&s, 100, &f);
    cr_expect_not(chempi_fit_is_steady(&f));
}

Test(fit, leaves_out_what_is_known_to_be_disturbed)
{
    struct chempi_fit_samples s;
    struct chempi_fit f;

    make(&s, 30, 100, 2, 0);
    for (size_t r = ROUNDS / 2; r < ROUNDS; r++)
        s.points[4].us[r] *= -10;
    chempi_fit_figures(&s, 1, &f);
    cr_expect(chempi_fit_is_steady(&f));
    expect_near(f.latency.value, 28, 1e-6);
    expect_near(f.bw.value, 100, 1e-6);
    for (size_t r = 0; r < ROUNDS; r++)
        s.points[4].us[r] = -1; /* this size is not needed */
    chempi_fit_figures(&s, 1, &f);
    cr_expect(chempi_fit_is_steady(&f));
    expect_near(f.bw.value, 100, 1e-6);
    for (size_t r = 0; r < ROUNDS; r++)
        s.points[s.point_count - 1].us[r] = -1; /* this one is */
    chempi_fit_figures(&s, 1, &f);
    cr_expect_not(chempi_fit_is_steady(&f));
    make(&s, 30, 100, 2, 0);
    for (size_t r = 0; r < ROUNDS; r++)
        s.rate_us[r] = -2;
    chempi_fit_figures(&s, 1, &f);
    cr_expect_not(chempi_fit_is_steady(&f));
    cr_expect(f.is_disturbed);
}

/* ---- what the probe says ------------------------------------------------ */

Test(probe, is_understood)
{
    struct chempi_fit_samples s;
    struct chempi_err err = {.code = 0};

    cr_assert_eq(chempi_measure_read("echo 0 1.5 2 3\necho 64 2.5 3 4\n"
                                     "rate 8 0.5 0.25 1\nend\n",
                                     &s, &err),
                 0, "%s", err.text);
    cr_expect_eq(s.round_count, 3);
    cr_expect_eq(s.point_count, 2);
    cr_expect_eq(s.points[1].len, 64);
    cr_expect_float_eq(s.points[1].us[2], 4, 1e-12);
    cr_expect_eq(s.rate_len, 8);
    cr_expect_float_eq(s.rate_us[1], 0.25, 1e-12);
}

Test(probe, is_not_trusted)
{
    static const char *const wrong[] = {
        "",
        "end\n",
        "rate 0 1\nend\n",
        "echo 0 1\nend\n",
        "echo 0 1\nrate 0 1\n",
        "echo 0 1\nrate 0 1\nend",
        "echo 0 1 2\nrate 0 1\nend\n",
        "echo 8 1\necho 8 1\nrate 0 1\nend\n",
        "echo 8 1\necho 4 1\nrate 0 1\nend\n",
        "echo 0 0\nrate 0 1\nend\n",
        "echo 0 -1e99\nrate 0 1\nend\n",
        "echo 0 nan\nrate 0 1\nend\n",
        "echo 0 inf\nrate 0 1\nend\n",
        "echo -1 1\nrate 0 1\nend\n",
        "echo 0\nrate 0\nend\n",
        "hello\necho 0 1\nrate 0 1\nend\n",
    };
    struct chempi_fit_samples s;
    struct chempi_err err;
    char text[4096] = "";

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(wrong); i++) {
        err = (struct chempi_err){.code = 0};
        cr_expect_eq(chempi_measure_read(wrong[i], &s, &err), -EBADMSG, "%zu",
                     i);
        cr_expect(err.text[0]);
    }
    for (unsigned i = 0; i <= CHEMPI_FIT_SIZES_MAX; i++)
        (void)snprintf(text + strlen(text), sizeof(text) - strlen(text),
                       "echo %u 1\n", i);
    strcat(text, "rate 0 1\nend\n");
    cr_expect_eq(chempi_measure_read(text, &s, &err), -EBADMSG);
}

Test(probe, messages_are_counted_by_network_and_protocol)
{
    static const char text[] =
        "from  to  network  device  protocol  messages  bytes\n"
        "a  a  smp  self  copy       99  9\n"
        "a  b  lan  tcp   eager      70  12\n"
        "a  b  lan  tcp   rendezvous 20  12\n"
        "b  a  wan  tcp   eager      10  12\n"
        "something else\n";
    char other[64];

    expect_near(chempi_measure_share(text, "lan", "eager", other), 0.7, 1e-9);
    cr_expect_str_eq(other, "rendezvous");
    expect_near(chempi_measure_share(text, "wan", "eager", other), 0.1, 1e-9);
    cr_expect_eq(chempi_measure_share("", "wan", "eager", other), 0);
    cr_expect_str_eq(other, "");
}
