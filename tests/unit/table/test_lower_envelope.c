/* SPDX-License-Identifier: BSD-3-Clause */
/* The lower envelope agrees with trying every line at every size. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "common/base/compiler.h"
#include "common/table/lower_envelope.h"

Test(lower_envelope, of_no_line_is_a_hole)
{
    struct chempi_piece *p;
    size_t n;

    cr_assert_eq(chempi_lower_envelope(NULL, 0, &p, &n), 0);
    cr_assert_eq(n, 1);
    cr_expect_eq(p[0].max_len, UINT64_MAX);
    cr_expect_eq(p[0].line, CHEMPI_LOWER_ENVELOPE_NONE);
    free(p);
}

Test(lower_envelope, switches_at_the_exact_byte)
{
    /* 1 + s/4 and 11 + s/8 meet at 80 bytes: equal there, so the first one
     * stays; from 81 bytes on the second one is ahead. */
    const struct chempi_line lines[] = {
        {.base_us = 1, .slope_us = 0.25, .max_len = UINT64_MAX, .rank = 0},
        {.base_us = 11, .slope_us = 0.125, .max_len = UINT64_MAX, .rank = 1},
    };
    struct chempi_piece *p;
    size_t n;

    cr_assert_eq(chempi_lower_envelope(lines, 2, &p, &n), 0);
    cr_assert_eq(n, 2);
    cr_expect_eq(p[0].max_len, 80);
    cr_expect_eq(p[0].line, 0);
    cr_expect_eq(p[1].line, 1);
    free(p);
}

Test(lower_envelope, prefers_the_lower_rank_of_equal_lines)
{
    const struct chempi_line lines[] = {
        {.base_us = 3, .slope_us = 0.5, .max_len = UINT64_MAX, .rank = 2},
        {.base_us = 3, .slope_us = 0.5, .max_len = UINT64_MAX, .rank = 1},
    };
    struct chempi_piece *p;
    size_t n;

    cr_assert_eq(chempi_lower_envelope(lines, 2, &p, &n), 0);
    cr_assert_eq(n, 1);
    cr_expect_eq(p[0].line, 1);
    free(p);
}

Test(lower_envelope, leaves_a_hole_between_limits)
{
    const struct chempi_line lines[] = {
        {.base_us = 1, .slope_us = 1, .max_len = 10},
        {.base_us = 1, .slope_us = 1, .min_len = 20, .max_len = UINT64_MAX},
    };
    struct chempi_piece *p;
    size_t n;

    cr_assert_eq(chempi_lower_envelope(lines, 2, &p, &n), 0);
    cr_assert_eq(n, 3);
    cr_expect_eq(p[0].max_len, 10);
    cr_expect_eq(p[1].max_len, 19);
    cr_expect_eq(p[1].line, CHEMPI_LOWER_ENVELOPE_NONE);
    free(p);
}

static struct chempi_line random_line(void)
{
    struct chempi_line line = {
        .base_us = rand() % 100 / 4.0,
        .slope_us = rand() % 50 / 64.0,
        .max_len = rand() % 3 ? UINT64_MAX : (uint64_t)(rand() % 300),
        .rank = (uint32_t)(rand() % 3),
    };

    line.min_len = rand() % 3 ? 0 : (uint64_t)(rand() % 300);
    return line;
}

static double least_at(const struct chempi_line *lines, size_t n, uint64_t len)
{
    double least = INFINITY;

    for (size_t i = 0; i < n; i++) {
        if (lines[i].min_len <= len && len <= lines[i].max_len)
            least = fmin(least, chempi_line_at(&lines[i], len));
    }
    return least;
}

static void check_piece(const struct chempi_line *lines, size_t n,
                        const struct chempi_piece *piece, uint64_t len)
{
    double least = least_at(lines, n, len);

    if (piece->line == CHEMPI_LOWER_ENVELOPE_NONE) {
        cr_assert(isinf(least), "a hole at %lu that is none",
                  (unsigned long)len);
        return;
    }
    cr_assert_leq(lines[piece->line].min_len, len);
    cr_assert_geq(lines[piece->line].max_len, len);
    cr_assert_leq(fabs(chempi_line_at(&lines[piece->line], len) - least),
                  1e-9 * (1 + least));
}

Test(lower_envelope, of_random_lines_is_the_least_of_them_everywhere)
{
    struct chempi_line lines[9];

    srand(7);
    for (int round = 0; round < 2000; round++) {
        size_t n = (size_t)(rand() % 10);
        struct chempi_piece *p;
        size_t pieces;
        size_t at = 0;

        for (size_t i = 0; i < n; i++)
            lines[i] = random_line();
        cr_assert_eq(chempi_lower_envelope(lines, n, &p, &pieces), 0);
        cr_assert_eq(p[pieces - 1].max_len, UINT64_MAX);
        for (uint64_t len = 0; len < 400; len++) {
            if (len > p[at].max_len)
                at++;
            check_piece(lines, n, &p[at], len);
        }
        check_piece(lines, n, &p[pieces - 1], UINT64_MAX);
        check_piece(lines, n, &p[pieces - 1], UINT64_MAX - 1);
        for (size_t i = 1; i < pieces; i++)
            cr_expect_neq(p[i].line, p[i - 1].line);
        free(p);
    }
}
