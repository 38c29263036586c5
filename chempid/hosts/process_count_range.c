/* SPDX-License-Identifier: BSD-3-Clause */
/* Permitted numbers of ranks; see process_count_range.h. */
#include "chempid/hosts/process_count_range.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

/* Every step-th number from low to high, upwards: step is positive. */
struct triplet {
    int64_t low;
    int64_t high;
    int64_t step;
};

static bool take_number(const char **at, int64_t *out)
{
    char *end;
    long v;

    if (!isdigit((unsigned char)**at) && **at != '-')
        return false; /* strtol would take blanks and a plus */
    errno = 0;
    v = strtol(*at, &end, 10);
    if (errno || end == *at || v > INT32_MAX || v < -INT32_MAX)
        return false;
    *at = end;
    *out = v;
    return true;
}

/* The triplet up to a comma or the end. NULL, or what is wrong. */
static const char *take_triplet(const char **at, struct triplet *t)
{
    static const char expected[] =
        "expected triplets first:last:step of numbers, with commas between "
        "them, such as 2:10:2,16";
    int64_t first;
    int64_t last;
    int64_t step = 1;

    if (!take_number(at, &first))
        return expected;
    last = first;
    if (**at == ':' && (++*at, !take_number(at, &last)))
        return expected;
    if (**at == ':' && (++*at, !take_number(at, &step)))
        return expected;
    if (**at != '\0' && **at != ',')
        return expected;
    if (step == 0 || (last > first && step < 0) || (last < first && step > 0))
        return "the step of a triplet does not lead from its first number to "
               "its last";
    if (step > 0)
        *t = (struct triplet){first, last, step};
    else
        *t = (struct triplet){first - (first - last) / -step * -step, first,
                              -step};
    return NULL;
}

const char *chempi_count_range_check(const char *list)
{
    const char *why;
    struct triplet t;

    do {
        why = take_triplet(&list, &t);
    } while (!why && *list++ == ',');
    return why;
}

/* 0 or less: none. */
static int64_t largest_of(const struct triplet *t, int64_t max)
{
    const int64_t high = t->high < max ? t->high : max;

    return high < t->low ? 0 : t->low + (high - t->low) / t->step * t->step;
}

/* 0: none is positive. */
static int64_t smallest_of(const struct triplet *t)
{
    const int64_t below = t->low < 1 ? 1 - t->low : 0;
    const int64_t v = t->low + (below + t->step - 1) / t->step * t->step;

    return v > t->high ? 0 : v;
}

uint32_t chempi_count_range_largest(const char *list, uint32_t max)
{
    struct triplet t;
    int64_t best = 0;

    do {
        if (take_triplet(&list, &t))
            return 0;
        if (largest_of(&t, max) > best)
            best = largest_of(&t, max);
    } while (*list++ == ',');
    return (uint32_t)best;
}

uint32_t chempi_count_range_smallest(const char *list)
{
    struct triplet t;
    int64_t best = 0;

    do {
        int64_t v;

        if (take_triplet(&list, &t))
            return 0;
        v = smallest_of(&t);
        if (v && (!best || v < best))
            best = v;
    } while (*list++ == ',');
    return (uint32_t)best;
}
